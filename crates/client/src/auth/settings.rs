//! How tokens are obtained.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use url::Url;

use super::identity::{ClientKey, Registration};

/// How the tokens for a server are obtained.
#[derive(Clone)]
#[non_exhaustive]
pub struct OAuthSettings {
    /// The grant by which a token is obtained.
    pub grant: Grant,
    /// Our registration, where an operator made one.
    pub client: Option<Registration>,
    /// The key that authenticates us, instead of a secret.
    pub key: Option<ClientKey>,
    /// The URL of our client metadata document, for authorization servers that support it.
    pub document: Option<String>,
    /// Our name, where we register ourselves.
    pub name: String,
    /// The scopes to request, instead of those that the server names.
    pub scopes: Vec<String>,
    /// The only issuer that is trusted. The operator chose it, so it may have a private address.
    pub issuer: Option<String>,
    /// Where the authorization server sends people back to.
    pub redirect_uri: String,
    /// Sends a person to the authorization server in the middle of a request. Without it a request
    /// that needs a login fails.
    pub visit: Option<Arc<dyn Visit>>,
    /// The token that is exchanged, or the assertion.
    pub subject: Option<String>,
    /// The type of the token that is exchanged.
    pub subject_type: SubjectType,
    /// The name of the server at its authorization server, for exchanges that need it.
    pub audience: Option<String>,
    /// Set for an HTTP API. An MCP server names its authorization server; that of an API is
    /// `issuer`, or has the endpoints that are named here.
    pub api: Option<ApiTokens>,
}

/// The operator's settings for the tokens of an HTTP API.
#[derive(Clone, Debug, Default)]
pub struct ApiTokens {
    /// The authorization endpoint and the token endpoint, instead of those that the issuer
    /// publishes.
    pub endpoints: Option<(String, String)>,
    /// The resource that the tokens are for (RFC 8707). It is not sent by default: many
    /// authorization servers of APIs refuse the parameter.
    pub resource: Option<String>,
}

/// The type of a token that is exchanged. Spec: RFC 8693 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubjectType {
    /// An access token.
    #[default]
    AccessToken,
    /// An ID token of OpenID Connect.
    IdToken,
    /// A JSON Web Token of any other kind.
    Jwt,
}

impl SubjectType {
    pub(crate) fn urn(self) -> &'static str {
        match self {
            Self::AccessToken => "urn:ietf:params:oauth:token-type:access_token",
            Self::IdToken => "urn:ietf:params:oauth:token-type:id_token",
            Self::Jwt => "urn:ietf:params:oauth:token-type:jwt",
        }
    }
}

/// The grant by which a token is obtained.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// A person logs in at the authorization server, and agrees.
    Code,
    /// We have credentials of our own.
    ClientCredentials,
    /// The subject is an assertion for the authorization server (RFC 7523), such as the identity of
    /// a workload.
    Assertion,
    /// The authorization server exchanges the subject (RFC 8693).
    Exchange,
    /// The provider of the subject exchanges it for an assertion (ID-JAG) for the authorization
    /// server.
    Enterprise {
        /// The token endpoint of the identity provider.
        token_endpoint: String,
        /// Our registration there.
        client: Registration,
    },
}

impl Grant {
    /// Whether the token is obtained on behalf of the subject.
    pub fn exchanges(&self) -> bool {
        matches!(self, Self::Exchange | Self::Enterprise { .. })
    }
}

/// Sends a person to a URL, and waits for the redirect.
pub trait Visit: fmt::Debug + Send + Sync + 'static {
    /// Returns the query of the redirect, or why there is none.
    fn visit(&self, url: Url) -> Visiting<'_>;
}

/// The future of a visit.
pub type Visiting<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

impl OAuthSettings {
    /// Settings for a grant, with all defaults.
    pub fn new(grant: Grant) -> Self {
        Self {
            grant,
            client: None,
            key: None,
            document: None,
            name: "Sabir".to_owned(),
            scopes: Vec::new(),
            issuer: None,
            redirect_uri: String::new(),
            visit: None,
            subject: None,
            subject_type: SubjectType::default(),
            audience: None,
            api: None,
        }
    }
}

impl fmt::Debug for OAuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthSettings").field("grant", &self.grant).finish_non_exhaustive()
    }
}
