//! Establishes the caller: the one place where a token becomes a caller.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use jsonwebtoken::Algorithm;
use sabir_outbound::{HttpClient, Policy};
use sabir_transports::http::{Authenticate, Authenticating, Denied, Document};
use sabir_wire::Caller;

use crate::cache::{Cache, Digest};
use crate::claims::{Accepted, Reason, Rules};
use crate::documents::{AUTHORIZATION_SERVER, Documents};
use crate::introspection::Introspector;
use crate::issuer::{Issuer, Unavailable};
use crate::keys::KeySet;
use crate::settings::{BadSettings, Settings};
use crate::token::{MAX_TOKEN, Token, is_jwt};

/// Establishes callers by access tokens of OAuth issuers. Clones share their state.
#[derive(Clone)]
pub struct ResourceServer(Arc<Inner>);

struct Inner {
    rules: Rules,
    algorithms: Vec<Algorithm>,
    documents: Documents,
    cache: Cache,
    /// In the order of the rules.
    issuers: Vec<Arc<Issuer>>,
    introspector: Option<Introspector>,
    lends_tokens: bool,
}

/// The verdict on a token, as far as the keys are known.
enum Verdict {
    Final(Result<Accepted, Reason>),
    /// The keys of this issuer are needed.
    NeedsKeys(usize),
}

impl ResourceServer {
    /// A resource server. An issuer is contacted when its first token arrives.
    pub fn new(settings: &Settings) -> Result<Self, BadSettings> {
        settings.check()?;
        // The operator named the issuers: they may be in a private network.
        let client = HttpClient::new(Policy::trusting());
        let client = client.map_err(|error| BadSettings::Outgoing(error.to_string()))?;
        let issuer = |url: &String| Issuer::new(url, client.clone(), settings.key_interval);
        let issuers: Vec<_> = settings.issuers.iter().map(issuer).collect();
        let introspector = settings.introspection.clone().zip(issuers.first().cloned());
        let introspector = introspector
            .map(|(settings, issuer)| Introspector::new(issuer, client.clone(), settings));
        Ok(Self(Arc::new(Inner {
            rules: Rules::new(settings),
            algorithms: settings.algorithms()?,
            documents: Documents::new(settings),
            cache: Cache::new(settings.cache_time),
            issuers,
            introspector,
            lends_tokens: settings.lends_tokens,
        })))
    }
}

impl Inner {
    /// The verdict on a token, if it is cached or needs no request to the issuer.
    fn known(&self, token: &str) -> Option<Result<Caller, Denied>> {
        let (digest, now) = (Digest::of(token), now());
        if let Some(known) = self.cache.find(&digest, now) {
            return Some(known.map_err(Denied::Invalid));
        }
        if !is_jwt(token) {
            return None;
        }
        let keys = |nth: usize, header: &_| self.issuers[nth].known_keys(header);
        match self.judge(token, now, keys) {
            Verdict::Final(verdict) => Some(self.conclude(digest, verdict)),
            Verdict::NeedsKeys(_) => None,
        }
    }

    /// The verdict on a token. It may need a request to the issuer.
    async fn find_out(&self, token: &str) -> Result<Caller, Denied> {
        if let Some(known) = self.known(token) {
            return known;
        }
        let digest = Digest::of(token);
        let unavailable = |Unavailable| Denied::Unavailable;
        let verdict = match is_jwt(token) {
            false => self.introspect(token).await.map_err(unavailable)?,
            true => match self.judge(token, now(), |_, _| None) {
                Verdict::Final(verdict) => verdict,
                Verdict::NeedsKeys(nth) => {
                    let header = Token::parse(token).map(|token| token.header);
                    let header = header.ok_or(Denied::Invalid(MALFORMED))?;
                    let keys = self.issuers[nth].keys(&header).await.map_err(unavailable)?;
                    if !keys.fits(&header) {
                        // Not cached: the issuer may publish the key at any moment.
                        return Err(Denied::Invalid("the token's key is unknown"));
                    }
                    match self.judge(token, now(), |_, _| Some(keys.clone())) {
                        Verdict::Final(verdict) => verdict,
                        Verdict::NeedsKeys(_) => return Err(Denied::Unavailable),
                    }
                }
            },
        };
        self.conclude(digest, verdict)
    }

