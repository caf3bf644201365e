//! The metadata: rows 5, 7 and 21, and the document for clients of 2025-03-26.

use serde_json::json;

use crate::issuer::{Issuer, ec};
use crate::server::{RESOURCE, send, start};

#[tokio::test]
async fn the_metadata_is_for_everybody_at_both_places() {
    let issuer = Issuer::start(&[ec()]).await;
    let address = start(&issuer).await;
    for path in
        ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
    {
        let lines = format!("GET {path} HTTP/1.1\norigin: https://inspector.example");
        let answer = send(address, &lines, "").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let expected = json!({
            "resource": RESOURCE,
            "authorization_servers": [issuer.url()],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["notes"],
        });
        assert_eq!(answer.json(), expected);
        let lines = format!(
            "OPTIONS {path} HTTP/1.1\norigin: https://inspector.example\n\
             access-control-request-method: GET\n\
             access-control-request-headers: mcp-protocol-version"
        );
        let answer = send(address, &lines, "").await;
        assert_eq!(answer.status, 204);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let headers = answer.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("mcp-protocol-version"), "{headers}");
        let answer = send(address, &format!("POST {path} HTTP/1.1"), "{}").await;
        assert_eq!(answer.status, 405);
    }
    for path in ["/.well-known/oauth-protected-resource/other", "/.well-known/x"] {
        let answer = send(address, &format!("GET {path} HTTP/1.1"), "").await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn clients_of_the_first_authorization_find_the_issuer_at_our_root() {
    let issuer = Issuer::start(&[ec()]).await;
    let address = start(&issuer).await;
    let lines = "GET /.well-known/oauth-authorization-server HTTP/1.1";
    let answer = send(address, lines, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["issuer"], issuer.url());
    assert_eq!(answer.json()["authorization_endpoint"], format!("{}/authorize", issuer.url()));
}
