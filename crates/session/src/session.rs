//! The one entry point: an input goes in, what must be done comes out.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sabir_wire::types::{Questions, ServerResult};
use sabir_wire::{Asked, Cancelled, Era, ErrorObject, Id, Incoming, Malformed, Message, Method};
use sabir_wire::{Problem, Raw, Request, Resume, Revision, legacy, write_error};

use crate::answer;
use crate::batches::Batches;
use crate::dialect::{NullId, RequireReady};
use crate::handshake::{Client, era, identify};
use crate::inflight::{Again, Calls, Effect, Inflight, deadline};
use crate::io::{Asker, Call, CallKey, Input, Kind, Lane, Note, Outcome, Output};
use crate::phase::{Phase, State};
use crate::rounds::{Progress, Rounds, may_ask, resumed};
use crate::rules::{Rules, Standing};
use crate::subscriptions::Subscriptions;

/// One client's conversation.
///
/// Feed it with [`Session::handle`], do what comes out in its order, and wake it at
/// [`Session::wake_at`]. It never fails: a peer's mistake is an answer.
#[derive(Debug)]
pub struct Session {
    rules: Arc<Rules>,
    standing: Standing,
    phase: Phase,
    client: Client,
    calls: Calls,
    rounds: Rounds,
    subscriptions: Subscriptions,
    batches: Batches,
    has_heard_modern: bool,
    drain_until: Option<Instant>,
}

/// Where an answer goes.
#[derive(Clone, Copy)]
struct Place {
    lane: Lane,
    batch: Option<u64>,
}

impl Session {
    /// A conversation in which nothing was said yet.
    pub fn new(rules: Arc<Rules>, standing: Standing) -> Self {
        let revision = match (rules.dialect.revision, standing) {
            (Some(pinned), _) => pinned,
            (None, Standing::LegacyHttp(revision)) => revision,
            (None, Standing::Stream | Standing::ModernHttp) => Revision::NEWEST_LEGACY,
        };
        Self {
            rules,
            standing,
            phase: Phase::Fresh,
            client: Client::unknown(revision),
            calls: Calls::default(),
            rounds: Rounds::default(),
            subscriptions: Subscriptions::default(),
            batches: Batches::default(),
            has_heard_modern: false,
            drain_until: None,
        }
    }

