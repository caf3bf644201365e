//! `sabir serve --http`: where it listens, what it says, how it stops.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::{command, folder_with, sabir, seen};

/// A server on a free port, and where it says that it listens.
fn serve(args: &[&str]) -> (tempfile::TempDir, Child, String) {
    let folder = folder_with("[server]\nname = \"port\"\n");
    let args = [&["serve", "--http", "127.0.0.1:0"], args].concat();
    let mut child = command(folder.path(), &args).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("serving `port` on http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap().to_owned();
    std::thread::spawn(move || said.lines().for_each(drop));
    (folder, child, address)
}

fn request(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nConnection: close\r\nContent-Length: \
         {length}\r\n{head}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const HEAD: &str = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n";

#[test]
fn both_eras_are_answered_and_a_signal_stops_it() {
    let (_folder, mut child, address) = serve(&[]);
    let modern = request(&address, HEAD, DISCOVER);
    assert!(modern.starts_with("HTTP/1.1 200"), "{modern}");
    assert!(modern.contains(r#""supportedVersions":["2026-07-28""#), "{modern}");
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let legacy = request(&address, "", hello);
    assert!(legacy.to_lowercase().contains("mcp-session-id: "), "{legacy}");
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_token_is_demanded_of_every_request() {
    let (_folder, mut child, address) = serve(&["--token", "open-sesame"]);
    let refused = request(&address, HEAD, DISCOVER);
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.to_lowercase().contains("www-authenticate: bearer"), "{refused}");
    let head = format!("{HEAD}Authorization: Bearer open-sesame\r\n");
    let served = request(&address, &head, DISCOVER);
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_public_address_needs_a_token_or_a_word() {
    let folder = folder_with("");
    assert_eq!(
        seen(&sabir(folder.path(), &["serve", "--http", "0.0.0.0:0"])),
        "exit 1\nstderr:\nerror: 0.0.0.0:0 can be reached by others, and no token is demanded; demand \
         a --token, or say --allow-public"
    );
}

#[test]
fn a_wrong_address_in_the_file_is_named() {
    let folder = folder_with("[listen]\nhttp = \"localhost\"\n");
    assert_eq!(
        seen(&sabir(folder.path(), &["check"])),
        "exit 3\nstderr:\nerror: `localhost` is no address\n  --> sabir.toml:2\n  hint: write it like \
         \"127.0.0.1:7331\""
    );
}
