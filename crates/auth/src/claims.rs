//! The claims of a token, and whether they are valid here and now.

use std::collections::BTreeSet;
use std::time::Duration;

use sabir_wire::{Caller, Raw};
use serde_json::{Map, Value};

use crate::scopes::{Grants, texts};
use crate::settings::{Settings, canonical};

/// Why a token is refused. It is sent to clients.
pub(crate) type Reason = &'static str;

/// The rules for claims.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) issuers: Vec<String>,
    resource: Option<String>,
    audiences: BTreeSet<String>,
    leeway: u64,
    grants: Grants,
}

/// A caller, and until when its token is valid, in seconds since 1970.
#[derive(Debug, PartialEq)]
pub(crate) struct Accepted {
    pub(crate) caller: Caller,
    pub(crate) until: u64,
}

impl Rules {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            issuers: settings.issuers.clone(),
            resource: canonical(&settings.resource),
            audiences: settings.audiences.iter().cloned().collect(),
            leeway: settings.leeway.as_secs(),
            grants: settings.grants.clone(),
        }
    }

    /// The index of the issuer that the claims name.
    pub(crate) fn issuer(&self, claims: &Map<String, Value>) -> Option<usize> {
        let named = claims.get("iss")?.as_str()?;
        self.issuers.iter().position(|issuer| issuer == named)
    }

    /// Checks claims that this issuer made, as verified before; `text` is their JSON.
    pub(crate) fn check(
        &self,
        issuer: &str,
        claims: &Map<String, Value>,
        text: &str,
        now: Duration,
    ) -> Result<Accepted, Reason> {
        let now = now.as_secs();
        let until = time(claims, "exp")?.ok_or("the token has no `exp`")?;
        let until = until.saturating_add(self.leeway);
        if until <= now {
            return Err("the token has expired");
        }
        if time(claims, "nbf")?.is_some_and(|start| start > now.saturating_add(self.leeway)) {
            return Err("the token is not valid yet");
        }
        let audiences = claims.get("aud").map(texts).unwrap_or_default();
        if !audiences.into_iter().any(|audience| self.is_ours(audience)) {
            return Err("the token is for another audience");
        }
        let subject = subject(claims).ok_or("the token has no `sub`")?;
        let mut caller = Caller::new(issuer, subject).with_scopes(self.grants.of(claims));
        if let Ok(claims) = Raw::parse(text.to_owned()) {
            caller = caller.with_claims(claims);
        }
        Ok(Accepted { caller: caller.until(until), until })
    }

    fn is_ours(&self, audience: &str) -> bool {
        let is_resource = || self.resource.is_some() && canonical(audience) == self.resource;
        self.audiences.contains(audience) || is_resource()
    }
}

/// The user, or the client if the token has no user: some issuers give such a token no `sub`. A
/// user whose name looks like that of a client is `user:NAME`.
fn subject(claims: &Map<String, Value>) -> Option<String> {
    let text = |name| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if !claims.contains_key("sub") {
        return text("client_id").map(|id| format!("client:{id}"));
    }
    text("sub").map(|user| match user.split_once(':') {
        Some(("client" | "user", _)) => format!("user:{user}"),
        _ => user.to_owned(),
    })
}