    /// Advances the conversation by one input, appending what must be done to `out`.
    pub fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Received { lane, frame } => self.on_frame(now, lane, frame, out),
            Input::Asked { lane, asked } => {
                self.on_request(now, Place { lane, batch: None }, asked, out);
            }
            Input::Finished { call, outcome } => self.on_finished(now, call, outcome, out),
            Input::Noted { call, note } => self.on_note(call, note, out),
            Input::Changed(topic) => {
                let is_announced = self.client.offered.announces(&topic);
                let told =
                    self.subscriptions.tell(&topic, self.phase == Phase::Open && is_announced);
                out.extend(told.into_iter().map(|(lane, frame)| tell(lane, frame)));
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

    /// Whether anything may still be sent on this lane.
    pub fn is_active(&self, lane: Lane) -> bool {
        self.calls.uses(lane) || self.subscriptions.is_listening(lane) || self.batches.uses(lane)
    }

    /// The resources whose changes somebody wants to hear of.
    pub fn watched(&self) -> Vec<Box<str>> {
        self.subscriptions.watched()
    }

    fn on_frame(
        &mut self,
        now: Instant,
        lane: Lane,
        frame: Result<Incoming, Malformed>,
        out: &mut Vec<Output>,
    ) {
        let place = Place { lane, batch: None };
        match frame {
            Ok(Incoming::One(message)) => self.on_message(now, place, message, out),
            Ok(Incoming::Batch(parts)) => self.on_batch(now, lane, parts, out),
            Err(malformed) => self.on_malformed(place, &malformed, out),
        }
    }

    fn on_batch(
        &mut self,
        now: Instant,
        lane: Lane,
        parts: Vec<Result<Message, Malformed>>,
        out: &mut Vec<Output>,
    ) {
        let place = Place { lane, batch: None };
        if !self.client.revision.speech().batches || parts.is_empty() {
            let reason = if parts.is_empty() { "an empty batch" } else { "no batches here" };
            return self.refuse(place, None, &Problem::Request(reason.into()), out);
        }
        let key = self.calls.next_key().0;
        self.batches.open(key, lane);
        let place = Place { lane, batch: Some(key) };
        for part in parts {
            match part {
                Ok(Message::Request { id, method: Method::Initialize, .. }) => {
                    let problem = Problem::Request("`initialize` must not stand in a batch".into());
                    let id = self.take_id(place, &id).is_ok().then_some(&id);
                    self.refuse(place, id, &problem, out);
                }
                Ok(message) => self.on_message(now, place, message, out),
                Err(malformed) => self.on_malformed(place, &malformed, out),
            }
        }
        self.end_part(Some(key), out);
    }

    fn on_malformed(&mut self, place: Place, malformed: &Malformed, out: &mut Vec<Output>) {
        if malformed.answerable {
            let problem = answer::misread(malformed, &self.rules.dialect);
            let id = malformed.id.as_ref().filter(|id| self.take_id(place, id).is_ok());
            self.refuse(place, id, &problem, out);
        }
    }

    fn on_message(&mut self, now: Instant, place: Place, message: Message, out: &mut Vec<Output>) {
        match message {
            Message::Request { id, method, params } => {
                self.on_request(now, place, Asked::read(id, method, params), out);
            }
            Message::Notification { method, params } => {
                self.on_notification(&method, params.as_ref(), out);
            }
            Message::Response { id: Some(id), result } => self.on_response(now, &id, result, out),
            Message::Response { id: None, .. } => {}
        }
    }

    fn on_request(&mut self, now: Instant, place: Place, asked: Asked, out: &mut Vec<Output>) {
        let Asked { id, method, meta, request, params } = asked;
        if let Err(problem) = self.take_id(place, &id) {
            return self.refuse(place, None, &problem, out);
        }
        let (dialect, modern) = (&self.rules.dialect, self.standing == Standing::ModernHttp);
        let is_handshake = method == Method::Initialize;
        let era = |meta| era(is_handshake, meta, modern, dialect);
        let is_modern = meta.as_ref().map_or(modern, |meta| era(meta) == Era::Modern);
        self.has_heard_modern |= is_modern;
        let asker = meta.and_then(|meta| {
            let (dialect, ready) = (&self.rules.dialect, self.required_readiness());
            identify(&method, meta, modern, &self.client, self.phase, dialect, ready)
        });
        let asker = match asker {
            // A listener would be in its way for ever; and no modern revision has batches.
            Ok(_) if place.batch.is_some() && is_modern => {
                Err(Problem::Request("no batches in this revision".into()))
            }
            asker => asker,
        };
        let problem = match (asker, request) {
            (Ok(mut asker), Ok(request)) => match self.admit(&mut asker, &request) {
                Ok(()) => {
                    let again = may_ask(&method).then_some(Again { method, params });
                    let call = Call { key: self.calls.next_key(), asker, request };
                    return self.start(now, place, id, call, again, out);
                }
                Err(problem) => problem,
            },
            (Err(problem), _) | (Ok(_), Err(problem)) => problem,
        };
        let revision = if is_modern { Revision::NEWEST } else { self.client.revision };
        let error = legacy::error(&problem, revision);
        self.reply(place, &id, Err(error), revision, out);
    }

    /// Whether something may be answered with this id. One that is in use may not: it would be the
    /// answer to another request.
    fn take_id(&mut self, place: Place, id: &Id) -> Result<(), Problem> {
        if id.is_null() {
            return match self.rules.dialect.null_id {
                NullId::Answer => Ok(()),
                NullId::Refuse => Err(Problem::Request("`id` must not be null".into())),
            };
        }
        let is_running = self.calls.key_of(id).is_some() || self.subscriptions.has_listener(id);
        if is_running || self.batches.has(id) {
            return Err(Problem::Request(format!("the id {id} is in use").into()));
        }
        if let Some(batch) = self.batches.find(place.batch) {
            batch.take_id(id);
        }
        Ok(())
    }

    fn required_readiness(&self) -> RequireReady {
        self.rules.dialect.require_ready.unwrap_or(match self.standing {
            Standing::Stream | Standing::ModernHttp => RequireReady::None,
            Standing::LegacyHttp(_) => RequireReady::All,
        })
    }

    /// Lets a request in, if the limits allow; a handshake takes effect here.
    fn admit(&mut self, asker: &mut Asker, request: &Request) -> Result<(), Problem> {
        let limits = &self.rules.limits;
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
            self.client.greet(hello, &self.rules.dialect)?;
            self.enter(Phase::Greeted);
            asker.revision = self.client.revision;
        }
        Ok(())
    }

