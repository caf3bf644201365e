//! Who issues tokens for a server, and for what. Spec: basic/authorization, "Authorization Server
//! Location"; for servers of 2025-03-26, "Server Metadata Discovery" and its fallback.

use url::Url;

use super::AuthError;
use super::challenge::Challenge;
use super::endpoint::Web;
use super::metadata::{ResourceMetadata, ServerMetadata, issuer_places, resource_places};
use super::oauth::OAuth;

/// Who issues tokens for a server.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) metadata: ServerMetadata,
    /// The resource that the token is for, exactly as the server writes it. Empty if it is not sent
    /// to the authorization server.
    pub(crate) resource: String,
    /// The scopes that the server names.
    pub(crate) scopes: Vec<String>,
}

impl OAuth {
    /// Finds the authorization server.
    pub(super) async fn discover(&self, challenge: &Challenge) -> Result<Found, AuthError> {
        let issuer = self.settings.issuer.as_deref();
        let Some(api) = &self.settings.api else {
            return self.web.discover(challenge, issuer).await;
        };
        let metadata = match (&api.endpoints, issuer) {
            (Some((authorization, token)), issuer) => {
                ServerMetadata::named(issuer, authorization, token)
            }
            (None, Some(issuer)) => self.web.server_metadata(issuer).await?,
            (None, None) => {
                let reason =
                    "no authorization server is named (expected an issuer or its endpoints)";
                return Err(AuthError::Untrusted(reason.to_owned()));
            }
        };
        let resource = api.resource.clone().unwrap_or_default();
        Ok(Found { metadata, resource, scopes: challenge.scopes.clone() })
    }
}

impl Web {
    /// Finds the authorization server. `chosen` is the only one that the operator trusts.
    async fn discover(
        &self,
        challenge: &Challenge,
        chosen: Option<&str>,
    ) -> Result<Found, AuthError> {
        let named = match self.resource_metadata(challenge).await? {
            Some(about) => {
                about.check(&self.server)?;
                Some(about)
            }
            None => None,
        };
        let issuer = match (&named, chosen) {
            (Some(about), Some(chosen)) if !about.authorization_servers.is_empty() => {
                if !about.authorization_servers.iter().any(|issuer| issuer == chosen) {
                    let named = about.authorization_servers.join("`, `");
                    let reason =
                        format!("the server trusts the issuer `{named}` (expected `{chosen}`)");
                    return Err(AuthError::Untrusted(reason));
                }
                Some(chosen)
            }
            (_, Some(chosen)) => Some(chosen),
            (Some(about), None) => match about.authorization_servers.first() {
                Some(issuer) => Some(issuer.as_str()),
                None => {
                    let reason = "the metadata of the server names no authorization server";
                    return Err(AuthError::Untrusted(reason.to_owned()));
                }
            },
            (None, None) => None,
        };
        let metadata = match issuer {
            Some(issuer) => self.server_metadata(issuer).await?,
            None => self.oldest_metadata().await?,
        };
        let (resource, scopes) = match named {
            Some(about) => (about.resource, about.scopes_supported),
            None => (canonical(&self.server), Vec::new()),
        };
        let scopes = if challenge.scopes.is_empty() { scopes } else { challenge.scopes.clone() };
        Ok(Found { metadata, resource, scopes })
    }

    async fn resource_metadata(
        &self,
        challenge: &Challenge,
    ) -> Result<Option<ResourceMetadata>, AuthError> {
        if let Some(url) = &challenge.resource_metadata {
            let found = self.named_document(url).await?;
            let missing = || AuthError::Untrusted(format!("no metadata of the server at `{url}`"));
            return found.ok_or_else(missing).map(Some);
        }
        for place in resource_places(&self.server) {
            if let Some(found) = self.document(&place).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn server_metadata(&self, issuer: &str) -> Result<ServerMetadata, AuthError> {
        let invalid = |_| AuthError::Untrusted(format!("invalid issuer `{issuer}`"));
        for place in issuer_places(&Url::parse(issuer).map_err(invalid)?) {
            if let Some(found) = self.document::<ServerMetadata>(&place).await? {
                found.check_issuer(issuer)?;
                return Ok(found);
            }
        }
        Err(AuthError::Untrusted(format!("no metadata of the authorization server `{issuer}`")))
    }

    /// The metadata of a server of 2025-03-26, which is its own authorization server.
    async fn oldest_metadata(&self) -> Result<ServerMetadata, AuthError> {
        let origin = self.server.origin().ascii_serialization();
        let place = format!("{origin}/.well-known/oauth-authorization-server");
        match self.document::<ServerMetadata>(&place).await? {
            Some(found) => {
                found
                    .check_issuer(&origin)
                    .or_else(|_| found.check_issuer(&format!("{origin}/")))?;
                Ok(found)
            }
            None => Ok(ServerMetadata::by_default(&origin)),
        }
    }
}

/// The URL of a server without metadata: without a fragment and a trailing slash.
fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    let text = url.as_str();
    text.strip_suffix('/').filter(|_| url.query().is_none()).unwrap_or(text).to_owned()
}
