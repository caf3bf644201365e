//! Requests with the token of a user.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use sabir_outbound::{Body, Error, HttpClient, Limits};

use super::AuthError;
use super::oauth::OAuth;

/// How often a request is repeated with other credentials: for a token that expired early, for a
/// nonce, for more scopes.
const MAX_REFUSALS: usize = 4;

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The request failed.
    #[error(transparent)]
    Http(#[from] Error),
    /// The token for the request is missing.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl OAuth {
    /// Sends a request with the access token, if there is one. If the server refuses the token, the
    /// request is repeated with another.
    pub async fn send(
        &self,
        http: &HttpClient,
        request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, SendError> {
        let send = |attempt| http.send(attempt, limits);
        self.attempt(&request, send, |response| (response.status(), response.headers())).await
    }

    /// The same with the function that sends, and one that has the head of a response.
    pub(crate) async fn attempt<T, F: Future<Output = Result<T, Error>>>(
        &self,
        request: &Request<Bytes>,
        send: impl Fn(Request<Bytes>) -> F,
        head: impl Fn(&T) -> (StatusCode, &HeaderMap),
    ) -> Result<T, SendError> {
        let mut refusals = 0;
        loop {
            let mut attempt = request.clone();
            let used = self.apply(&mut attempt).await?;
            let response = send(attempt).await?;
            let (status, headers) = head(&response);
            let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if !is_refused
                || refusals >= MAX_REFUSALS
                || !Box::pin(self.refused(status, headers, &used)).await?
            {
                return Ok(response);
            }
            refusals += 1;
        }
    }
}
