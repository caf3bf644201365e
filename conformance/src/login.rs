//! How the client of the suite gets its tokens: as the scenario wants it. The suite's authorization
//! server needs no person; it redirects at once.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, header};
use sabir::client::{
    ClientKey, Grant, HttpTarget, InMemory, OAuth, OAuthSettings, Registration, SubjectType, Visit,
    Visiting,
};
use sabir_outbound::{Addresses, HttpClient, Limits, PlainHttp, Policy};
use serde_json::Value;
use url::Url;

/// The document about us that the suite knows.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Adds what gets tokens to the target.
pub(crate) fn authorize(target: &mut HttpTarget, context: &Value) -> Result<(), Box<dyn Error>> {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let grant = match context["name"].as_str().unwrap_or_default() {
        "auth/client-credentials-basic" | "auth/client-credentials-jwt" => Grant::ClientCredentials,
        "auth/wif-jwt-bearer" => Grant::Assertion,
        "auth/enterprise-managed-authorization" => Grant::Enterprise {
            token_endpoint: text("idp_token_endpoint").ok_or("no token endpoint")?,
            client: Registration::new(text("idp_client_id").ok_or("no client at the IdP")?, None),
        },
        _ => Grant::Code,
    };
    let mut settings = OAuthSettings::new(grant);
    settings.client = text("client_id").map(|id| Registration::new(id, text("client_secret")));
    if let Some(pem) = text("private_key_pem") {
        let algorithm = text("signing_algorithm").unwrap_or_default();
        settings.key = Some(ClientKey::from_pem(&pem, &algorithm)?);
    }
    settings.subject = text("idp_id_token").or_else(|| text("valid_jwt"));
    settings.subject_type = SubjectType::IdToken;
    settings.document = Some(DOCUMENT.to_owned());
    settings.redirect_uri = "http://localhost:3000/callback".to_owned();
    settings.visit = Some(Arc::new(Redirected));
    let (http, keep) = (target.http.clone(), Arc::new(InMemory::default()));
    target.auth = Some(Arc::new(OAuth::new(&target.url, http, settings, keep)?));
    Ok(())
}

/// Takes the redirect for the answer, without following it.
#[derive(Debug)]
struct Redirected;

impl Visit for Redirected {
    fn visit(&self, url: Url) -> Visiting<'_> {
        Box::pin(async move {
            let policy = Policy {
                addresses: Addresses::PublicAndLoopback,
                plain_http: PlainHttp::Loopback,
                ..Policy::default()
            };
            let http = HttpClient::new(policy).map_err(|error| error.to_string())?;
            let request = Request::get(url.as_str()).body(Bytes::new());
            let request = request.map_err(|error| error.to_string())?;
            let response = http.send(request, &Limits::default()).await;
            let response = response.map_err(|error| error.to_string())?;
            let place = response.headers().get(header::LOCATION).and_then(|at| at.to_str().ok());
            let place = place.and_then(|at| Url::parse(at).ok()).ok_or("no redirect")?;
            Ok(place.query().unwrap_or_default().to_owned())
        })
    }
}
