//! Upstreams behind `https://` and `wss://`: the certificate authority is that of the system, which
//! `SSL_CERT_FILE` names.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sabir_testkit::TlsFront;
use sabir_wire::Revision;
use serde_json::json;
use tempfile::TempDir;

use super::{Relay, http_fixture, raw, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_with_a_trusted_certificate_is_relayed() {
    let (_fixture, url) = http_fixture(&["http", Revision::NEWEST.date()]);
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    let front = TlsFront::start("localhost", address).await;
    let folder = TempDir::new().unwrap();
    let (trusted, other) = (folder.path().join("trusted.pem"), folder.path().join("other.pem"));
    std::fs::write(&trusted, pem(&front)).unwrap();
    std::fs::write(&other, pem(&TlsFront::start("localhost", address).await)).unwrap();
    for scheme in ["wss", "https"] {
        let upstream = format!(
            "[[upstream]]\nname = \"up\"\nurl = \"{scheme}://localhost:{}/mcp\"\nmemory = \"none\"\n",
            front.port
        );
        let relay = Relay::start_with(TempDir::new().unwrap(), &upstream, |relay| {
            relay.env("SSL_CERT_FILE", &trusted);
        });
        let (client, _) = relay.client(Revision::NEWEST_LEGACY).await;
        super::listed(&client, "up_echo").await;
        let reply = client.call_tool("up_echo", raw(json!({ "a": scheme }))).await.unwrap();
        assert_eq!(text(&reply), format!(r#"{{"a":"{scheme}"}}"#));

        let seen = super::naming::check_with("sabir.toml", &upstream, |check| {
            check.env("SSL_CERT_FILE", &other);
        });
        assert!(seen.starts_with("exit 1"), "{seen}");
        assert!(seen.contains("upstream `up`") && seen.contains("certificate"), "{seen}");
    }
}

fn pem(front: &TlsFront) -> String {
    let certificate = BASE64_STANDARD.encode(&front.certificate);
    format!("-----BEGIN CERTIFICATE-----\n{certificate}\n-----END CERTIFICATE-----\n")
}
