//! The driver of one session: it feeds inputs to the state machine and acts on its outputs. It
//! decides nothing.
//!
//! Calls to be started become [`Work`], which the owner of the connection runs. So an owner that
//! shares the connection behind a lock runs handlers outside of the lock.

mod sharing; // a session that several nodes serve
mod telling; // notifications of observers and the tap

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use sabir_budget::{Hold, memory};
use sabir_registry::{Announcement, Catalog, Conversation};
use sabir_session::{Call, CallKey, Input, MessageKind, Outcome, Output};
use sabir_session::{Session, SessionKind, SessionState, StreamId};
use sabir_wire::types::Topic;
use sabir_wire::{Caller, Era, Incoming, Malformed, ParsedRequest, Request, decode};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use crate::admitted::Admitted;
use crate::calls::{Parked, RunningCall};
use crate::context::MethodContext;
use crate::engine::Engine;
use crate::events::{CallEvent, EventQueue};
use crate::observe::{ClientEventKind, TransportKind};
use crate::wait::Wait;
use crate::work::{Done, Progress, Turn, Waiting, Work};

/// One client's session, with the work that it causes.
pub struct Connection {
    engine: Arc<Engine>,
    session: Session,
    /// Names the session to sources. Given with its first call of the legacy era.
    conversation: Option<Arc<Conversation>>,
    /// The events of running calls. Created with the first call.
    events: Option<Arc<EventQueue>>,
    running: Vec<Arc<RunningCall>>,
    work: VecDeque<Work>,
    outputs: Vec<Output>,
    frames: VecDeque<Frame>,
    changes: Option<broadcast::Receiver<Announcement>>,
    /// Numbers a connection whose handshake has begun; else 0.
    number: u32,
    kept: Option<Box<Kept>>,
    is_ready: bool,
    is_closed: bool,
}

/// State that few sessions have.
#[derive(Default)]
struct Kept {
    /// Names the connection to the tap.
    link: u64,
    /// Memory for the URIs that it is subscribed to.
    subscriptions: Option<Hold>,
    /// Memory for answers to batches.
    batches: Option<Hold>,
    /// Calls whose questions the client has not answered.
    parked: Vec<(CallKey, Parked)>,
    /// The trace of the HTTP request that is being received.
    http_trace: Option<Box<str>>,
    /// Changed tasks, for a client that listens to tasks.
    tasks: Option<broadcast::Receiver<Box<str>>>,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The stream of the request that it belongs to; `None` if it belongs to no request.
    pub stream: Option<StreamId>,
    /// One JSON-RPC message, or the answers to a batch. No newline in it.
    pub text: Bytes,
    /// The kind of the message.
    pub kind: MessageKind,
}

impl Connection {
    /// A connection without any input so far. `owner` is the caller who opens it.
    pub fn new(engine: &Arc<Engine>, kind: SessionKind, owner: Caller) -> Self {
        Self::of(engine, Session::new(engine.session_config.clone(), kind, owner))
    }

    fn of(engine: &Arc<Engine>, session: Session) -> Self {
        Self {
            kept: telling::open_link(engine, &session)
                .map(|link| Box::new(Kept { link, ..Kept::default() })),
            session,
            engine: engine.clone(),
            conversation: None,
            events: None,
            running: Vec::new(),
            work: VecDeque::new(),
            outputs: Vec::new(),
            frames: VecDeque::new(),
            changes: None,
            number: 0,
            is_ready: false,
            is_closed: false,
        }
    }

    /// Takes in one frame, and runs the calls that it starts. The answers of calls that complete at
    /// once are among the frames when this returns.
    pub fn receive(&mut self, stream: StreamId, caller: Caller, frame: &Bytes) {
        self.record(frame, &[]);
        let depth = self.engine.settings.engine_limits.depth;
        match ParsedRequest::decode(frame, depth) {
            Some(request) => self.receive_request(stream, caller, request, None),
            None => self.receive_decoded(stream, caller, decode(frame, depth)),
        }
        drop(self.run());
    }

    /// Takes in a frame that the transport has decoded.
    pub fn receive_decoded(
        &mut self,
        stream: StreamId,
        caller: Caller,
        frame: Result<Incoming, Malformed>,
    ) {
        self.handle(Input::Received { stream, caller, frame }, None);
    }

