//! The one entry point of a session: an input goes in, outputs come out.

mod asking; // questions to the client
mod incoming; // incoming frames
mod reply; // responses
mod sharing; // sessions that several nodes serve
mod watching; // notifications of changes

use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_wire::types::ServerResult;
use sabir_wire::{Caller, Cancelled, Era, Id, Method, Resume};
use sabir_wire::{ParsedRequest, Problem, Raw, Request, Revision, render, write_notification};

use crate::batches::Batches;
use crate::config::{SessionConfig, SessionKind};
use crate::dialect::{NullId, RequireReady};
use crate::handshake::{Client, check_method, check_phase, describe_modern, era};
use crate::inflight::{Calls, Effect, Inflight, Restart, deadline};
use crate::io::{Call, CallKey, CallNotification, Input, MessageKind, Outcome, Output};
use crate::io::{RequestMeta, StreamId};
use crate::phase::{Phase, SessionState};
use crate::questions::{PendingQuestions, may_ask_client};
use crate::record::{Clock, SessionRecord, State};
use crate::subscriptions::Subscriptions;
use crate::words::{check_id, check_token};

use self::reply::ReplyTo;

/// One client's conversation.
///
/// Feed it with [`Session::handle`], act on the outputs in their order, and wake it at
/// [`Session::wake_at`]. It never fails: a mistake of the peer becomes a response.
#[derive(Debug)]
pub struct Session {
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) kind: SessionKind,
    pub(crate) state: State,
    clock: Clock,
    /// Counts the changes of the state that nodes share.
    changes: u32,
}

impl Session {
    /// A session without any input so far. `owner` is the caller who opens it.
    pub fn new(config: Arc<SessionConfig>, kind: SessionKind, owner: Caller) -> Self {
        let revision = match (config.dialect.revision, kind) {
            (Some(pinned), _) => pinned,
            (None, SessionKind::LegacyHttp(revision)) => revision,
            (None, SessionKind::Stream | SessionKind::ModernHttp) => Revision::NEWEST_LEGACY,
        };
        let state = State {
            owner,
            phase: Phase::Fresh,
            client: Client::unknown(revision),
            calls: Calls::default(),
            questions: PendingQuestions::default(),
            subscriptions: Subscriptions::default(),
            batches: Batches::default(),
            has_heard_modern: false,
            drain_until: None,
        };
        Self { config, kind, state, clock: Clock::default(), changes: 0 }
    }

    /// Everything that the session remembers at `now`.
    pub fn record(&self, now: Instant) -> SessionRecord {
        SessionRecord { age: self.clock.read(now), kind: self.kind, state: self.state.clone() }
    }

    /// Goes on with a recorded session. It behaves as the original would from here on, given the
    /// same configuration.
    pub fn resume(config: Arc<SessionConfig>, record: SessionRecord, now: Instant) -> Self {
        let SessionRecord { age, kind, state } = record;
        Self { config, kind, state, clock: Clock::resumed(age, now), changes: 0 }
    }

