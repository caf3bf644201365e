//! Name resolution, TCP and TLS. The policy is checked on the addresses of the name, and only those
//! that it allows are connected to.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use crate::error::Error;
use crate::policy::Policy;

/// Time for one TCP connection. When it is reached, the next address is tried.
const CONNECT: Duration = Duration::from_secs(10);

/// Connects to the addresses that the policy allows, without TLS.
pub(crate) type TcpConnector = HttpConnector<CheckedResolver>;

/// The same, with TLS where the URL demands it.
pub(crate) type Connector = HttpsConnector<TcpConnector>;

/// The certificate authorities of the system, read once.
static SYSTEM_ROOTS: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be parsed are skipped; connections that need them fail.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        // A container without certificates.
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
});

/// TCP keep-alive notices a peer that has vanished after about a minute. An idle stream of events
/// has no other time limit.
const SILENCE: Duration = Duration::from_secs(30);
const PROBE: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// The versions of HTTP that are offered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Versions {
    /// 1.1 and 2.
    All,
    /// 1.1 only, which supports upgrades.
    One,
}

/// A connector for the policy; fails if its certificate authorities are invalid.
pub(crate) fn connector(policy: &Arc<Policy>, versions: Versions) -> Result<Connector, Error> {
    let http = tcp_connector(policy);
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls(policy)?);
    // `PlainHttp` is checked with the URL.
    let builder = builder.https_or_http();
    Ok(match versions {
        Versions::All => builder.enable_all_versions().wrap_connector(http),
        Versions::One => builder.enable_http1().wrap_connector(http),
    })
}

pub(crate) fn tcp_connector(policy: &Arc<Policy>) -> TcpConnector {
    let mut http = HttpConnector::new_with_resolver(CheckedResolver {
        resolver: GaiResolver::new(),
        policy: policy.clone(),
    });
    http.enforce_http(false);
    http.set_connect_timeout(Some(CONNECT));
    http.set_nodelay(true);
    http.set_keepalive(Some(SILENCE));
    http.set_keepalive_interval(Some(PROBE));
    http.set_keepalive_retries(Some(PROBES));
    http
}

fn tls(policy: &Policy) -> Result<ClientConfig, Error> {
    let invalid =
        |reason: String| Error::Connect { host: "certificate authorities".into(), reason };
    let mut roots = SYSTEM_ROOTS.clone();
    for root in &policy.roots {
        roots.add(root.clone()).map_err(|error| invalid(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| invalid(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The system's resolver, without the addresses that the policy forbids.
#[derive(Clone, Debug)]
pub(crate) struct CheckedResolver {
    resolver: GaiResolver,
    policy: Arc<Policy>,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let host = name.as_str().to_owned();
        let policy = self.policy.clone();
        let resolving = self.resolver.call(name);
        Box::pin(async move {
            let found = resolving.await.map_err(|error| Error::Connect {
                host: host.clone(),
                reason: format!("name resolution failed: {error}"),
            })?;
            let mut refused = None;
            let allowed = found.filter(|found| {
                policy.check_address(&host, found.ip()).map_err(|e| refused = Some(e)).is_ok()
            });
            let allowed: Vec<SocketAddr> = allowed.collect();
            match refused {
                Some(refused) if allowed.is_empty() => Err(refused),
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_peer_that_has_vanished_is_noticed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut connector = tcp_connector(&Arc::new(Policy::trusting()));
        let uri = format!("http://127.0.0.1:{port}").parse().unwrap();
        let _open = connector.call(uri).await.unwrap();
        let _accepted = listener.accept().await.unwrap();
        // A socket with keep-alive has a timer although no data is in flight.
        let sockets = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let peer = format!("0100007F:{port:04X}");
        let mut fields = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = fields.find(|fields| fields.get(2) == Some(&&*peer)).unwrap();
        assert!(ours[5].starts_with("02:"), "{ours:?}");
    }
}
