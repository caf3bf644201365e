//! The challenges of refusals, on every path: rows 3, 4, 6, 8, 9, 14, 15 and 30.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::issuer::{Issuer, ec};
use crate::server::{POST, call_of_who, send, start, who};

const CHALLENGE: &str = "Bearer scope=\"notes\", resource_metadata=\
     \"https://mcp.example/.well-known/oauth-protected-resource/mcp\"";

const UPGRADE: &str = "GET /mcp HTTP/1.1\nupgrade: websocket\nsec-websocket-version: 13\n\
     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";

#[tokio::test]
async fn every_path_challenges_a_request_without_credentials() {
    let issuer = Issuer::start(&[ec()]).await;
    let address = start(&issuer).await;
    let session = "mcp-session-id: 0123456789abcdefghijk";
    for lines in [
        POST.to_owned(),
        format!("{POST}\n{session}"),
        "GET /mcp HTTP/1.1\naccept: text/event-stream".to_owned(),
        format!("DELETE /mcp HTTP/1.1\n{session}"),
        "GET /sse HTTP/1.1\naccept: text/event-stream".to_owned(),
        "POST /messages?sessionId=x HTTP/1.1\ncontent-type: application/json".to_owned(),
        UPGRADE.to_owned(),
        POST.replace("/mcp ", "/mcp?access_token=s3cret "),
        format!("{POST}\nauthorization: Basic YTpi"),
        format!("{POST}\nauthorization: Bearer"),
        format!("{POST}\nauthorization: "),
    ] {
        let answer = send(address, &lines, "").await;
        assert_eq!((answer.status, answer.challenge()), (401, CHALLENGE), "{lines}");
    }
    assert_eq!(issuer.asked("/jwks"), 0, "keys were fetched without a token");
}

#[tokio::test]
async fn two_credentials_are_none() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address = start(&issuer).await;
    let token = key.sign(&issuer.claims());
    let good = format!("\nauthorization: Bearer {token}");
    for other in [&*good, "\nauthorization: Bearer s3cret", "\nauthorization: Basic YTpi"] {
        for twice in [format!("{good}{other}"), format!("{other}{good}")] {
            let answer = send(address, &format!("{POST}{twice}"), &call_of_who()).await;
            assert_eq!(answer.status, 401, "{answer:?}");
            let challenge = answer.challenge();
            let expected =
                "Bearer error=\"invalid_token\", error_description=\"the request has two";
            assert!(challenge.starts_with(expected), "{challenge}");
            assert!(challenge.contains("resource_metadata=\""), "{challenge}");
        }
    }
}

#[tokio::test]
async fn a_wrong_origin_is_refused_before_the_token_is_looked_at() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address = start(&issuer).await;
    let token = key.sign(&issuer.claims());
    let lines = format!("{POST}\norigin: https://evil.example\nauthorization: Bearer {token}");
    assert_eq!(send(address, &lines, &call_of_who()).await.status, 403);
    assert_eq!(issuer.asked("/jwks"), 0);
    let lines = format!("{POST}\norigin: http://localhost:1234");
    let answer = send(address, &lines, "").await;
    assert_eq!(answer.challenge(), CHALLENGE);
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("www-authenticate"), "a page can read it");
    assert_eq!(who(address, &token).await.status, 200);
}

#[tokio::test]
async fn a_websocket_is_opened_with_a_token_only() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address = start(&issuer).await;
    let bad = send(address, &format!("{UPGRADE}\nauthorization: Bearer x.y.z"), "").await;
    assert_eq!(bad.status, 401);
    assert!(bad.challenge().starts_with("Bearer error=\"invalid_token\""));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let good = key.sign(&issuer.claims());
    let lines = UPGRADE.replace('\n', "\r\n");
    let request = format!(
        "{lines}\r\nhost: localhost\r\nconnection: upgrade\r\nauthorization: Bearer {good}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 101");
    let foreign = format!("{UPGRADE}\norigin: https://evil.example\nauthorization: Bearer {good}");
    assert_eq!(send(address, &foreign, "").await.status, 403);
}
