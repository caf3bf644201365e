//! Certificates from an authority by ACME (RFC 8555). TLS-ALPN-01 (RFC 8737) proves that a name is
//! ours: the authority connects to the port that we serve.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt as _;
use instant_acme::{
    Account, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType, Error, Identifier,
    NewAccount, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sabir_outbound::{Addresses, HttpClient, Limits, Policy};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::obtained::Obtained;
use super::store::Store;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The application protocol of an authority that checks a name (RFC 8737).
pub(super) const PROTOCOL: &[u8] = b"acme-tls/1";

/// Which certificate is obtained, and where. Using it agrees to the terms of the authority.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcmeSettings {
    /// The names of the certificate, in lower case. The authority connects to port 443 of each.
    pub names: Vec<String>,
    /// The contacts for the authority, as URLs (`mailto:…`).
    pub contacts: Vec<String>,
    /// The folder with the certificate, its key and the account, readable by its owner only.
    pub cache: PathBuf,
    /// The URL of the authority's directory.
    pub directory: String,
    /// Certificate authorities for the directory itself, beside those of the system.
    pub authorities: Option<PathBuf>,
}

impl AcmeSettings {
    /// For these names, of Let's Encrypt.
    pub fn new(names: Vec<String>, cache: impl Into<PathBuf>) -> Self {
        let (contacts, directory) = (Vec::new(), LETS_ENCRYPT.to_owned());
        Self { names, contacts, cache: cache.into(), directory, authorities: None }
    }
}

/// An event of a certificate that is obtained.
#[derive(Clone, Debug)]
pub enum CertificateEvent {
    /// The certificate in the folder is used.
    Kept {
        /// When it expires.
        until: SystemTime,
    },
    /// A new certificate is used.
    Obtained {
        /// When it expires.
        until: SystemTime,
    },
    /// No certificate could be obtained. The same reason in a row is reported once.
    Failed {
        /// Why.
        reason: String,
        /// How long until the next attempt.
        wait: Duration,
    },
}

impl fmt::Display for CertificateEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept { until } => {
                write!(f, "the certificate is valid until {}", httpdate::fmt_http_date(*until))
            }
            Self::Obtained { until } => {
                let until = httpdate::fmt_http_date(*until);
                write!(f, "obtained a certificate, which is valid until {until}")
            }
            Self::Failed { reason, wait } => {
                let wait = wait.as_secs();
                write!(f, "cannot obtain a certificate: {reason} (next try in {wait} s)")
            }
        }
    }
}

/// The first wait after a failure; it is doubled six times. An authority that was not reached is
/// asked sooner than one that refused: authorities limit failures (Let's Encrypt: five an hour).
const UNREACHED: Duration = Duration::from_secs(5);
const REFUSED: Duration = Duration::from_secs(120);
const DOUBLINGS: u32 = 6;

/// The error of a nonce that has expired, or that the authority rejects to test its clients. It says
/// nothing about the names.
const BAD_NONCE: &str = "badNonce";

/// How long an authority may take to check the names, and to sign.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(90));

/// The longest sleep. The clock may be set meanwhile, or the machine suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// Obtains and renews one certificate.
pub(super) struct Acme {
    settings: AcmeSettings,
    roots: Vec<CertificateDer<'static>>,
    store: Store,
    obtained: Arc<Obtained>,
}

impl Acme {
    /// The certificates of `roots` are trusted beside those of the system.
    pub(super) fn new(
        settings: AcmeSettings,
        roots: Vec<CertificateDer<'static>>,
        obtained: Arc<Obtained>,
    ) -> Self {
        let store = Store::new(&settings.cache, &settings.directory, &settings.names);
        Self { settings, roots, store, obtained }
    }

    /// Uses the certificate in the folder, and obtains a new one when it is due.
    pub(super) async fn run(&self, mut report: impl FnMut(&CertificateEvent)) -> Infallible {
        let mut renewal = SystemTime::now();
        match self.kept() {
            Ok(Some(kept)) => {
                renewal = kept.renewal();
                self.obtained.set(kept.certificate);
                report(&CertificateEvent::Kept { until: kept.until });
            }
            Ok(None) => {}
            // A new certificate replaces it.
            Err(reason) => tracing::warn!("the certificate that was kept is not used: {reason}"),
        }
        let mut failures = Failures::default();
        loop {
            while let Ok(left) = renewal.duration_since(SystemTime::now()) {
                tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
            }
            let obtained = self.obtain().await;
            self.obtained.forget_answers();
            match obtained {
                Ok(new) => {
                    failures = Failures::default();
                    renewal = new.renewal();
                    self.obtained.set(new.certificate);
                    report(&CertificateEvent::Obtained { until: new.until });
                }
                Err(failure) => {
                    let (wait, news) = failures.add(failure);
                    renewal = SystemTime::now() + wait;
                    news.iter().for_each(&mut report);
                }
            }
        }
    }

