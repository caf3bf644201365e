//! Which era the server belongs to, and the handshake of the legacy era.
//!
//! The probe is `server/discover`. A server that answers it is modern, and so is one that answers
//! with an error that only the modern era has. After any other answer, or none in time, the server
//! is taken for a legacy one: the handshake is sent, and a late answer to the probe still counts.
//! Spec: basic/versioning, "Backward Compatibility with Initialization-Based Versions".

use std::time::Instant;

use sabir_wire::types::{DiscoverResult, InitializeResult};
use sabir_wire::{Code, Era, ErrorObject, Id, Initialize, Method, Raw, ReadJson as _, Request};
use sabir_wire::{Revision, raise};

use super::{Beginning, Conversation, send};
use crate::error::{CallError, OpenError};
use crate::io::{CallKey, Head, Order, Output, ServerInfo};
use crate::request::CallRequest;

/// The state of the opening.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phase {
    /// `server/discover` was sent.
    Probing {
        probe: CallKey,
        until: Instant,
        /// The second probe: the server wanted another revision.
        is_again: bool,
    },
    /// `initialize` was sent.
    Greeting {
        hello: CallKey,
        until: Instant,
        /// The probe, if it was not answered, or not in time.
        probe: Option<CallKey>,
    },
    /// Calls may begin.
    Open(Revision),
    /// Not open yet, or refused.
    Closed,
}

impl Phase {
    pub(super) fn waits_for(&self, call: CallKey) -> bool {
        match self {
            Self::Probing { probe, .. } => *probe == call,
            Self::Greeting { hello, probe, .. } => *hello == call || *probe == Some(call),
            Self::Open(_) | Self::Closed => false,
        }
    }
}

impl Conversation {
    pub(super) fn open(&mut self, now: Instant, out: &mut Vec<Output>) {
        match self.beginning {
            Beginning::Legacy => self.greet(now, None, out),
            Beginning::Probe | Beginning::Modern => self.probe(now, false, out),
        }
    }

    fn probe(&mut self, now: Instant, is_again: bool, out: &mut Vec<Output>) {
        let probe = self.reserve();
        let limits = &self.config.limits;
        let time = match self.beginning {
            Beginning::Modern => limits.open_time,
            _ => limits.probe_time,
        };
        let until = now + time;
        let request = CallRequest::new(Request::Discover);
        let frame = request.write(&probe.id(), Revision::NEWEST, &self.config);
        out.push(send(Some(probe), frame, self.head(&request, Revision::NEWEST)));
        self.phase = Phase::Probing { probe, until, is_again };
        self.wake_by(Some(until));
    }

    fn greet(&mut self, now: Instant, probe: Option<CallKey>, out: &mut Vec<Output>) {
        if self.beginning == Beginning::Modern {
            let reason = "it does not answer `server/discover`".to_owned();
            return self.refuse(OpenError::Invalid(reason), out);
        }
        let hello = self.reserve();
        let until = now + self.config.limits.open_time;
        let revision = self.config.legacy_revision;
        let request = CallRequest::new(Request::Initialize(Initialize {
            version: revision.date().into(),
            capabilities: self.config.capabilities.clone(),
            client: Some(self.config.client.clone()),
        }));
        let frame = request.write(&hello.id(), revision, &self.config);
        let method = Some(Method::Initialize);
        let head = Head { revision: None, method, name: None, mirrored: Vec::new() };
        out.push(send(Some(hello), frame, head));
        self.phase = Phase::Greeting { hello, until, probe };
        self.wake_by(Some(until));
    }

    fn refuse(&mut self, error: OpenError, out: &mut Vec<Output>) {
        self.phase = Phase::Closed;
        out.push(Output::Refused(error));
    }

    /// Handles an answer that belongs to the opening of the link; `false` if it does not.
    pub(super) fn answers_opening(
        &mut self,
        now: Instant,
        id: &Id,
        result: &Result<Raw, ErrorObject>,
        out: &mut Vec<Output>,
    ) -> bool {
        match self.phase {
            Phase::Probing { probe, is_again, .. } if probe.id() == *id => {
                self.on_probe(now, result, is_again, out);
            }
            Phase::Greeting { hello, .. } if hello.id() == *id => match result {
                Ok(result) => self.on_greeting(result, out),
                Err(error) => self.refuse(OpenError::Rpc(error.clone()), out),
            },
            Phase::Greeting { hello, probe: Some(probe), .. } if probe.id() == *id => {
                // A late answer counts only if it is a success: the handshake is in flight.
                if let Some((info, revision)) = result.as_ref().ok().and_then(discovered) {
                    out.push(Output::Order(Order::Abort(hello)));
                    self.become_open(revision, info, true, out);
                }
            }
            _ => return false,
        }
        true
    }

