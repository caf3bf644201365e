use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Response, header};
use http_body_util::Full;
use sabir_outbound::{Limits, Redirects};

use crate::server::{Server, get, local, raw_server, text};

fn gzip(bytes: &[u8]) -> Response<Full<Bytes>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    let body = encoder.finish().unwrap();
    let response = Response::builder().header(header::CONTENT_ENCODING, "gzip");
    response.body(Full::new(body.into())).unwrap()
}

fn limit(body: u64) -> Limits {
    Limits { body, ..Limits::default() }
}

#[tokio::test]
async fn a_body_of_the_limit_is_read_and_a_longer_one_is_not() {
    let server = Server::start(|request| match request.uri().path() {
        "/gzip" => gzip(&[b'x'; 1000]),
        _ => text(&"x".repeat(1000)),
    })
    .await;
    for path in ["/plain", "/gzip"] {
        let url = server.url(path);
        let client = local(Redirects::Never);
        assert_eq!(get(&client, &url, &limit(1000)).await.unwrap().len(), 1000, "{path}");
        let error = get(&client, &url, &limit(999)).await.unwrap_err();
        assert_eq!(error.to_string(), "response body is too long (limit 999 bytes)", "{path}");
    }
}

#[tokio::test]
async fn a_compression_bomb_is_refused() {
    let server = Server::start(|_| gzip(&vec![0; 64 << 20])).await;
    let error = get(&local(Redirects::Never), &server.url("/"), &limit(1 << 20)).await.unwrap_err();
    assert_eq!(error.to_string(), "response body is too long (limit 1048576 bytes)");
}

#[tokio::test]
async fn a_broken_encoding_is_an_error() {
    for body in [&b"plain text"[..], &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]] {
        let server = Server::start(move |_| {
            let response = Response::builder().header(header::CONTENT_ENCODING, "gzip");
            response.body(Full::new(Bytes::from_static(body))).unwrap()
        })
        .await;
        let error = get(&local(Redirects::Never), &server.url("/"), &limit(100)).await;
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("cannot decompress the response body"), "{error}");
    }
}

#[tokio::test]
async fn a_body_that_stalls_is_a_time_out() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_vec();
    let url = format!("http://127.0.0.1:{}/", raw_server(head).await);
    let short = Some(Duration::from_millis(50));
    let idle = Limits { idle: short, total: None, ..Limits::default() };
    let error = get(&local(Redirects::Never), &url, &idle).await.unwrap_err();
    assert_eq!(error.to_string(), "no data within 50 ms");
    let total = Limits { idle: None, total: short, ..Limits::default() };
    let error = get(&local(Redirects::Never), &url, &total).await.unwrap_err();
    assert_eq!(error.to_string(), "no end of the response within 50 ms");
}
