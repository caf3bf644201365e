//! Well-known places, and the documents there. Spec: RFC 9728, RFC 8414, OpenID Connect Discovery.

use serde::{Deserialize, Serialize};
use url::Url;

use super::AuthError;

/// The metadata of a server as a protected resource.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ResourceMetadata {
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) registration_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(crate) dpop_signing_alg_values_supported: Vec<String>,
}

/// Where the metadata of a server may be, if its challenge does not say so.
pub(crate) fn resource_places(server: &Url) -> Vec<String> {
    inserted(server, "oauth-protected-resource", true)
}

/// Where the metadata of an authorization server may be. The root is left out for an issuer with a
/// path: it may belong to another issuer.
pub(crate) fn issuer_places(issuer: &Url) -> Vec<String> {
    let mut places = inserted(issuer, "oauth-authorization-server", false);
    places.extend(inserted(issuer, "openid-configuration", false));
    let path = issuer.path().trim_end_matches('/');
    if !path.is_empty() {
        let origin = issuer.origin().ascii_serialization();
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    places
}

fn inserted(url: &Url, name: &str, and_root: bool) -> Vec<String> {
    let root = format!("{}/.well-known/{name}", url.origin().ascii_serialization());
    match url.path().trim_end_matches('/') {
        "" => vec![root],
        path if and_root => vec![format!("{root}{path}"), root],
        path => vec![format!("{root}{path}")],
    }
}

impl ResourceMetadata {
    /// The metadata must describe the server that we call, or tokens would be for another server.
    pub(crate) fn check(&self, server: &Url) -> Result<(), AuthError> {
        let covers = |resource: &Url| {
            let (own, whole) = (resource.path().trim_end_matches('/'), server.path());
            let below = whole.strip_prefix(own);
            resource.origin() == server.origin()
                && resource.fragment().is_none()
                && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        match Url::parse(&self.resource) {
            Ok(resource) if covers(&resource) => Ok(()),
            _ => Err(AuthError::Untrusted(format!(
                "the metadata of the server is about `{}` (expected `{server}`)",
                self.resource
            ))),
        }
    }
}

impl ServerMetadata {
    /// The default endpoints of a server of 2025-03-26 without metadata.
    pub(crate) fn by_default(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            token_endpoint_auth_methods_supported: Some(vec!["none".to_owned()]),
            ..Self::default()
        }
    }

    /// The endpoints that an operator named. An unknown issuer is empty.
    pub(crate) fn named(issuer: Option<&str>, authorization: &str, token: &str) -> Self {
        Self {
            issuer: issuer.unwrap_or_default().to_owned(),
            authorization_endpoint: Some(authorization.to_owned()),
            token_endpoint: Some(token.to_owned()),
            // A server that does not know PKCE ignores it.
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    /// The issuer must be exactly the one whose metadata was requested (RFC 8414 3.3).
    pub(crate) fn check_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        if self.issuer == issuer {
            return Ok(());
        }
        let reason = format!(
            "the metadata of the authorization server names the issuer `{}` (expected `{issuer}`)",
            self.issuer
        );
        Err(AuthError::Untrusted(reason))
    }

    /// PKCE is required: without it a stolen code could be redeemed.
    pub(crate) fn check_pkce(&self) -> Result<(), AuthError> {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if methods.iter().any(|method| method == "S256") {
            return Ok(());
        }
        let reason = "the authorization server does not support PKCE (expected S256 in \
                      `code_challenge_methods_supported`)";
        Err(AuthError::Untrusted(reason.to_owned()))
    }

    pub(crate) fn token_endpoint(&self) -> Result<&str, AuthError> {
        self.token_endpoint.as_deref().ok_or_else(|| self.missing("token_endpoint"))
    }

    pub(crate) fn authorization_endpoint(&self) -> Result<&str, AuthError> {
        self.authorization_endpoint.as_deref().ok_or_else(|| self.missing("authorization_endpoint"))
    }

    fn missing(&self, member: &str) -> AuthError {
        AuthError::Untrusted(format!("the metadata of `{}` has no `{member}`", self.issuer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn the_places_of_a_server_come_in_order() {
        assert_eq!(
            resource_places(&url("https://a.example:8443/x/mcp?y=1")),
            [
                "https://a.example:8443/.well-known/oauth-protected-resource/x/mcp",
                "https://a.example:8443/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            resource_places(&url("https://a.example")),
            ["https://a.example/.well-known/oauth-protected-resource"]
        );
    }

    #[test]
    fn the_root_is_left_out_for_an_issuer_with_a_path() {
        assert_eq!(
            issuer_places(&url("https://a.example/tenant1")),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            issuer_places(&url("https://a.example/")),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn metadata_must_be_about_our_server() {
        let server = url("https://a.example/mcp");
        let about = |resource: &str| ResourceMetadata {
            resource: resource.to_owned(),
            authorization_servers: Vec::new(),
            scopes_supported: Vec::new(),
        };
        for good in ["https://a.example/mcp", "https://a.example", "HTTPS://A.example/mcp/"] {
            assert_eq!(about(good).check(&server), Ok(()), "{good}");
        }
        for bad in [
            "https://b.example/mcp",
            "http://a.example/mcp",
            "https://a.example:444/mcp",
            "https://a.example/mc",
            "https://a.example/mcp/x",
            "https://a.example/mcp#x",
            "mcp",
            "",
        ] {
            assert!(about(bad).check(&server).is_err(), "{bad}");
        }
    }
}
