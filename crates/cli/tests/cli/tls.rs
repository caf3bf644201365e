//! `[tls]`: certificates that change, certificates of clients, and addresses that need it.

use std::fs;

use sabir_testkit::Authority;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::http::Server;
use crate::{folder_with, sabir, seen};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The names of the tools that are listed for a client, which may have a certificate.
pub(crate) async fn tools(
    authority: &Authority,
    server: &Server,
    identity: Option<&str>,
) -> Vec<String> {
    let mut stream = authority.connect(port(server), identity, "http/1.1").await.unwrap();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let tools = body["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

pub(crate) async fn shown(
    authority: &Authority,
    server: &Server,
    identity: Option<&str>,
) -> Vec<u8> {
    let stream = authority.connect(port(server), identity, "http/1.1").await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

pub(crate) fn port(server: &Server) -> u16 {
    server.address.rsplit(':').next().unwrap().parse().unwrap()
}

fn configured(folder: &TempDir) -> String {
    let folder = folder.path().display();
    format!(
        r#"
[tls]
cert = "{folder}/server.pem"
key = "{folder}/server.key"
client_ca = "{folder}/ca.pem"
client_certificates = "optional"

[[auth.role]]
claim = "cn"
value = "ann"
scopes = ["notes"]

[[command]]
name = "free"
run = ["echo", "free"]

[[command]]
name = "notes"
run = ["echo", "notes"]
scopes = ["notes"]
"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_identify_clients_and_are_read_again_when_they_change() {
    let folder = TempDir::new().unwrap();
    let authority = Authority::new(folder.path());
    for name in ["server", "ann", "bob"] {
        authority.sign(name, "localhost");
    }
    let server = Server::start(&configured(&folder), &[], &[]);
    assert_eq!(tools(&authority, &server, None).await, ["free"]);
    assert_eq!(tools(&authority, &server, Some("bob")).await, ["free"]);
    assert_eq!(tools(&authority, &server, Some("ann")).await, ["free", "notes"]);

    // Our own client, which trusts the authorities of the system.
    let url = format!("https://localhost:{}/mcp", server.address.rsplit(':').next().unwrap());
    let mut call = crate::command(folder.path(), &["call", &url, "free"]);
    let called = call.env("SSL_CERT_FILE", authority.path("ca.pem")).output().unwrap();
    assert_eq!(seen(&called), "exit 0\nstdout:\nfree");

    authority.sign("server", "localhost");
    server.says("reloaded the certificates");
    let second = authority.read("server.pem");
    assert_eq!(shown(&authority, &server, None).await, second);
    fs::copy(authority.path("ann.key"), authority.path("server.key")).unwrap();
    server.says("the certificates were not reloaded: the old ones are still used");
    assert_eq!(shown(&authority, &server, None).await, second);
    server.stop();
}

#[test]
fn credentials_are_not_sent_in_clear_to_a_public_address() {
    let folder = folder_with("");
    let args = ["serve", "--http", "0.0.0.0:0", "--token", "s3cret"];
    assert_eq!(
        seen(&sabir(folder.path(), &args)),
        "exit 1\nstderr:\nerror: refusing to listen on 0.0.0.0:0: it is reachable from other hosts \
         and would receive credentials without TLS\n  hint: add [tls] to the file, or \
         --behind-proxy if a proxy terminates TLS"
    );
}

#[test]
fn mistakes_are_reported() {
    for (text, expected) in [
        ("[tls]\ncert = \"a\"\n", "[tls]: `key` is missing"),
        ("[tls]\ncert = \"a\"\nkey = \"b\"\n", "(expected certificates in PEM)"),
        (
            "[tls]\ncert = \"a\"\nkey = \"b\"\nclient_certificates = \"optional\"\n",
            "`client_certificates` without `client_ca` (expected both)",
        ),
        (
            "[tls]\ncert = \"a\"\nkey = \"b\"\nclient_ca = \"c\"\nclient_certificates = 1\n",
            "invalid value 1",
        ),
        ("[tls]\n", "[tls]: `cert` is missing"),
        ("[tls]\nacme_cache = \"x\"\n", "[tls]: `acme` is missing"),
        (
            "[tls]\nacme = \"example.org\"\ncert = \"a\"\nkey = \"b\"\n",
            "`cert` and `key` with `acme` (expected one or the other)",
        ),
        ("[tls]\nacme = \"\"\n", "invalid name `` in `acme` (expected e.g."),
        ("[tls]\nacme = []\n", "invalid `acme` (expected a host name, or a list of host names)"),
        ("[tls]\nacme = \"192.0.2.1\"\n", "certificates for addresses are not obtained"),
        ("[tls]\nacme = \"::1\"\n", "certificates for addresses are not obtained"),
        ("[tls]\nacme = \"*.example.org\"\n", "has no wildcards"),
        ("[tls]\nacme = \"https://example.org\"\n", "a name has letters, digits"),
        (
            "[tls]\nacme = \"example.org\"\nacme_contact = \"me\"\n",
            "invalid `acme_contact` (expected an e-mail address",
        ),
        (
            "[tls]\nacme = \"example.org\"\nacme_directory = \"http://ca.example/dir\"\n",
            "`acme_directory`: plain http to `ca.example` is not allowed (expected https)",
        ),
        ("[tls]\nacme = \"example.org\"\nacme_ca = \"missing.pem\"\n", "missing.pem: "),
        ("[http]\ntrusted_proxies = [\"10.0.0.0/33\"]\n", "invalid proxy `10.0.0.0/33` (expected"),
        ("[http]\nrefusals = \"20\"\n", "invalid rate `20` of `refusals` (expected e.g."),
        ("[http]\nrequests = \"0/s\"\n", "invalid rate `0/s` of `requests` (expected e.g."),
    ] {
        let folder = folder_with(text);
        let seen = seen(&sabir(folder.path(), &["check", "sabir.toml"]));
        assert!(!seen.starts_with("exit 0") && seen.contains(expected), "{text}: {seen}");
    }
}