    /// Advances the session by one input, appending its outputs to `out`.
    pub fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let now = self.clock.start(now);
        match input {
            Input::Received { stream, caller, frame } => {
                self.on_frame(now, stream, caller, frame, out);
            }
            Input::Request { stream, caller, request } => {
                self.on_request(now, ReplyTo { stream, batch: None }, caller, request, out);
            }
            Input::Finished { call, outcome } => self.on_finished(now, call, outcome, out),
            Input::Notified { call, note } => self.on_notification_of(call, note, out),
            Input::Changed(topic) => self.on_change(&topic, out),
            Input::Task(task) => self.on_task(&task, out),
            Input::Gone(stream) => self.on_gone(stream, out),
            Input::Announced(frame) => {
                out.extend((self.state.phase == Phase::Ready).then(|| notify(None, frame)));
            }
            Input::Tick => self.on_tick(now, out),
            Input::Eof => self.on_eof(now, out),
        }
        if self.state.phase == Phase::Draining && self.state.calls.len() == 0 {
            self.enter(Phase::Closed);
            self.state.drain_until = None;
            out.push(Output::Close);
        }
    }

    /// When to hand in [`Input::Tick`], unless something else happens before.
    pub fn wake_at(&self) -> Option<Instant> {
        let next = self.state.calls.next_deadline().into_iter().chain(self.state.drain_until).min();
        self.clock.when(next?)
    }

    /// The kind of the session.
    pub fn kind(&self) -> SessionKind {
        self.kind
    }

    /// The caller who opened the session. The transport refuses all others.
    pub fn owner(&self) -> &Caller {
        &self.state.owner
    }

    /// The state of the handshake of a legacy client.
    pub fn state(&self) -> SessionState {
        self.state.phase.into()
    }

    /// The revision that is used with a legacy client.
    pub fn revision(&self) -> Revision {
        self.state.client.revision
    }

    /// The `clientInfo` of a legacy client.
    pub fn client(&self) -> Option<&Raw> {
        self.state.client.name.as_ref()
    }

    /// The number of running calls.
    pub fn running(&self) -> usize {
        self.state.calls.len()
    }

    /// The id of the request of a running call.
    pub fn id_of(&self, call: CallKey) -> Option<&Id> {
        self.state.calls.id_of(call)
    }

    /// Whether a call waits for the client's answers.
    pub fn is_waiting(&self, call: CallKey) -> bool {
        self.state.questions.is_waiting(call)
    }

    /// Whether anything may still be sent on this stream.
    pub fn is_active(&self, stream: StreamId) -> bool {
        let State { calls, subscriptions, batches, .. } = &self.state;
        calls.uses(stream) || subscriptions.is_listening(stream) || batches.uses(stream)
    }

    /// Whether a batch waits for its last answer.
    pub fn has_batch(&self) -> bool {
        !self.state.batches.is_unused()
    }

    fn on_request(
        &mut self,
        now: Duration,
        reply_to: ReplyTo,
        caller: Caller,
        request: ParsedRequest,
        out: &mut Vec<Output>,
    ) {
        let ParsedRequest { id, method, meta, request, params } = request;
        if let Err(problem) = self.reserve_id(reply_to, &id) {
            return self.refuse(reply_to, None, &problem, out);
        }
        let era = match (self.kind, reply_to.batch, &meta) {
            (SessionKind::ModernHttp, ..) => Era::Modern,
            (SessionKind::LegacyHttp(_), None, _) => Era::Legacy,
            (_, _, Ok(meta)) => {
                era(method == Method::Initialize, meta, false, &self.config.dialect)
            }
            (_, _, Err(_)) => Era::Legacy,
        };
        self.state.has_heard_modern |= era == Era::Modern;
        let admitted = meta
            .and_then(|meta| self.describe(era, reply_to, caller, &method, meta))
            .and_then(|from| Ok((from, request?)))
            .and_then(|(from, request)| self.admit(from, request));
        match admitted {
            Ok(mut call) => {
                let can_restart = era == Era::Legacy && may_ask_client(&method);
                if can_restart && let Some(resume) = call.request.resume_mut() {
                    // In this era answers are responses: params of that name are ignored.
                    *resume = Resume::default();
                }
                let caller = call.from.caller.clone();
                let restart = can_restart.then(|| Restart { caller, method, params });
                self.start(now, reply_to, id, call, restart, out);
            }
            Err(problem) => {
                let is_modern = era == Era::Modern;
                let revision =
                    if is_modern { Revision::NEWEST } else { self.state.client.revision };
                self.reply(reply_to, &id, Err(render::error(&problem, revision)), revision, out);
            }
        }
    }

    /// The complete metadata of a request, if it may be made now.
    fn describe(
        &self,
        era: Era,
        reply_to: ReplyTo,
        caller: Caller,
        method: &Method,
        meta: sabir_wire::Meta,
    ) -> Result<RequestMeta, Problem> {
        if era == Era::Modern {
            let described = describe_modern(caller, meta)?;
            check_method(method, era)?;
            // A listener would block the batch for ever, and no modern revision has batches.
            return match reply_to.batch {
                None => Ok(described),
                Some(_) => Err(reply::no_batches(described.revision)),
            };
        }
        check_method(method, era)?;
        check_phase(method, self.state.phase, self.required_readiness())?;
        Ok(self.state.client.describe(caller, meta))
    }

    /// Refuses an id that is in use: its response would be taken for that of another request.
    fn reserve_id(&mut self, reply_to: ReplyTo, id: &Id) -> Result<(), Problem> {
        if id.is_null() {
            return match self.config.dialect.null_id {
                NullId::Answer => Ok(()),
                NullId::Refuse => Err(Problem::Request("`id` must not be null".into())),
            };
        }
        check_id(id)?;
        let State { calls, subscriptions, batches, .. } = &mut self.state;
        if calls.key_of(id).is_some() || subscriptions.has_listener(id) || batches.has(id) {
            return Err(Problem::Request(format!("the id {id} is in use").into()));
        }
        if let Some(batch) = batches.find(reply_to.batch) {
            batch.reserve_id(id);
        }
        Ok(())
    }

    fn required_readiness(&self) -> RequireReady {
        self.config.dialect.require_ready.unwrap_or(match self.kind {
            SessionKind::Stream | SessionKind::ModernHttp => RequireReady::None,
            SessionKind::LegacyHttp(_) => RequireReady::All,
        })
    }

    /// Turns a request into a call, if the limits allow. A handshake takes effect here.
    fn admit(&mut self, mut from: RequestMeta, request: Request) -> Result<Call, Problem> {
        let (state, limits) = (&mut self.state, &self.config.limits);
        if matches!(state.phase, Phase::Draining | Phase::Closed) {
            return Err(reply::stopping());
        }
        if state.calls.len() >= limits.calls {
            return Err(reply::too_many("concurrent requests", limits.calls));
        }
        check_token(from.meta.progress_token.as_ref())?;
        state.check_subscriptions(&request, limits)?;
        if let Request::Initialize(hello) = &request {
            state.client.negotiate(hello, &self.config.dialect)?;
            from.revision = state.client.revision;
            self.enter(Phase::Initializing);
        }
        Ok(Call { key: self.state.calls.next_key(), from, request })
    }

    fn start(
        &mut self,
        now: Duration,
        reply_to: ReplyTo,
        id: Id,
        call: Call,
        restart: Option<Restart>,
        out: &mut Vec<Output>,
    ) {
        let Call { key, from, request } = &call;
        self.state.calls.push(Inflight {
            key: *key,
            id,
            stream: reply_to.stream,
            batch: reply_to.batch,
            revision: from.revision,
            capabilities: from.capabilities.clone(),
            log_level: from.log_level,
            deadline: deadline(now, self.config.limits.call_time),
            progress_token: from.meta.progress_token.clone(),
            progress: None,
            effect: effect_of(request),
            is_tool: matches!(request, Request::CallTool(_)),
            restart,
        });
        self.state.batches.begin_part(reply_to.batch);
        out.push(Output::Start(call));
    }

    fn on_notification(&mut self, method: &Method, params: Option<&Raw>, out: &mut Vec<Output>) {
        match method {
            Method::Initialized if self.state.phase == Phase::Initializing => {
                self.enter(Phase::Ready);
                out.push(Output::Ready(self.state.client.name.clone()));
            }
            Method::Cancelled => {
                let Some(cancelled) = Cancelled::parse(params) else { return };
                if self.state.subscriptions.has_listener(&cancelled.request) {
                    self.change_subscriptions(out, |all| all.forget(&cancelled.request));
                    return;
                }
                let Some(key) = self.state.calls.key_of(&cancelled.request) else { return };
                let call = self.state.calls.find(key);
                if call.is_some_and(|call| call.effect != Effect::Initialize) {
                    self.drop_call(key, out);
                }
            }
            Method::Other(method) => {
                let (method, params) = (method.clone(), params.cloned());
                out.push(Output::Notified { method, params });
            }
            // JSON-RPC forbids answering a notification, even a wrong one.
            _ => {}
        }
    }

    fn drop_call(&mut self, key: CallKey, out: &mut Vec<Output>) {
        let Some(call) = self.state.calls.take(key) else { return };
        out.push(Output::Abort(key));
        if self.state.questions.forget(key).is_some() {
            out.push(Output::Abandon(key));
        }
        self.end_part(call.batch, out);
    }

    fn on_finished(
        &mut self,
        now: Duration,
        key: CallKey,
        outcome: Outcome,
        out: &mut Vec<Output>,
    ) {
        match outcome {
            Outcome::Done(result) => self.finish(key, Ok(result), out),
            Outcome::Failed(problem) => self.finish(key, Err(problem), out),
            Outcome::NeedInput { questions, takes_refusals } => {
                self.on_questions(now, key, questions, takes_refusals, out);
            }
            Outcome::Listening(filter) => {
                let Some(call) = self.state.calls.take(key) else { return };
                let stream = call.stream;
                let mut acknowledged = None;
                let listen = |all: &mut Subscriptions| {
                    acknowledged = Some(all.listen(call.id, stream, filter));
                };
                self.change_subscriptions(out, listen);
                out.extend(acknowledged.map(|frame| notify(Some(stream), frame)));
            }
        }
    }

    fn finish(
        &mut self,
        key: CallKey,
        result: Result<ServerResult, Problem>,
        out: &mut Vec<Output>,
    ) {
        // A call that was cancelled or timed out is gone: its late result is dropped.
        let Some(call) = self.state.calls.take(key) else { return };
        let result = match result {
            Ok(result) => {
                if let ServerResult::InitializeResult(initialized) = &result {
                    self.state.client.announced = (&initialized.capabilities).into();
                }
                self.take_effect(call.effect, out);
                reply::success(result, &self.config.dialect)
            }
            Err(problem) if call.is_tool => {
                reply::tool_failure(&problem, call.revision, &self.config.dialect)
            }
            // Only the result of a tool can report a failure.
            Err(problem) => Err(render::error(&problem, call.revision)),
        };
        let reply_to = ReplyTo { stream: call.stream, batch: call.batch };
        self.reply(reply_to, &call.id, result, call.revision, out);
        self.end_part(call.batch, out);
    }

    fn take_effect(&mut self, effect: Effect, out: &mut Vec<Output>) {
        self.changes += u32::from(effect != Effect::None);
        match effect {
            Effect::None | Effect::Initialize | Effect::Listen { .. } => {}
            Effect::Subscribe(uri) => self.change_subscriptions(out, |all| all.subscribe(uri)),
            Effect::Unsubscribe(uri) => self.change_subscriptions(out, |all| all.unsubscribe(&uri)),
            Effect::SetLevel(level) => self.state.client.log_level = level,
        }
    }

    /// A running call reports progress, or logs something.
    fn on_notification_of(&mut self, key: CallKey, note: CallNotification, out: &mut Vec<Output>) {
        let Some(call) = self.state.calls.find(key) else { return };
        let frame = match note {
            CallNotification::Progress { progress, total, message } => {
                let has_grown = call.progress.is_none_or(|last| progress > last);
                let Some(token) = call.progress_token.as_ref().filter(|_| has_grown) else {
                    return;
                };
                call.progress = Some(progress);
                render::progressed(token, progress, total, message.as_deref(), call.revision)
            }
            CallNotification::Log { level, logger, data } => {
                if call.log_level.is_none_or(|least| level < least) {
                    return;
                }
                render::logged(level, logger.as_deref(), &data)
            }
            CallNotification::Other { method, params } => {
                write_notification(&method, params.as_ref())
            }
        };
        out.push(notify(Some(call.stream), frame));
    }

    fn on_tick(&mut self, now: Duration, out: &mut Vec<Output>) {
        while let Some(key) = self.state.calls.expired(now) {
            self.give_up(key, "the call took too long", out);
        }
        if self.state.drain_until.is_some_and(|end| end <= now) {
            for key in self.state.calls.keys() {
                self.give_up(key, "the server is stopping", out);
            }
        }
    }

    fn give_up(&mut self, key: CallKey, reason: &'static str, out: &mut Vec<Output>) {
        if let Some(open) = self.state.questions.forget(key) {
            self.withdraw(key, &open, reason, out);
        }
        out.push(Output::Abort(key));
        self.finish(key, Err(Problem::Internal(reason.into())), out);
    }

    fn on_eof(&mut self, now: Duration, out: &mut Vec<Output>) {
        if matches!(self.state.phase, Phase::Draining | Phase::Closed) {
            return;
        }
        self.enter(Phase::Draining);
        self.state.drain_until = deadline(now, Some(self.config.limits.grace));
        let mut ended = Vec::new();
        self.change_subscriptions(out, |all| ended = all.end());
        for listener in ended {
            let frame = render::ended(&listener.id, "the server is stopping");
            out.push(notify(Some(listener.stream), frame));
            let ended = ServerResult::Listened(listener.id.clone());
            let reply_to = ReplyTo { stream: listener.stream, batch: None };
            self.reply(reply_to, &listener.id, Ok(ended), Revision::NEWEST, out);
        }
    }

    fn enter(&mut self, next: Phase) {
        let phase = self.state.phase;
        debug_assert!(phase.may_become(next), "{phase:?} -> {next:?}");
        self.state.phase = next;
        self.changes += 1;
    }
}

/// A notification to be sent.
fn notify(stream: Option<StreamId>, frame: bytes::Bytes) -> Output {
    Output::Send { stream, frame, kind: MessageKind::Notification }
}

fn effect_of(request: &Request) -> Effect {
    match request {
        Request::Initialize(_) => Effect::Initialize,
        Request::Subscribe(uri) => Effect::Subscribe(uri.clone()),
        Request::Unsubscribe(uri) => Effect::Unsubscribe(uri.clone()),
        Request::SetLevel(level) => Effect::SetLevel(*level),
        Request::Listen(listen) => {
            let filter = &listen.filter;
            Effect::Listen { weight: filter.weight(), bytes: filter.size() }
        }
        _ => Effect::None,
    }
}
