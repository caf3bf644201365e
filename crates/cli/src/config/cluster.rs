//! `[cluster]`: where sessions survive this process, and are shared with other nodes.

use std::path::PathBuf;
use std::sync::Arc;

use sabir_cluster::{Away, Cluster, DiskStore, Redis, node_name};
use serde::Deserialize;
use toml::Spanned;

use super::expand::expand;
use super::mistake::{Mistake, Text};

/// The warning for a `[cluster]` that is not used, and a hint.
pub(crate) const IDLE_CLUSTER: (&str, &str) = (
    "[cluster] has no effect: it is used only where HTTP is served",
    "add `http` to [listen], or serve with --http",
);

/// `[cluster]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ClusterEntry {
    pub(crate) url: Option<Spanned<String>>,
    pub(crate) file: Option<Spanned<String>>,
    pub(crate) address: Option<Spanned<String>>,
}

/// Where sessions are kept beside the memory of the process.
#[derive(Clone)]
pub(crate) enum ClusterStore {
    /// In a file of this node.
    File(PathBuf),
    /// On a Redis server, which other nodes reach, too; and where they reach this node, if that was
    /// written.
    Redis(String, Option<Box<str>>),
}

impl ClusterStore {
    /// Opens it; what is kept is sealed with keys that are derived from `key`. Must be called inside
    /// the runtime.
    pub(crate) fn open(self, key: &[u8; 32]) -> Result<Cluster, Away> {
        Ok(match self {
            Self::File(path) => Cluster::alone(Arc::new(DiskStore::open(&path)?), key),
            Self::Redis(url, address) => {
                let node = node_name();
                let redis = Arc::new(Redis::new(&url, node.as_str())?);
                let counts = redis.counts();
                let cluster = Cluster { counts, ..Cluster::among(redis.clone(), redis, node, key) };
                address.into_iter().for_each(|address| drop(cluster.address.set(address)));
                cluster
            }
        })
    }
}

impl std::fmt::Debug for ClusterStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // A URL may hold a password.
            Self::Redis(..) => f.write_str("Redis(…)"),
        }
    }
}

/// Where other nodes reach this one, as it was written.
fn address(file: &ClusterEntry, text: &Text<'_>) -> Result<Option<Box<str>>, Mistake> {
    let Some(written) = &file.address else { return Ok(None) };
    let wrong = |reason: String| text.mistake(written.span(), format!("address: {reason}"));
    let whole = expand(written.get_ref(), text).map_err(wrong)?;
    let whole = whole.trim_end_matches('/');
    let uri: Option<http::Uri> = whole.parse().ok();
    let is_right = uri.is_some_and(|uri| {
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        is_http
            && is_bare
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
    });
    if !is_right {
        return Err(text.invalid(written, "URL", "e.g. \"http://10.0.0.5:7331\""));
    }
    Ok(Some(whole.into()))
}

/// Settles it; `tasks` is the file in which tasks are kept, if one is named. What is kept is sealed
/// with the key of `[seal]`, so there must be one.
pub(super) fn settle(
    file: &ClusterEntry,
    tasks: Option<&Spanned<String>>,
    has_key: bool,
    text: &Text<'_>,
) -> Result<Option<ClusterStore>, Mistake> {
    if let (Some(store), Some(_)) = (tasks, &file.url) {
        let what = "[tasks]: `store` beside `url` of [cluster], which keeps the tasks of all nodes";
        return Err(text.mistake(store.span(), what.to_owned()).hint("remove `store`"));
    }
    if let (Some(address), None) = (&file.address, &file.url) {
        let what = "[cluster]: `address` without `url`: there are no other nodes".to_owned();
        return Err(text.mistake(address.span(), what).hint("remove `address`"));
    }
    let (place, store) = match (&file.url, &file.file) {
        (None, None) => return Ok(None),
        (Some(url), Some(_)) => {
            let what = "[cluster]: expected either `url` or `file`";
            let hint = "`url` is for several nodes, `file` for one that is restarted";
            return Err(text.mistake(url.span(), what.to_owned()).hint(hint));
        }
        (None, Some(path)) => (path, ClusterStore::File(text.resolve(path.get_ref()))),
        (Some(url), None) => {
            let wrong = |reason: String| text.mistake(url.span(), format!("url: {reason}"));
            let whole = expand(url.get_ref(), text).map_err(wrong)?;
            if Redis::check_url(&whole).is_err() {
                return Err(text.invalid(url, "URL", "e.g. \"redis://127.0.0.1:6379\""));
            }
            (url, ClusterStore::Redis(whole, address(file, text)?))
        }
    };
    if !has_key {
        let what = "[cluster]: no key to encrypt sessions with".to_owned();
        let hint = "add `key_env` to [seal]; all nodes must have the same key";
        return Err(text.mistake(place.span(), what).hint(hint));
    }
    Ok(Some(store))
}
