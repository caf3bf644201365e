//! How tokens are got.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use url::Url;

use super::identity::{ClientKey, Registration};

/// How the tokens for a server are got.
#[derive(Clone)]
#[non_exhaustive]
pub struct OAuthSettings {
    /// What a token is granted for.
    pub grant: Grant,
    /// Our registration, where an operator made one.
    pub client: Option<Registration>,
    /// The key that proves who we are, instead of a secret.
    pub key: Option<ClientKey>,
    /// The URL of a document about us, for authorization servers that read such documents.
    pub document: Option<String>,
    /// Our name, where we register ourselves.
    pub name: String,
    /// The scopes to ask for, instead of those that the server names.
    pub scopes: Vec<String>,
    /// The only issuer that is trusted. It is the operator's choice, so that it may have a private
    /// address.
    pub issuer: Option<String>,
    /// Where the authorization server sends people back to.
    pub redirect_uri: String,
    /// Sends a person to the authorization server in the middle of a request. Without it a request
    /// that needs a login fails.
    pub visit: Option<Arc<dyn Visit>>,
    /// The token that is exchanged, or the assertion.
    pub subject: Option<String>,
    /// What the token is that is exchanged.
    pub subject_type: SubjectType,
    /// The name that the server has at its authorization server, for those that exchange tokens by
    /// such names.
    pub audience: Option<String>,
    /// Set for an HTTP API. It is not asked what it demands, as an MCP server is: its authorization
    /// server is the `issuer`, or has the endpoints that are named here.
    pub api: Option<ApiTokens>,
}

/// What an operator says about the tokens for an HTTP API.
#[derive(Clone, Debug, Default)]
pub struct ApiTokens {
    /// The authorization endpoint and the token endpoint, instead of those that the issuer
    /// publishes.
    pub endpoints: Option<(String, String)>,
    /// What the tokens are for (RFC 8707). Authorization servers of many APIs refuse to be told, so
    /// that by default they are not.
    pub resource: Option<String>,
}

/// What a token is that is exchanged. Spec: RFC 8693 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubjectType {
    /// An access token.
    #[default]
    AccessToken,
    /// An ID token of OpenID Connect.
    IdToken,
    /// A JSON Web Token, whatever it is for.
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

/// What a token is granted for.
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
    /// Whether the token is got for another, which is the subject.
    pub fn exchanges(&self) -> bool {
        matches!(self, Self::Exchange | Self::Enterprise { .. })
    }
}

/// Sends a person to a URL, and waits for the redirect that answers it.
pub trait Visit: fmt::Debug + Send + Sync + 'static {
    /// Gives the query of the redirect, or why there is none.
    fn visit(&self, url: Url) -> Visiting<'_>;
}

/// A visit under way.
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
