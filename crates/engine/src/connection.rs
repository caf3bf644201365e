//! The driver of one connection: wait, handle, act. It decides nothing.
//!
//! A call that answers at once costs no task and no channel: its future is polled here, once. Only
//! what has to wait is spawned.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use sabir_registry::Line as _;
use sabir_session::{Call, CallKey, Input, MessageKind, Outcome, Output, StreamId};
use sabir_session::{Session, SessionKind, State};
use sabir_wire::types::Topic;
use sabir_wire::{Incoming, Malformed, ParsedRequest, Request, decode};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use crate::bell::Bell;

use crate::context::{MethodContext, Work};
use crate::engine::{Engine, Event};
use crate::events::{CallEvent, EventQueue, RunningCall};
use crate::guard::{Guarded, guarded};
use crate::router::route;

/// One client's connection, with the work that it causes.
pub struct Connection {
    engine: Arc<Engine>,
    session: Session,
    caller: Option<Arc<str>>,
    /// Made when something is to be done, and given back by [`Connection::rest`].
    busy: Option<Box<Busy>>,
    changes: Option<broadcast::Receiver<Topic>>,
    is_ready: bool,
    is_closed: bool,
}

/// What only a connection needs in which something goes on.
#[derive(Default)]
struct Busy {
    events: Option<Arc<EventQueue>>,
    running: Vec<Arc<RunningCall>>,
    outputs: Vec<Output>,
    frames: VecDeque<Frame>,
}

thread_local! {
    /// What the last connection that came to rest on this thread had: the next one takes it, for
    /// most are busy only while a request is answered.
    static SPARE: Cell<Option<Box<Busy>>> = const { Cell::new(None) };
}

impl Busy {
    /// How much room may be kept for whoever comes next.
    const MAX_SPARE: usize = 16;

    fn take() -> Box<Self> {
        SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default()
    }

    fn give_back(mut self: Box<Self>) {
        self.events = None;
        self.running.clear();
        self.outputs.clear();
        self.frames.clear();
        let room = self.running.capacity() + self.outputs.capacity() + self.frames.capacity();
        if room <= Self::MAX_SPARE {
            // A thread that ends has no use for it.
            let _ = SPARE.try_with(|spare| spare.set(Some(self)));
        }
    }
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Beside which frame of the client it belongs; none if it belongs to no request.
    pub stream: Option<StreamId>,
    /// One JSON-RPC message, or the answers to a batch. No newline in it.
    pub text: Bytes,
    /// What the message is.
    pub kind: MessageKind,
}

impl Connection {
    /// A connection in which nothing was said yet. `caller` is who is known to speak, where
    /// the transport has checked.
    pub fn new(engine: &Arc<Engine>, standing: SessionKind, caller: Option<Arc<str>>) -> Self {
        Self {
            session: Session::new(engine.session_config.clone(), standing),
            engine: engine.clone(),
            caller,
            busy: None,
            changes: None,
            is_ready: false,
            is_closed: false,
        }
    }

    /// Takes in one frame. What answers at once is among the frames when this returns.
    pub fn receive(&mut self, stream: StreamId, frame: &Bytes) {
        let depth = self.engine.settings.engine_limits.depth;
        match ParsedRequest::decode(frame, depth) {
            Some(asked) => self.receive_request(stream, asked),
            None => self.receive_decoded(stream, decode(frame, depth)),
        }
    }

    /// Takes in a frame that the transport has looked into.
    pub fn receive_decoded(&mut self, stream: StreamId, frame: Result<Incoming, Malformed>) {
        self.handle(Input::Received { stream, frame });
    }

    /// Takes in a request that the transport has looked into.
    pub fn receive_request(&mut self, stream: StreamId, request: ParsedRequest) {
        self.handle(Input::Request { stream, request });
    }

    /// The client says no more: running calls may finish within the grace.
    pub fn end(&mut self) {
        self.handle(Input::Eof);
    }

