//! The certificate that was obtained, and the certificates that answer challenges (RFC 8737).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The certificates for clients, and for the authority.
#[derive(Debug, Default)]
pub(super) struct Obtained {
    /// For clients; without one their handshakes fail.
    current: ArcSwapOption<CertifiedKey>,
    /// For the authority, while it checks a name: at most one for each name of the settings.
    answers: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Obtained {
    pub(super) fn set(&self, certificate: CertifiedKey) {
        self.current.store(Some(Arc::new(certificate)));
    }

    /// Answers the challenge for a name with a certificate that has this digest of the key
    /// authorization.
    pub(super) fn answer(&self, name: &str, digest: &[u8]) -> Result<(), String> {
        let answer = answer(name, digest).map_err(|error| error.to_string())?;
        self.lock().insert(name.to_owned(), Arc::new(answer));
        Ok(())
    }

    pub(super) fn forget_answers(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<CertifiedKey>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Obtained {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}

/// Resolves only the certificates that answer challenges.
#[derive(Debug)]
pub(super) struct Challenges(pub(super) Arc<Obtained>);

impl ResolvesServerCert for Challenges {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.0.lock().get(&name).cloned()
    }
}

fn answer(name: &str, digest: &[u8]) -> Result<CertifiedKey, Box<dyn std::error::Error>> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())?;
    let key = aws_lc_rs::sign::any_supported_type(&key)?;
    // `from_der` would parse the certificate to compare the two, and refuse its unknown critical
    // extension.
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}
