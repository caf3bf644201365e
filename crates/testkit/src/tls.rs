//! TLS in front of a server without TLS.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A port of this machine that terminates TLS in front of a server.
#[derive(Clone, Debug)]
pub struct TlsFront {
    /// Its port.
    pub port: u16,
    /// Its certificate, which is its own authority.
    pub certificate: CertificateDer<'static>,
}

impl TlsFront {
    /// Starts it, with a certificate for this host name.
    ///
    /// # Panics
    /// If no port is free or the name is not a host name.
    pub async fn start(name: &str, server: SocketAddr) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec![name.to_owned()]).expect("a host name");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a key that belongs to its certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(acceptor.clone(), client, server));
            }
        });
        Self { port, certificate: cert.der().clone() }
    }
}

/// A client that does not trust the certificate is disconnected.
async fn forward(acceptor: TlsAcceptor, client: TcpStream, server: SocketAddr) {
    let Ok(mut client) = acceptor.accept(client).await else { return };
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}
