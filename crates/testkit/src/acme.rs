//! An authority that issues certificates by ACME (RFC 8555), after it has checked each name by
//! TLS-ALPN-01 (RFC 8737). It checks signatures and nonces, and connects as a real one does.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::ClientConfig;
use rustls::DigitallySignedStruct as Signed;
use rustls::SignatureScheme;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use x509_cert::Certificate;
use x509_cert::der::asn1::{ObjectIdentifier, OctetStringRef};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::request::CertReq;

use crate::authority::Authority;
use crate::provider::{Request, fresh, response};

/// The authority. It ends with its runtime.
#[derive(Clone, Debug)]
pub struct AcmeAuthority(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    authority: Authority,
    /// Where the directory is, as clients see it.
    origin: String,
    lifetime: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The port on which names are checked.
    port: u16,
    nonces: HashSet<String>,
    /// The key of each account, by its URL.
    accounts: HashMap<String, Value>,
    orders: Vec<Order>,
}

/// An order, and how far it came.
#[derive(Clone, Debug)]
pub struct Order {
    /// The names that a certificate was asked for.
    pub names: Vec<String>,
    /// For each name, `None` until it is checked, then what is wrong.
    pub checked: Vec<Option<Result<(), String>>>,
    /// The certificate in PEM.
    pub certificate: Option<String>,
    account: String,
    tokens: Vec<String>,
}

