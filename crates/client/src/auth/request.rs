//! The authorization request and its answer, which both pass through a browser. Spec: OAuth 2.1
//! 4.1, RFC 7636, RFC 8707, RFC 9207.

use url::Url;

use super::identity::Registration;
use super::metadata::ServerMetadata;
use super::{AuthError, pkce};

/// The state of a login while a person is at the authorization server.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) metadata: ServerMetadata,
    pub(crate) client: Registration,
    pub(crate) redirect_uri: String,
    pub(crate) resource: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) state: String,
    pub(crate) verifier: String,
    /// The key that the token will be bound to, if it must be.
    pub(crate) key: Option<String>,
}

impl Asked {
    /// A request with fresh secrets.
    pub(crate) fn new(
        metadata: ServerMetadata,
        client: Registration,
        redirect_uri: String,
        resource: String,
        scopes: Vec<String>,
    ) -> Result<Self, AuthError> {
        metadata.check_pkce()?;
        let (state, verifier) = (pkce::random()?, pkce::random()?);
        Ok(Self { metadata, client, redirect_uri, resource, scopes, state, verifier, key: None })
    }

    /// The URL to which the person is sent.
    pub(crate) fn url(&self) -> Result<Url, AuthError> {
        let endpoint = self.metadata.authorization_endpoint()?;
        let invalid =
            |_| AuthError::Untrusted(format!("invalid authorization endpoint `{endpoint}`"));
        let mut url = Url::parse(endpoint).map_err(invalid)?;
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &self.client.client_id)
                .append_pair("redirect_uri", &self.redirect_uri)
                .append_pair("state", &self.state)
                .append_pair("code_challenge", &pkce::hash(&self.verifier))
                .append_pair("code_challenge_method", "S256");
            if !self.resource.is_empty() {
                query.append_pair("resource", &self.resource);
            }
            if !self.scopes.is_empty() {
                query.append_pair("scope", &self.scopes.join(" "));
            }
            if self.scopes.iter().any(|scope| scope == "offline_access") {
                // OpenID Connect grants this scope only with consent.
                query.append_pair("prompt", "consent");
            }
        }
        Ok(url)
    }

    /// The code in the query of the redirect. Everything is checked before the code is used.
    pub(crate) fn code(&self, query: &str) -> Result<String, AuthError> {
        let failed = |reason: &str| Err(AuthError::Login(reason.to_owned()));
        let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
        let mut found = [None; 5];
        for (slot, name) in
            found.iter_mut().zip(["state", "iss", "error", "code", "error_description"])
        {
            let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
            *slot = values.next();
            if values.next().is_some() {
                return failed("the answer of the authorization server is ambiguous");
            }
        }
        let [state, iss, error, code, description] = found;
        if state.is_none_or(|state| *state != *self.state) {
            return failed("the answer is not for this login (`state` differs)");
        }
        let issuer = &self.metadata.issuer;
        match iss {
            Some(iss) if *iss != **issuer && !issuer.is_empty() => {
                return failed(
                    "the answer comes from another authorization server (`iss` differs)",
                );
            }
            None if self.metadata.authorization_response_iss_parameter_supported => {
                return failed(
                    "the answer does not name the authorization server (`iss` is missing)",
                );
            }
            _ => {}
        }
        if let Some(error) = error {
            let (error, description) = (error.to_string(), description.map(ToString::to_string));
            return Err(AuthError::Refused { error, description });
        }
        match code {
            Some(code) if !code.is_empty() => Ok(code.to_string()),
            _ => failed("the answer has no `code`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(announces_iss: bool) -> Asked {
        let metadata = ServerMetadata {
            authorization_endpoint: Some("https://as.example/go?tenant=1".into()),
            authorization_response_iss_parameter_supported: announces_iss,
            ..ServerMetadata::by_default("https://as.example")
        };
        let scopes = vec!["a".into(), "offline_access".into()];
        let (client, redirect) =
            (Registration::new("me", None), "http://127.0.0.1:1/callback".into());
        Asked::new(metadata, client, redirect, "https://mcp.example/mcp".into(), scopes).unwrap()
    }

    #[test]
    fn the_request_has_everything_and_keeps_the_endpoints_query() {
        let asked = asked(true);
        let url = asked.url().unwrap();
        let pairs: std::collections::BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        for (name, value) in [
            ("tenant", "1"),
            ("response_type", "code"),
            ("client_id", "me"),
            ("redirect_uri", "http://127.0.0.1:1/callback"),
            ("code_challenge_method", "S256"),
            ("resource", "https://mcp.example/mcp"),
            ("scope", "a offline_access"),
            ("prompt", "consent"),
            ("state", asked.state.as_str()),
        ] {
            assert_eq!(pairs.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(pairs["code_challenge"], pkce::hash(&asked.verifier));
        assert!(!url.as_str().contains(&asked.verifier));
    }

    #[test]
    fn an_answer_is_checked_before_its_code_is_used() {
        let good = asked(true);
        let state = &good.state;
        let iss = "iss=https%3A%2F%2Fas.example";
        assert_eq!(good.code(&format!("code=x%20y&state={state}&{iss}")).unwrap(), "x y");
        for bad in [
            format!("code=x&state={state}"),
            format!("code=x&state={state}&iss=https://evil.example"),
            format!("code=x&state={state}&iss=https://as.example/"),
            format!("code=x&code=y&state={state}&{iss}"),
            format!("state={state}&{iss}"),
            format!("code=x&state=other&{iss}"),
            format!("code=x&{iss}"),
            format!("error=access_denied&state={state}&iss=https://evil.example"),
            String::new(),
        ] {
            assert!(matches!(good.code(&bad), Err(AuthError::Login(_))), "{bad}");
        }
        let refused = good.code(&format!("error=access_denied&state={state}&{iss}"));
        assert!(
            matches!(refused, Err(AuthError::Refused { error, .. }) if error == "access_denied")
        );
    }

    #[test]
    fn a_server_that_does_not_announce_iss_may_omit_it_and_must_not_lie() {
        let quiet = asked(false);
        let state = &quiet.state;
        assert!(quiet.code(&format!("code=x&state={state}")).is_ok());
        assert!(quiet.code(&format!("code=x&state={state}&iss=https://evil.example")).is_err());
    }

    #[test]
    fn without_pkce_nothing_is_asked() {
        let metadata = ServerMetadata {
            code_challenge_methods_supported: None,
            ..ServerMetadata::by_default("https://as.example")
        };
        let text = String::new;
        let client = Registration::new("me", None);
        assert!(Asked::new(metadata, client, text(), text(), Vec::new()).is_err());
    }
}
