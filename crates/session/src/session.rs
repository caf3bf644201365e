//! The one entry point: an input goes in, what must be done comes out.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sabir_wire::types::{Questions, ServerResult};
use sabir_wire::{
    Cancelled, Era, ErrorObject, Id, Incoming, Malformed, Message, Method, ParsedRequest,
};
use sabir_wire::{Problem, Raw, Request, Resume, Revision, render, write_error};

use crate::answer;
use crate::batches::Batches;
use crate::config::{SessionConfig, SessionKind};
use crate::dialect::{NullId, RequireReady};
use crate::handshake::{Client, era, identify};
use crate::inflight::{Calls, Effect, Inflight, Restart, deadline};
use crate::io::{
    Call, CallKey, CallNotification, Input, MessageKind, Outcome, Output, RequestMeta, StreamId,
};
use crate::phase::{Phase, State};
use crate::questions::{PendingQuestions, Progress, may_ask, resumed};
use crate::subscriptions::Subscriptions;

/// One client's conversation.
///
/// Feed it with [`Session::handle`], do what comes out in its order, and wake it at
/// [`Session::wake_at`]. It never fails: a peer's mistake is an answer.
#[derive(Debug)]
pub struct Session {
    config: Arc<SessionConfig>,
    standing: SessionKind,
    phase: Phase,
    client: Client,
    calls: Calls,
    rounds: PendingQuestions,
    subscriptions: Subscriptions,
    batches: Batches,
    has_heard_modern: bool,
    drain_until: Option<Instant>,
}

/// Where an answer goes.
#[derive(Clone, Copy)]
struct ReplyTo {
    stream: StreamId,
    batch: Option<u64>,
}

impl Session {
    /// A conversation in which nothing was said yet.
    pub fn new(config: Arc<SessionConfig>, standing: SessionKind) -> Self {
        let revision = match (config.dialect.revision, standing) {
            (Some(pinned), _) => pinned,
            (None, SessionKind::LegacyHttp(revision)) => revision,
            (None, SessionKind::Stream | SessionKind::ModernHttp) => Revision::NEWEST_LEGACY,
        };
        Self {
            config,
            standing,
            phase: Phase::Fresh,
            client: Client::unknown(revision),
            calls: Calls::default(),
            rounds: PendingQuestions::default(),
            subscriptions: Subscriptions::default(),
            batches: Batches::default(),
            has_heard_modern: false,
            drain_until: None,
        }
    }

