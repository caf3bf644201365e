//! `[tls]`: the server's certificate, and those of its clients.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use sabir::{AcmeSettings, ClientCertificates, ServerCertificate, TlsSettings};
use sabir_auth::{Grants, certificate_caller};
use sabir_outbound::{HttpClient, Policy};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::mistake::{Mistake, Text};
use super::upstream_auth::data_folder;
use super::values::{duration, one_of, positive};

/// A `[tls]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsEntry {
    cert: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
    acme: Option<Spanned<Value>>,
    acme_contact: Option<Spanned<Value>>,
    acme_cache: Option<Spanned<String>>,
    acme_directory: Option<Spanned<String>>,
    acme_ca: Option<Spanned<String>>,
    client_ca: Option<String>,
    client_certificates: Option<Spanned<Value>>,
    handshake_time: Option<Spanned<String>>,
    handshakes: Option<Spanned<usize>>,
}

/// Settles `[tls]`. The files are not read. Roles of `grants` give scopes to clients by their
/// certificates.
pub(super) fn settle(
    file: &Spanned<TlsEntry>,
    grants: &Grants,
    text: &Text<'_>,
) -> Result<TlsSettings, Mistake> {
    let mut settings = TlsSettings::of(certificate(file, text)?);
    let file = file.get_ref();
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

/// Where the server's certificate comes from.
fn certificate(file: &Spanned<TlsEntry>, text: &Text<'_>) -> Result<ServerCertificate, Mistake> {
    let TlsEntry { cert, key, acme, acme_contact, acme_cache, acme_directory, acme_ca, .. } =
        file.get_ref();
    let missing = |place, what, hint| Err(text.lacking(place, what).hint(hint));
    let Some(written) = acme else {
        let contact = acme_contact.as_ref().map(Spanned::span);
        let others = [acme_cache, acme_directory, acme_ca].into_iter().flatten().map(Spanned::span);
        if let Some(place) = contact.into_iter().chain(others).next() {
            let hint = "add e.g. `acme = \"example.org\"`";
            return missing(place, "[tls]: `acme` is missing", hint);
        }
        return match (cert, key) {
            (Some(cert), Some(key)) => {
                let (certificate, key) =
                    (text.resolve(cert.get_ref()), text.resolve(key.get_ref()));
                Ok(ServerCertificate::Files { certificate, key })
            }
            (Some(cert), None) => {
                missing(cert.span(), "[tls]: `key` is missing", "add e.g. `key = \"key.pem\"`")
            }
            (None, Some(key)) => {
                let hint = "add e.g. `cert = \"fullchain.pem\"`";
                missing(key.span(), "[tls]: `cert` is missing", hint)
            }
            (None, None) => {
                let hint = "add `cert` and `key`, or e.g. `acme = \"example.org\"`";
                missing(file.span(), "[tls]: `cert` is missing", hint)
            }
        };
    };
    if let Some(pair) = cert.as_ref().or(key.as_ref()) {
        let what = "`cert` and `key` with `acme` (expected one or the other)";
        let hint = "remove `acme`, or `cert` and `key`: `acme` obtains a certificate with its key";
        return missing(pair.span(), what, hint);
    }
    let names = strings(written).filter(|names| !names.is_empty()).ok_or_else(|| {
        let what = "invalid `acme` (expected a host name, or a list of host names)";
        text.mistake(written.span(), what).hint("write e.g. `acme = \"example.org\"`")
    })?;
    let names = names.iter().map(|name| host(name, written, text));
    let names: Result<BTreeSet<_>, Mistake> = names.collect();
    let cache = acme_cache.as_ref().map(|path| path.get_ref().as_str());
    let cache = data_folder(cache, "acme", text).ok_or_else(|| {
        let what = "no folder for the certificate (no home folder)";
        text.mistake(written.span(), what).hint("add e.g. `acme_cache = \"acme\"`")
    })?;
    let mut settings = AcmeSettings::new(names?.into_iter().collect(), cache);
    if let Some(written) = acme_contact {
        settings.contacts = contacts(written, text)?;
    }
    if let Some(url) = acme_directory {
        settings.directory = directory(url, text)?;
    }
    settings.authorities = acme_ca.as_ref().map(|path| text.resolve(path.get_ref()));
    Ok(ServerCertificate::Acme(settings))
}

/// A text, or a list of texts.
fn strings(written: &Spanned<Value>) -> Option<Vec<&str>> {
    match written.get_ref() {
        Value::Array(list) => list.iter().map(Value::as_str).collect(),
        value => value.as_str().map(|one| vec![one]),
    }
}

/// A name that an authority can look up and connect to.
fn host(name: &str, written: &Spanned<Value>, text: &Text<'_>) -> Result<String, Mistake> {
    let wrong = |hint: &str| {
        let what = format!("invalid name `{name}` in `acme` (expected e.g. \"example.org\")");
        Err(text.mistake(written.span(), what).hint(hint))
    };
    let lower = name.to_ascii_lowercase();
    if name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return wrong("name the host: certificates for addresses are not obtained");
    }
    if name.starts_with("*.") {
        return wrong("name each host: this way of obtaining certificates has no wildcards");
    }
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match lower.len() <= 253 && lower.split('.').all(is_label) {
        true => Ok(lower),
        false => wrong("a name has letters, digits, `-` and `.`; others are written as `xn--…`"),
    }
}

/// Addresses of e-mail, as URLs.
fn contacts(written: &Spanned<Value>, text: &Text<'_>) -> Result<Vec<String>, Mistake> {
    let one = |address: &str| {
        let address = address.strip_prefix("mailto:").unwrap_or(address);
        let (user, host) = address.split_once('@')?;
        let is_address = !user.is_empty() && !host.is_empty() && !address.contains([' ', ',']);
        is_address.then(|| format!("mailto:{address}"))
    };
    let contacts = strings(written).and_then(|all| all.into_iter().map(one).collect());
    contacts.ok_or_else(|| {
        let what = "invalid `acme_contact` (expected an e-mail address, or a list of them)";
        let hint = "write e.g. `acme_contact = \"admin@example.org\"`";
        text.mistake(written.span(), what).hint(hint)
    })
}

/// The URL of a directory: `https`, or `http` on this machine.
fn directory(url: &Spanned<String>, text: &Text<'_>) -> Result<String, Mistake> {
    let checked = HttpClient::new(Policy::trusting()).and_then(|http| http.check(url.get_ref()));
    let wrong = |error| text.mistake(url.span(), format!("`acme_directory`: {error}"));
    checked.map(|()| url.get_ref().clone()).map_err(wrong)
}
