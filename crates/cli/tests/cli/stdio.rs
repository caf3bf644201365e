//! `sabir serve --stdio`: one client on standard input and output.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{command, folder_with, seen};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

fn serve(file: &str) -> (tempfile::TempDir, Child) {
    let folder = folder_with(file);
    let child = command(folder.path(), &["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (folder, child)
}

/// Waits for the exit code, with a time limit.
fn exit_code(child: &mut Child) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it did not exit");
        }
        std::thread::yield_now();
    }
}

#[test]
fn requests_on_a_pipe_are_answered_and_the_end_of_input_stops_it() {
    let (_folder, mut child) = serve("");
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for id in ["1", "\"two\"", "12345678901234567890"] {
        writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n"));
    }
    drop(input);
    assert_eq!(exit_code(&mut child), 0);
}

#[test]
fn stdin_and_stdout_may_be_files_or_sockets() {
    let folder = folder_with("");
    let path = folder.path().join("requests");
    std::fs::write(&path, format!("{PING}\n{PING}")).unwrap();
    let output = command(folder.path(), &["serve", "--stdio"])
        .stdin(File::open(&path).unwrap())
        .stdout(File::create(folder.path().join("answers")).unwrap())
        .output()
        .unwrap();
    assert_eq!(seen(&output), "exit 0");
    let answers = std::fs::read_to_string(folder.path().join("answers")).unwrap();
    assert_eq!(answers, format!("{PONG}\n{PONG}\n"));

    // Node gives its children sockets.
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut child = command(folder.path(), &["serve", "--stdio"])
        .stdin(std::os::fd::OwnedFd::from(theirs.try_clone().unwrap()))
        .stdout(std::os::fd::OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    writeln!(&ours, "{PING}").unwrap();
    let mut line = String::new();
    BufReader::new(&ours).read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), PONG);
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(exit_code(&mut child), 0);
}

#[test]
fn a_client_that_reads_nothing_until_it_has_written_all_is_served() {
    let (_folder, mut child) = serve("");
    let mut input = child.stdin.take().unwrap();
    let requests = 20_000;
    let writer = std::thread::spawn(move || {
        for _ in 0..requests {
            writeln!(input, "{PING}").unwrap();
        }
    });
    writer.join().unwrap();
    let answers = BufReader::new(child.stdout.take().unwrap()).lines().count();
    assert_eq!(answers, requests);
    assert_eq!(exit_code(&mut child), 0);
}

#[test]
fn signals_stop_it_at_once_when_nothing_runs() {
    for signal in ["INT", "TERM"] {
        let (_folder, mut child) = serve("");
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        writeln!(input, "{PING}").unwrap();
        output.read_line(&mut String::new()).unwrap();
        let pid = child.id().to_string();
        let kill = std::process::Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(kill.unwrap().success());
        assert_eq!(exit_code(&mut child), 0, "SIG{signal}");
    }
}

#[test]
fn a_message_that_is_too_long_is_refused_and_the_next_is_answered() {
    let (_folder, mut child) = serve("[limits]\nmessage_size = \"1KB\"\n");
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answer = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let padded = |length: usize| {
        let bare = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}}"#;
        bare.replace(r#""x":"""#, &format!(r#""x":"{}""#, "x".repeat(length - bare.len())))
    };
    writeln!(input, "{}", padded(1024)).unwrap();
    assert_eq!(answer()["result"], json!({}));
    writeln!(input, "{}", padded(1025)).unwrap();
    assert_eq!(answer()["error"]["code"], -32600);
    writeln!(input, "{}", padded(200_000)).unwrap();
    assert_eq!(answer()["error"]["code"], -32600);
    writeln!(input, "{PING}").unwrap();
    assert_eq!(answer()["result"], json!({}));
}

#[test]
fn at_info_the_log_has_one_line_per_call() {
    let file = "[[command]]\nname = \"fail\"\nrun = [\"false\"]\n";
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fail"}}"#;
    for (level, lines) in [("info", 1), ("warn", 0)] {
        let folder = folder_with(file);
        let mut child = command(folder.path(), &["serve", "--stdio", "--log", level])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{PING}\n{call}").unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("\"isError\":true"));
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(log.lines().count(), lines, "{log}");
        for part in ["tools/call fail: tool error, ", "local"] {
            assert!(lines == 0 || log.contains(part), "{log}");
        }
    }
}

/// What a server on stdio logs about these messages.
fn logged(file: &str, level: &str, messages: &[String]) -> String {
    let folder = folder_with(file);
    let mut child = command(folder.path(), &["serve", "--stdio", "--log", level])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    messages.iter().for_each(|message| writeln!(input, "{message}").unwrap());
    drop(input);
    String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
}

#[test]
fn the_log_has_no_secret_arguments_at_any_level() {
    let file = "[[command]]\nname = \"login\"\nrun = [\"true\", \"{password?}\"]\n\
                input_schema = { type = \"object\", properties = { password = { type = \"string\", \
                format = \"password\", maxLength = 12 } } }\n";
    let call = |id: u8, tool: &str, password: &str| {
        let params = json!({ "name": tool, "arguments": { "password": password } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    let calls =
        [call(1, "login", "sesame"), call(2, "login", "a long sesame"), call(3, "logn", "sesame")];
    for level in ["info", "debug", "trace"] {
        let log = logged(file, level, &calls);
        assert!(log.contains("tools/call login: Invalid arguments, "), "{log}");
        assert!(!log.contains("sesame"), "{log}");
    }
}

#[test]
fn a_long_name_makes_no_long_line() {
    let file = "[[command]]\nname = \"t\"\nrun = [\"true\"]\n";
    let params = json!({ "name": "x".repeat(300_000) });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let log = logged(file, "info", &[call.to_string()]);
    assert!(log.contains("tools/call xxx") && log.len() < 1_000, "{} bytes", log.len());
}
