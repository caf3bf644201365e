//! The scopes that a token grants: its own, the narrow ones that these cover, and those of its
//! roles.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The scopes that other scopes and claims grant.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// Each broad scope with all scopes that it covers, directly or not.
    covered: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    roles: Vec<Role>,
}

/// Scopes for callers whose token has a certain claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The claim; dots lead into objects, as in `realm_access.roles`.
    pub claim: String,
    /// The value of the claim, or one of its values.
    pub value: String,
    /// The scopes that the role grants.
    pub scopes: Vec<Box<str>>,
}

/// A scope that covers itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scope `{0}` covers itself (expected a hierarchy without a ring)")]
pub struct BadHierarchy(pub String);

impl Grants {
    /// `hierarchy` maps broad scopes to the scopes that they cover.
    pub fn new(
        hierarchy: &BTreeMap<String, Vec<String>>,
        roles: Vec<Role>,
    ) -> Result<Self, BadHierarchy> {
        let mut covered = BTreeMap::new();
        for broad in hierarchy.keys() {
            let mut all = BTreeSet::new();
            let mut next = vec![broad];
            while let Some(scope) = next.pop() {
                for narrow in hierarchy.get(scope).into_iter().flatten() {
                    if narrow == broad {
                        return Err(BadHierarchy(broad.clone()));
                    }
                    if all.insert(Box::from(narrow.as_str())) {
                        next.push(narrow);
                    }
                }
            }
            covered.insert(broad.as_str().into(), all);
        }
        Ok(Self { covered, roles })
    }

    /// The scopes, and all scopes that they cover.
    pub fn with_covered<'s>(
        &self,
        scopes: impl IntoIterator<Item = &'s str>,
    ) -> BTreeSet<Box<str>> {
        let mut all: BTreeSet<Box<str>> = scopes.into_iter().map(Into::into).collect();
        let covered = all.iter().filter_map(|scope| self.covered.get(scope)).flatten();
        let covered: Vec<_> = covered.cloned().collect();
        all.extend(covered);
        all
    }

    /// The claims that roles look at.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().map(|role| role.claim.as_str())
    }

    /// The scopes of a token with these claims.
    pub fn of(&self, claims: &Map<String, Value>) -> BTreeSet<Box<str>> {
        let stated = ["scope", "scp"].into_iter().filter_map(|name| claims.get(name));
        let stated = stated.flat_map(texts).flat_map(str::split_ascii_whitespace);
        let roles = self.roles.iter().filter(|role| role.is_in(claims));
        let of_roles = roles.flat_map(|role| &role.scopes).map(|scope| &**scope);
        self.with_covered(stated.chain(of_roles))
    }
}

impl Role {
    fn is_in(&self, claims: &Map<String, Value>) -> bool {
        // The names of some claims are URLs, which contain dots.
        let whole = claims.get(&self.claim);
        let found = whole.or_else(|| {
            let mut path = self.claim.split('.');
            let first = claims.get(path.next()?)?;
            path.try_fold(first, |value, name| value.get(name))
        });
        found.is_some_and(|value| texts(value).contains(&self.value.as_str()))
    }
}

/// The texts of a claim, which may be a string or a list.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grants() -> Grants {
        let covers = |narrow: &[&str]| narrow.iter().map(|scope| (*scope).to_owned()).collect();
        let hierarchy = BTreeMap::from([
            ("files".to_owned(), covers(&["files:read", "files:write"])),
            ("admin".to_owned(), covers(&["files", "users"])),
        ]);
        let role = |claim: &str, value: &str, scope: &str| Role {
            claim: claim.into(),
            value: value.into(),
            scopes: vec![scope.into()],
        };
        let roles = vec![
            role("groups", "staff", "files:read"),
            role("realm_access.roles", "root", "admin"),
            role("https://x.example/role", "writer", "files:write"),
        ];
        Grants::new(&hierarchy, roles).unwrap()
    }

    #[track_caller]
    fn check(claims: Value, expected: &[&str]) {
        let Value::Object(claims) = claims else { panic!("no object") };
        let granted = grants().of(&claims);
        assert_eq!(granted.iter().map(|scope| &**scope).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn scopes_have_three_forms() {
        check(json!({ "scope": "b  a" }), &["a", "b"]);
        check(json!({ "scp": "b a" }), &["a", "b"]);
        check(json!({ "scp": ["b", "a", 7] }), &["a", "b"]);
        check(json!({ "scope": 7 }), &[]);
        check(json!({}), &[]);
    }

    #[test]
    fn a_broad_scope_covers_narrow_ones_at_every_depth() {
        check(json!({ "scope": "files" }), &["files", "files:read", "files:write"]);
        check(
            json!({ "scope": "admin" }),
            &["admin", "files", "files:read", "files:write", "users"],
        );
        check(json!({ "scope": "files:read" }), &["files:read"]);
    }

    #[test]
    fn roles_come_from_claims_of_any_depth() {
        check(json!({ "groups": ["x", "staff"] }), &["files:read"]);
        check(json!({ "groups": "staff" }), &["files:read"]);
        check(json!({ "https://x.example/role": "writer" }), &["files:write"]);
        check(json!({ "groups": "staff x" }), &[]);
        let root = json!({ "realm_access": { "roles": ["root"] } });
        check(root, &["admin", "files", "files:read", "files:write", "users"]);
    }

    #[test]
    fn a_ring_is_refused() {
        let ring = BTreeMap::from([
            ("a".to_owned(), vec!["b".to_owned()]),
            ("b".to_owned(), vec!["a".to_owned()]),
        ]);
        assert!(Grants::new(&ring, Vec::new()).is_err());
    }
}
