use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sabir_outbound::{Addresses, HttpClient, Limits, Policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::server::get;

/// An https server for the name; gives its port and certificate.
async fn server(name: &str) -> (u16, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut socket) = acceptor.accept(socket).await else { continue };
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        }
    });
    (port, cert.der().clone())
}

async fn ask(policy: Policy, port: u16) -> String {
    let policy = Policy { addresses: Addresses::PublicAndLoopback, ..policy };
    let client = HttpClient::new(policy).unwrap();
    let url = format!("https://localhost:{port}/");
    match get(&client, &url, &Limits::default()).await {
        Ok(body) => String::from_utf8(body.to_vec()).unwrap(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_have_the_name() {
    let (port, certificate) = server("localhost").await;
    let trusting = Policy { roots: vec![certificate], ..Policy::default() };
    assert_eq!(ask(trusting, port).await, "ok");
    let error = ask(Policy::default(), port).await;
    assert!(error.contains("invalid peer certificate"), "{error}");
    let (port, certificate) = server("other.example").await;
    let error = ask(Policy { roots: vec![certificate], ..Policy::default() }, port).await;
    assert!(error.contains("certificate not valid for name"), "{error}");
}