    /// The certificate in the folder; `None` if there is none, or it has expired.
    fn kept(&self) -> Result<Option<Pair>, String> {
        let Some(pem) = self.store.certificate()? else { return Ok(None) };
        let pair = Pair::parse(&pem)?;
        Ok(Some(pair).filter(|pair| pair.until > SystemTime::now()))
    }

    async fn obtain(&self) -> Result<Pair, Failure> {
        let account = self.account().await?;
        let names = self.settings.names.iter().cloned().map(Identifier::Dns);
        let names: Vec<_> = names.collect();
        let mut order = match account.new_order(&NewOrder::new(&names)).await {
            Err(Error::Api(problem)) if is(&problem, "accountDoesNotExist") => {
                self.store.forget_account()?;
                self.account().await?.new_order(&NewOrder::new(&names)).await?
            }
            order => order?,
        };
        self.prove(&mut order).await?;
        let key = order.finalize().await?;
        let chain = order.poll_certificate(&PATIENCE).await?;
        let pem = format!("{key}{chain}");
        let mut pair = Pair::parse(pem.as_bytes())?;
        let now = SystemTime::now();
        if pair.until <= now {
            return Err(Failure::Other("the new certificate has expired already".to_owned()));
        }
        // Authorities backdate certificates. The renewal depends on the time that is left.
        pair.from = pair.from.max(now);
        self.store.save_certificate(pem.as_bytes())?;
        Ok(pair)
    }

    /// The saved account, or a new one, which is saved before it is used.
    async fn account(&self) -> Result<Account, Failure> {
        let AcmeSettings { directory, contacts, .. } = &self.settings;
        let addresses = match directory == LETS_ENCRYPT {
            true => Addresses::Public,
            // A private authority may be in the same network.
            false => Addresses::Any,
        };
        let policy = Policy { addresses, roots: self.roots.clone(), ..Policy::trusting() };
        let http = HttpClient::new(policy).map_err(|error| Failure::Other(error.to_string()))?;
        let builder = Account::builder_with_http(Box::new(Directory(http)));
        if let Some(account) = self.store.account()? {
            return Ok(builder.from_credentials(account).await?);
        }
        let contacts: Vec<_> = contacts.iter().map(String::as_str).collect();
        let account = NewAccount {
            contact: &contacts,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = builder.create(&account, directory.clone(), None).await?;
        self.store.save_account(&credentials)?;
        Ok(account)
    }

    /// Proves to the authority that the names of the order are ours.
    async fn prove(&self, order: &mut Order) -> Result<(), Failure> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            let name = authorization.identifier().to_string();
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                status => return Err(Failure::Refused(format!("{name}: {status:?}"))),
            }
            let Some(mut challenge) = authorization.challenge(ChallengeType::TlsAlpn01) else {
                let reason = format!("{name}: the authority does not offer TLS-ALPN-01");
                return Err(Failure::Refused(reason));
            };
            self.obtained.answer(&name, challenge.key_authorization().digest().as_ref())?;
            challenge.set_ready().await?;
        }
        match order.poll_ready(&PATIENCE).await {
            Ok(OrderStatus::Ready) => Ok(()),
            Ok(_) => Err(refusal(order, None).await),
            Err(Error::Api(problem)) if !is(&problem, BAD_NONCE) => {
                Err(refusal(order, Some(problem)).await)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Why an authority refuses a name. The order may have no reason, or only an unspecific one.
async fn refusal(order: &mut Order, problem: Option<Problem>) -> Failure {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            continue;
        }
        let name = authorization.identifier().to_string();
        if let Some(problem) = authorization.challenges.iter().find_map(|one| one.error.as_ref()) {
            return Failure::Refused(format!("{name}: {}", described(problem)));
        }
    }
    let unknown = || "the authority refused the order without a reason".to_owned();
    Failure::Refused(problem.as_ref().map_or_else(unknown, described))
}

enum Failure {
    /// The authority refused.
    Refused(String),
    /// The authority was not reached, or another error occurred.
    Other(String),
}

/// The failures in a row.
#[derive(Default)]
struct Failures {
    /// How many failures of the same kind came before the last one.
    count: u32,
    first: Duration,
    reason: String,
}

