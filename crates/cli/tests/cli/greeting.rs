//! The first lines of a server: its address, and the line for a client.

use crate::mistakes::said;
use crate::{command, folder_with};

#[test]
fn an_address_may_be_a_port() {
    for (written, shown) in [
        ("0", "127.0.0.1:"),
        (":0", "127.0.0.1:"),
        ("localhost:0", "127.0.0.1:"),
        ("[::1]:0", "[::1]:"),
    ] {
        let file = format!("[server]\nname = \"a b'c\"\n[listen]\nhttp = \"{written}\"\n");
        for args in [&["serve"][..], &["serve", "--http", written]] {
            let said = first_lines(&file, args, &[]);
            assert!(said.starts_with(&format!("serving `a b'c` on http://{shown}")), "{said}");
        }
    }
    let (code, said) = said("", &["serve", "--http", "localhost"]);
    assert!(code == 2 && said.contains("expected e.g. \"127.0.0.1:7331\""), "{said}");
}

#[test]
fn the_line_for_a_client_fits_any_name_and_never_shows_a_token() {
    let file = "[server]\nname = \"a b'c\"\n[http]\nendpoint = \"/m c\"\n";
    let said = first_lines(file, &["serve", "--http", "0"], &[("SABIR_TOKEN", "hush")]);
    let line = said.lines().nth(1).unwrap();
    assert!(
        line.starts_with("  claude mcp add --transport http a-b-c 'http://127.0.0.1:"),
        "{said}"
    );
    assert!(line.ends_with("/m c' --header 'Authorization: Bearer ${SABIR_TOKEN}'"), "{said}");
    assert!(!said.contains("hush"));
    let file = "[[token]]\nname = \"ann\"\nenv = \"ANN_TOKEN\"\n";
    let said = first_lines(file, &["serve", "--http", "0"], &[("ANN_TOKEN", "hush")]);
    assert!(said.contains("Bearer ${ANN_TOKEN}'") && !said.contains("hush"), "{said}");
}

#[test]
fn the_line_for_a_client_can_be_pasted() {
    for (name, expected) in [("日本", "sabir"), ("-x", "x"), ("--a b-", "a-b")] {
        let file = format!("[server]\nname = \"{name}\"\n");
        let said = first_lines(&file, &["serve", "--http", "0"], &[]);
        assert!(said.contains(&format!("--transport http {expected} http://")), "{said}");
    }
    let said = lines(3, "", &["serve", "--http", "0", "--token", "hush"], &[]);
    assert!(said.contains("'Authorization: Bearer ${SABIR_TOKEN}'"), "{said}");
    assert!(said.contains("export SABIR_TOKEN") && !said.contains("hush"), "{said}");
    let folder = folder_with("");
    let token = folder.path().join("my token");
    std::fs::write(&token, "hush\n").unwrap();
    let args = ["serve", "--http", "0", "--token-file", token.to_str().unwrap()];
    let said = first_lines("", &args, &[]);
    let expected = format!("\"Authorization: Bearer $(cat '{}')\"", token.display());
    assert!(said.contains(&expected) && !said.contains("hush"), "{said}");
}

/// The first two lines of a server, which is then stopped.
fn first_lines(file: &str, args: &[&str], env: &[(&str, &str)]) -> String {
    lines(2, file, args, env)
}

/// The first lines of a server, which is then stopped.
fn lines(count: usize, file: &str, args: &[&str], env: &[(&str, &str)]) -> String {
    use std::io::{BufRead as _, BufReader};
    let folder = folder_with(file);
    let mut child = command(folder.path(), args)
        .envs(env.iter().copied())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().take(count);
    let said: Vec<_> = said.map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    said.join("\n")
}
