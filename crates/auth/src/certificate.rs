//! Callers by the certificates of their TLS connections. Pure.

use sabir_wire::{Caller, Raw};
use serde_json::{Map, Value, json};
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::Ia5StringRef;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};

use crate::scopes::Grants;

/// The caller whom a certificate (DER) identifies: the subject, or the first alternative name if
/// the subject is empty, under the name of the certificate's issuer. Names are written as in RFC
/// 4514: `CN=ann,O=Example`. `None` if it has neither. Signature and validity are not checked here.
///
/// The attributes of the subject (`cn`, `ou` and so on) and the alternative names (`uri`, `email`,
/// `dns`) are claims, by which roles grant scopes.
pub fn certificate_caller(der: &[u8], grants: &Grants) -> Option<Caller> {
    let certificate = Certificate::from_der(der).ok()?;
    let certificate = certificate.tbs_certificate();
    let mut claims = Map::new();
    for attribute in certificate.subject().iter() {
        if let Some((name, text)) = claim(attribute) {
            add(&mut claims, &name, &text);
        }
    }
    let alternatives = certificate.get_extension::<SubjectAltName>().ok().flatten();
    for name in alternatives.iter().flat_map(|(_, SubjectAltName(names))| names) {
        match name {
            GeneralName::UniformResourceIdentifier(uri) => add(&mut claims, "uri", uri.as_str()),
            GeneralName::Rfc822Name(address) => add(&mut claims, "email", address.as_str()),
            GeneralName::DnsName(name) => add(&mut claims, "dns", name.as_str()),
            _ => {}
        }
    }
    let mut subject = certificate.subject().to_string();
    if subject.is_empty() {
        let first = ["uri", "email", "dns"].iter().find_map(|kind| claims.get(*kind)?.get(0));
        first?.as_str()?.clone_into(&mut subject);
    }
    let issuer = certificate.issuer().to_string();
    claims.insert("iss".into(), json!(issuer));
    claims.insert("sub".into(), json!(subject));
    let end = certificate.validity().not_after.to_unix_duration().as_secs();
    let caller = Caller::new(issuer, subject).with_scopes(grants.of(&claims)).until(end);
    let claims = Raw::parse(Value::Object(claims).to_string()).ok()?;
    Some(caller.with_claims(claims))
}

/// Adds one of several values of a claim.
fn add(claims: &mut Map<String, Value>, name: &str, value: &str) {
    let values = claims.entry(name).or_insert_with(|| json!([]));
    if let Value::Array(values) = values {
        values.push(value.into());
    }
}

/// An attribute of the subject as a claim; `None` if it has no short name, or its value is not
/// text.
fn claim(attribute: &AttributeTypeAndValue) -> Option<(String, String)> {
    let written = attribute.to_string();
    let (name, _) = written.split_once('=').filter(|(_, value)| !value.starts_with('#'))?;
    let text = attribute.value.decode_as::<DirectoryString>().map(String::from);
    let ascii = || Ia5StringRef::try_from(&attribute.value).map(|text| text.as_str().to_owned());
    Some((name.to_ascii_lowercase(), text.or_else(|_| ascii()).ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;
    use crate::scopes::Role;

    fn der(subject: &[(DnType, &str)], names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.subject_alt_names = names;
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn caller(subject: &[(DnType, &str)], names: Vec<SanType>) -> Option<Caller> {
        let role = |claim: &str, value: &str, scope: &str| Role {
            claim: claim.into(),
            value: value.into(),
            scopes: vec![scope.into()],
        };
        let roles = vec![role("ou", "staff", "notes"), role("uri", "spiffe://x/a", "robots")];
        let grants = Grants::new(&BTreeMap::new(), roles).unwrap();
        certificate_caller(&der(subject, names), &grants)
    }

    #[test]
    fn a_certificate_is_its_subject() {
        let subject = [(DnType::OrganizationalUnitName, "staff"), (DnType::CommonName, "ann")];
        let ann = caller(&subject, Vec::new()).unwrap();
        assert!(ann.is_same_as(&Caller::new("CN=ann,OU=staff", "CN=ann,OU=staff")));
        assert_eq!(ann.scopes().collect::<Vec<_>>(), ["notes"]);
        assert!(ann.expires().is_some_and(|end| end > 0));
        assert!(ann.claims().unwrap().text().contains(r#""cn":["ann"]"#));
    }

    #[test]
    fn without_a_subject_it_is_its_first_name() {
        let uri = SanType::URI("spiffe://x/a".try_into().unwrap());
        let dns = SanType::DnsName("a.example".try_into().unwrap());
        let robot = caller(&[], vec![dns.clone(), uri]).unwrap();
        assert_eq!(robot.subject(), "spiffe://x/a");
        assert_eq!(robot.scopes().collect::<Vec<_>>(), ["robots"]);
        assert_eq!(caller(&[], vec![dns]).unwrap().subject(), "a.example");
        assert!(caller(&[], Vec::new()).is_none());
        assert!(certificate_caller(b"no certificate", &Grants::default()).is_none());
    }

    #[test]
    fn a_name_cannot_look_like_another() {
        let one = caller(&[(DnType::CommonName, "ann,OU=staff")], Vec::new()).unwrap();
        assert_eq!(one.subject(), r"CN=ann\,OU=staff");
        assert_eq!(one.scopes().count(), 0);
        let two = caller(&[(DnType::CommonName, " #a\n\\ ")], Vec::new()).unwrap();
        assert_eq!(two.subject(), "CN=\\ #a\\0a\\\\\\ ");
    }
}
