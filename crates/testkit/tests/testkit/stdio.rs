//! The standard streams as a pipe, a file and a socket.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

/// A server that offers one of everything; `name` keeps the files of two tests apart.
fn server(name: &str) -> (Command, PathBuf) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let settings = folder.join("settings.toml");
    std::fs::write(&settings, "").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sabir-stand-in"));
    command.args(["serve", settings.to_str().unwrap(), "--stdio"]);
    (command, folder)
}

#[test]
fn a_file_is_read_to_its_end_and_a_file_is_written() {
    let (mut command, folder) = server("files");
    let (input, output) = (folder.join("in"), folder.join("out"));
    std::fs::write(&input, PING.repeat(3)).unwrap();
    let (input, written) = (File::open(&input).unwrap(), File::create(&output).unwrap());
    let status = command.stdin(input).stdout(written).status().unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read_to_string(&output).unwrap(), PONG.repeat(3));
}

/// Node gives its children sockets where others give pipes.
#[test]
fn sockets_serve_as_well_as_pipes() {
    let (mut command, _) = server("sockets");
    let (input, mut to_server) = pair();
    let (output, from_server) = pair();
    let mut child = command.stdin(input).stdout(output).spawn().unwrap();
    drop(command);
    to_server.write_all(PING.as_bytes()).unwrap();
    let mut lines = BufReader::new(from_server);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, PONG);
    drop(to_server);
    assert!(child.wait().unwrap().success());
    assert_eq!(lines.read(&mut [0]).unwrap(), 0, "nothing more was said");
}

fn pair() -> (Stdio, UnixStream) {
    let (theirs, ours) = UnixStream::pair().unwrap();
    (OwnedFd::from(theirs).into(), ours)
}

#[test]
fn a_client_that_closes_its_end_without_reading_ends_the_program() {
    let (mut command, _) = server("closed");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // The input stays open: the server notices the closed output.
    let _ = input.write_all(PING.as_bytes());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_last_line_needs_no_end_and_nothing_else_is_on_the_standard_output() {
    let (mut command, _) = server("last-line");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(PING.trim_end().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), PONG);
}
