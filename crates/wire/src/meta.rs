//! The metadata of a request, `params._meta`.

use bytestring::ByteString;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::Problem;
use crate::id::Id;
use crate::json::{ReadJson, WriteJson};
use crate::raw::Raw;
use crate::revision::Revision;
use crate::scan::{Scanner, plain_string};
use crate::strict::Strict;
use crate::types::{ClientCapabilities, Level};

/// The `_meta` object of a request. All members are optional; those that are present have the right
/// type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The whole object, with the members that are not read here.
    pub raw: Option<Raw>,
    /// Token for progress notifications.
    pub progress_token: Option<ProgressToken>,
    /// The revision of the request. Its presence makes the request modern.
    pub version: Option<ByteString>,
    /// Name and version of the client.
    pub client: Option<Raw>,
    /// Capabilities of the client.
    pub capabilities: Option<ClientCapabilities>,
    /// Lowest level of the log messages that the client wants; `None` if it wants none.
    pub log_level: Option<Level>,
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The token of progress notifications: a string or an integer, kept exactly.
pub type ProgressToken = Id;

/// The distributed trace of a request. It is passed on, never interpreted.
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

/// The members that are read, as raw JSON.
#[derive(Deserialize, Default)]
pub(crate) struct Fields<'a> {
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
    /// The scanner has found `client` valid.
    #[serde(skip)]
    has_plain_client: bool,
}

impl<'a> Fields<'a> {
    /// Reads the object that comes next with the scanner; `None` if it needs a full parser.
    pub(crate) fn scan(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let fields = self;
        scanner.object(|scanner, key| {
            let slot = match key.strip_prefix("io.modelcontextprotocol/") {
                Some("protocolVersion") => &mut fields.version,
                Some("clientInfo") if scanner.is_at_object() => {
                    let begin = scanner.place();
                    fields.has_plain_client = is_implementation(scanner)?;
                    return fields.client.replace(scanner.since(begin)).is_none().then_some(());
                }
                Some("clientInfo") => &mut fields.client,
                Some("clientCapabilities") => &mut fields.capabilities,
                Some("logLevel") => &mut fields.log_level,
                None if key == "progressToken" => &mut fields.progress_token,
                _ => return scanner.value().map(drop),
            };
            slot.replace(scanner.value()?).is_none().then_some(())
        })
    }

    /// Interprets the members of `meta`, which is a part of `whole`.
    pub(crate) fn read(&self, whole: &Raw, meta: &str) -> Result<Meta, Problem> {
        let progress_token = self.progress_token.map(read_token).transpose()?;
        let version = match self.version {
            Some(version) => Some(match plain_string(version) {
                Some(version) => whole.slice(version),
                None => typed::<String>(version, "protocolVersion", "a string")?.into(),
            }),
            None => None,
        };
        let capabilities = match self.capabilities {
            Some("{}") => Some(ClientCapabilities::default()),
            Some(other) => {
                let read = ClientCapabilities::read_json(&whole.subset(other));
                Some(read.map_err(|_| wrong("clientCapabilities", "an object of objects"))?)
            }
            None => None,
        };
        let log_level =
            self.log_level.map(|level| typed(level, "logLevel", "a log level")).transpose()?;
        if let Some(client) = self.client.filter(|_| !self.has_plain_client) {
            let _: Strict<Implementation> = typed(client, "clientInfo", "a name and a version")?;
        }
        let client = self.client.map(|client| whole.subset(client));
        let raw = Some(whole.subset(meta));
        Ok(Meta { progress_token, version, client, capabilities, log_level, raw })
    }
}

/// `Some` if the member is present, even if it is `null`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de str>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(|value| Some(value.get()))
}

/// The required members of an `Implementation`.
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
        if !meta.starts_with('{') {
            return Err(Problem::Params("`_meta` must be an object".into()));
        }
        let fields: Fields<'_> = serde_json::from_str(meta)
            .map_err(|error| Problem::Params(format!("`_meta`: {error}").into()))?;
        fields.read(whole, meta)
    }

    /// The `_meta` object of a request in `revision`; `None` if it would be empty. Known members
    /// come from the fields, all others from `raw`. The modern era names the revision and the
    /// client's capabilities.
    pub fn to_raw(&self, revision: Revision) -> Option<Raw> {
        let is_modern = revision.features().stateless;
        let capabilities = self.capabilities.clone().unwrap_or_default().to_raw(revision);
        let token = self.progress_token.as_ref().map(|token| token.to_string());
        let date = Raw::of(revision.date()).ok();
        let level = self.log_level.and_then(|level| Raw::of(&level).ok());
        let modern = [
            (VERSION, date.as_ref()),
            (CLIENT, self.client.as_ref()),
            (CAPABILITIES, Some(&capabilities)),
            (LOG_LEVEL, level.as_ref()),
        ];
        let modern = modern.map(|(name, value)| (name, value.filter(|_| is_modern).map(Raw::text)));
        let mut changes = vec![("progressToken", token.as_deref())];
        changes.extend(modern);
        let own = self.raw.clone().unwrap_or_else(Raw::empty_object);
        Some(own.with_members(&changes)).filter(|meta| meta.text() != "{}")
    }

    /// The distributed trace of the request.
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

/// Whether the object that comes next is certainly a valid `Implementation`.
fn is_implementation(scanner: &mut Scanner<'_>) -> Option<bool> {
    let (mut name, mut version) = (false, false);
    scanner.object(|scanner, key| {
        let value = scanner.value()?;
        let seen = match key {
            "name" => &mut name,
            "version" => &mut version,
            _ => return Some(()),
        };
        let is_first = !std::mem::replace(seen, true);
        (is_first && plain_string(value).is_some()).then_some(())
    })?;
    Some(name && version)
}

fn typed<'a, T: Deserialize<'a>>(value: &'a str, key: &str, what: &str) -> Result<T, Problem> {
    serde_json::from_str(value).map_err(|_| wrong(key, what))
}

fn wrong(key: &str, what: &str) -> Problem {
    Problem::Params(format!("`_meta[\"io.modelcontextprotocol/{key}\"]` must be {what}").into())
}
