//! Reading a sabir.toml: every mistake is reported with its place and a hint.

use std::os::unix::fs::PermissionsExt as _;

use sabir_testkit::Authority;
use tempfile::TempDir;

use crate::{command, folder_with, sabir, seen};

#[track_caller]
fn check(file: &str, expected: &str) {
    let folder = folder_with(file);
    assert_eq!(seen(&sabir(folder.path(), &["check"])), expected.trim());
}

#[test]
fn an_empty_file_offers_nothing() {
    check(
        "",
        "exit 0\nstderr:\nwarning: nothing is served: the file has no source\n  hint: for the Markdown \
         of its folder, write `[[articles]]` and below it `path = \".\"`\n`sabir` offers 0 tools, 0 \
         prompts and 0 resources",
    );
}

#[test]
fn a_syntax_error_is_reported_with_its_line() {
    let folder = folder_with("[server]\nname = \n");
    let seen = seen(&sabir(folder.path(), &["check"]));
    assert!(seen.starts_with("exit 3\nstderr:\nerror: "), "{seen}");
    assert!(seen.contains("\n  --> sabir.toml:2"), "{seen}");
}

#[test]
fn an_unknown_field_is_reported() {
    check(
        "[server]\nname = \"x\"\nnmae = \"y\"\n",
        "exit 3\nstderr:\nerror: [server]: unknown key `nmae`\n  --> sabir.toml:3\n  hint: did you \
         mean `name`? Write e.g. `name = \"my-server\"`",
    );
}

#[test]
fn an_invalid_choice_is_reported_with_the_valid_ones() {
    check(
        "[dialect]\nunknown_tool = -32000\n",
        "exit 3\nstderr:\nerror: invalid value -32000 of `unknown_tool` (expected -32602 or -32601 or \
         \"result\")\n  --> sabir.toml:2",
    );
    check(
        "\n[dialect]\nrequire_ready = \"some\"\n",
        "exit 3\nstderr:\nerror: invalid value \"some\" of `require_ready` (expected \"none\" or \"tools\" or \
         \"all\")\n  --> sabir.toml:3",
    );
}

#[test]
fn an_unknown_revision_is_reported_with_the_known_ones() {
    check(
        "[dialect]\nrevision = \"2025-11-26\"\n",
        "exit 3\nstderr:\nerror: invalid revision `2025-11-26` (expected one of 2024-11-05, \
         2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28)\n  --> sabir.toml:2",
    );
}

#[test]
fn durations_sizes_and_numbers_are_checked() {
    check(
        "[limits]\ngrace = \"soon\"\n",
        "exit 3\nstderr:\nerror: invalid duration `soon` of `grace` (expected e.g. \"250ms\", \"5s\", \
         \"2m\")\n  --> sabir.toml:2",
    );
    check(
        "[limits]\nmessage_size = \"16mb\"\n",
        "exit 3\nstderr:\nerror: invalid size `16mb` of `message_size` (expected e.g. \"64KB\", \"16MB\")\n  --> \
         sabir.toml:2",
    );
    check(
        "[limits]\ncalls = 0\n",
        "exit 3\nstderr:\nerror: invalid number 0 of `calls` (expected at least 1)\n  --> sabir.toml:2",
    );
}

#[test]
fn a_missing_seal_key_is_reported() {
    check(
        "[seal]\nkey_env = \"SABIR_NO_SUCH_KEY\"\n",
        "exit 3\nstderr:\nerror: environment variable `SABIR_NO_SUCH_KEY` is not set\n  --> \
         sabir.toml:2\n  hint: `openssl rand -base64 32` prints a key",
    );
}

#[test]
fn a_missing_file_is_reported() {
    let folder = TempDir::new().unwrap();
    let output = sabir(folder.path(), &["check", "other.toml"]);
    assert_eq!(
        seen(&output),
        "exit 3\nstderr:\nerror: file or folder not found\n  --> other.toml\n  hint: name a \
         folder of Markdown, or a sabir.toml; `sabir init` writes one"
    );
}

#[test]
fn init_writes_a_file_that_check_reads_and_never_overwrites() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        seen(&sabir(folder.path(), &["init"])),
        "exit 0\nstderr:\nwrote sabir.toml; `sabir check` reads it, `sabir serve` serves it"
    );
    assert!(seen(&sabir(folder.path(), &["check"])).starts_with("exit 0"));
    assert_eq!(
        seen(&sabir(folder.path(), &["init"])),
        "exit 1\nstderr:\nerror: sabir.toml already exists (not changed)"
    );
}

#[test]
fn init_goes_on_serving_a_folder_of_markdown() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("note.md"), "# A note\n").unwrap();
    let said = seen(&sabir(folder.path(), &["init"]));
    assert!(said.contains("wrote sabir.toml, for the Markdown of this folder;"), "{said}");
    let said = seen(&sabir(folder.path(), &["check"]));
    assert!(said.contains("articles .: 1 article, 0 hidden"), "{said}");
}

#[test]
fn a_file_without_a_source_is_told() {
    let folder = folder_with("[server]\nname = \"x\"\n");
    let said = seen(&sabir(folder.path(), &["check"]));
    assert!(said.starts_with("exit 0") && said.contains("the file has no source"), "{said}");
    let said = seen(&sabir(folder.path(), &["call", ".", "nothing"]));
    assert!(said.contains("no tool `nothing` (the server has: none)"), "{said}");
}

