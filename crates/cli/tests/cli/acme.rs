//! `acme` of `[tls]`: a certificate that is obtained, kept and renewed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use sabir_testkit::{AcmeAuthority, Authority, TlsFront};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::http::Server;
use crate::seen;
use crate::tls::{port, shown, tools};

const HOUR: Duration = Duration::from_secs(3600);

async fn authority(folder: &TempDir, port: u16, lifetime: Duration) -> (AcmeAuthority, String) {
    let authority = Authority::new(folder.path());
    let (acme, address) = AcmeAuthority::start(authority, port, lifetime, None).await.unwrap();
    (acme, format!("http://{address}/directory"))
}

fn configured(directory: &str, cache: &Path, more: &str) -> String {
    let cache = cache.display();
    format!(
        r#"
[tls]
acme = ["localhost", "LOCALHOST"]
acme_directory = "{directory}"
acme_cache = "{cache}"
{more}

[[command]]
name = "free"
run = ["echo", "free"]
"#
    )
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_obtained_and_used_again_after_a_restart() {
    let folder = TempDir::new().unwrap();
    // A directory that is trusted by its own certificate only, as one within a company.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let behind = free.local_addr().unwrap();
    drop(free);
    let front = TlsFront::start("localhost", behind).await;
    let origin = format!("https://localhost:{}", front.port);
    let signing = Authority::new(folder.path());
    signing.write("directory.pem", &front.certificate);
    let (acme, _) =
        AcmeAuthority::start(signing, behind.port(), HOUR, Some(&origin)).await.unwrap();
    let cache = folder.path().join("kept/acme");
    let trust = format!(
        "acme_ca = \"{}/directory.pem\"\nacme_contact = \"ann@example.org\"",
        folder.path().display()
    );
    let file = configured(&format!("{origin}/directory"), &cache, &trust);
    let mut server = Server::start(&file, &[], &[]);
    // Handshakes fail until the certificate is there.
    let early = acme.authority().connect(port(&server), None, "http/1.1").await;
    let early = early.unwrap_err().to_string();
    assert!(early.contains("AccessDenied"), "{early}");
    acme.check_port(port(&server));
    server.says("tls: obtained a certificate, which is valid until ");
    assert_eq!(acme.orders()[0].names, ["localhost"]);
    assert_eq!(acme.orders()[0].checked, [Some(Ok(()))]);

    let url = format!("https://localhost:{}/mcp", port(&server));
    let mut call = crate::command(folder.path(), &["call", &url, "free"]);
    let called = call.env("SSL_CERT_FILE", acme.authority().path("ca.pem")).output().unwrap();
    assert_eq!(seen(&called), "exit 0\nstdout:\nfree");
    let first = shown(acme.authority(), &server, None).await;
    // The challenge is over, and so are its answers.
    let stale = acme.authority().connect(port(&server), None, "acme-tls/1").await;
    assert!(stale.is_err());

    assert_eq!(mode(&cache), 0o700);
    let kept: Vec<_> = cache.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|path| mode(path) == 0o600));

    server.end();
    let again = TempDir::new().unwrap();
    std::fs::copy(server.folder.path().join("sabir.toml"), again.path().join("sabir.toml"))
        .unwrap();
    let second = Server::start_in(again, &[], &[]);
    second.says("tls: the certificate is valid until ");
    assert_eq!(shown(acme.authority(), &second, None).await, first);
    assert_eq!((acme.orders().len(), acme.accounts()), (1, 1));
    second.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_also_where_clients_need_one() {
    let folder = TempDir::new().unwrap();
    let (acme, directory) = authority(&folder, 0, Duration::from_secs(9)).await;
    acme.authority().sign("ann", "ann.example");
    let clients = format!("client_ca = \"{}/ca.pem\"", folder.path().display());
    let file = configured(&directory, &folder.path().join("acme"), &clients);
    let server = Server::start(&file, &[], &[]);
    acme.check_port(port(&server));
    server.says("tls: obtained a certificate");
    assert_eq!(tools(acme.authority(), &server, Some("ann")).await, ["free"]);
    let first = shown(acme.authority(), &server, Some("ann")).await;
    // The authority has lost its accounts: a new one is made.
    acme.forget_accounts();
    server.says("tls: obtained a certificate");
    assert_ne!(shown(acme.authority(), &server, Some("ann")).await, first);
    assert_eq!(acme.accounts(), 1);
    assert!(acme.orders().iter().all(|order| order.checked == [Some(Ok(()))]));
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_down_is_asked_again() {
    let folder = TempDir::new().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let directory = format!("http://{address}/directory");
    let file = configured(&directory, &folder.path().join("acme"), "");
    let server = Server::start(&file, &[], &[]);
    server.says("error: tls: cannot obtain a certificate: ");
    let (acme, _) = authority(&folder, address.port(), HOUR).await;
    acme.check_port(port(&server));
    server.says("tls: obtained a certificate");
    assert_eq!(tools(acme.authority(), &server, None).await, ["free"]);
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_reported_with_its_reason() {
    let folder = TempDir::new().unwrap();
    let (acme, directory) = authority(&folder, 0, HOUR).await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    acme.check_port(free.local_addr().unwrap().port());
    drop(free);
    let cache = folder.path().join("acme");
    let server = Server::start(&configured(&directory, &cache, ""), &[], &[]);
    server
        .says("error: tls: cannot obtain a certificate: localhost: localhost: Connection refused");
    // There is one try, and the account is kept for the next one.
    assert_eq!(acme.orders().len(), 1);
    assert_eq!(cache.read_dir().unwrap().count(), 1);
    server.stop();
}