impl Failures {
    /// Adds a failure. Returns how long to wait, and the event unless it was reported before.
    fn add(&mut self, failure: Failure) -> (Duration, Option<CertificateEvent>) {
        let (reason, first) = match failure {
            Failure::Refused(reason) => (reason, REFUSED),
            Failure::Other(reason) => (reason, UNREACHED),
        };
        self.count = if first == self.first { self.count + 1 } else { 0 };
        let wait = first * 2_u32.pow(self.count.min(DOUBLINGS));
        let is_new = reason != self.reason;
        (self.first, self.reason) = (first, reason.clone());
        (wait, is_new.then_some(CertificateEvent::Failed { reason, wait }))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // The client has repeated the request with other nonces before.
            Error::Api(problem) if is(&problem, BAD_NONCE) => Self::Other(described(&problem)),
            Error::Api(problem) => Self::Refused(described(&problem)),
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

fn is(problem: &Problem, kind: &str) -> bool {
    problem.r#type.as_deref().is_some_and(|uri| uri.ends_with(&format!(":{kind}")))
}

fn described(problem: &Problem) -> String {
    let Problem { r#type, detail, .. } = problem;
    let kind = r#type.as_deref().unwrap_or("no type");
    format!("{} ({kind})", detail.as_deref().unwrap_or("the authority gives no reason"))
}

/// A certificate with its key.
struct Pair {
    certificate: CertifiedKey,
    from: SystemTime,
    until: SystemTime,
}

impl Pair {
    /// Reads a key and certificates in PEM.
    fn parse(pem: &[u8]) -> Result<Self, String> {
        let read = || -> Result<_, Box<dyn std::error::Error>> {
            let key = PrivateKeyDer::from_pem_slice(pem)?;
            let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
            let first = Certificate::from_der(chain.first().ok_or("there is no certificate")?)?;
            let validity = *first.tbs_certificate().validity();
            let provider = aws_lc_rs::default_provider();
            let certificate = CertifiedKey::from_der(chain, key, &provider)?;
            let (from, until) =
                (validity.not_before.to_system_time(), validity.not_after.to_system_time());
            Ok(Self { certificate, from, until })
        };
        read().map_err(|error| format!("invalid certificate: {error}"))
    }

    /// When a third of the lifetime is left.
    fn renewal(&self) -> SystemTime {
        let lifetime = self.until.duration_since(self.from).unwrap_or_default();
        self.until - lifetime / 3
    }
}

/// Requests to an authority.
struct Directory(HttpClient);

impl instant_acme::HttpClient for Directory {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let http = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            let request = Request::from_parts(head, body.to_bytes());
            let limits = Limits { body: 1 << 20, ..Limits::default() };
            let other = |error: sabir_outbound::Error| Error::Other(Box::new(error));
            let url = request.uri().to_string();
            let (parts, body) = http.send(request, &limits).await.map_err(other)?.into_parts();
            let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            if !parts.status.is_success() && !kind.is_some_and(|kind| kind.contains("json")) {
                return Err(Error::Other(format!("{url} answers {}", parts.status).into()));
            }
            let body = body.read().await.map_err(other)?;
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_nonce_is_not_a_refusal_of_the_names() {
        let problem = |kind: &str| -> Problem {
            serde_json::from_value(serde_json::json!({"type": kind})).unwrap()
        };
        let failure = |kind| Failure::from(Error::Api(problem(kind)));
        let nonce = failure("urn:ietf:params:acme:error:badNonce");
        assert_eq!(Failures::default().add(nonce).0, UNREACHED);
        let refused = failure("urn:ietf:params:acme:error:rejectedIdentifier");
        assert_eq!(Failures::default().add(refused).0, REFUSED);
    }

    #[test]
    fn waits_grow_and_a_reason_is_said_once() {
        let mut failures = Failures::default();
        let mut add = |failure| {
            let (wait, news) = failures.add(failure);
            (wait.as_secs(), news.is_some())
        };
        let away = || Failure::Other("away".to_owned());
        assert_eq!([add(away()), add(away()), add(away())], [(5, true), (10, false), (20, false)]);
        let no = || Failure::Refused("no".to_owned());
        assert_eq!(add(no()), (120, true), "another kind");
        let longest = (0..50).map(|_| add(no())).last();
        assert_eq!(longest, Some((7680, false)));
        assert_eq!(add(Failure::Refused("never".to_owned())), (7680, true));
    }

    #[test]
    fn a_third_of_the_time_is_left_for_a_renewal() {
        let key = rcgen::KeyPair::generate().unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let day = Duration::from_secs(86_400);
        let mut params = rcgen::CertificateParams::new(vec!["example.org".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (now.into(), (now + 90 * day).into());
        let certificate = params.self_signed(&key).unwrap().pem();
        let pair = Pair::parse(format!("{}{certificate}", key.serialize_pem()).as_bytes()).unwrap();
        assert_eq!(pair.renewal(), now + 60 * day);
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let mixed = Pair::parse(format!("{other}{certificate}").as_bytes());
        assert!(mixed.is_err_and(|error| error.contains("invalid certificate")));
        assert!(Pair::parse(certificate.as_bytes()).is_err(), "no key");
    }
}