    fn start(
        &mut self,
        now: Instant,
        place: Place,
        id: Id,
        call: Call,
        again: Option<Again>,
        out: &mut Vec<Output>,
    ) {
        let Call { key, asker, request } = &call;
        let can_be_asked = asker.revision.era() == Era::Legacy;
        self.calls.push(Inflight {
            key: *key,
            id,
            lane: place.lane,
            batch: place.batch,
            revision: asker.revision,
            capabilities: asker.capabilities,
            log_level: asker.log_level,
            deadline: deadline(now, self.rules.limits.call_time),
            progress_token: asker.meta.progress_token.clone(),
            progress: f64::NEG_INFINITY,
            effect: effect_of(request),
            is_tool: matches!(request, Request::CallTool(_)),
            again: again.filter(|_| can_be_asked),
        });
        self.batches.begin_part(place.batch);
        out.push(Output::Start(call));
    }

    fn on_notification(&mut self, method: &Method, params: Option<&Raw>, out: &mut Vec<Output>) {
        match method {
            Method::Initialized if self.phase == Phase::Greeted => {
                self.enter(Phase::Open);
                out.push(Output::Ready(self.client.name.clone()));
            }
            Method::Cancelled => {
                let Some(cancelled) = Cancelled::parse(params) else { return };
                if self.subscriptions.forget(&cancelled.request) {
                    return;
                }
                let Some(key) = self.calls.key_of(&cancelled.request) else { return };
                if self.calls.find(key).is_some_and(|call| call.effect != Effect::Greet) {
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
                let deadline = deadline(now, self.rules.limits.call_time);
                let Some(call) = self.calls.find(key) else { return };
                call.deadline = deadline;
                self.start_again(key, resume, out);
            }
            Progress::Refused(key, problem, others) => {
                let lane = self.calls.find(key).map(|call| call.lane);
                let withdrawn = others.iter().map(|id| legacy::cancelled(id, "no longer needed"));
                out.extend(withdrawn.map(|frame| tell(lane, frame)));
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
                let frame = self.subscriptions.listen(call.id, call.lane, filter);
                out.push(tell(Some(call.lane), frame));
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
        let question_time = self.rules.limits.question_time;
        let Some(call) = self.calls.find(key) else { return };
        if let Some(missing) = call.capabilities.lacks(questions.needs()) {
            return self.finish(key, Err(Problem::MissingCapability(missing)), out);
        }
        if call.again.is_none() {
            return self.finish(key, Ok(ServerResult::InputRequired(questions)), out);
        }
        call.deadline = deadline(now, question_time);
        let (lane, revision) = (Some(call.lane), call.revision);
        if questions.questions.is_empty() {
            // Nothing to ask: the call only wants to be started again with its state.
            let resume = Resume { answers: vec![], state: questions.state.map(Into::into) };
            return self.start_again(key, resume, out);
        }
        match self.rounds.begin(key, &questions, revision, &self.rules.pages) {
            Ok(frames) => {
                let kind = Kind::Question;
                out.extend(frames.into_iter().map(|frame| Output::Send { lane, frame, kind }));
            }
            Err(problem) => self.finish(key, Err(problem), out),
        }
    }

    /// Starts a call of a legacy client once more, with its answers.
    fn start_again(&mut self, key: CallKey, resume: Resume, out: &mut Vec<Output>) {
        let Some(again) = self.calls.find(key).and_then(|call| call.again.as_ref()) else { return };
        let (meta, request) = Request::parse(&again.method, again.params.as_ref());
        match (meta, request) {
            (Ok(meta), Ok(request)) => {
                let (asker, request) = (self.client.ask(meta), resumed(request, resume));
                out.push(Output::Start(Call { key, asker, request }));
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
                if let ServerResult::Welcome(welcome) = &result {
                    self.client.offered = welcome.capabilities;
                }
                self.take_effect(call.effect);
                answer::finish(result, &self.rules.dialect)
            }
            Err(problem) if call.is_tool => {
                answer::settle_tool(&problem, call.revision, &self.rules.dialect)
            }
            // Only a tool's result can say that it failed.
            Err(problem) => Err(legacy::error(&problem, call.revision)),
        };
        let place = Place { lane: call.lane, batch: call.batch };
        self.reply(place, &call.id, result, call.revision, out);
        self.end_part(call.batch, out);
    }

    fn take_effect(&mut self, effect: Effect) {
        match effect {
            Effect::None | Effect::Greet => {}
            Effect::Subscribe(uri) => self.subscriptions.subscribe(uri),
            Effect::Unsubscribe(uri) => self.subscriptions.unsubscribe(&uri),
            Effect::SetLevel(level) => self.client.log_level = level,
        }
    }

    fn on_note(&mut self, key: CallKey, note: Note, out: &mut Vec<Output>) {
        let Some(call) = self.calls.find(key) else { return };
        let frame = match note {
            Note::Progress { progress, total, message } => {
                let Some(token) = call.progress_token.as_ref().filter(|_| progress > call.progress)
                else {
                    return;
                };
                call.progress = progress;
                legacy::progressed(token, progress, total, message.as_deref(), call.revision)
            }
            Note::Log { level, .. } if call.log_level.is_none_or(|least| level < least) => return,
            Note::Log { level, logger, data } => legacy::logged(level, logger.as_deref(), &data),
        };
        out.push(tell(Some(call.lane), frame));
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
        let lane = self.calls.find(key).map(|call| call.lane);
        let open = self.rounds.forget(key);
        let withdrawn = open.iter().map(|id| legacy::cancelled(id, reason));
        out.extend(withdrawn.map(|frame| tell(lane, frame)));
        out.push(Output::Abort(key));
        self.finish(key, Err(Problem::Internal(reason.into())), out);
    }

    fn on_eof(&mut self, now: Instant, out: &mut Vec<Output>) {
        if matches!(self.phase, Phase::Draining | Phase::Closed) {
            return;
        }
        self.enter(Phase::Draining);
        self.drain_until = deadline(now, Some(self.rules.limits.grace));
        for listener in self.subscriptions.end() {
            let frame = legacy::ended(&listener.id, "the server is stopping");
            out.push(tell(Some(listener.lane), frame));
            let ended = ServerResult::Listened(listener.id.clone());
            let place = Place { lane: listener.lane, batch: None };
            self.reply(place, &listener.id, Ok(ended), Revision::NEWEST, out);
        }
    }

    /// Answers a message that never became a call.
    fn refuse(&mut self, place: Place, id: Option<&Id>, problem: &Problem, out: &mut Vec<Output>) {
        let error = legacy::error(problem, self.client.revision);
        let frame = write_error(id.or_else(|| self.nobody()), &error);
        self.answer(place, frame, Kind::Refusal(error.code), out);
    }

    fn reply(
        &mut self,
        place: Place,
        id: &Id,
        result: Result<ServerResult, ErrorObject>,
        revision: Revision,
        out: &mut Vec<Output>,
    ) {
        let frame = match &result {
            Ok(result) => legacy::response(id, result, revision, &self.rules.server),
            Err(error) => write_error(Some(id), error),
        };
        self.answer(place, frame, Kind::Answer(result.err().map(|error| error.code)), out);
    }

    fn answer(&mut self, place: Place, frame: Bytes, kind: Kind, out: &mut Vec<Output>) {
        match self.batches.find(place.batch) {
            Some(batch) => batch.answer(frame),
            None => out.push(Output::Send { lane: Some(place.lane), frame, kind }),
        }
    }

    fn end_part(&mut self, batch: Option<u64>, out: &mut Vec<Output>) {
        let Some((lane, frame)) = self.batches.end_part(batch) else { return };
        out.push(Output::Send { lane: Some(lane), frame, kind: Kind::Answer(None) });
    }

    /// The id of an error that answers nothing in particular: `null` in JSON-RPC, left out by the
    /// revisions whose schema says so. Before a handshake it is known only from other requests
    /// which those are.
    fn nobody(&self) -> Option<&'static Id> {
        const NULL: &Id = &Id::NULL;
        let is_left_out = match self.phase {
            Phase::Fresh => self.has_heard_modern,
            _ => self.client.revision.speech().icons,
        };
        (!is_left_out && self.standing != Standing::ModernHttp).then_some(NULL)
    }

    fn enter(&mut self, next: Phase) {
        debug_assert!(self.phase.may_become(next), "{:?} -> {next:?}", self.phase);
        self.phase = next;
    }
}

fn tell(lane: Option<Lane>, frame: Bytes) -> Output {
    Output::Send { lane, frame, kind: Kind::Note }
}

fn effect_of(request: &Request) -> Effect {
    match request {
        Request::Initialize(_) => Effect::Greet,
        Request::Subscribe(uri) => Effect::Subscribe(uri.clone()),
        Request::Unsubscribe(uri) => Effect::Unsubscribe(uri.clone()),
        Request::SetLevel(level) => Effect::SetLevel(*level),
        _ => Effect::None,
    }
}
