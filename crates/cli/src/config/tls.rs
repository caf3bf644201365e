//! `[tls]`: the server's certificate, and those of its clients.

use std::sync::Arc;

use sabir::{ClientCertificates, TlsSettings};
use sabir_auth::{Grants, certificate_caller};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::mistake::{Mistake, Text};
use super::values::{duration, one_of, positive};

/// A `[tls]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsEntry {
    cert: String,
    key: String,
    client_ca: Option<String>,
    client_certificates: Option<Spanned<Value>>,
    handshake_time: Option<Spanned<String>>,
    handshakes: Option<Spanned<usize>>,
}

/// Settles `[tls]`. The files are not read. Roles of `grants` give scopes to clients by their
/// certificates.
pub(super) fn settle(
    file: &TlsEntry,
    grants: &Grants,
    text: &Text<'_>,
) -> Result<TlsSettings, Mistake> {
    let mut settings = TlsSettings::new(text.resolve(&file.cert), text.resolve(&file.key));
    let choices = [("\"required\"", true), ("\"optional\"", false)];
    let is_required = one_of(file.client_certificates.as_ref(), text, &choices)?;
    settings.clients = match (&file.client_ca, &file.client_certificates) {
        (Some(authorities), _) => {
            let grants = grants.clone();
            Some(ClientCertificates {
                authorities: text.resolve(authorities),
                is_required: is_required.unwrap_or(true),
                caller: Arc::new(move |certificate| certificate_caller(certificate, &grants)),
            })
        }
        (None, Some(written)) => {
            let what = "`client_certificates` without `client_ca` (expected both)";
            return Err(text.mistake(written.span(), what));
        }
        (None, None) => None,
    };
    let handshake_time = duration(file.handshake_time.as_ref(), text)?;
    settings.handshake_time = handshake_time.unwrap_or(settings.handshake_time);
    settings.handshakes = positive(file.handshakes.as_ref(), text)?.unwrap_or(settings.handshakes);
    Ok(settings)
}
