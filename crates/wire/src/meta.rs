//! What a request says about itself, in `params._meta`.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::Problem;
use crate::id::Id;
use crate::raw::Raw;
use crate::strict::Strict;
use crate::types::{ClientCapabilities, Level};

/// The `_meta` of a request. Everything optional; what is there has the right type.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// The whole object, for whoever wants what we do not read.
    pub raw: Option<Raw>,
    /// Where to send progress.
    pub progress_token: Option<ProgressToken>,
    /// The revision that the request is written in. Its presence makes the request modern.
    pub version: Option<Box<str>>,
    /// Who asks.
    pub client: Option<Raw>,
    /// What the asker can do.
    pub capabilities: Option<ClientCapabilities>,
    /// Which log messages the asker wants. None without it.
    pub log_level: Option<Level>,
}

/// Names the request that progress belongs to: a string or an integer, kept exactly.
pub type ProgressToken = Id;

/// Where a request stands in a distributed trace. Passed on, never interpreted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TraceContext {
    /// W3C `traceparent`.
    #[serde(default)]
    pub traceparent: Option<String>,
    /// W3C `tracestate`.
    #[serde(default)]
    pub tracestate: Option<String>,
    /// W3C `baggage`.
    #[serde(default)]
    pub baggage: Option<String>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default, rename = "progressToken", deserialize_with = "present")]
    progress_token: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/protocolVersion",
        deserialize_with = "present"
    )]
    version: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientInfo",
        deserialize_with = "present"
    )]
    client: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientCapabilities",
        deserialize_with = "present"
    )]
    capabilities: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/logLevel",
        deserialize_with = "present"
    )]
    log_level: Option<&'a RawValue>,
}

/// `Some` if the field is there, even if it is `null`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The parts of an `Implementation` that must be there.
#[derive(Deserialize)]
struct Implementation {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "version")]
    _version: String,
}

impl Meta {
    /// Reads the object, which is a part of `whole`.
    pub(crate) fn read(whole: &Raw, meta: &RawValue) -> Result<Self, Problem> {
        let raw = whole.subset(meta);
        if !raw.is_object() {
            return Err(Problem::Params("`_meta` must be an object".into()));
        }
        let fields: Fields<'_> = serde_json::from_str(meta.get())
            .map_err(|error| Problem::Params(format!("`_meta`: {error}").into()))?;
        let progress_token = fields.progress_token.map(read_token).transpose()?;
        let version =
            fields.version.map(|v| typed(v, "protocolVersion", "a string")).transpose()?;
        let capabilities = fields
            .capabilities
            .map(|c| typed(c, "clientCapabilities", "an object of objects"))
            .transpose()?;
        let log_level =
            fields.log_level.map(|level| typed(level, "logLevel", "a log level")).transpose()?;
        if let Some(client) = fields.client {
            let _: Strict<Implementation> = typed(client, "clientInfo", "a name and a version")?;
        }
        let client = fields.client.map(|client| whole.subset(client));
        Ok(Self { progress_token, version, client, capabilities, log_level, raw: Some(raw) })
    }

    /// Where the request stands in a distributed trace.
    pub fn trace(&self) -> TraceContext {
        self.raw.as_ref().and_then(|raw| raw.read().ok()).unwrap_or_default()
    }
}

fn read_token(token: &RawValue) -> Result<ProgressToken, Problem> {
    match Id::parse(token.get()) {
        Some(token) if !token.is_null() => Ok(token),
        _ => Err(Problem::Params("`progressToken` must be a string or an integer".into())),
    }
}

fn typed<'a, T: Deserialize<'a>>(value: &'a RawValue, key: &str, what: &str) -> Result<T, Problem> {
    serde_json::from_str(value.get()).map_err(|_| {
        Problem::Params(format!("`_meta[\"io.modelcontextprotocol/{key}\"]` must be {what}").into())
    })
}
