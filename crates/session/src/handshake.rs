//! Which revision is spoken, and by whom. The era of a request is decided only here.

use sabir_wire::types::{ClientCapabilities, Level, ServerCapabilities};
use sabir_wire::{Era, Initialize, Meta, Method, Problem, Raw, Revision};

use crate::dialect::{Dialect, RequireReady};
use crate::io::RequestMeta;
use crate::phase::Phase;

/// What a handshake, or the transport, has told of a client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// What is spoken with it.
    pub(crate) revision: Revision,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) name: Option<Raw>,
    pub(crate) log_level: Level,
    /// What the handshake told it that we offer.
    pub(crate) offered: ServerCapabilities,
}

impl Client {
    /// A client that has said nothing yet.
    pub(crate) fn unknown(revision: Revision) -> Self {
        // A client that set no level gets what a person would want to see.
        let log_level = Level::Info;
        let (capabilities, offered) =
            (ClientCapabilities::default(), ServerCapabilities::default());
        Self { revision, capabilities, name: None, log_level, offered }
    }

    /// Takes over what `initialize` says, and agrees on a revision.
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
        self.capabilities = hello.capabilities.clone();
        // A copy of its own: a session outlives the message that the name came in.
        self.name = hello.client.as_ref().map(Raw::compact);
        Ok(())
    }

    /// A legacy request, completed by what is remembered.
    pub(crate) fn ask(&self, meta: Meta) -> RequestMeta {
        RequestMeta {
            revision: self.revision,
            capabilities: self.capabilities.clone(),
            client: self.name.clone(),
            log_level: Some(self.log_level),
            meta,
        }
    }
}

/// Who asks, and whether they may.
pub(crate) fn identify(
    method: &Method,
    meta: Meta,
    transport_says_modern: bool,
    client: &Client,
    phase: Phase,
    dialect: &Dialect,
    ready: RequireReady,
) -> Result<RequestMeta, Problem> {
    match era(*method == Method::Initialize, &meta, transport_says_modern, dialect) {
        Era::Modern => {
            let from = self_described(meta)?;
            if of_the_other_era(method, Era::Modern) {
                return Err(Problem::Method(method.name().into()));
            }
            Ok(from)
        }
        Era::Legacy if of_the_other_era(method, Era::Legacy) => {
            Err(Problem::Method(method.name().into()))
        }
        Era::Legacy => {
            may_ask(method, phase, ready)?;
            Ok(client.ask(meta))
        }
    }
}

/// A request is modern if it says so itself. Nothing else decides, except that a deployment pinned
/// to one revision is of that revision's era.
pub fn era(is_handshake: bool, meta: &Meta, transport_says_modern: bool, dialect: &Dialect) -> Era {
    let says_so = meta.version.is_some() || transport_says_modern;
    match dialect.revision.map(Revision::era) {
        // Whoever shakes hands is a legacy client; it is told what is spoken here.
        Some(Era::Modern) if is_handshake && !says_so => Era::Legacy,
        Some(pinned) => pinned,
        None if says_so => Era::Modern,
        None => Era::Legacy,
    }
}

/// A modern request: everything must be in it.
fn self_described(meta: Meta) -> Result<RequestMeta, Problem> {
    let missing = |key: &str| {
        Problem::Params(format!("`_meta[\"io.modelcontextprotocol/{key}\"]` is missing").into())
    };
    let Some(version) = &meta.version else { return Err(missing("protocolVersion")) };
    let spoken = Revision::parse(version).filter(|revision| revision.era() == Era::Modern);
    let Some(revision) = spoken else {
        return Err(Problem::Version { requested: (&**version).into(), supported: modern_dates() });
    };
    let Some(capabilities) = meta.capabilities.clone() else {
        return Err(missing("clientCapabilities"));
    };
    let (client, log_level) = (meta.client.clone(), meta.log_level);
    Ok(RequestMeta { revision, capabilities, client, log_level, meta })
}

fn modern_dates() -> Vec<&'static str> {
    let modern = Revision::ALL.into_iter().rev().filter(|revision| revision.era() == Era::Modern);
    modern.map(Revision::date).collect()
}

/// Methods that came or went with the handshake.
fn of_the_other_era(method: &Method, era: Era) -> bool {
    match era {
        Era::Modern => matches!(
            method,
            Method::Initialize
                | Method::Ping
                | Method::SetLevel
                | Method::Subscribe
                | Method::Unsubscribe
        ),
        Era::Legacy => matches!(method, Method::Discover | Method::Listen),
    }
}

fn may_ask(method: &Method, phase: Phase, ready: RequireReady) -> Result<(), Problem> {
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
