//! An authority that signs certificates, for tests of TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "acme")]
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An authority. Its own certificate is `ca.pem` in a folder of the test.
pub struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority, which writes to this folder.
    ///
    /// # Panics
    /// If the folder cannot be written to.
    pub fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Test CA");
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        write(&folder.join("ca.pem"), "CERTIFICATE", issuer.der());
        Self { folder: folder.to_owned(), issuer }
    }

    /// The file of this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Signs a certificate for a host, and writes it to `NAME.pem` and its key to `NAME.key`. Its
    /// common name is `name`.
    ///
    /// # Panics
    /// If the host is not a valid name or a file cannot be written.
    pub fn sign(&self, name: &str, host: &str) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a host name");
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        write(&self.path(&format!("{name}.pem")), "CERTIFICATE", certificate.der());
        write(&self.path(&format!("{name}.key")), "PRIVATE KEY", &key.serialize_der());
    }

    /// Signs a certificate for a public key of another owner (P-256), valid from now on for so long.
    ///
    /// # Panics
    /// If the names are not host names.
    #[cfg(feature = "acme")]
    pub fn certify(&self, key: Vec<u8>, names: Vec<String>, lifetime: Duration) -> String {
        struct Foreign(Vec<u8>);
        impl rcgen::PublicKeyData for Foreign {
            fn der_bytes(&self) -> &[u8] {
                &self.0
            }

            fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
                &rcgen::PKCS_ECDSA_P256_SHA256
            }
        }
        let now = SystemTime::now();
        let mut params = CertificateParams::new(names).expect("host names");
        (params.not_before, params.not_after) = (now.into(), (now + lifetime).into());
        let certificate = params.signed_by(&Foreign(key), &self.issuer).expect("a certificate");
        pem("CERTIFICATE", certificate.der())
    }

    /// Writes a certificate of another authority to a file.
    ///
    /// # Panics
    /// If the folder cannot be written to.
    pub fn write(&self, name: &str, certificate: &[u8]) {
        write(&self.path(name), "CERTIFICATE", certificate);
    }

    /// The certificate in a file.
    ///
    /// # Panics
    /// If there is none.
    pub fn read(&self, name: &str) -> Vec<u8> {
        CertificateDer::from_pem_file(self.path(name)).expect("a certificate").to_vec()
    }

    /// Connects to a port of this machine as a client that trusts this authority, offers this
    /// application protocol, and may have a certificate.
    ///
    /// # Panics
    /// If the port is closed, or the client's certificate is invalid.
    pub async fn connect(
        &self,
        port: u16,
        identity: Option<&str>,
        protocol: &str,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("an authority");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions of TLS");
        let builder = builder.with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let chain = vec![self.read(&format!("{name}.pem")).into()];
                let key = self.path(&format!("{name}.key"));
                let key = PrivateKeyDer::from_pem_file(key).expect("a key");
                builder.with_client_auth_cert(chain, key).expect("a certificate and its key")
            }
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a server");
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

fn write(path: &Path, label: &str, der: &[u8]) {
    std::fs::write(path, pem(label, der)).expect("a file");
}

fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    // OpenSSL reads lines of 64 characters.
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        text += &String::from_utf8_lossy(line);
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("folder", &self.folder).finish_non_exhaustive()
    }
}
