//! The revision of a session and the metadata of its client. The era of a request is decided only
//! here.

use sabir_wire::types::{ClientCapabilities, Level, ServerCapabilities, Topic};
use sabir_wire::{Caller, Era, Initialize, Meta, Method, Problem, Raw, Revision};
use serde::{Deserialize, Serialize};

use crate::dialect::{Dialect, RequireReady};
use crate::io::RequestMeta;
use crate::phase::Phase;
use crate::words::{kept_capabilities, kept_name};

/// The metadata of a client, from its handshake or its transport.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Client {
    /// The revision that is used with it.
    pub(crate) revision: Revision,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) name: Option<Raw>,
    pub(crate) log_level: Level,
    /// The list changes that the handshake promised to announce.
    pub(crate) announced: Announced,
}

/// The lists whose changes the handshake promised to announce.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Announced {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Announced {
    /// Whether the client expects to be notified of changes to `topic` without having subscribed.
    pub(crate) fn includes(self, topic: &Topic) -> bool {
        match topic {
            Topic::Tools => self.tools,
            Topic::Prompts => self.prompts,
            Topic::Resources => self.resources,
            Topic::Resource(_) => false,
        }
    }
}

impl From<&ServerCapabilities> for Announced {
    fn from(offered: &ServerCapabilities) -> Self {
        Self {
            tools: offered.announces(&Topic::Tools),
            prompts: offered.announces(&Topic::Prompts),
            resources: offered.announces(&Topic::Resources),
        }
    }
}

impl Client {
    /// A client before its handshake.
    pub(crate) fn unknown(revision: Revision) -> Self {
        // The default for a client that sets no level.
        let log_level = Level::Info;
        let capabilities = ClientCapabilities::default();
        Self { revision, capabilities, name: None, log_level, announced: Announced::default() }
    }

    /// Takes over the params of `initialize`, and agrees on a revision.
    pub(crate) fn negotiate(
        &mut self,
        hello: &Initialize,
        dialect: &Dialect,
    ) -> Result<(), Problem> {
        let wished = Revision::parse(&hello.version).filter(|wish| wish.era() == Era::Legacy);
        self.revision = match dialect.revision {
            Some(pinned) if pinned.era() == Era::Modern => {
                return Err(Problem::Version {
                    requested: hello.version.clone(),
                    supported: vec![pinned.date()],
                });
            }
            Some(pinned) => pinned,
            None => wished.unwrap_or(Revision::NEWEST_LEGACY),
        };
        self.capabilities = kept_capabilities(&hello.capabilities);
        self.name = hello.client.as_ref().and_then(kept_name);
        Ok(())
    }

    /// The metadata of a legacy request, completed from the handshake.
    pub(crate) fn describe(&self, caller: Caller, meta: Meta) -> RequestMeta {
        RequestMeta {
            caller,
            revision: self.revision,
            capabilities: self.capabilities.clone(),
            client: self.name.clone(),
            log_level: Some(self.log_level),
            meta,
        }
    }
}

/// Decides the era of a request. A request is modern if it says so itself, in its metadata or in
/// the header of its transport. Only a deployment that is pinned to one revision overrides that.
///
/// Each request is decided once: by the HTTP transport, which must find the right session, or by
/// the session of a stream.
pub fn era(is_handshake: bool, meta: &Meta, transport_says_modern: bool, dialect: &Dialect) -> Era {
    let says_so = meta.version.is_some() || transport_says_modern;
    match dialect.revision.map(Revision::era) {
        // A handshake is always answered, with the revision that is served here.
        Some(Era::Modern) if is_handshake && !says_so => Era::Legacy,
        Some(pinned) => pinned,
        None if says_so => Era::Modern,
        None => Era::Legacy,
    }
}

/// The metadata of a modern request, which must be complete.
pub(crate) fn describe_modern(caller: Caller, meta: Meta) -> Result<RequestMeta, Problem> {
    let missing = |key: &str| {
        Problem::Params(format!("`_meta[\"io.modelcontextprotocol/{key}\"]` is missing").into())
    };
    let Some(version) = &meta.version else { return Err(missing("protocolVersion")) };
    let known = Revision::parse(version).filter(|revision| revision.era() == Era::Modern);
    let Some(revision) = known else {
        return Err(Problem::Version { requested: (&**version).into(), supported: modern_dates() });
    };
    let Some(capabilities) = meta.capabilities.clone() else {
        return Err(missing("clientCapabilities"));
    };
    let (client, log_level) = (meta.client.clone(), meta.log_level);
    Ok(RequestMeta { caller, revision, capabilities, client, log_level, meta })
}

fn modern_dates() -> Vec<&'static str> {
    let modern = Revision::ALL.into_iter().rev().filter(|revision| revision.era() == Era::Modern);
    modern.map(Revision::date).collect()
}

/// Refuses a method that does not exist in `era`.
pub(crate) fn check_method(method: &Method, era: Era) -> Result<(), Problem> {
    let is_of_the_other_era = match era {
        Era::Modern => matches!(
            method,
            Method::Initialize
                | Method::Ping
                | Method::SetLevel
                | Method::Subscribe
                | Method::Unsubscribe
                | Method::TaskResult
                | Method::ListTasks
        ),
        Era::Legacy => matches!(method, Method::Discover | Method::Listen | Method::UpdateTask),
    };
    if is_of_the_other_era { Err(Problem::Method(method.name().into())) } else { Ok(()) }
}

/// Refuses a legacy request that the state of the handshake does not allow.
pub(crate) fn check_phase(
    method: &Method,
    phase: Phase,
    ready: RequireReady,
) -> Result<(), Problem> {
    if *method == Method::Initialize {
        return if phase == Phase::Fresh {
            Ok(())
        } else {
            Err(Problem::Request("the session is initialized already".into()))
        };
    }
    let needs_handshake = match ready {
        RequireReady::None => false,
        RequireReady::Tools => *method == Method::CallTool,
        RequireReady::All => *method != Method::Ping,
    };
    if needs_handshake && phase != Phase::Ready {
        return Err(Problem::Request("the session is not initialized".into()));
    }
    Ok(())
}