    /// The next message to be sent.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.busy.as_mut()?.frames.pop_front()
    }

    /// Whether the connection is over. What is left of its frames may still be sent.
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

    /// Rings when something may have happened, without holding the connection: for whoever shares
    /// it with others. Take the bell first, then [`Connection::advance`], then wait for it to
    /// ring: so nothing is missed in between.
    pub fn bell(&mut self) -> Bell {
        // A call that waits for its client may go on later, and then has something to say.
        if self.session.running() > 0 {
            let max_notes = self.engine.settings.engine_limits.notifications;
            self.busy().events.get_or_insert_with(|| EventQueue::new(max_notes));
        }
        let is_leaving = self.is_closed || self.session.state() == State::Closed;
        Bell {
            events: self.events().cloned(),
            changes: self.changes.as_ref().map(broadcast::Receiver::resubscribe),
            stopping: (!is_leaving).then(|| self.engine.stopping()),
            wake_at: self.session.wake_at(),
        }
    }

    /// Handles whatever has happened, without waiting.
    pub fn advance(&mut self) {
        self.take_letters();
        loop {
            match self.changes.as_mut().map(broadcast::Receiver::try_recv) {
                Some(Ok(topic)) => self.on_change(Ok(topic)),
                Some(Err(TryRecvError::Lagged(by))) => self.on_change(Err(RecvError::Lagged(by))),
                Some(Err(TryRecvError::Empty | TryRecvError::Closed)) | None => break,
            }
        }
        self.take_time();
    }

    /// Gives back what an idle connection can do without, if it is idle.
    pub fn rest(&mut self) {
        // A call that waits for its client will start again, and be waited for by those who have a
        // bell already.
        let is_idle = self.session.running() == 0;
        if is_idle && self.busy.as_ref().is_some_and(|busy| busy.frames.is_empty()) {
            self.give_back();
        }
    }

    /// Waits until something has happened, and handles it. Dropping the future loses nothing.
    pub async fn wait(&mut self) {
        // Looked at first: calls that never stop talking must not talk past their deadline.
        if self.take_time() || self.take_letters() {
            return;
        }
        let changed = async {
            match &mut self.changes {
                Some(changes) => changes.recv().await,
                None => std::future::pending().await,
            }
        };
        let arrival = async {
            match self.busy.as_ref().and_then(|busy| busy.events.as_ref()) {
                Some(events) => events.arrival().await,
                None => std::future::pending().await,
            }
        };
        let is_stopping = self.session.state() == State::Closed;
        tokio::select! {
            biased;
            () = arrival => drop(self.take_letters()),
            topic = changed => self.on_change(topic),
            () = until(self.session.wake_at()) => drop(self.take_time()),
            () = stopped(self.engine.stopping()), if !is_stopping => drop(self.take_time()),
        }
    }

    /// Handles what calls have said meanwhile, and that time is up, without waiting: for a client
    /// that never stops asking.
    pub fn catch_up(&mut self) {
        self.take_time();
        self.take_letters();
    }

    /// Waits until time is up for something or the engine stops, and handles that alone: for a
    /// client that does not take what it is sent. What calls have to say, and what changes,
    /// waits meanwhile within its bounds. Dropping the future loses nothing.
    pub async fn wait_for_time(&mut self) {
        if self.take_time() {
            return;
        }
        let is_stopping = self.session.state() == State::Closed;
        tokio::select! {
            () = until(self.session.wake_at()) => {}
            () = stopped(self.engine.stopping()), if !is_stopping => {}
        }
        self.take_time();
    }

    /// Handles that time is up, or that the engine stops; `false` if neither is so.
    fn take_time(&mut self) -> bool {
        let is_due = self.session.wake_at().is_some_and(|at| at <= now());
        if is_due {
            self.handle(Input::Tick);
        }
        let must_stop = *self.engine.stopping().borrow() && self.session.state() != State::Closed;
        if must_stop {
            self.end();
        }
        is_due || must_stop
    }

    /// Handles what running calls have said; `false` if they said nothing.
    fn take_letters(&mut self) -> bool {
        let mut any = false;
        while let Some(letter) = self.next_letter() {
            any = true;
            match letter {
                CallEvent::Notified(call, note) => self.handle(Input::Notified { call, note }),
                CallEvent::Finished(call, outcome) => self.on_finished(call, outcome),
            }
        }
        any
    }

    fn next_letter(&self) -> Option<CallEvent> {
        self.events()?.take()
    }

    fn events(&self) -> Option<&Arc<EventQueue>> {
        self.busy.as_ref()?.events.as_ref()
    }

    fn busy(&mut self) -> &mut Busy {
        self.busy.get_or_insert_with(Busy::take)
    }

    fn give_back(&mut self) {
        if let Some(busy) = self.busy.take() {
            busy.give_back();
        }
    }

    fn on_finished(&mut self, call: CallKey, outcome: Outcome) {
        self.busy().running.retain(|line| line.key != call);
        self.handle(Input::Finished { call, outcome });
    }

    fn on_change(&mut self, topic: Result<Topic, RecvError>) {
        match topic {
            Ok(topic) => self.handle(Input::Changed(topic)),
            // Too much has changed to tell it all: tell of everything once.
            Err(RecvError::Lagged(_)) => {
                // Whatever still waits is among it.
                self.changes = Some(self.engine.changes());
                for topic in [Topic::Tools, Topic::Prompts, Topic::Resources] {
                    self.handle(Input::Changed(topic));
                }
                for uri in self.session.watched() {
                    self.handle(Input::Changed(Topic::Resource(uri)));
                }
            }
            Err(RecvError::Closed) => self.changes = None,
        }
    }

    fn handle(&mut self, input: Input) {
        let outputs = &mut self.busy.get_or_insert_with(Busy::take).outputs;
        self.session.handle(now(), input, outputs);
        // What is done at once comes back as a further input, whose outputs are appended.
        let mut at = 0;
        while let Some(output) = self.busy().outputs.get_mut(at) {
            let output = std::mem::replace(output, Output::Close);
            at += 1;
            self.act(output);
        }
        self.busy().outputs.clear();
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Send { stream, frame, kind } => {
                self.busy().frames.push_back(Frame { stream, text: frame, kind });
            }
            Output::Start(call) => self.start(call),
            Output::Abort(key) => self.abort(key),
            Output::Ready(client) => {
                self.is_ready = true;
                self.engine.tell(Event::Ready(client));
            }
            Output::Close => self.is_closed = true,
        }
    }

    fn start(&mut self, call: Call) {
        let Call { key, from, request } = call;
        self.follow_changes(&request);
        let catalog = self.engine.registry.snapshot();
        let wants_progress = from.meta.progress_token.is_some();
        let log_level = from.log_level.filter(|_| catalog.capabilities().logging);
        let max_notes = self.engine.settings.engine_limits.notifications;
        let line =
            RunningCall::new(key, self.events().cloned(), max_notes, wants_progress, log_level);
        let desk = MethodContext {
            engine: self.engine.clone(),
            catalog,
            from,
            caller: self.caller.clone(),
            line: line.clone(),
        };
        let mut running = match guarded(|| route(request, desk)) {
            Ok(Work::Done(outcome)) | Err(outcome) => return self.finish(&line, outcome),
            Ok(Work::Running(running)) => Guarded(running),
        };
        // The task that may take it over polls it again, with a waker of its own.
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(outcome) = std::pin::Pin::new(&mut running).poll(&mut cx) {
            return self.finish(&line, outcome);
        }
        self.busy().events = Some(line.events().clone());
        self.busy().running.push(line.clone());
        self.spawn(line, running);
    }

    /// Whoever may be told of changes begins to listen before it is told that it may.
    fn follow_changes(&mut self, request: &Request) {
        let listens =
            matches!(request, Request::Initialize(_) | Request::Listen(_) | Request::Subscribe(_));
        if listens && self.changes.is_none() {
            self.changes = Some(self.engine.changes());
        }
    }

    fn spawn(&self, line: Arc<RunningCall>, running: Guarded) {
        let grace = self.engine.settings.engine_limits.abort_grace;
        tokio::spawn(async move {
            let unwanted = async {
                line.cancelled().await;
                tokio::time::sleep(grace).await;
            };
            tokio::select! {
                outcome = running => line.events().finished(line.key, outcome),
                () = unwanted => {}
            }
        });
    }

    /// The call has said what it had to say; now it has ended.
    fn finish(&mut self, line: &RunningCall, outcome: Outcome) {
        let (call, now) = (line.key, now());
        if let Some(events) = line.made_mailbox() {
            self.busy().events = Some(events.clone());
        }
        while let Some(letter) = self.next_letter() {
            let input = match letter {
                CallEvent::Notified(call, note) => Input::Notified { call, note },
                CallEvent::Finished(call, outcome) => {
                    self.busy().running.retain(|line| line.key != call);
                    Input::Finished { call, outcome }
                }
            };
            self.session.handle(now, input, &mut self.busy.get_or_insert_with(Busy::take).outputs);
        }
        let outputs = &mut self.busy.get_or_insert_with(Busy::take).outputs;
        self.session.handle(now, Input::Finished { call, outcome }, outputs);
    }

    fn abort(&mut self, key: CallKey) {
        let running = &mut self.busy().running;
        if let Some(at) = running.iter().position(|line| line.key == key) {
            running.swap_remove(at).cancel();
        }
    }
}

/// The clock that the runtime's timers go by, so that a deadline and the wish to be woken for it are
/// never of two opinions; a test can stop it.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // The engine lives as long as its conversations: the channel does not close before it says so.
    if stopping.wait_for(|stop| *stop).await.is_err() {
        std::future::pending().await
    }
}

/// Whoever drops a connection does not want its calls any more.
impl Drop for Connection {
    fn drop(&mut self) {
        for line in self.busy.iter().flat_map(|busy| &busy.running) {
            line.cancel();
        }
        self.give_back();
        if self.is_ready {
            self.engine.tell(Event::Left);
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("session", &self.session).finish_non_exhaustive()
    }
}