    /// Judges a JSON Web Token with the keys that `keys` returns for it.
    fn judge(
        &self,
        token: &str,
        now: Duration,
        keys: impl FnOnce(usize, &jsonwebtoken::Header) -> Option<Arc<KeySet>>,
    ) -> Verdict {
        let refused = |reason| Verdict::Final(Err(reason));
        let Some(token) = Token::parse(token) else { return refused(MALFORMED) };
        if !self.algorithms.contains(&token.header.alg) {
            return refused("the token's algorithm is not accepted");
        }
        let Some(nth) = self.rules.issuer(&token.claims) else {
            return refused("the token is from another issuer");
        };
        let Some(keys) = keys(nth, &token.header) else { return Verdict::NeedsKeys(nth) };
        if !keys.verify(&token) {
            return refused("the token's signature is wrong");
        }
        let issuer = self.issuers[nth].url();
        Verdict::Final(self.rules.check(issuer, &token.claims, &token.text, now))
    }

    async fn introspect(&self, token: &str) -> Result<Result<Accepted, Reason>, Unavailable> {
        let Some(introspector) = &self.introspector else { return Ok(Err(MALFORMED)) };
        let Some((claims, text)) = introspector.ask(token).await? else {
            return Ok(Err("the issuer does not accept the token"));
        };
        let issuer = introspector.issuer.url();
        let is_other = claims.get("iss").is_some_and(|named| named.as_str() != Some(issuer));
        if is_other {
            return Ok(Err("the token is from another issuer"));
        }
        Ok(self.rules.check(issuer, &claims, &text, now()))
    }

    /// The caller, with the token if sources may exchange it. The cached verdict has no token.
    fn lend(&self, caller: Caller, token: &str) -> Caller {
        if self.lends_tokens { caller.with_token(token) } else { caller }
    }

    fn conclude(&self, token: Digest, verdict: Result<Accepted, Reason>) -> Result<Caller, Denied> {
        self.cache.keep(token, verdict, now()).map_err(|reason| {
            tracing::debug!("a token was refused: {reason}");
            Denied::Invalid(reason)
        })
    }
}

const MALFORMED: Reason = "the token is malformed";

impl Authenticate for ResourceServer {
    fn known(&self, authorization: Option<&[u8]>) -> Option<Result<Caller, Denied>> {
        match bearer(authorization) {
            Ok(token) => Some(self.0.known(token)?.map(|caller| self.0.lend(caller, token))),
            Err(denied) => Some(Err(denied)),
        }
    }

    fn recognizes(&self, authorization: Option<&[u8]>) -> bool {
        let is_accepted = |token| self.0.cache.is_accepted(&Digest::of(token), now());
        bearer(authorization).is_ok_and(is_accepted)
    }

    fn authenticate(&self, authorization: Option<&[u8]>) -> Authenticating {
        let token = bearer(authorization).map(str::to_owned);
        let inner = self.0.clone();
        Box::pin(async move {
            let token = token?;
            inner.find_out(&token).await.map(|caller| inner.lend(caller, &token))
        })
    }

    fn challenge(&self, denied: &Denied) -> String {
        self.0.documents.challenge(denied)
    }

    fn document(&self, path: &str) -> Option<Document> {
        if let Some(metadata) = self.0.documents.metadata(path) {
            let metadata = metadata.clone();
            return Some(Box::pin(async { Some(metadata) }));
        }
        let issuer = self.0.issuers.first().filter(|_| path == AUTHORIZATION_SERVER)?.clone();
        Some(Box::pin(async move {
            issuer.metadata().await.ok().map(|metadata| -> Bytes { metadata.text.clone() })
        }))
    }
}

/// The token of a `Bearer` credential. Another scheme counts as no credential.
fn bearer(authorization: Option<&[u8]>) -> Result<&str, Denied> {
    let (scheme, token) =
        authorization.and_then(|value| value.split_at_checked(7)).ok_or(Denied::Missing)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return Err(Denied::Missing);
    }
    let token = std::str::from_utf8(token.trim_ascii()).map_err(|_| Denied::Invalid(MALFORMED))?;
    match token.len() {
        0 => Err(Denied::Missing),
        1..=MAX_TOKEN => Ok(token),
        _ => Err(Denied::Invalid("the token is too long")),
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl std::fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceServer").field("issuers", &self.0.rules.issuers).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_credentials_are_tokens() {
        assert_eq!(bearer(Some(b"Bearer abc")).unwrap(), "abc");
        assert_eq!(bearer(Some(b"bEARER  abc ")).unwrap(), "abc");
        for nothing in
            [None, Some(&b""[..]), Some(b"Basic YTpi"), Some(b"Bearer"), Some(b"Bearer ")]
        {
            assert_eq!(bearer(nothing), Err(Denied::Missing), "{nothing:?}");
        }
        let edge = format!("Bearer {}", "x".repeat(MAX_TOKEN));
        assert!(bearer(Some(edge.as_bytes())).is_ok());
        assert!(bearer(Some(format!("{edge}x").as_bytes())).is_err());
        assert!(bearer(Some(b"Bearer \xff")).is_err());
    }
}
