//! What a request says about itself, in `params._meta`.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::Problem;
use crate::id::Id;
use crate::raw::Raw;
use crate::scan;
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

#[derive(Deserialize, Default)]
struct Fields<'a> {
    #[serde(borrow, default, rename = "progressToken", deserialize_with = "present")]
    progress_token: Option<&'a str>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/protocolVersion",
        deserialize_with = "present"
    )]
    version: Option<&'a str>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientInfo",
        deserialize_with = "present"
    )]
    client: Option<&'a str>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientCapabilities",
        deserialize_with = "present"
    )]
    capabilities: Option<&'a str>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/logLevel",
        deserialize_with = "present"
    )]
    log_level: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// The same without a general parser; `None` if it needs one.
    fn scan(meta: &'a str) -> Option<Self> {
        let mut fields = Self::default();
        scan::members(meta, usize::MAX, |key, value| {
            let slot = match key.strip_prefix("io.modelcontextprotocol/") {
                Some("protocolVersion") => &mut fields.version,
                Some("clientInfo") => &mut fields.client,
                Some("clientCapabilities") => &mut fields.capabilities,
                Some("logLevel") => &mut fields.log_level,
                None if key == "progressToken" => &mut fields.progress_token,
                _ => return Some(()),
            };
            slot.replace(value).is_none().then_some(())
        })?;
        Some(fields)
    }
}

/// `Some` if the field is there, even if it is `null`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de str>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(|value| Some(value.get()))
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
    pub(crate) fn read(whole: &Raw, meta: &str) -> Result<Self, Problem> {
        let raw = whole.subset(meta);
        if !raw.is_object() {
            return Err(Problem::Params("`_meta` must be an object".into()));
        }
        let fields = match Fields::scan(meta) {
            Some(fields) => fields,
            None => serde_json::from_str(meta)
                .map_err(|error| Problem::Params(format!("`_meta`: {error}").into()))?,
        };
        let progress_token = fields.progress_token.map(read_token).transpose()?;
        let version = match fields.version {
            Some(version) => Some(match scan::plain_string(version) {
                Some(version) => version.into(),
                None => typed(version, "protocolVersion", "a string")?,
            }),
            None => None,
        };
        let capabilities = fields
            .capabilities
            .map(|c| typed(c, "clientCapabilities", "an object of objects"))
            .transpose()?;
        let log_level =
            fields.log_level.map(|level| typed(level, "logLevel", "a log level")).transpose()?;
        if let Some(client) = fields.client.filter(|client| !is_plain_implementation(client)) {
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

fn read_token(token: &str) -> Result<ProgressToken, Problem> {
    match Id::parse(token) {
        Some(token) if !token.is_null() => Ok(token),
        _ => Err(Problem::Params("`progressToken` must be a string or an integer".into())),
    }
}

/// Whether this is surely an `Implementation`.
fn is_plain_implementation(client: &str) -> bool {
    let (mut name, mut version) = (false, false);
    let scanned = scan::members(client, usize::MAX, |key, value| {
        let seen = match key {
            "name" => &mut name,
            "version" => &mut version,
            _ => return Some(()),
        };
        let is_first = !std::mem::replace(seen, true);
        (is_first && scan::plain_string(value).is_some()).then_some(())
    });
    scanned.is_some() && name && version
}

fn typed<'a, T: Deserialize<'a>>(value: &'a str, key: &str, what: &str) -> Result<T, Problem> {
    serde_json::from_str(value).map_err(|_| {
        Problem::Params(format!("`_meta[\"io.modelcontextprotocol/{key}\"]` must be {what}").into())
    })
}
