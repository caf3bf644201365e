//! How callers of an API authenticate.

use std::collections::BTreeMap;

use crate::description::{Description, Node, Version};
use crate::uri::{is_absolute, join};

/// Where an API key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// A header.
    Header,
    /// A parameter of the query.
    Query,
    /// A cookie.
    Cookie,
}

/// A way to authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A secret under a name.
    ApiKey {
        /// Where it is sent.
        place: KeyPlace,
        /// The name of the header, parameter or cookie.
        name: String,
    },
    /// A name and a password.
    Basic,
    /// A token.
    Bearer,
    /// OAuth 2, with the URL that issues tokens to programs.
    OAuth2 {
        /// The token URL of the client credentials flow.
        token_url: Option<String>,
    },
    /// Another scheme.
    Other(String),
}

impl Description {
    /// The ways to authenticate that the description declares, by name.
    pub fn schemes(&self) -> BTreeMap<String, Scheme> {
        let root = self.root();
        let schemes = match self.version() {
            Version::V2 => root.get("securityDefinitions"),
            _ => root.get("components").and_then(|parts| parts.get("securitySchemes")),
        };
        let named = schemes.into_iter().flat_map(Node::members);
        let read = named
            .filter_map(|(name, node)| Some((name.clone(), self.scheme(self.resolve(node).ok()?))));
        read.collect()
    }

    fn scheme(&self, node: Node<'_>) -> Scheme {
        let kind = node.text("type").unwrap_or_default();
        let scheme = node.text("scheme").unwrap_or_default().to_ascii_lowercase();
        match (kind, scheme.as_str()) {
            ("apiKey", _) => {
                let place = match node.text("in") {
                    Some("query") => KeyPlace::Query,
                    Some("cookie") => KeyPlace::Cookie,
                    _ => KeyPlace::Header,
                };
                let name = node.text("name").unwrap_or("X-API-Key").to_owned();
                Scheme::ApiKey { place, name }
            }
            ("basic", _) | ("http", "basic") => Scheme::Basic,
            ("http", "bearer") => Scheme::Bearer,
            ("oauth2", _) => {
                let flows = node.get("flows");
                let flow = flows.and_then(|flows| flows.get("clientCredentials"));
                let url = flow.unwrap_or(node).text("tokenUrl");
                let token_url = url.and_then(|url| {
                    if is_absolute(url) { Some(url.to_owned()) } else { join(self.uri(node), url) }
                });
                Scheme::OAuth2 { token_url }
            }
            ("http", other) => Scheme::Other(other.to_owned()),
            (other, _) => Scheme::Other(other.to_owned()),
        }
    }

    /// The alternatives of an operation: the schemes that each needs. An empty alternative needs
    /// none.
    pub(crate) fn security(&self, operation: Node<'_>) -> Vec<Vec<String>> {
        let needed = operation.get("security").or_else(|| self.root().get("security"));
        let alternatives = needed.into_iter().flat_map(Node::items);
        alternatives.map(|one| one.members().map(|(name, _)| name.clone()).collect()).collect()
    }
}
