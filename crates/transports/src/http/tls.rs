//! TLS: a certificate that can be replaced while the server runs, certificates of clients, and the
//! handshakes.

pub(crate) mod acme; // certificates from an authority
mod obtained; // the certificate that was obtained, and those that answer challenges
mod store; // the files of certificates and accounts

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{Acceptor, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use sabir_wire::Caller;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use self::acme::{Acme, AcmeSettings, CertificateEvent};
use self::obtained::{Challenges, Obtained};
use super::listener::{Listener, Peer};

/// Where the certificates are, and the limits of handshakes. All files are PEM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TlsSettings {
    /// The certificate of the server.
    pub certificate: ServerCertificate,
    /// Which certificates of clients are accepted; without it none is asked for.
    pub clients: Option<ClientCertificates>,
    /// The time limit for a handshake. At the limit the connection is closed.
    pub handshake_time: Duration,
    /// Handshakes at once. For one more, the oldest is aborted.
    pub handshakes: usize,
}

impl TlsSettings {
    /// For this certificate and its key, with all defaults.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self::of(ServerCertificate::Files { certificate: certificate.into(), key: key.into() })
    }

    /// For this certificate, with all defaults.
    pub fn of(certificate: ServerCertificate) -> Self {
        Self {
            certificate,
            clients: None,
            handshake_time: Duration::from_secs(10),
            handshakes: 256,
        }
    }
}

/// Where the certificate of the server comes from.
#[derive(Clone, Debug)]
pub enum ServerCertificate {
    /// From files.
    Files {
        /// The certificate, followed by those that lead to its authority.
        certificate: PathBuf,
        /// The key of the certificate.
        key: PathBuf,
    },
    /// From an authority, by [`Tls::maintain`]. Until the first certificate is obtained, handshakes
    /// fail.
    Acme(AcmeSettings),
}

/// The certificates of clients that are accepted, and whom they identify.
#[derive(Clone)]
pub struct ClientCertificates {
    /// The authorities that sign them.
    pub authorities: PathBuf,
    /// Whether a client without a certificate is refused in the handshake.
    pub is_required: bool,
    /// Finds the caller whom a signed and valid certificate identifies. If it finds none, the
    /// connection is closed.
    pub caller: Arc<CertificateCaller>,
}

/// Finds the caller whom a certificate (DER) identifies.
pub type CertificateCaller = dyn Fn(&[u8]) -> Option<Caller> + Send + Sync;

impl std::fmt::Debug for ClientCertificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { authorities, is_required, .. } = self;
        let mut shown = f.debug_struct("ClientCertificates");
        shown.field("authorities", authorities).field("is_required", is_required);
        shown.finish_non_exhaustive()
    }
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or lacks the expected item.
    #[error("{}: {source} (expected {expected} in PEM)", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What should be in it.
        expected: &'static str,
        /// What is wrong.
        #[source]
        source: pem::Error,
    },
    /// The system has no random numbers, or no safe version of TLS is available.
    #[error("TLS cannot be used: {0}")]
    Unusable(#[source] rustls::Error),
    /// The certificate or the key is invalid, or the two do not belong together.
    #[error("certificate {} with key {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
    /// The authorities of clients are invalid.
    #[error("authorities {}: {source}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: VerifierBuilderError,
    },
}

/// The certificates that a server uses. Clones share their state.
#[derive(Clone)]
pub struct Tls(Arc<Loaded>);

struct Loaded {
    settings: TlsSettings,
    /// For new connections.
    config: ArcSwap<ServerConfig>,
    /// The certificate that was obtained, if it does not come from files.
    obtained: Arc<Obtained>,
    acme: Option<Managed>,
}

/// A certificate that is obtained.
struct Managed {
    acme: Acme,
    /// For connections by which the authority checks our names. They need no client certificate,
    /// and no HTTP.
    challenges: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the files.
    pub fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        let obtained = Arc::new(Obtained::default());
        let acme = match &settings.certificate {
            ServerCertificate::Files { .. } => None,
            ServerCertificate::Acme(acme) => Some(Managed::load(acme, &obtained)?),
        };
        let config = ArcSwap::from_pointee(config(&settings, &obtained)?);
        Ok(Self(Arc::new(Loaded { settings, config, obtained, acme })))
    }

    /// Obtains the certificate and renews it before it expires, as long as this is polled. Failures
    /// are retried. `None` if the certificate comes from files.
    pub async fn maintain(&self, report: impl FnMut(&CertificateEvent)) -> Option<Infallible> {
        Some(self.0.acme.as_ref()?.acme.run(report).await)
    }

    /// Reads the files again, for new connections. If they cannot be used, the old ones are kept.
    pub fn reload(&self) -> Result<(), TlsError> {
        let Loaded { settings, config: current, obtained, .. } = &*self.0;
        current.store(Arc::new(config(settings, obtained)?));
        Ok(())
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let TlsSettings { certificate, clients, .. } = &self.0.settings;
        let pair = match certificate {
            ServerCertificate::Files { certificate, key } => Some([certificate, key]),
            ServerCertificate::Acme(_) => None,
        };
        let authorities = clients.as_ref().map(|clients| &clients.authorities);
        pair.into_iter().flatten().chain(authorities).map(PathBuf::as_path)
    }

    /// Whether every client must have a certificate.
    pub(crate) fn identifies_all(&self) -> bool {
        self.0.settings.clients.as_ref().is_some_and(|clients| clients.is_required)
    }

    /// `None` if the handshake fails, takes too long, or was a check by the authority.
    async fn shake_hands<S>(self, stream: S, peer: Peer) -> Option<(TlsStream<S>, Peer)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let settings = &self.0.settings;
        let shaking = tokio::time::timeout(settings.handshake_time, self.accept(stream));
        let stream = match shaking.await {
            Ok(Ok(stream)) => stream?,
            Ok(Err(error)) => {
                tracing::debug!("a TLS handshake failed: {error}");
                return None;
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                return None;
            }
        };
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let caller = match (certificate, &settings.clients) {
            (Some(certificate), Some(clients)) => {
                let caller = (clients.caller)(certificate);
                if caller.is_none() {
                    tracing::warn!("a client's certificate has neither a subject nor a name");
                }
                Some(caller?)
            }
            _ => None,
        };
        Some((stream, Peer { caller, ..peer }))
    }

    async fn accept<S>(&self, stream: S) -> io::Result<Option<TlsStream<S>>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        if let Some(Managed { challenges, .. }) = &self.0.acme
            && begun
                .client_hello()
                .alpn()
                .is_some_and(|mut all| all.any(|one| one == acme::PROTOCOL))
        {
            let mut stream = begun.into_stream(challenges.clone()).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        begun.into_stream(self.0.config.load_full()).await.map(Some)
    }
}