/// A time in seconds since 1970; some issuers write fractions.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, Reason> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
            seconds.map(|seconds| Some(seconds as u64)).ok_or("a time in the token is invalid")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn checked(change: Value) -> Result<Accepted, Reason> {
        let mut settings = Settings::new("https://mcp.example/mcp", "https://login.example");
        settings.audiences = vec!["api://notes".into(), "6f7d-guid".into()];
        let mut claims = json!({
            "iss": "https://login.example", "sub": "ann", "aud": "https://mcp.example/mcp",
            "exp": NOW + 60, "nbf": NOW, "scope": "b a",
        });
        for (name, value) in change.as_object().unwrap() {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(name),
                value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
            };
        }
        let text = claims.to_string();
        let rules = Rules::new(&settings);
        let claims = claims.as_object().unwrap();
        let nth = rules.issuer(claims).ok_or("another issuer")?;
        rules.check(&rules.issuers[nth], claims, &text, Duration::from_secs(NOW))
    }

    #[test]
    fn a_good_token_is_a_caller() {
        let Accepted { caller, until } = checked(json!({})).unwrap();
        assert!(caller.is_same_as(&Caller::new("https://login.example", "ann")));
        assert_eq!(caller.scopes().collect::<Vec<_>>(), ["a", "b"]);
        assert!(caller.claims().unwrap().text().contains("\"sub\":\"ann\""));
        assert_eq!(until, NOW + 60 + 30, "the leeway is 30 seconds");
    }

    #[test]
    fn times_are_checked_at_their_edges() {
        assert!(checked(json!({ "exp": NOW - 29 })).is_ok());
        assert_eq!(checked(json!({ "exp": NOW - 30 })).unwrap_err(), "the token has expired");
        assert!(checked(json!({ "nbf": NOW + 30 })).is_ok());
        assert_eq!(checked(json!({ "nbf": NOW + 31 })).unwrap_err(), "the token is not valid yet");
        assert!(checked(json!({ "nbf": null })).is_ok());
        assert!(checked(json!({ "exp": NOW as f64 + 0.5 })).is_ok());
        assert!(checked(json!({ "exp": 1e300 })).is_ok(), "no overflow");
        for bad in [json!(null), json!("soon"), json!(-1), json!([NOW])] {
            assert!(checked(json!({ "exp": bad })).is_err(), "{bad}");
        }
        assert!(checked(json!({ "nbf": "now" })).is_err());
    }

    #[test]
    fn only_tokens_for_us_are_accepted() {
        for good in [
            json!("https://mcp.example/mcp"),
            json!("HTTPS://MCP.example/mcp/"),
            json!(["https://other.example", "https://mcp.example/mcp"]),
            json!("api://notes"),
            json!("6f7d-guid"),
        ] {
            assert!(checked(json!({ "aud": good })).is_ok(), "{good}");
        }
        for bad in [
            json!(null),
            json!(""),
            json!([]),
            json!("https://other.example/mcp"),
            json!("https://mcp.example"),
            json!("https://mcp.example/mcp/x"),
            json!("https://mcp.example.evil.example/mcp"),
            json!("https://mcp.example/mcp?x"),
            json!("API://notes"),
            json!({ "https://mcp.example/mcp": true }),
            json!(7),
        ] {
            let reason = checked(json!({ "aud": bad })).unwrap_err();
            assert_eq!(reason, "the token is for another audience", "{bad}");
        }
    }

    #[test]
    fn issuer_and_subject_are_needed_as_they_are() {
        for bad in [
            json!(null),
            json!("https://login.example/"),
            json!("https://LOGIN.example"),
            json!(["https://login.example"]),
        ] {
            assert_eq!(checked(json!({ "iss": bad })).unwrap_err(), "another issuer", "{bad}");
        }
        for bad in [json!(null), json!(""), json!(7)] {
            assert!(checked(json!({ "sub": bad })).is_err(), "{bad}");
        }
        let machine = checked(json!({ "sub": null, "client_id": "robot" })).unwrap();
        assert_eq!(machine.caller.subject(), "client:robot");
        assert!(checked(json!({ "sub": "", "client_id": "robot" })).is_err());
        for (user, subject) in [
            ("client:robot", "user:client:robot"),
            ("user:client:robot", "user:user:client:robot"),
            ("clients:x", "clients:x"),
            ("auth0|x", "auth0|x"),
        ] {
            let accepted = checked(json!({ "sub": user, "client_id": "robot" })).unwrap();
            assert_eq!(accepted.caller.subject(), subject, "the subject of the certificate");
        }
    }
}
