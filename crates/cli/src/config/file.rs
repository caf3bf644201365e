//! The file, as written. Most fields are optional; nothing is looked up.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::app::App;
use super::articles::Articles;
use super::auth::Auth;
use super::cluster::ClusterEntry;
use super::command::Command;
use super::openapi::OpenApi;
use super::oversight::{AuditEntry, LimitEntry};
use super::prompt::Prompt;
use super::request::Request;
use super::resource::Resource;
use super::skills::Skills;
use super::tls::TlsEntry;
use super::upstream::Upstream;

/// A sabir.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) server: Server,
    pub(crate) listen: Listen,
    pub(crate) dialect: Dialect,
    pub(crate) limits: Limits,
    pub(crate) seal: Seal,
    pub(crate) connect: Connect,
    pub(crate) tasks: Tasks,
    pub(crate) clients: BTreeMap<String, Spanned<String>>,
    pub(crate) cluster: ClusterEntry,
    pub(crate) http: Http,
    pub(crate) tls: Option<Spanned<TlsEntry>>,
    pub(crate) token: Vec<Token>,
    pub(crate) auth: Auth,
    pub(crate) limit: Vec<Spanned<LimitEntry>>,
    pub(crate) audit: Option<AuditEntry>,
    pub(crate) articles: Vec<Articles>,
    pub(crate) command: Vec<Command>,
    pub(crate) request: Vec<Request>,
    /// [`HTTP_REQUESTS`].
    #[serde(rename = "[[http]]")]
    pub(crate) http_request: Vec<Request>,
    pub(crate) openapi: Vec<OpenApi>,
    pub(crate) prompt: Vec<Prompt>,
    pub(crate) resource: Vec<Resource>,
    pub(crate) skills: Vec<Skills>,
    pub(crate) app: Vec<App>,
    pub(crate) upstream: Vec<Upstream>,
    pub(crate) import: Option<Import>,
}

/// The field of `[[http]]`, which is another word for `[[request]]`. `[http]` says how clients are
/// served, and TOML has one key for both.
pub(crate) const HTTP_REQUESTS: &str = "[[http]]";

/// `[server]`: what clients see.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) website: Option<String>,
    pub(crate) instructions: Option<String>,
}

/// `[listen]`: the transports.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Listen {
    pub(crate) stdio: Option<bool>,
    pub(crate) http: Option<Spanned<String>>,
    pub(crate) ws: Option<Spanned<String>>,
}

/// `[http]`: how HTTP clients are served.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Http {
    pub(crate) endpoint: Option<Spanned<String>>,
    pub(crate) old_sse: Option<bool>,
    pub(crate) websocket: Option<bool>,
    pub(crate) ping: Option<Spanned<String>>,
    pub(crate) token_env: Option<Spanned<String>>,
    pub(crate) allow_public: Option<Spanned<bool>>,
    pub(crate) behind_proxy: Option<Spanned<bool>>,
    pub(crate) trusted_proxies: Option<Spanned<Vec<String>>>,
    pub(crate) origins: Option<Spanned<Vec<String>>>,
    pub(crate) hosts: Option<Spanned<Vec<String>>>,
    pub(crate) keep_alive: Option<Spanned<String>>,
    pub(crate) poll_after: Option<Spanned<String>>,
    pub(crate) retry: Option<Spanned<String>>,
    pub(crate) connections: Option<Spanned<usize>>,
    pub(crate) idle: Option<Spanned<String>>,
    pub(crate) head_size: Option<Spanned<String>>,
    pub(crate) body_time: Option<Spanned<String>>,
    pub(crate) stall: Option<Spanned<String>>,
    pub(crate) sessions: Option<Spanned<usize>>,
    pub(crate) session_idle: Option<Spanned<String>>,
    pub(crate) handshake_time: Option<Spanned<String>>,
    pub(crate) unsent_size: Option<Spanned<String>>,
    pub(crate) streams: Option<Spanned<usize>>,
    pub(crate) replay: Option<Spanned<usize>>,
    pub(crate) replay_size: Option<Spanned<String>>,
    pub(crate) replay_time: Option<Spanned<String>>,
    pub(crate) requests: Option<Spanned<String>>,
    pub(crate) refusals: Option<Spanned<String>>,
}

/// `[[token]]`: a bearer token, and the caller to whom it belongs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Token {
    pub(crate) name: Spanned<String>,
    pub(crate) env: Option<Spanned<String>>,
    pub(crate) hash: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) scopes: Vec<Spanned<String>>,
}

/// `[dialect]`: how this deployment deviates from the specification.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Dialect {
    pub(crate) revision: Option<Spanned<String>>,
    pub(crate) unknown_tool: Option<Spanned<toml::Value>>,
    pub(crate) tool_failure: Option<Spanned<toml::Value>>,
    pub(crate) require_ready: Option<Spanned<String>>,
    pub(crate) missing_method: Option<Spanned<toml::Value>>,
    pub(crate) null_id: Option<Spanned<String>>,
    pub(crate) flat_server_info: Option<bool>,
}

/// `[limits]`: the limits of one client, and of all together.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    pub(crate) memory: Option<Spanned<String>>,
    pub(crate) compute_time: Option<Spanned<String>>,
    pub(crate) message_size: Option<Spanned<String>>,
    pub(crate) depth: Option<Spanned<usize>>,
    pub(crate) calls: Option<Spanned<usize>>,
    pub(crate) call_time: Option<Spanned<String>>,
    pub(crate) questions: Option<usize>,
    pub(crate) question_time: Option<Spanned<String>>,
    pub(crate) notifications: Option<Spanned<usize>>,
    pub(crate) subscriptions: Option<usize>,
    pub(crate) subscription_size: Option<Spanned<String>>,
    pub(crate) batch_size: Option<Spanned<String>>,
    pub(crate) page_size: Option<Spanned<usize>>,
    pub(crate) grace: Option<Spanned<String>>,
    pub(crate) abort_grace: Option<Spanned<String>>,
    pub(crate) heartbeat: Option<Spanned<String>>,
}

/// `[import]`: the servers of an `mcpServers` JSON file become upstreams.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import {
    pub(crate) path: Spanned<String>,
}

/// `[tasks]`: calls whose results are fetched later.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tasks {
    pub(crate) store: Option<Spanned<String>>,
    pub(crate) after: Option<Spanned<String>>,
    pub(crate) in_words: Option<Spanned<String>>,
    pub(crate) ttl: Option<Spanned<String>>,
    pub(crate) total: Option<Spanned<usize>>,
    pub(crate) per_caller: Option<Spanned<usize>>,
    pub(crate) result_size: Option<Spanned<String>>,
    pub(crate) poll: Option<Spanned<String>>,
}

/// `[connect]`: the page on which callers log in at upstreams.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Connect {
    pub(crate) url: Option<Spanned<String>>,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret_env: Option<Spanned<String>>,
    pub(crate) document: Option<bool>,
}

/// `[seal]`: the key that seals the state which clients keep for us. Replicas share it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Seal {
    pub(crate) key_env: Option<Spanned<String>>,
}