impl Managed {
    fn load(settings: &AcmeSettings, obtained: &Arc<Obtained>) -> Result<Self, TlsError> {
        let roots = settings.authorities.as_deref().map(certificates).transpose()?;
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Unusable)?;
        let builder = builder.with_no_client_auth();
        let mut challenges = builder.with_cert_resolver(Arc::new(Challenges(obtained.clone())));
        challenges.alpn_protocols = vec![acme::PROTOCOL.to_vec()];
        challenges.send_tls13_tickets = 0;
        let acme = Acme::new(settings.clone(), roots.unwrap_or_default(), obtained.clone());
        Ok(Self { acme, challenges: Arc::new(challenges) })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.settings.fmt(f)
    }
}

fn config(settings: &TlsSettings, obtained: &Arc<Obtained>) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Unusable)?;
    let builder = match &settings.clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(verifier(clients, provider)?),
    };
    let mut config = match &settings.certificate {
        ServerCertificate::Acme(_) => builder.with_cert_resolver(obtained.clone()),
        ServerCertificate::Files { certificate, key } => {
            let chain = certificates(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|source| {
                let (path, expected) = (key.clone(), "a private key");
                TlsError::File { path, expected, source }
            })?;
            builder.with_single_cert(chain, secret).map_err(|source| {
                let (certificate, key) = (certificate.clone(), key.clone());
                TlsError::Pair { certificate, key, source }
            })?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // With tickets, the clients keep the state of resumed sessions: it takes no memory here.
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(TlsError::Unusable)?;
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |source| {
        let (path, expected) = (path.to_owned(), "certificates");
        TlsError::File { path, expected, source }
    };
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(wrong)?;
    if found.is_empty() { Err(wrong(pem::Error::NoItemsFound)) } else { Ok(found) }
}

fn verifier(
    clients: &ClientCertificates,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let path = &clients.authorities;
    let wrong = |source| TlsError::Authorities { path: path.clone(), source };
    let mut roots = RootCertStore::empty();
    let found = certificates(path)?;
    let (added, _) = roots.add_parsable_certificates(found);
    if added == 0 {
        return Err(wrong(VerifierBuilderError::NoRootAnchors));
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match clients.is_required {
        true => builder,
        false => builder.allow_unauthenticated(),
    };
    builder.build().map_err(wrong)
}

/// TLS on top of another listener. Handshakes run side by side, each in a task of its own.
pub struct TlsListener<L: Listener> {
    inner: L,
    tls: Tls,
    handshakes: JoinSet<Option<(TlsStream<L::Io>, Peer)>>,
    /// Handshakes that have not ended, the oldest first.
    begun: VecDeque<AbortHandle>,
}

impl<L: Listener> TlsListener<L> {
    /// Serves the connections of `inner` with these certificates.
    pub fn new(inner: L, tls: Tls) -> Self {
        Self { inner, tls, handshakes: JoinSet::new(), begun: VecDeque::new() }
    }

    fn begin(&mut self, stream: L::Io, peer: Peer) {
        self.begun.retain(|handshake| !handshake.is_finished());
        if self.begun.len() >= self.tls.0.settings.handshakes.max(1)
            && let Some(oldest) = self.begun.pop_front()
        {
            oldest.abort();
        }
        let handshake = self.handshakes.spawn(self.tls.clone().shake_hands(stream, peer));
        self.begun.push_back(handshake);
    }
}

impl<L: Listener> Listener for TlsListener<L> {
    type Io = TlsStream<L::Io>;

    async fn accept(&mut self) -> io::Result<(Self::Io, Peer)> {
        loop {
            tokio::select! {
                // Complete handshakes first, so that they do not pile up.
                biased;
                Some(ended) = self.handshakes.join_next() => {
                    if let Ok(Some(accepted)) = ended {
                        return Ok(accepted);
                    }
                }
                accepted = self.inner.accept() => {
                    let (stream, peer) = accepted?;
                    self.begin(stream, peer);
                }
            }
        }
    }
}

impl<L: Listener> std::fmt::Debug for TlsListener<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsListener").field("tls", &self.tls).finish_non_exhaustive()
    }
}
