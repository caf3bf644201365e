//! `[auth]`: who issues tokens, and what their scopes cover.

use std::collections::BTreeMap;

use sabir_auth::{Grants, Introspection, Role, Settings, check_scope};
use sabir_registry::Access;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::mistake::{Mistake, Text};
use super::values::{duration, variable};

/// An `[auth]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Auth {
    pub(super) issuer: Option<Spanned<Value>>,
    resource: Option<Spanned<String>>,
    audience: Vec<String>,
    scopes: Option<Spanned<Vec<String>>>,
    algorithms: Option<Spanned<Vec<String>>>,
    leeway: Option<Spanned<String>>,
    hierarchy: Option<Spanned<BTreeMap<String, Vec<String>>>>,
    role: Vec<RoleEntry>,
    introspection: Option<Asked>,
}

/// An `[[auth.role]]`: scopes for callers whose token has a claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleEntry {
    claim: String,
    value: String,
    scopes: Vec<String>,
}

/// `introspection`: how the issuer is asked about opaque tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    url: Option<String>,
    client_id: String,
    client_secret_env: Spanned<String>,
}

/// The settings of `[auth]`.
#[derive(Debug, Default)]
pub(crate) struct AuthSettings {
    /// What scopes cover, those of static tokens too.
    pub(crate) grants: Grants,
    /// How access tokens are checked, if there is an issuer. The resource is empty if the file has
    /// none: then it is where the server listens.
    pub(crate) tokens: Option<Settings>,
}

/// The placeholder for a resource that is not known before the server listens.
const ANYWHERE: &str = "http://localhost/";

/// Settles `[auth]`.
pub(super) fn settle(file: &Auth, text: &Text<'_>) -> AuthSettings {
    let roles = file.role.iter().map(|role| Role {
        claim: role.claim.clone(),
        value: role.value.clone(),
        scopes: role.scopes.iter().map(|scope| scope.as_str().into()).collect(),
    });
    let nothing = Spanned::new(0..0, BTreeMap::new());
    let hierarchy = file.hierarchy.as_ref().unwrap_or(&nothing);
    let grants = Grants::new(hierarchy.get_ref(), roles.collect());
    let grants = grants.map_err(|bad| text.mistake(hierarchy.span(), bad.to_string()));
    let grants = text.checked(grants).unwrap_or_default();
    let tokens = text.checked(tokens(file, &grants, text)).flatten();
    AuthSettings { grants, tokens }
}

fn tokens(file: &Auth, grants: &Grants, text: &Text<'_>) -> Result<Option<Settings>, Mistake> {
    let Some(written) = &file.issuer else {
        return match &file.resource {
            None => Ok(None),
            Some(resource) => {
                let what = "`resource` without `issuer` (expected both)";
                Err(text.mistake(resource.span(), what))
            }
        };
    };
    let mut settings = Settings::new(ANYWHERE, "");
    let issuers = text.checked(issuers(written, text));
    settings.grants = grants.clone();
    settings.audiences.clone_from(&file.audience);
    if let Some(resource) = &file.resource {
        settings.resource.clone_from(resource.get_ref());
    }
    if let Some(scopes) = &file.scopes {
        settings.scopes.clone_from(scopes.get_ref());
    }
    if let Some(algorithms) = &file.algorithms {
        settings.algorithms.clone_from(algorithms.get_ref());
    }
    text.set(&mut settings.leeway, duration(file.leeway.as_ref(), text));
    if let Some(Asked { url, client_id, client_secret_env }) = &file.introspection {
        settings.introspection = Some(Introspection {
            url: url.clone(),
            client_id: client_id.clone(),
            client_secret: text.checked(variable(client_secret_env, text)).unwrap_or_default(),
        });
    }
    settings.issuers = issuers.ok_or_else(|| text.reported())?;
    settings.check().map_err(|bad| text.mistake(written.span(), format!("auth: {bad}")))?;
    if file.resource.is_none() {
        settings.resource.clear();
    }
    Ok(Some(settings))
}

/// The `scopes` of a source, and of its single tools.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scopes<'f> {
    pub(super) all: &'f Option<Vec<Spanned<String>>>,
    pub(super) tools: Option<&'f BTreeMap<String, Vec<Spanned<String>>>>,
}

impl<'f> Scopes<'f> {
    /// Of a source without single tools.
    pub(super) fn of_all(all: &'f Option<Vec<Spanned<String>>>) -> Self {
        Self { all, tools: None }
    }

    /// What callers need.
    pub(super) fn settle(self, text: &Text<'_>) -> Access {
        let one = |scope: &Spanned<String>| {
            if let Err(bad) = check_scope(scope.get_ref()) {
                text.report(text.mistake(scope.span(), bad.to_string()));
            }
            Box::from(scope.get_ref().as_str())
        };
        let tools = self.tools.into_iter().flatten();
        Access {
            scopes: self.all.iter().flatten().map(one).collect(),
            tools: tools
                .map(|(name, scopes)| (name.clone(), scopes.iter().map(one).collect()))
                .collect(),
        }
    }
}

/// Whether this is a name of a scope or a token.
pub(crate) fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic())
}

/// One issuer, or a list of them.
fn issuers(written: &Spanned<Value>, text: &Text<'_>) -> Result<Vec<String>, Mistake> {
    let one = |value: &Value| value.as_str().map(str::to_owned);
    let issuers = match written.get_ref() {
        Value::Array(list) => list.iter().map(one).collect(),
        value => one(value).map(|issuer| vec![issuer]),
    };
    issuers.ok_or_else(|| {
        let what = "invalid `issuer` (expected a URL, or a list of URLs)";
        text.mistake(written.span(), what)
    })
}
