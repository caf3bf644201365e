//! The file, as written. Every field is optional; nothing is looked up.

use serde::Deserialize;
use toml::Spanned;

use super::command::Command;
use super::mistake::{Mistake, Text};
use super::prompt::Prompt;
use super::resource::Resource;

/// A sabir.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) server: Server,
    pub(crate) listen: Listen,
    pub(crate) dialect: Dialect,
    pub(crate) limits: Limits,
    pub(crate) seal: Seal,
    pub(crate) command: Vec<Command>,
    pub(crate) prompt: Vec<Prompt>,
    pub(crate) resource: Vec<Resource>,
}

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

/// `[listen]`: where clients come in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Listen {
    pub(crate) stdio: Option<bool>,
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

/// `[limits]`: how much one client may have.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    pub(crate) message_size: Option<Spanned<String>>,
    pub(crate) depth: Option<Spanned<usize>>,
    pub(crate) calls: Option<Spanned<usize>>,
    pub(crate) call_time: Option<Spanned<String>>,
    pub(crate) questions: Option<usize>,
    pub(crate) question_time: Option<Spanned<String>>,
    pub(crate) notifications: Option<Spanned<usize>>,
    pub(crate) subscriptions: Option<usize>,
    pub(crate) page_size: Option<Spanned<usize>>,
    pub(crate) grace: Option<Spanned<String>>,
    pub(crate) abort_grace: Option<Spanned<String>>,
}

/// `[seal]`: what clients keep for us is sealed with a key that replicas share.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Seal {
    pub(crate) key_env: Option<Spanned<String>>,
}

impl File {
    pub(crate) fn read(text: &Text<'_>) -> Result<Self, Mistake> {
        toml::from_str(text.text).map_err(|error| text.misread(&error))
    }
}
