//! Documents for clients: the metadata of this resource, and the challenges of refusals.
//!
//! Spec: RFC 9728, RFC 6750; basic/authorization of the revisions since 2025-03-26. All of them are
//! served in the same way: every challenge names the metadata, and the metadata is at both
//! well-known places.

use bytes::Bytes;
use sabir_transports::http::Denied;
use serde_json::json;
use url::Url;

use crate::settings::Settings;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// Where clients of 2025-03-26 look for the authorization server: at the root of this server.
pub(crate) const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// The documents for clients.
#[derive(Debug)]
pub(crate) struct Documents {
    metadata: Bytes,
    /// Where the metadata is.
    url: String,
    /// The paths at which it is served.
    paths: [String; 2],
    /// The scopes that a client should request at first.
    scopes: String,
}

impl Documents {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut metadata = json!({
            "resource": settings.resource,
            "authorization_servers": settings.issuers,
            "bearer_methods_supported": ["header"],
        });
        if !settings.scopes.is_empty() {
            metadata["scopes_supported"] = json!(settings.scopes);
        }
        let resource = Url::parse(&settings.resource).ok();
        let path = resource.as_ref().map_or("", Url::path).trim_end_matches('/');
        let origin = resource.as_ref().map(|url| url.origin().ascii_serialization());
        let place = format!("{RESOURCE}{path}");
        Self {
            metadata: metadata.to_string().into(),
            url: format!("{}{place}", origin.unwrap_or_default()),
            paths: [RESOURCE.to_owned(), place],
            scopes: settings.scopes.join(" "),
        }
    }

    /// The metadata, if it is served at this path.
    pub(crate) fn metadata(&self, path: &str) -> Option<&Bytes> {
        self.paths.iter().any(|known| known == path).then_some(&self.metadata)
    }

    /// The value of `WWW-Authenticate`.
    pub(crate) fn challenge(&self, denied: &Denied) -> String {
        let (error, description, scopes) = match denied {
            Denied::Invalid(reason) => ("invalid_token", *reason, self.scopes.clone()),
            Denied::Scopes(needed) => {
                ("insufficient_scope", "this needs more scopes", needed.join(" "))
            }
            // No error: no credentials were sent, or they could not be checked.
            Denied::Missing | Denied::Unavailable => ("", "", self.scopes.clone()),
        };
        let mut challenge = "Bearer ".to_owned();
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                let comma = if challenge.ends_with('"') { ", " } else { "" };
                challenge.push_str(&format!("{comma}{name}=\"{value}\""));
            }
        };
        add("error", error);
        add("error_description", &description.replace('`', "'"));
        add("scope", &scopes);
        add("resource_metadata", &self.url);
        challenge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(resource: &str, scopes: &[&str]) -> Documents {
        let mut settings = Settings::new(resource, "https://login.example");
        settings.scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        Documents::new(&settings)
    }

    #[test]
    fn the_metadata_is_at_both_places() {
        let ours = documents("https://mcp.example/mcp", &["a"]);
        let expected = concat!(
            r#"{"resource":"https://mcp.example/mcp","authorization_servers":["#,
            r#""https://login.example"],"bearer_methods_supported":["header"],"#,
            r#""scopes_supported":["a"]}"#
        );
        for path in [RESOURCE.to_owned(), format!("{RESOURCE}/mcp")] {
            assert_eq!(ours.metadata(&path).unwrap(), expected.as_bytes());
        }
        for path in [format!("{RESOURCE}/mcp/"), format!("{RESOURCE}/x"), "/".to_owned()] {
            assert!(ours.metadata(&path).is_none(), "{path}");
        }
        let root = documents("https://mcp.example/", &[]);
        assert!(root.metadata(RESOURCE).is_some());
        assert_eq!(root.url, format!("https://mcp.example{RESOURCE}"));
    }

    #[test]
    fn challenges() {
        let ours = documents("https://mcp.example/mcp", &["a", "b"]);
        let place = format!("resource_metadata=\"https://mcp.example{RESOURCE}/mcp\"");
        for (denied, expected) in [
            (Denied::Missing, format!("Bearer scope=\"a b\", {place}")),
            (
                Denied::Invalid("the token has no `sub`"),
                format!(
                    "Bearer error=\"invalid_token\", \
                     error_description=\"the token has no 'sub'\", scope=\"a b\", {place}"
                ),
            ),
            (
                Denied::Scopes(vec!["x".into(), "y".into()]),
                format!(
                    "Bearer error=\"insufficient_scope\", \
                     error_description=\"this needs more scopes\", scope=\"x y\", {place}"
                ),
            ),
        ] {
            assert_eq!(ours.challenge(&denied), expected);
        }
        let without = documents("https://mcp.example", &[]);
        let expected = format!("Bearer resource_metadata=\"https://mcp.example{RESOURCE}\"");
        assert_eq!(without.challenge(&Denied::Missing), expected);
    }
}