    /// Takes in a request that the transport has parsed, with the catalog that it was checked
    /// against, if it was.
    pub fn receive_request(
        &mut self,
        stream: StreamId,
        caller: Caller,
        request: ParsedRequest,
        catalog: Option<Arc<Catalog>>,
    ) {
        self.handle(Input::Request { stream, caller, request }, catalog);
    }

    /// The client will send nothing more: running calls may finish within the grace period.
    pub fn end(&mut self) {
        self.handle(Input::Eof, None);
    }

    /// Runs all calls to be started: for an owner that does not share the connection. Calls that
    /// have to wait are returned, to be awaited or dropped: tasks go on with dropped ones.
    pub fn run(&mut self) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        let mut turn = Turn::default();
        while let Some(work) = self.take_work() {
            match turn.run(work) {
                Progress::Done(done) => self.complete(done),
                Progress::Waiting(call) => waiting.push(call),
            }
        }
        waiting
    }

    /// The next work to be run, outside of any lock. Its outcome goes to [`Connection::complete`].
    pub fn take_work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// The stream has no reader any more: its calls are stopped.
    pub fn abandon(&mut self, stream: StreamId) {
        self.handle(Input::Gone(stream), None);
    }

    /// Takes in the outcome of a call.
    pub fn complete(&mut self, done: Done) {
        // The events that the call reported before it ended.
        self.take_events();
        self.on_finished(done.call.key, done.outcome);
    }

    /// The next message to be sent.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    /// Whether the session is over. Its remaining frames may still be sent.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether anything may still be sent on this stream.
    pub fn is_active(&self, stream: StreamId) -> bool {
        self.session.is_active(stream)
    }

    /// The state machine behind it.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Completes when something may have happened; it does not borrow the connection.
    ///
    /// Get it first, then call [`Connection::advance`], then await it: so no event is missed in
    /// between. Several tasks may wait for one connection. An event of a call wakes one of them,
    /// which must advance the connection for all.
    pub fn wait(&mut self) -> Wait {
        let is_leaving = self.is_closed || self.session.state() == SessionState::Closed;
        let has_calls = self.session.running() > 0;
        Wait {
            events: has_calls.then(|| self.events().clone()),
            changes: self.changes.as_ref().map(broadcast::Receiver::resubscribe),
            tasks: self.task_changes().map(|changes| changes.resubscribe()),
            stopping: (!is_leaving).then(|| self.engine.stopping()),
            wake_at: self.session.wake_at(),
        }
    }

    /// Handles everything that has happened, without waiting.
    pub fn advance(&mut self) {
        // Time first: calls that never stop reporting must not go on past their deadline.
        self.advance_time();
        self.take_events();
        loop {
            match self.changes.as_mut().map(broadcast::Receiver::try_recv) {
                Some(Ok(Announcement::Changed(topic))) => self.handle(Input::Changed(topic), None),
                Some(Ok(Announcement::Notification(frame))) => {
                    self.handle(Input::Announced(frame), None);
                }
                Some(Ok(Announcement::Everything) | Err(TryRecvError::Lagged(_))) => {
                    self.announce_everything();
                }
                Some(Err(TryRecvError::Empty | TryRecvError::Closed)) | None => break,
            }
        }
        self.take_task_changes();
    }

    /// Notifies the client of changes in the tasks that it listens to. Of several changes only the
    /// last is sent.
    fn take_task_changes(&mut self) {
        let mut changed = Vec::new();
        let watched = self.session.watched_tasks();
        let Some(changes) = self.task_changes() else { return };
        loop {
            match changes.try_recv() {
                Ok(id) if watched.contains(&id) && !changed.contains(&id) => changed.push(id),
                Ok(_) => {}
                Err(TryRecvError::Lagged(_)) => changed.clone_from(&watched),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.tell_tasks(&changed);
    }

    fn tell_tasks(&mut self, ids: &[Box<str>]) {
        for id in ids {
            if let Some(task) = self.engine.tasks.current(id) {
                self.handle(Input::Task(Box::new(task)), None);
            }
        }
    }

    /// Handles deadlines and a stop of the engine only: for a client that does not read. Events and
    /// changes wait within their bounds meanwhile.
    pub fn advance_time(&mut self) {
        if self.session.wake_at().is_some_and(|at| at <= now()) {
            self.handle(Input::Tick, None);
        }
        if self.engine.is_stopping() && self.session.state() != SessionState::Closed {
            self.end();
        }
    }

    /// Gives back the memory that an idle connection does not need.
    pub fn rest(&mut self) {
        if self.session.running() == 0 && self.frames.is_empty() {
            self.events = None;
            self.running = Vec::new();
            self.work = VecDeque::new();
            self.outputs = Vec::new();
            self.frames = VecDeque::new();
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.events.as_ref().and_then(|events| events.take()) {
            match event {
                CallEvent::Notified(call, note) => {
                    if self.engine.is_observed() {
                        self.tell_note(call, &note);
                    }
                    self.handle(Input::Notified { call, note }, None);
                }
                CallEvent::Finished(call, outcome) => self.on_finished(call, outcome),
            }
        }
    }

    fn events(&mut self) -> &Arc<EventQueue> {
        let limit = self.engine.settings.engine_limits.notifications;
        self.events.get_or_insert_with(|| EventQueue::new(limit))
    }

    fn on_finished(&mut self, key: CallKey, finished: Admitted) {
        let Admitted { outcome, hold } = finished;
        let at = self.running.iter().position(|call| call.key == key);
        let call = at.map(|at| self.running.swap_remove(at));
        let number =
            call.as_ref().map(|call| call.observed.number).filter(|_| self.engine.is_observed());
        let sent = self.frames.len();
        if let Some(parked) = call.and_then(|call| call.take_parked()) {
            self.kept().parked.push((key, parked));
        }
        let listened = match &outcome {
            Outcome::Listening(filter) => filter.task_ids.clone(),
            _ => Vec::new(),
        };
        self.handle(Input::Finished { call: key, outcome }, None);
        if let Some(number) = number {
            self.tell_answer(number, sent);
        }
        // A listener gets the states of its tasks first; earlier changes found no listener.
        self.tell_tasks(&listened);
        let session = &self.session;
        let has_batch = session.has_batch();
        if let Some(kept) = &mut self.kept {
            kept.parked.retain(|(key, _)| session.is_waiting(*key));
            kept.batches = kept.batches.take().filter(|_| has_batch);
        }
        // The frames have been counted by now; answers of a batch wait in the session.
        if has_batch {
            match (&mut self.kept().batches, hold) {
                (Some(kept), Some(hold)) => kept.absorb(hold),
                (kept, hold) => *kept = kept.take().or(hold),
            }
        }
    }

    /// Too much has changed to announce each change: announces everything once.
    fn announce_everything(&mut self) {
        // This includes the changes that still wait.
        self.changes = Some(self.engine.changes());
        let resources = self.session.watched().into_iter().map(Topic::Resource);
        for topic in [Topic::Tools, Topic::Prompts, Topic::Resources].into_iter().chain(resources) {
            self.handle(Input::Changed(topic), None);
        }
    }

    fn handle(&mut self, input: Input, catalog: Option<Arc<Catalog>>) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.session.handle(now(), input, &mut outputs);
        let mut catalog = catalog;
        for output in outputs.drain(..) {
            self.act(output, &mut catalog);
        }
        self.outputs = outputs;
    }

    fn act(&mut self, output: Output, catalog: &mut Option<Arc<Catalog>>) {
        match output {
            Output::Send { stream, frame, kind } => {
                let text = memory().count_for(self.session.owner().share(), frame);
                self.record_sent(&text);
                self.frames.push_back(Frame { stream, text, kind });
            }
            Output::Start(call) => self.start(call, catalog.take()),
            Output::Abort(key) => self.abort(key),
            Output::Abandon(key) => {
                if let Some(parked) = self.unpark(key) {
                    parked.abandon();
                }
            }
            Output::Watch(uri) => {
                self.engine.registry.watch(&uri);
                self.count_subscriptions();
            }
            Output::Unwatch(uri) => {
                self.engine.registry.unwatch(&uri);
                self.count_subscriptions();
            }
            Output::Ready(_) => {
                self.is_ready = true;
                self.engine.count_ready(false);
                self.tell(ClientEventKind::Ready);
            }
            Output::Notified { method, params } => {
                self.tell(ClientEventKind::Notified { method, params });
            }
            Output::Close => self.is_closed = true,
        }
    }

    fn kept(&mut self) -> &mut Kept {
        self.kept.get_or_insert_default()
    }

    fn unpark(&mut self, key: CallKey) -> Option<Parked> {
        let parked = &mut self.kept.as_mut()?.parked;
        let at = parked.iter().position(|(parked, _)| *parked == key)?;
        Some(parked.swap_remove(at).1)
    }

    fn task_changes(&mut self) -> Option<&mut broadcast::Receiver<Box<str>>> {
        self.kept.as_mut().and_then(|kept| kept.tasks.as_mut())
    }

    fn count_subscriptions(&mut self) {
        let bytes = self.session.subscription_bytes();
        self.kept().subscriptions = (bytes > 0).then(|| memory().take_anyway(bytes));
    }

    fn start(&mut self, call: Call, catalog: Option<Arc<Catalog>>) {
        let Call { key, from, mut request } = call;
        self.follow_changes(&request);
        if matches!(request, Request::Initialize(_)) && self.number == 0 {
            self.number = self.engine.number_connection();
            self.tell(ClientEventKind::Initializing);
        }
        drop(self.unpark(key));
        let whole = catalog.unwrap_or_else(|| self.engine.registry.snapshot());
        let catalog = self.engine.catalog_for(&whole, &from);
        let log_level = from.log_level.filter(|_| catalog.capabilities().logging);
        let wants_progress = from.meta.progress_token.is_some();
        let (observed, events) = (self.observation(key), self.events().clone());
        let share = self.session.owner().share();
        let call = RunningCall::new(key, observed, share, events, wants_progress, log_level);
        self.running.push(call.clone());
        let conversation = (from.revision.era() == Era::Legacy)
            .then(|| self.conversation.get_or_insert_with(next_conversation).clone());
        let engine = self.engine.clone();
        let transport = TransportKind::of(self.session.kind(), self.session.owner());
        let extra = request.take_extra();
        let context =
            MethodContext { engine, catalog, whole, from, extra, conversation, transport, call };
        self.work.push_back(Work { request, context });
    }

    /// Subscribes a client to changes before it learns that it may be notified of them.
    fn follow_changes(&mut self, request: &Request) {
        let listens =
            matches!(request, Request::Initialize(_) | Request::Listen(_) | Request::Subscribe(_));
        if listens && self.changes.is_none() {
            self.changes = Some(self.engine.changes());
        }
        let is_about_tasks =
            matches!(request, Request::Listen(listen) if !listen.filter.task_ids.is_empty());
        if is_about_tasks && self.task_changes().is_none() {
            self.kept().tasks = Some(self.engine.tasks.changes());
        }
    }

    fn abort(&mut self, key: CallKey) {
        if let Some(at) = self.running.iter().position(|call| call.key == key) {
            self.running.swap_remove(at).cancel();
        }
        self.work.retain(|work| work.context.call.key != key);
    }
}

fn next_conversation() -> Arc<Conversation> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    Arc::new(Conversation { number: LAST.fetch_add(1, Ordering::Relaxed) + 1 })
}

/// tokio's clock, so that deadlines and timers agree and tests can pause it.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// A connection that is dropped cancels its calls and ends its subscriptions.
impl Drop for Connection {
    fn drop(&mut self) {
        for call in &self.running {
            call.cancel();
        }
        let kept = self.kept.as_mut();
        let parked = kept.map(|kept| std::mem::take(&mut kept.parked)).unwrap_or_default();
        for (_, parked) in parked {
            parked.abandon();
        }
        for uri in self.session.watched() {
            self.engine.registry.unwatch(&uri);
        }
        if self.is_ready {
            self.engine.count_ready(true);
        }
        self.tell(ClientEventKind::Left);
        self.record_closed();
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("session", &self.session).finish_non_exhaustive()
    }
}
