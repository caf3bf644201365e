//! The state machine of one link. No I/O, no clock: time is an argument.
//!
//! It is the mirror image of a server's session. [`Conversation::handle`] takes an input and
//! appends outputs. It never fails: a mistake of the server ends at most the call that it concerns.

mod incoming; // messages of the server
mod opening; // which era the server belongs to

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_wire::mirror::{MirroredArgument, encode_value};
use sabir_wire::{ErrorObject, Id, Method, Raw, Request, Revision};
use sabir_wire::{write_error, write_notification, write_result};

use self::opening::Phase;
use crate::config::ClientConfig;
use crate::error::CallError;
use crate::io::{CallKey, Head, Input, LinkKind, Order, Outgoing, Output};
use crate::request::{CallRequest, RequestBody};

/// Calls without an answer that are remembered, and for how long: the server may ignore their
/// cancellation, and still ask and log on their behalf. If there are more, the oldest are forgotten.
const MAX_GHOSTS: usize = 4096;
const GHOST_TIME: Duration = Duration::from_secs(600);

/// How a link begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// The era is not known.
    Probe,
    /// The server is known to be modern.
    Modern,
    /// The server is known to be a legacy one.
    Legacy,
}

/// One link to a server.
#[derive(Debug)]
pub(crate) struct Conversation {
    config: Arc<ClientConfig>,
    link: LinkKind,
    beginning: Beginning,
    phase: Phase,
    last: i64,
    calls: HashMap<Id, Running>,
    /// The calls that were cancelled and not answered.
    ghosts: VecDeque<Ghost>,
    /// The questions that wait for an answer, and the call that asks, if it is certain.
    questions: HashMap<Id, Option<CallKey>>,
    /// The tools whose arguments are repeated in headers, from the lists that the server sent.
    mirrors: HashMap<String, Vec<MirroredArgument>>,
    listing: Listing,
    /// The next wake-up; no deadline is earlier.
    wake: Option<Instant>,
}

/// A list of tools that arrives in pages.
#[derive(Debug, Default)]
struct Listing {
    /// The cursor of the next page; `None` before the first one and after the last.
    next: Option<Box<str>>,
    /// The tools so far whose arguments are repeated in headers.
    mirrored: HashSet<String>,
}

/// A call that was cancelled and not answered.
#[derive(Debug)]
struct Ghost {
    call: CallKey,
    client: u64,
    /// It is forgotten then.
    until: Instant,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct Running {
    key: CallKey,
    request: Arc<CallRequest>,
    /// The time limit, which progress restarts.
    time: Option<Duration>,
    /// The end of that time. `None` while a question waits for its answer.
    deadline: Option<Instant>,
    /// The deadline that progress does not extend.
    end: Option<Instant>,
}

impl Conversation {
    pub(crate) fn new(config: Arc<ClientConfig>, link: LinkKind, beginning: Beginning) -> Self {
        Self {
            config,
            link,
            beginning,
            phase: Phase::Closed,
            last: 0,
            calls: HashMap::new(),
            ghosts: VecDeque::new(),
            questions: HashMap::new(),
            mirrors: HashMap::new(),
            listing: Listing::default(),
            wake: None,
        }
    }

    /// A key for the next call.
    pub(crate) fn reserve(&mut self) -> CallKey {
        self.last += 1;
        CallKey(self.last)
    }

    /// The next deadline at which the state machine needs the time; may be early, never late.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.wake
    }

