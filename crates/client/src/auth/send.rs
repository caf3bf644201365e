//! Requests with the token of a user.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use sabir_outbound::{Body, Error, HttpClient, Limits};

use super::AuthError;
use super::oauth::OAuth;

/// How often a request is sent again with other credentials: for a token that expired early, for a
/// nonce, for more scopes.
const MAX_REFUSALS: usize = 4;

/// The reason for which there is no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The request failed.
    #[error(transparent)]
    Http(#[from] Error),
    /// There is no token for it.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl OAuth {
    /// Sends a request with the access token, if there is one. If the server refuses the token, it is
    /// sent again with another.
    pub async fn send(
        &self,
        http: &HttpClient,
        request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, SendError> {
        for refusals in 0.. {
            let mut attempt = request.clone();
            let used = self.apply(&mut attempt).await?;
            let response = http.send(attempt, limits).await?;
            let status = response.status();
            let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if !is_refused
                || refusals >= MAX_REFUSALS
                || !self.refused(status, response.headers(), used.as_deref()).await?
            {
                return Ok(response);
            }
        }
        Err(SendError::Auth(AuthError::LoginNeeded))
    }
}