/// The status line, headers and the body of an answer.
type Answer = (&'static str, String, Value);

impl AcmeAuthority {
    /// Starts it on a port of this machine, or on a free one if it is 0. Its certificates are valid
    /// for so long. `origin` is where clients reach it, if not at this port.
    pub async fn start(
        authority: Authority,
        port: u16,
        lifetime: Duration,
        origin: Option<&str>,
    ) -> std::io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let origin = origin.map_or_else(|| format!("http://{address}"), str::to_owned);
        let state = Mutex::default();
        let this = Self(Arc::new(Shared { authority, origin, lifetime, state }));
        let serving = this.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let this = serving.clone();
                tokio::spawn(async move {
                    // A client may leave at any time.
                    let Ok(Some(request)) = Request::read(&mut stream).await else { return };
                    let answer = this.respond(&request);
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Ok((this, address))
    }

    /// The authority that signs.
    pub fn authority(&self) -> &Authority {
        &self.0.authority
    }

    /// Sets the port of this machine on which names are checked, instead of 443. Checks wait until it
    /// is set.
    pub fn check_port(&self, port: u16) {
        self.lock().port = port;
    }

    /// The orders so far.
    pub fn orders(&self) -> Vec<Order> {
        self.lock().orders.clone()
    }

    /// How many accounts there are.
    pub fn accounts(&self) -> usize {
        self.lock().accounts.len()
    }

    /// Forgets all accounts.
    pub fn forget_accounts(&self) {
        self.lock().accounts.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn respond(&self, request: &Request) -> String {
        let origin = &self.0.origin;
        let (status, mut headers, body) = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/directory") => {
                let body = json!({
                    "newNonce": format!("{origin}/nonce"),
                    "newAccount": format!("{origin}/account"),
                    "newOrder": format!("{origin}/order"),
                });
                ("200 OK", String::new(), body)
            }
            ("HEAD", "/nonce") => ("200 OK", String::new(), Value::Null),
            ("POST", _) => self.post(request).unwrap_or_else(|(kind, detail)| {
                let kind = format!("urn:ietf:params:acme:error:{kind}");
                ("400 Bad Request", String::new(), json!({ "type": kind, "detail": detail }))
            }),
            _ => ("404 Not Found", String::new(), json!({ "detail": "no such resource" })),
        };
        let nonce = fresh("nonce");
        headers += &format!("Replay-Nonce: {nonce}\r\n");
        self.lock().nonces.insert(nonce);
        let body = match body {
            Value::Null => String::new(),
            Value::String(text) => text,
            json => json.to_string(),
        };
        response(status, &headers, &body)
    }

    fn post(&self, request: &Request) -> Result<Answer, (&'static str, String)> {
        let Shared { origin, .. } = &*self.0;
        let (header, payload) = self.verified(request)?;
        let mut words = request.path.trim_start_matches('/').split('/');
        let kind = words.next().unwrap_or_default();
        if (kind, words.next()) == ("account", None) {
            let url = format!("{origin}/account/{}", fresh("account"));
            self.lock().accounts.insert(url.clone(), header["jwk"].clone());
            let place = format!("Location: {url}\r\n");
            return Ok(("201 Created", place, json!({ "status": "valid" })));
        }
        let account = header["kid"].as_str().unwrap_or_default().to_owned();
        if request.path == "/order" {
            let names = payload["identifiers"].as_array().cloned().unwrap_or_default();
            let names: Vec<_> = names.iter().map(|name| text(&name["value"])).collect();
            let (checked, tokens) = names.iter().map(|_| (None, fresh("token"))).unzip();
            let order = Order { names, checked, certificate: None, account, tokens };
            let mut state = self.lock();
            state.orders.push(order);
            let number = state.orders.len() - 1;
            let place = format!("Location: {origin}/order/{number}\r\n");
            return Ok(("201 Created", place, state.orders[number].shown(origin, number)));
        }
        let numbers: Vec<usize> =
            request.path.split('/').skip(2).filter_map(|word| word.parse().ok()).collect();
        let (number, nth) =
            (numbers.first().copied().unwrap_or(usize::MAX), numbers.get(1).copied().unwrap_or(0));
        let mut state = self.lock();
        let order = state.orders.get_mut(number).filter(|order| order.account == account);
        let order = order.ok_or_else(|| ("unauthorized", "not your order".to_owned()))?;
        let body = match kind {
            "order" => order.shown(origin, number),
            "authorization" => order.authorization(origin, number, nth),
            "challenge" => {
                drop(state);
                return Ok(("200 OK", String::new(), self.challenge(number, nth)));
            }
            "finalize" => {
                self.finalize(order, &text(&payload["csr"]))?;
                order.shown(origin, number)
            }
            "certificate" => order.certificate.clone().map_or(Value::Null, Value::String),
            _ => return Err(("malformed", "no such resource".to_owned())),
        };
        Ok(("200 OK", String::new(), body))
    }

    /// The protected header and the payload of a request, whose signature and nonce are right.
    fn verified(&self, request: &Request) -> Result<(Value, Value), (&'static str, String)> {
        let wrong = |what: &str| ("malformed", what.to_owned());
        let body: Value = serde_json::from_str(&request.body).map_err(|_| wrong("not JSON"))?;
        let decoded = |name: &str| URL_SAFE_NO_PAD.decode(body[name].as_str().unwrap_or_default());
        let header = decoded("protected").map_err(|_| wrong("header"))?;
        let header: Value = serde_json::from_slice(&header).map_err(|_| wrong("header"))?;
        let url = format!("{}{}", self.0.origin, request.path);
        if header["url"] != json!(url) || header["alg"] != "ES256" {
            return Err(wrong("another URL, or another algorithm"));
        }
        let mut state = self.lock();
        if !state.nonces.remove(header["nonce"].as_str().unwrap_or_default()) {
            return Err(("badNonce", "unknown or used nonce".to_owned()));
        }
        let key =
            match header["kid"].as_str() {
                Some(account) => state.accounts.get(account).cloned().ok_or_else(|| {
                    ("accountDoesNotExist", "there is no such account".to_owned())
                })?,
                None if request.path == "/account" => header["jwk"].clone(),
                None => return Err(wrong("no account")),
            };
        let mut point = vec![4];
        for part in ["x", "y"] {
            let decoded = URL_SAFE_NO_PAD.decode(key[part].as_str().unwrap_or_default());
            point.extend(decoded.map_err(|_| wrong("key"))?);
        }
        let (head, payload) = (text(&body["protected"]), text(&body["payload"]));
        let signature = decoded("signature").map_err(|_| wrong("signature"))?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(format!("{head}.{payload}").as_bytes(), &signature)
            .map_err(|_| wrong("signature"))?;
        let payload = decoded("payload").map_err(|_| wrong("payload"))?;
        Ok((header, serde_json::from_slice(&payload).unwrap_or_default()))
    }

    /// Begins to check a name.
    fn challenge(&self, number: usize, nth: usize) -> Value {
        let this = self.clone();
        tokio::spawn(async move {
            while this.lock().port == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let (name, expected, port) = {
                let state = this.lock();
                let order = &state.orders[number];
                let key = &state.accounts[&order.account];
                let thumbprint =
                    format!(r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#, key["x"], key["y"]);
                let thumbprint = digest(&SHA256, thumbprint.as_bytes());
                let token = &order.tokens[nth];
                let authorization = format!("{token}.{}", URL_SAFE_NO_PAD.encode(thumbprint));
                let expected = digest(&SHA256, authorization.as_bytes()).as_ref().to_vec();
                (order.names[nth].clone(), expected, state.port)
            };
            let checked = check(&name, port, &expected).await;
            this.lock().orders[number].checked[nth] = Some(checked);
        });
        self.lock().orders[number].shown_challenge(&self.0.origin, number, nth)
    }

    fn finalize(&self, order: &mut Order, csr: &str) -> Result<(), (&'static str, String)> {
        let wrong = |what: &str| ("badCSR", what.to_owned());
        if order.status() != "ready" {
            return Err(("orderNotReady", "the names are not checked".to_owned()));
        }
        let csr = URL_SAFE_NO_PAD.decode(csr).map_err(|_| wrong("base64"))?;
        let csr = CertReq::from_der(&csr).map_err(|error| wrong(&error.to_string()))?;
        let info = &csr.info;
        let signed = info.to_der().map_err(|error| wrong(&error.to_string()))?;
        let key = info.public_key.subject_public_key.raw_bytes().to_vec();
        let algorithm = &aws_lc_rs::signature::ECDSA_P256_SHA256_ASN1;
        UnparsedPublicKey::new(algorithm, &key)
            .verify(&signed, csr.signature.raw_bytes())
            .map_err(|_| wrong("signature"))?;
        let Shared { authority, lifetime, .. } = &*self.0;
        order.certificate = Some(authority.certify(key, order.names.clone(), *lifetime));
        Ok(())
    }
}

impl Order {
    fn status(&self) -> &'static str {
        match () {
            () if self.certificate.is_some() => "valid",
            () if self.checked.iter().any(|one| matches!(one, Some(Err(_)))) => "invalid",
            () if self.checked.iter().all(Option::is_some) => "ready",
            () => "pending",
        }
    }

    fn shown(&self, origin: &str, number: usize) -> Value {
        let authorizations = 0..self.names.len();
        let authorizations = authorizations.map(|n| format!("{origin}/authorization/{number}/{n}"));
        let identifiers = self.names.iter().map(|name| json!({ "type": "dns", "value": name }));
        let mut shown = json!({
            "status": self.status(),
            "identifiers": identifiers.collect::<Vec<_>>(),
            "authorizations": authorizations.collect::<Vec<_>>(),
            "finalize": format!("{origin}/finalize/{number}"),
        });
        if self.certificate.is_some() {
            shown["certificate"] = json!(format!("{origin}/certificate/{number}"));
        }
        shown
    }

    fn authorization(&self, origin: &str, number: usize, nth: usize) -> Value {
        let status = match &self.checked[nth] {
            None => "pending",
            Some(Ok(())) => "valid",
            Some(Err(_)) => "invalid",
        };
        json!({
            "status": status,
            "identifier": { "type": "dns", "value": self.names[nth] },
            "challenges": [
                { "type": "dns-01", "url": format!("{origin}/no"), "token": "t", "status": "pending" },
                self.shown_challenge(origin, number, nth),
            ],
        })
    }

    fn shown_challenge(&self, origin: &str, number: usize, nth: usize) -> Value {
        let mut shown = json!({
            "type": "tls-alpn-01",
            "url": format!("{origin}/challenge/{number}/{nth}"),
            "token": self.tokens[nth],
            "status": "pending",
        });
        match &self.checked[nth] {
            None => {}
            Some(Ok(())) => shown["status"] = json!("valid"),
            Some(Err(reason)) => {
                shown["status"] = json!("invalid");
                let kind = "urn:ietf:params:acme:error:unauthorized";
                shown["error"] = json!({ "type": kind, "detail": reason });
            }
        }
        shown
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Connects as an authority does, and looks at the certificate that is shown.
async fn check(name: &str, port: u16, expected: &[u8]) -> Result<(), String> {
    let describe = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| describe(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    let stream = stream.map_err(|error| describe(&error))?;
    let server = ServerName::try_from(name.to_owned()).map_err(|error| describe(&error))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(server, stream);
    let mut stream = connecting.await.map_err(|error| describe(&error))?;
    let (_, session) = stream.get_ref();
    if session.alpn_protocol() != Some(b"acme-tls/1") {
        return Err(describe(&"acme-tls/1 was not chosen"));
    }
    let shown = session.peer_certificates().unwrap_or_default();
    let [shown] = shown else { return Err(describe(&"not one certificate")) };
    let shown = Certificate::from_der(shown).map_err(|error| describe(&error))?;
    let shown = shown.tbs_certificate();
    let names = shown.get_extension::<SubjectAltName>().ok().flatten();
    let names: Vec<_> = names.into_iter().flat_map(|(_, SubjectAltName(names))| names).collect();
    if !matches!(&names[..], [GeneralName::DnsName(one)] if one.as_str() == name) {
        return Err(describe(&format!("the certificate is for {names:?}")));
    }
    let oid = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.31");
    let extensions = shown.extensions().into_iter().flatten();
    let mut found = extensions.filter(|one| one.extn_id == oid && one.critical);
    let found = found.next().ok_or_else(|| describe(&"no critical acmeIdentifier"))?;
    let found = <&OctetStringRef>::from_der(found.extn_value.as_bytes());
    if found.map_err(|error| describe(&error))?.as_bytes() != expected {
        return Err(describe(&"another key authorization"));
    }
    // The connection is not for HTTP. A write may fail, because the server has closed it.
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    match answer.is_empty() {
        true => Ok(()),
        false => Err(describe(&"the connection was served")),
    }
}

/// Accepts every certificate: rustls refuses those with a critical extension that it does not know.
#[derive(Debug)]
struct Anything;

type Valid = Result<HandshakeSignatureValid, rustls::Error>;

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(&self, _: &[u8], _: &CertificateDer<'_>, _: &Signed) -> Valid {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(&self, _: &[u8], _: &CertificateDer<'_>, _: &Signed) -> Valid {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}
