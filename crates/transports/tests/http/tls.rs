//! TLS: the same service as without it, certificates that change, and certificates of clients.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sabir_testkit::Authority;
use sabir_transports::http::{ClientCertificates, Settings, Tls, TlsSettings};
use sabir_wire::Caller;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::callers::{named, of, record};
use crate::client::{Client, Request};
use crate::h2;
use crate::server::{Running, Wish, in_time};

/// An authority, and the folder of its certificates.
struct Certificates {
    authority: Authority,
    _folder: TempDir,
}

impl Certificates {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { authority: Authority::new(folder.path()), _folder: folder }
    }

    fn server(&self) -> TlsSettings {
        self.sign("server", "localhost");
        TlsSettings::new(self.path("server.pem"), self.path("server.key"))
    }
}

impl Deref for Certificates {
    type Target = Authority;

    fn deref(&self) -> &Authority {
        &self.authority
    }
}

async fn start(settings: TlsSettings) -> (Tls, Running) {
    let tls = Tls::load(settings).unwrap();
    let served = tls.clone();
    (tls, Wish::default().http(|http| http.tls = Some(served)).start().await)
}

/// The certificate that the server shows.
async fn shown(authority: &Certificates, port: u16) -> Vec<u8> {
    let stream = authority.connect(port, None, "http/1.1").await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn everything_is_served_over_tls() {
    let authority = Certificates::new();
    let (_, server) = start(authority.server()).await;
    let port = server.address.port();

    // Our own reader, with answers far longer than a record and than the buffers of TLS, then
    // hyper.
    let stream = authority.connect(port, None, "http/1.1").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut client = Client::on(stream);
    for length in [1, 1500, 40_000, 3_000_000, 7] {
        let call = Request::call(1, "echo", json!({ "text": "x".repeat(length) }));
        assert_eq!(client.send(&call).await.text().len(), length);
    }
    assert_eq!(client.send(&Request::new("GET", "/healthz")).await.status, 200);
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    client.open(&Request::modern(1, "subscriptions/listen", listen)).await;
    let event = client.event(&mut Vec::new()).await.unwrap();
    assert_eq!(event.method(), "notifications/subscriptions/acknowledged");
    drop(client);

    let stream = authority.connect(port, None, "h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let call = Request::call(2, "echo", json!({ "text": "y".repeat(100_000) }));
    let answer = h2::json(h2::send(&sender, &call).await).await;
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 100_000);
    drop(sender);

    let stream = authority.connect(port, None, "http/1.1").await.unwrap();
    let request = format!("wss://localhost:{port}/mcp").into_client_request().unwrap();
    let (mut socket, _) = in_time(tokio_tungstenite::client_async(request, stream)).await.unwrap();
    let ping = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" });
    socket.send(Message::text(ping.to_string())).await.unwrap();
    let answer = in_time(socket.next()).await.unwrap().unwrap();
    let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
    assert_eq!(answer["id"], 7);
    drop(socket);
    server.stop().await;
}

#[tokio::test]
async fn a_client_without_tls_is_not_served() {
    let authority = Certificates::new();
    let (_, server) = start(authority.server()).await;
    let mut client = server.connect().await;
    client.write(&Request::new("GET", "/healthz").bytes()).await;
    let mut answer = Vec::new();
    in_time(client.stream.read_to_end(&mut answer)).await.unwrap();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections_and_a_bad_one_for_none() {
    let authority = Certificates::new();
    let (tls, server) = start(authority.server()).await;
    let port = server.address.port();
    let certificate = authority.path("server.pem");
    let first = authority.read("server.pem");
    assert_eq!(shown(&authority, port).await, first);
    let open = authority.connect(port, None, "http/1.1").await.unwrap();

    authority.sign("server", "localhost");
    let second = authority.read("server.pem");
    assert_eq!(shown(&authority, port).await, first, "not before it is reloaded");
    tls.reload().unwrap();
    assert_eq!(shown(&authority, port).await, second);
    let call = Request::call(1, "echo", json!({ "text": "x" }));
    assert_eq!(Client::on(open).send(&call).await.text(), "x", "it stays open");

    // A key of another certificate, no certificate, no file.
    authority.sign("other", "localhost");
    std::fs::copy(authority.path("other.pem"), &certificate).unwrap();
    let told = tls.reload().unwrap_err().to_string();
    assert!(told.contains("server.key"), "{told}");
    std::fs::write(&certificate, "no certificate").unwrap();
    let told = tls.reload().unwrap_err().to_string();
    assert!(told.contains("(expected certificates in PEM)"), "{told}");
    std::fs::remove_file(&certificate).unwrap();
    assert!(tls.reload().is_err());
    assert_eq!(shown(&authority, port).await, second, "the old one is still used");
    assert_eq!(tls.files().count(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_has_a_time_limit_and_there_are_not_many_at_once() {
    let authority = Certificates::new();
    let mut settings = authority.server();
    settings.handshake_time = Duration::from_millis(50);
    let (_, server) = start(settings).await;
    let mut silent = server.connect().await;
    assert!(silent.is_closed().await, "it took too long");
    server.stop().await;

    let mut settings = authority.server();
    (settings.handshake_time, settings.handshakes) = (Duration::from_secs(600), 2);
    let (_, server) = start(settings).await;
    let mut first = server.connect().await;
    let second = server.connect().await;
    let third = authority.connect(server.address.port(), None, "http/1.1").await.unwrap();
    assert!(first.is_closed().await, "the oldest gives way");
    let call = Request::call(1, "echo", json!({ "text": "x" }));
    assert_eq!(Client::on(third).send(&call).await.text(), "x");
    drop(second);
    server.stop().await;
}

/// Identifies every certificate as `ann`.
fn clients(authority: &Certificates, is_required: bool) -> Option<ClientCertificates> {
    let authorities = authority.path("ca.pem");
    let caller = Arc::new(|der: &[u8]| (!der.is_empty()).then(|| Caller::new("ca", "ann")));
    Some(ClientCertificates { authorities, is_required, caller })
}

#[tokio::test]
async fn a_certificate_identifies_its_owner_and_a_token_its_own() {
    let authority = Certificates::new();
    authority.sign("ann", "ann.example");
    let stranger = Certificates::new();
    stranger.sign("eve", "eve.example");
    for extension in ["pem", "key"] {
        let name = format!("eve.{extension}");
        std::fs::copy(stranger.path(&name), authority.path(&name)).unwrap();
    }
    for is_required in [true, false] {
        let mut settings = Settings::default();
        let mut tls = authority.server();
        tls.clients = clients(&authority, is_required);
        settings.tls = Some(Tls::load(tls).unwrap());
        if !is_required {
            settings.tokens = vec![named("bob", "b0b")];
        }
        let (_, server) = record(settings).await;
        let port = server.address().port();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.run(async { drop(stopped.await) }));

        let who = Request::call(1, "who", json!({}));
        let connect = async |name| authority.connect(port, name, "http/1.1").await.map(Client::on);
        let mut ann = connect(Some("ann")).await.unwrap();
        assert_eq!(ann.send(&who).await.text(), "ann@ca");
        let mut bare = connect(None).await.unwrap();
        if is_required {
            assert!(bare.is_closed().await, "no certificate");
        } else {
            assert_eq!(ann.send(&of(who.clone(), "b0b")).await.text(), "bob@token");
            assert_eq!(ann.send(&of(who.clone(), "wrong")).await.status, 401);
            assert_eq!(bare.send(&who).await.status, 401);
            assert_eq!(bare.send(&of(who.clone(), "b0b")).await.text(), "bob@token");
        }
        let mut eve = connect(Some("eve")).await.unwrap();
        assert!(eve.is_closed().await, "an unknown authority");
        drop((stop, ann, bare, eve));
        in_time(serving).await.unwrap();
    }
}

#[tokio::test]
async fn an_expired_certificate_and_one_without_a_caller_are_refused() {
    let authority = Certificates::new();
    authority.sign("ann", "ann.example");
    let connect = async |caller: fn(&[u8]) -> Option<Caller>| {
        let mut tls = authority.server();
        tls.clients = clients(&authority, true)
            .map(|clients| ClientCertificates { caller: Arc::new(caller), ..clients });
        let mut settings = Settings::default();
        settings.tls = Some(Tls::load(tls).unwrap());
        let (_, server) = record(settings).await;
        let port = server.address().port();
        tokio::spawn(server.run(std::future::pending()));
        Client::on(authority.connect(port, Some("ann"), "http/1.1").await.unwrap())
    };
    let who = Request::call(1, "who", json!({}));
    let mut expired = connect(|_| Some(Caller::new("ca", "ann").until(1))).await;
    assert_eq!(expired.send(&who).await.status, 401);
    assert!(connect(|_| None).await.is_closed().await);
}