    /// Whether a link that ends now may have ended because the server does not know the modern era.
    pub(crate) fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Probing { .. })
    }

    /// Whether the call still waits for its answer.
    pub(crate) fn is_waiting(&self, call: CallKey) -> bool {
        self.calls.contains_key(&call.id()) || self.phase.waits_for(call)
    }

    /// Advances the conversation by one input, and appends the outputs.
    pub(crate) fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Open => self.open(now, out),
            Input::Start { call, request } => self.start(now, call, request, out),
            Input::Received { exchange, frame } => self.receive(now, exchange, frame, out),
            Input::Failed { exchange, failure, challenge } => {
                self.on_failure(now, exchange, failure, challenge, out);
            }
            Input::Cancel(call) => {
                if let Some(running) = self.finish(&call.id(), out) {
                    self.cancel(now, &running, "the caller no longer wants it", out);
                }
            }
            Input::Answer { question, answer } => self.answer(now, &question, answer, out),
            Input::Notify { method, params } => {
                if matches!(self.phase, Phase::Open(_)) {
                    self.notify(Method::named(&method), params, out);
                }
            }
            Input::Tick => self.tick(now, out),
        }
    }

    fn start(
        &mut self,
        now: Instant,
        call: CallKey,
        request: Arc<CallRequest>,
        out: &mut Vec<Output>,
    ) {
        let limits = &self.config.limits;
        let accepted = match self.phase {
            Phase::Open(revision) if !request.is_in(revision.era()) => {
                Err(CallError::NotInEra(request.method().name().to_owned()))
            }
            Phase::Open(_) if self.calls.len() >= limits.calls => {
                Err(CallError::Busy(limits.calls))
            }
            Phase::Open(revision) => Ok(revision),
            _ => Err(CallError::Unsent("the link is not open".to_owned())),
        };
        let revision = match accepted {
            Ok(revision) => revision,
            Err(error) => return out.push(Output::Finished { call, result: Err(error) }),
        };
        // A subscription has no end of its own.
        let is_timed = !matches!(request.method(), Method::Listen);
        let options = &request.options;
        let time = options.timeout.or(limits.call_time).filter(|_| is_timed);
        let max = options.max_time.or(limits.call_max).filter(|_| is_timed);
        let running = Running {
            key: call,
            time,
            deadline: time.and_then(|time| now.checked_add(time)),
            end: max.and_then(|max| now.checked_add(max)),
            request,
        };
        let id = running.key.id();
        let frame = running.request.write(&id, revision, &self.config);
        let head = self.head(&running.request, revision);
        self.wake_by(running.next_deadline());
        out.push(send(Some(running.key), frame, head));
        self.calls.insert(id, running);
    }

    fn head(&self, request: &CallRequest, revision: Revision) -> Head {
        let name = request.name().map(|name| encode_value(&name).into_owned());
        let mut mirrored = Vec::new();
        if let RequestBody::Known(Request::CallTool(call)) = &request.body
            && let (Some(mirrors), Some(arguments)) =
                (self.mirrors.get(&*call.name), &call.arguments)
        {
            mirrored.extend(mirrors.iter().filter_map(|mirror| {
                mirror.header_value(arguments).map(|value| (mirror.header.clone(), value))
            }));
        }
        Head { revision: Some(revision), method: Some(request.method()), name, mirrored }
    }

    /// Forgets a call, and withdraws the questions that only it can have asked.
    fn finish(&mut self, id: &Id, out: &mut Vec<Output>) -> Option<Running> {
        let running = self.calls.remove(id)?;
        self.questions.retain(|question, call| {
            let is_its = *call == Some(running.key);
            if is_its {
                out.push(Output::Withdraw(question.clone()));
            }
            !is_its
        });
        Some(running)
    }

    /// Cancels a call at the server, in the way of its era.
    fn cancel(&mut self, now: Instant, running: &Running, reason: &str, out: &mut Vec<Output>) {
        let Phase::Open(revision) = self.phase else { return };
        let call = running.key;
        if running.request.may_ask() {
            let client = running.request.options.client_number;
            self.ghosts.push_back(Ghost { call, client, until: now + GHOST_TIME });
            if self.ghosts.len() > MAX_GHOSTS {
                self.ghosts.pop_front();
            }
        }
        let is_modern = revision.features().stateless;
        if self.link == LinkKind::Http {
            out.push(Output::Order(Order::Abort(call)));
        }
        if self.link == LinkKind::Pipe || !is_modern {
            let reason = Raw::of(reason).unwrap_or_default();
            let (id, reason) = (call.id().to_string(), reason);
            let members = [("requestId", Some(&*id)), ("reason", Some(reason.text()))];
            self.notify(Method::Cancelled, Some(Raw::empty_object().with_members(&members)), out);
        }
    }

    fn notify(&self, method: Method, params: Option<Raw>, out: &mut Vec<Output>) {
        let frame = write_notification(method.name(), params.as_ref());
        out.push(send(None, frame, self.plain_head(Some(method))));
    }

    fn answer(
        &mut self,
        now: Instant,
        question: &Id,
        answer: Result<Raw, ErrorObject>,
        out: &mut Vec<Output>,
    ) {
        // A withdrawn question is not in the table.
        let Some(call) = self.questions.remove(question) else { return };
        self.respond(question, answer, out);
        let is_waiting = self.questions.values().any(|other| *other == call);
        if let Some(running) = call.and_then(|call| self.calls.get_mut(&call.id()))
            && !is_waiting
        {
            running.restart(now);
            let deadline = running.next_deadline();
            self.wake_by(deadline);
        }
    }

    fn respond(&self, id: &Id, answer: Result<Raw, ErrorObject>, out: &mut Vec<Output>) {
        let frame = match answer {
            Ok(result) => write_result(id, result.as_bytes()),
            Err(error) => write_error(Some(id), &error),
        };
        out.push(send(None, frame, self.plain_head(None)));
    }

    fn plain_head(&self, method: Option<Method>) -> Head {
        let revision = match self.phase {
            Phase::Open(revision) => Some(revision),
            _ => None,
        };
        Head { revision, method, name: None, mirrored: Vec::new() }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.wake = None;
        self.check_opening(now, out);
        let is_late = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let late = self.calls.iter().filter(|(_, running)| is_late(running.next_deadline()));
        let late: Vec<Id> = late.map(|(id, _)| id.clone()).collect();
        for id in late {
            let Some(running) = self.finish(&id, out) else { continue };
            let at_end = is_late(running.end);
            let max = running.request.options.max_time.or(self.config.limits.call_max);
            let limit = if at_end { max } else { running.time };
            self.cancel(now, &running, "it took too long", out);
            let result = Err(CallError::Timeout(limit.unwrap_or_default()));
            out.push(Output::Finished { call: running.key, result });
        }
        let next = self.calls.values().filter_map(Running::next_deadline).min();
        self.wake_by(next);
    }

    fn wake_by(&mut self, at: Option<Instant>) {
        self.wake = self.wake.into_iter().chain(at).min();
    }
}

impl Running {
    fn next_deadline(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(self.end).min()
    }

    /// Restarts the time limit.
    fn restart(&mut self, now: Instant) {
        self.deadline = self.time.and_then(|time| now.checked_add(time));
    }
}

fn send(call: Option<CallKey>, frame: bytes::Bytes, head: Head) -> Output {
    Output::Order(Order::Send(Outgoing { call, frame, head, reply: None }))
}

#[cfg(test)]
mod tests;