    fn on_probe(
        &mut self,
        now: Instant,
        result: &Result<Raw, ErrorObject>,
        is_again: bool,
        out: &mut Vec<Output>,
    ) {
        let error = match result {
            Ok(result) => {
                return match discovered(result) {
                    Some((info, revision)) => self.become_open(revision, info, true, out),
                    None => self.greet(now, None, out),
                };
            }
            Err(error) => error,
        };
        match error.code {
            Code::UNSUPPORTED_VERSION => {
                let offered = error.data.as_ref().and_then(|data| data.member("supported"));
                let offered: Vec<String> =
                    offered.and_then(|list| list.read().ok()).unwrap_or_default();
                let known = offered.iter().filter_map(|date| Revision::parse(date));
                match known.map(Revision::era).max_by_key(|era| *era == Era::Modern) {
                    Some(Era::Modern) if !is_again => self.probe(now, true, out),
                    Some(Era::Legacy) => self.greet(now, None, out),
                    _ => self.refuse(OpenError::Unsupported(offered.join(", ")), out),
                }
            }
            Code::HEADER_MISMATCH | Code::MISSING_CAPABILITY => {
                self.refuse(OpenError::Rpc(error.clone()), out);
            }
            _ => self.greet(now, None, out),
        }
    }

    fn on_greeting(&mut self, result: &Raw, out: &mut Vec<Output>) {
        let answer = match InitializeResult::read_json(result) {
            Ok(answer) => answer,
            Err(error) => {
                let version =
                    result.member("protocolVersion").and_then(|v| v.read::<String>().ok());
                let unknown = version.filter(|date| Revision::parse(date).is_none());
                let error = match unknown {
                    Some(date) => OpenError::Unsupported(date),
                    None => OpenError::Invalid(error.to_string()),
                };
                return self.refuse(error, out);
            }
        };
        let revision = answer.revision;
        if revision.era() == Era::Modern {
            return self.refuse(OpenError::Unsupported(revision.date().to_owned()), out);
        }
        let raised = raise::result(&Method::Initialize, revision, result);
        let read = raised.and_then(|raised| DiscoverResult::read_json(&raised));
        let info = match read {
            Ok(info) => info,
            Err(error) => return self.refuse(OpenError::Invalid(error.to_string()), out),
        };
        let is_certain = matches!(self.phase, Phase::Greeting { probe: None, .. });
        self.phase = Phase::Open(revision);
        self.notify(Method::Initialized, None, out);
        self.become_open(revision, info, is_certain, out);
    }

    fn become_open(
        &mut self,
        revision: Revision,
        discovered: DiscoverResult,
        is_certain: bool,
        out: &mut Vec<Output>,
    ) {
        self.phase = Phase::Open(revision);
        out.push(Output::Ready(ServerInfo { revision, discovered, is_certain }));
    }

    /// Handles the failure of an exchange that belongs to the opening; `false` if it does not.
    pub(super) fn fails_opening(
        &mut self,
        now: Instant,
        exchange: CallKey,
        failure: &CallError,
        challenge: &Option<String>,
        out: &mut Vec<Output>,
    ) -> bool {
        let is_probe = match self.phase {
            Phase::Probing { probe, .. } if probe == exchange => true,
            Phase::Greeting { hello, .. } if hello == exchange => false,
            // A late failure of the probe says nothing.
            Phase::Greeting { probe, .. } => return probe == Some(exchange),
            _ => return false,
        };
        match failure {
            CallError::Status { status: status @ (401 | 403 | 407), .. } => {
                let challenge = challenge.clone();
                self.refuse(OpenError::Unauthorized { status: *status, challenge }, out);
            }
            CallError::Auth(error) => self.refuse(OpenError::Auth(error.clone()), out),
            // The era of a server that is down cannot be told.
            CallError::Status { status: status @ (429 | 502 | 503 | 504), body } => {
                self.refuse(OpenError::Status { status: *status, body: body.clone() }, out);
            }
            CallError::Unsent(reason) => self.refuse(OpenError::Start(reason.clone()), out),
            CallError::Status { status: 400 | 404 | 405, .. } if is_probe => {
                self.greet(now, None, out);
            }
            // The server may be a modern one that has failed.
            _ if is_probe => self.greet(now, Some(exchange), out),
            CallError::Status { status, body } => {
                self.refuse(OpenError::Status { status: *status, body: body.clone() }, out);
            }
            other => self.refuse(OpenError::Ended(other.to_string()), out),
        }
        true
    }

    pub(super) fn check_opening(&mut self, now: Instant, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Probing { probe, until, .. } if until <= now => {
                self.greet(now, Some(probe), out)
            }
            Phase::Greeting { until, .. } if until <= now => {
                self.refuse(OpenError::Timeout(self.config.limits.open_time), out);
            }
            Phase::Probing { until, .. } | Phase::Greeting { until, .. } => {
                self.wake_by(Some(until));
            }
            Phase::Open(_) | Phase::Closed => {}
        }
    }
}

/// The answer to `server/discover`, and the newest modern revision that both sides know.
fn discovered(result: &Raw) -> Option<(DiscoverResult, Revision)> {
    let found = DiscoverResult::read_json(result).ok()?;
    let modern = found.revisions.iter().copied().filter(|known| known.era() == Era::Modern);
    modern.max().map(|revision| (found, revision))
}