    /// Advances the conversation by one input, appending what must be done to `out`.
    pub fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Received { stream, frame } => self.on_frame(now, stream, frame, out),
            Input::Request { stream, request } => {
                self.on_request(now, ReplyTo { stream, batch: None }, request, out);
            }
            Input::Finished { call, outcome } => self.on_finished(now, call, outcome, out),
            Input::Notified { call, note } => self.on_note(call, note, out),
            Input::Changed(topic) => {
                let is_announced = self.client.offered.announces(&topic);
                let told =
                    self.subscriptions.tell(&topic, self.phase == Phase::Ready && is_announced);
                out.extend(told.into_iter().map(|(stream, frame)| tell(stream, frame)));
            }
            Input::Tick => self.on_tick(now, out),
            Input::Eof => self.on_eof(now, out),
        }
        if self.phase == Phase::Draining && self.calls.len() == 0 {
            self.enter(Phase::Closed);
            self.drain_until = None;
            out.push(Output::Close);
        }
    }

    /// When to hand in [`Input::Tick`], unless something else happens before.
    pub fn wake_at(&self) -> Option<Instant> {
        self.calls.next_deadline().into_iter().chain(self.drain_until).min()
    }

    /// Where a legacy client stands.
    pub fn state(&self) -> State {
        self.phase.into()
    }

    /// What is spoken with a legacy client.
    pub fn revision(&self) -> Revision {
        self.client.revision
    }

    /// Who a legacy client says it is.
    pub fn client(&self) -> Option<&Raw> {
        self.client.name.as_ref()
    }

    /// How many calls have not ended.
    pub fn running(&self) -> usize {
        self.calls.len()
    }

    /// Whether anything may still be sent on this stream.
    pub fn is_active(&self, stream: StreamId) -> bool {
        self.calls.uses(stream)
            || self.subscriptions.is_listening(stream)
            || self.batches.uses(stream)
    }

    /// The resources whose changes somebody wants to hear of.
    pub fn watched(&self) -> Vec<Box<str>> {
        self.subscriptions.watched()
    }

    fn on_frame(
        &mut self,
        now: Instant,
        stream: StreamId,
        frame: Result<Incoming, Malformed>,
        out: &mut Vec<Output>,
    ) {
        let reply_to = ReplyTo { stream, batch: None };
        match frame {
            Ok(Incoming::One(message)) => self.on_message(now, reply_to, message, out),
            Ok(Incoming::Batch(parts)) => self.on_batch(now, stream, parts, out),
            Err(malformed) => self.on_malformed(reply_to, &malformed, out),
        }
    }

    fn on_batch(
        &mut self,
        now: Instant,
        stream: StreamId,
        parts: Vec<Result<Message, Malformed>>,
        out: &mut Vec<Output>,
    ) {
        let reply_to = ReplyTo { stream, batch: None };
        if !self.client.revision.features().batches || parts.is_empty() {
            let reason = if parts.is_empty() { "an empty batch" } else { "no batches here" };
            return self.refuse(reply_to, None, &Problem::Request(reason.into()), out);
        }
        let key = self.calls.next_key().0;
        self.batches.open(key, stream);
        let reply_to = ReplyTo { stream, batch: Some(key) };
        for part in parts {
            match part {
                Ok(Message::Request { id, method: Method::Initialize, .. }) => {
                    let problem = Problem::Request("`initialize` must not stand in a batch".into());
                    let id = self.reserve_id(reply_to, &id).is_ok().then_some(&id);
                    self.refuse(reply_to, id, &problem, out);
                }
                Ok(message) => self.on_message(now, reply_to, message, out),
                Err(malformed) => self.on_malformed(reply_to, &malformed, out),
            }
        }
        self.end_part(Some(key), out);
    }

    fn on_malformed(&mut self, reply_to: ReplyTo, malformed: &Malformed, out: &mut Vec<Output>) {
        if malformed.answerable {
            let problem = answer::misread(malformed, &self.config.dialect);
            let id = malformed.id.as_ref().filter(|id| self.reserve_id(reply_to, id).is_ok());
            self.refuse(reply_to, id, &problem, out);
        }
    }

    fn on_message(
        &mut self,
        now: Instant,
        reply_to: ReplyTo,
        message: Message,
        out: &mut Vec<Output>,
    ) {
        match message {
            Message::Request { id, method, params } => {
                self.on_request(now, reply_to, ParsedRequest::read(id, method, params), out);
            }
            Message::Notification { method, params } => {
                self.on_notification(&method, params.as_ref(), out);
            }
            Message::Response { id: Some(id), result } => self.on_response(now, &id, result, out),
            Message::Response { id: None, .. } => {}
        }
    }

    fn on_request(
        &mut self,
        now: Instant,
        reply_to: ReplyTo,
        asked: ParsedRequest,
        out: &mut Vec<Output>,
    ) {
        let ParsedRequest { id, method, meta, request, params } = asked;
        if let Err(problem) = self.reserve_id(reply_to, &id) {
            return self.refuse(reply_to, None, &problem, out);
        }
        let (dialect, modern) = (&self.config.dialect, self.standing == SessionKind::ModernHttp);
        let is_handshake = method == Method::Initialize;
        let era = |meta| era(is_handshake, meta, modern, dialect);
        let is_modern = meta.as_ref().map_or(modern, |meta| era(meta) == Era::Modern);
        self.has_heard_modern |= is_modern;
        let from = meta.and_then(|meta| {
            let (dialect, ready) = (&self.config.dialect, self.required_readiness());
            identify(&method, meta, modern, &self.client, self.phase, dialect, ready)
        });
        let from = match from {
            // A listener would be in its way for ever; and no modern revision has batches.
            Ok(_) if reply_to.batch.is_some() && is_modern => {
                Err(Problem::Request("no batches in this revision".into()))
            }
            from => from,
        };
        let problem = match (from, request) {
            (Ok(mut from), Ok(request)) => match self.admit(&mut from, &request) {
                Ok(()) => {
                    let restart = may_ask(&method).then_some(Restart { method, params });
                    let call = Call { key: self.calls.next_key(), from, request };
                    return self.start(now, reply_to, id, call, restart, out);
                }
                Err(problem) => problem,
            },
            (Err(problem), _) | (Ok(_), Err(problem)) => problem,
        };
        let revision = if is_modern { Revision::NEWEST } else { self.client.revision };
        let error = render::error(&problem, revision);
        self.reply(reply_to, &id, Err(error), revision, out);
    }

    /// Whether something may be answered with this id. One that is in use may not: it would be the
    /// answer to another request.
    fn reserve_id(&mut self, reply_to: ReplyTo, id: &Id) -> Result<(), Problem> {
        if id.is_null() {
            return match self.config.dialect.null_id {
                NullId::Answer => Ok(()),
                NullId::Refuse => Err(Problem::Request("`id` must not be null".into())),
            };
        }
        let is_running = self.calls.key_of(id).is_some() || self.subscriptions.has_listener(id);
        if is_running || self.batches.has(id) {
            return Err(Problem::Request(format!("the id {id} is in use").into()));
        }
        if let Some(batch) = self.batches.find(reply_to.batch) {
            batch.reserve_id(id);
        }
        Ok(())
    }

    fn required_readiness(&self) -> RequireReady {
        self.config.dialect.require_ready.unwrap_or(match self.standing {
            SessionKind::Stream | SessionKind::ModernHttp => RequireReady::None,
            SessionKind::LegacyHttp(_) => RequireReady::All,
        })
    }

    /// Lets a request in, if the limits allow; a handshake takes effect here.
    fn admit(&mut self, from: &mut RequestMeta, request: &Request) -> Result<(), Problem> {
        let limits = &self.config.limits;
        let full = |what: &str, limit: usize| {
            Err(Problem::Internal(format!("too many {what} at once: the limit is {limit}").into()))
        };
        if self.phase == Phase::Draining || self.phase == Phase::Closed {
            return Err(Problem::Internal("the server is stopping".into()));
        }
        if self.calls.len() >= limits.calls {
            return full("calls", limits.calls);
        }
        let more = match request {
            Request::Subscribe(uri) if self.subscriptions.is_subscribed(uri) => 0,
            Request::Subscribe(_) => 1,
            Request::Listen(listen) => listen.filter.weight(),
            _ => 0,
        };
        let taken = self.subscriptions.len() + self.calls.subscribing();
        if more > 0 && taken + more > limits.subscriptions {
            return full("subscriptions", limits.subscriptions);
        }
        if let Request::Initialize(hello) = request {
            self.client.negotiate(hello, &self.config.dialect)?;
            self.enter(Phase::Initializing);
            from.revision = self.client.revision;
        }
        Ok(())
    }

    fn start(
        &mut self,
        now: Instant,
        reply_to: ReplyTo,
        id: Id,
        call: Call,
        restart: Option<Restart>,
        out: &mut Vec<Output>,
    ) {
        let Call { key, from, request } = &call;
        let can_be_asked = from.revision.era() == Era::Legacy;
        self.calls.push(Inflight {
            key: *key,
            id,
            stream: reply_to.stream,
            batch: reply_to.batch,
            revision: from.revision,
            capabilities: from.capabilities.clone(),
            log_level: from.log_level,
            deadline: deadline(now, self.config.limits.call_time),
            progress_token: from.meta.progress_token.clone(),
            progress: f64::NEG_INFINITY,
            effect: effect_of(request),
            is_tool: matches!(request, Request::CallTool(_)),
            restart: restart.filter(|_| can_be_asked),
        });
        self.batches.begin_part(reply_to.batch);
        out.push(Output::Start(call));
    }

    fn on_notification(&mut self, method: &Method, params: Option<&Raw>, out: &mut Vec<Output>) {
        match method {
            Method::Initialized if self.phase == Phase::Initializing => {
                self.enter(Phase::Ready);
                out.push(Output::Ready(self.client.name.clone()));
            }
            Method::Cancelled => {
                let Some(cancelled) = Cancelled::parse(params) else { return };
                if self.subscriptions.forget(&cancelled.request) {
                    return;
                }
                let Some(key) = self.calls.key_of(&cancelled.request) else { return };
                if self.calls.find(key).is_some_and(|call| call.effect != Effect::Initialize) {
                    self.drop_call(key, out);
                }
            }
            // JSON-RPC forbids answering a notification, even a wrong one.
            _ => {}
        }
    }

    fn drop_call(&mut self, key: CallKey, out: &mut Vec<Output>) -> Option<Inflight> {
        let call = self.calls.take(key)?;
        self.rounds.forget(key);
        out.push(Output::Abort(key));
        self.end_part(call.batch, out);
        Some(call)
    }

    fn on_response(
        &mut self,
        now: Instant,
        id: &Id,
        result: Result<Raw, ErrorObject>,
        out: &mut Vec<Output>,
    ) {
        match self.rounds.answered(id, result) {
            Progress::None => {}
            Progress::Complete(key, resume) => {
                let deadline = deadline(now, self.config.limits.call_time);
                let Some(call) = self.calls.find(key) else { return };
                call.deadline = deadline;
                self.start_again(key, resume, out);
            }
            Progress::Refused(key, problem, others) => {
                let stream = self.calls.find(key).map(|call| call.stream);
                let withdrawn = others.iter().map(|id| render::cancelled(id, "no longer needed"));
                out.extend(withdrawn.map(|frame| tell(stream, frame)));
                self.finish(key, Err(problem), out);
            }
        }
    }

    fn on_finished(&mut self, now: Instant, key: CallKey, outcome: Outcome, out: &mut Vec<Output>) {
        match outcome {
            Outcome::Done(result) => self.finish(key, Ok(result), out),
            Outcome::Failed(problem) => self.finish(key, Err(problem), out),
            Outcome::NeedInput(questions) => self.on_questions(now, key, questions, out),
            Outcome::Listening(filter) => {
                let Some(call) = self.calls.take(key) else { return };
                let frame = self.subscriptions.listen(call.id, call.stream, filter);
                out.push(tell(Some(call.stream), frame));
            }
        }
    }

    fn on_questions(
        &mut self,
        now: Instant,
        key: CallKey,
        questions: Questions,
        out: &mut Vec<Output>,
    ) {
        let question_time = self.config.limits.question_time;
        let Some(call) = self.calls.find(key) else { return };
        if let Some(missing) = call.capabilities.lacks(&questions.needs()) {
            return self.finish(key, Err(Problem::MissingCapability(missing)), out);
        }
        if call.restart.is_none() {
            return self.finish(key, Ok(ServerResult::InputRequired(questions)), out);
        }
        call.deadline = deadline(now, question_time);
        let (stream, revision) = (Some(call.stream), call.revision);
        if questions.questions.is_empty() {
            // Nothing to ask: the call only wants to be started again with its state.
            let resume = Resume { answers: vec![], state: questions.state.map(Into::into) };
            return self.start_again(key, resume, out);
        }
        match self.rounds.begin(key, &questions, revision, &self.config.pages) {
            Ok(frames) => {
                let kind = MessageKind::Question;
                out.extend(frames.into_iter().map(|frame| Output::Send { stream, frame, kind }));
            }
            Err(problem) => self.finish(key, Err(problem), out),
        }
    }

    /// Starts a call of a legacy client once more, with its answers.
    fn start_again(&mut self, key: CallKey, resume: Resume, out: &mut Vec<Output>) {
        let Some(restart) = self.calls.find(key).and_then(|call| call.restart.as_ref()) else {
            return;
        };
        let (meta, request) = Request::parse(&restart.method, restart.params.as_ref());
        match (meta, request) {
            (Ok(meta), Ok(request)) => {
                let (from, request) = (self.client.ask(meta), resumed(request, resume));
                out.push(Output::Start(Call { key, from, request }));
            }
            // It was read before, so this does not happen; but nobody shall wait for nothing.
            (Err(problem), _) | (_, Err(problem)) => self.finish(key, Err(problem), out),
        }
    }

    fn finish(
        &mut self,
        key: CallKey,
        result: Result<ServerResult, Problem>,
        out: &mut Vec<Output>,
    ) {
        // A call that was cancelled or timed out is not there any more: its late result is dropped.
        let Some(call) = self.calls.take(key) else { return };
        let result = match result {
            Ok(result) => {
                if let ServerResult::InitializeResult(welcome) = &result {
                    self.client.offered = welcome.capabilities.clone();
                }
                self.take_effect(call.effect);
                answer::finish(result, &self.config.dialect)
            }
            Err(problem) if call.is_tool => {
                answer::settle_tool(&problem, call.revision, &self.config.dialect)
            }
            // Only a tool's result can say that it failed.
            Err(problem) => Err(render::error(&problem, call.revision)),
        };
        let reply_to = ReplyTo { stream: call.stream, batch: call.batch };
        self.reply(reply_to, &call.id, result, call.revision, out);
        self.end_part(call.batch, out);
    }

    fn take_effect(&mut self, effect: Effect) {
        match effect {
            Effect::None | Effect::Initialize => {}
            Effect::Subscribe(uri) => self.subscriptions.subscribe(uri),
            Effect::Unsubscribe(uri) => self.subscriptions.unsubscribe(&uri),
            Effect::SetLevel(level) => self.client.log_level = level,
        }
    }

    fn on_note(&mut self, key: CallKey, note: CallNotification, out: &mut Vec<Output>) {
        let Some(call) = self.calls.find(key) else { return };
        let frame = match note {
            CallNotification::Progress { progress, total, message } => {
                let Some(token) = call.progress_token.as_ref().filter(|_| progress > call.progress)
                else {
                    return;
                };
                call.progress = progress;
                render::progressed(token, progress, total, message.as_deref(), call.revision)
            }
            CallNotification::Log { level, .. }
                if call.log_level.is_none_or(|least| level < least) =>
            {
                return;
            }
            CallNotification::Log { level, logger, data } => {
                render::logged(level, logger.as_deref(), &data)
            }
        };
        out.push(tell(Some(call.stream), frame));
    }

    fn on_tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        while let Some(key) = self.calls.expired(now) {
            self.give_up(key, "the call took too long", out);
        }
        if self.drain_until.is_some_and(|end| end <= now) {
            for key in self.calls.keys() {
                self.give_up(key, "the server is stopping", out);
            }
        }
    }

    fn give_up(&mut self, key: CallKey, reason: &'static str, out: &mut Vec<Output>) {
        let stream = self.calls.find(key).map(|call| call.stream);
        let open = self.rounds.forget(key);
        let withdrawn = open.iter().map(|id| render::cancelled(id, reason));
        out.extend(withdrawn.map(|frame| tell(stream, frame)));
        out.push(Output::Abort(key));
        self.finish(key, Err(Problem::Internal(reason.into())), out);
    }

    fn on_eof(&mut self, now: Instant, out: &mut Vec<Output>) {
        if matches!(self.phase, Phase::Draining | Phase::Closed) {
            return;
        }
        self.enter(Phase::Draining);
        self.drain_until = deadline(now, Some(self.config.limits.grace));
        for listener in self.subscriptions.end() {
            let frame = render::ended(&listener.id, "the server is stopping");
            out.push(tell(Some(listener.stream), frame));
            let ended = ServerResult::Listened(listener.id.clone());
            let reply_to = ReplyTo { stream: listener.stream, batch: None };
            self.reply(reply_to, &listener.id, Ok(ended), Revision::NEWEST, out);
        }
    }

    /// Answers a message that never became a call.
    fn refuse(
        &mut self,
        reply_to: ReplyTo,
        id: Option<&Id>,
        problem: &Problem,
        out: &mut Vec<Output>,
    ) {
        let error = render::error(problem, self.client.revision);
        let frame = write_error(id.or_else(|| self.unattributed_error_id()), &error);
        self.answer(reply_to, frame, MessageKind::Refusal(error.code), out);
    }

    fn reply(
        &mut self,
        reply_to: ReplyTo,
        id: &Id,
        result: Result<ServerResult, ErrorObject>,
        revision: Revision,
        out: &mut Vec<Output>,
    ) {
        let frame = match &result {
            Ok(result) => render::response(id, result, revision, &self.config.server),
            Err(error) => write_error(Some(id), error),
        };
        self.answer(
            reply_to,
            frame,
            MessageKind::Answer(result.err().map(|error| error.code)),
            out,
        );
    }

    fn answer(
        &mut self,
        reply_to: ReplyTo,
        frame: Bytes,
        kind: MessageKind,
        out: &mut Vec<Output>,
    ) {
        match self.batches.find(reply_to.batch) {
            Some(batch) => batch.answer(frame),
            None => out.push(Output::Send { stream: Some(reply_to.stream), frame, kind }),
        }
    }

    fn end_part(&mut self, batch: Option<u64>, out: &mut Vec<Output>) {
        let Some((stream, frame)) = self.batches.end_part(batch) else { return };
        out.push(Output::Send { stream: Some(stream), frame, kind: MessageKind::Answer(None) });
    }

    /// The id of an error that answers nothing in particular: `null` in JSON-RPC, left out by the
    /// revisions whose schema says so. Before a handshake it is known only from other requests
    /// which those are.
    fn unattributed_error_id(&self) -> Option<&'static Id> {
        const NULL: &Id = &Id::NULL;
        let is_left_out = match self.phase {
            Phase::Fresh => self.has_heard_modern,
            _ => self.client.revision.features().icons,
        };
        (!is_left_out && self.standing != SessionKind::ModernHttp).then_some(NULL)
    }

    fn enter(&mut self, next: Phase) {
        debug_assert!(self.phase.may_become(next), "{:?} -> {next:?}", self.phase);
        self.phase = next;
    }
}

fn tell(stream: Option<StreamId>, frame: Bytes) -> Output {
    Output::Send { stream, frame, kind: MessageKind::Notification }
}

fn effect_of(request: &Request) -> Effect {
    match request {
        Request::Initialize(_) => Effect::Initialize,
        Request::Subscribe(uri) => Effect::Subscribe(uri.clone()),
        Request::Unsubscribe(uri) => Effect::Unsubscribe(uri.clone()),
        Request::SetLevel(level) => Effect::SetLevel(*level),
        _ => Effect::None,
    }
}