#[test]
fn every_key_that_init_shows_is_read() {
    let folder = TempDir::new().unwrap();
    sabir(folder.path(), &["init"]);
    let file = std::fs::read_to_string(folder.path().join("sabir.toml")).unwrap();
    // All keys must be known when they are uncommented.
    let uncommented: String = file
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_toml(rest)).unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert!(uncommented.contains("\nabort_grace ="), "{uncommented}");
    std::fs::write(folder.path().join("sabir.toml"), &uncommented).unwrap();
    let seal_key = format!("{}=", "A".repeat(43));
    let variables = [
        ("SABIR_SEAL_KEY", seal_key.as_str()),
        ("SABIR_TOKEN", "one"),
        ("ANN_TOKEN", "two"),
        ("SHOP_TOKEN", "three"),
    ];
    let description = "openapi: 3.1.0\ninfo: {title: Shop, version: '1'}\npaths: {}\n";
    std::fs::write(folder.path().join("openapi.yaml"), description).unwrap();
    std::fs::create_dir(folder.path().join("skills")).unwrap();
    std::fs::write(folder.path().join("view.html"), "<p>").unwrap();
    Authority::new(folder.path()).sign("server", "localhost");
    // The program of the upstream is looked for, and not started.
    let npx = folder.path().join("npx");
    std::fs::write(&npx, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&npx, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(folder.path(), &["check"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    let seen = seen(&command.envs(variables).output().unwrap());
    assert!(seen.starts_with("exit 0"), "{seen}\n{uncommented}");
}

fn is_toml(line: &str) -> bool {
    line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
}

#[test]
fn a_document_is_not_read_as_a_configuration() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("a.md"), "# A comment of TOML\n").unwrap();
    for command in ["check", "serve"] {
        let said = seen(&sabir(folder.path(), &[command, "a.md"]));
        let expected = "a document, not a configuration (expected a folder or a sabir.toml)\n  --> \
                        a.md\n  hint: serve its folder: .";
        assert!(said.starts_with("exit 3") && said.contains(expected), "{said}");
    }
}

#[test]
fn an_empty_folder_is_told_from_a_server() {
    let folder = TempDir::new().unwrap();
    let said = seen(&sabir(folder.path(), &["check"]));
    assert!(said.starts_with("exit 0") && said.contains("warning: nothing is served: "), "{said}");
    assert!(
        said.contains("hint: name a folder of Markdown, or write a file: sabir init"),
        "{said}"
    );
}

#[test]
fn what_is_found_when_sources_are_opened_is_reported_with_the_rest() {
    let folder = folder_with(
        "[server]\nnmae = \"x\"\n[[articles]]\npath = \"nowhere\"\n[[command]]\nname = \"t\"\n\
         run = [\"./nowhere\"]\n[[resource]]\nuri = \"a:b\"\nfile = \"nowhere\"\n[limits]\ncalls = 0\n",
    );
    let said = seen(&sabir(folder.path(), &["check"]));
    let places = said.lines().filter_map(|line| line.strip_prefix("  --> sabir.toml:"));
    assert_eq!(places.collect::<Vec<_>>(), ["2", "4", "7", "10", "12"], "{said}");
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = TempDir::new().unwrap();
    assert_eq!(sabir(folder.path(), &["srve"]).status.code(), Some(2));
}

#[test]
fn all_mistakes_of_all_sources_are_reported() {
    let files = "[[resource]]\nuri = \"a:b\"\nfile = \"nowhere\"\n[[command]]\nname = \"t\"\nrun = \
                 [\"./nowhere\"]\n";
    let folder = folder_with(files);
    let seen_when_opened = seen(&sabir(folder.path(), &["check"]));
    assert!(seen_when_opened.starts_with("exit 3"), "{seen_when_opened}");
    for line in ["sabir.toml:6", "sabir.toml:3"] {
        assert!(seen_when_opened.contains(line), "{seen_when_opened}");
    }
    check(
        "[[resource]]\nuri = \"a\"\n[[prompt]]\nname = \"p\"\n",
        "exit 3\nstderr:\nerror: invalid URI `a` of `uri` (expected e.g. \"text://motto\")\n  --> \
         sabir.toml:2\nerror: prompt `p`: expected either `text` or `messages`\n  --> sabir.toml:4\n  \
         hint: add e.g. `text = \"Explain {topic}\"`",
    );
}

#[test]
fn the_result_of_check_can_be_read_by_a_program() {
    let folder = folder_with("[server]\nname = \"n\"\n[[resource]]\nuri = \"a:b\"\ntext = \"x\"\n");
    std::fs::write(folder.path().join("a.md"), "# A\n").unwrap();
    let output = sabir(folder.path(), &["check", "--json"]);
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&read["ok"], &read["name"]), (&true.into(), &"n".into()), "{read}");
    assert_eq!(read["resources"], serde_json::json!(["a:b"]), "{read}");
    std::fs::write(folder.path().join("sabir.toml"), "[limits]\n  calls = 0\n").unwrap();
    let output = sabir(folder.path(), &["check", "--json"]);
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stderr.is_empty());
    let place = (&read["errors"][0]["line"], &read["errors"][0]["column"]);
    assert_eq!(place, (&2.into(), &11.into()), "{read}");
}
