//! The handle, and the task that keeps its link open.

mod subscription; // the subscription to changes

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sabir_wire::types::{SubscriptionFilter, Topic};
use sabir_wire::{Era, Raw};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::subscription::{Listening, watch};
use crate::answerer::{Answerer, NoAnswers};
use crate::call::{Asked, Call, CallEvent, Reply};
use crate::config::ClientConfig;
use crate::connection::{Announcement, Connection};
use crate::conversation::Beginning;
use crate::error::{CallError, OpenError};
use crate::events::{ClientEvent, Events};
use crate::io::ServerInfo;
use crate::link::Transport;
use crate::request::CallRequest;

/// A client of one server. Clones share everything; when the last one and its last call are
/// dropped, the link is closed.
///
/// The link is opened with the first call, and again with the next call after it has ended. A call
/// that may have reached the server is never repeated.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    guard: Arc<Guard>,
}

#[derive(Debug)]
struct Shared {
    transport: Arc<dyn Transport>,
    config: Arc<ClientConfig>,
    answerer: Arc<dyn Answerer>,
    state: watch::Sender<State>,
    /// Notified when the link is needed.
    demand: Notify,
    events: Events,
    watched: Mutex<SubscriptionFilter>,
    rewatch: Notify,
}

/// The state of the task that keeps the link.
#[derive(Clone, Debug)]
enum State {
    Idle,
    Opening,
    Open(Arc<Connection>),
    /// The last attempt failed; there will be another.
    Waiting(OpenError),
    /// Too many attempts failed; the next one is not before this time.
    Down(OpenError, Instant),
    Closed,
}

/// Ends the task when the last handle is dropped.
#[derive(Debug)]
struct Guard(tokio::task::JoinHandle<()>, Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
        self.1.state.send_replace(State::Closed);
    }
}

impl Client {
    /// A client that opens its link when it is needed. It must be created inside a tokio runtime.
    ///
    /// The answerer answers the questions in calls that are made with the functions of this type.
    /// The configuration says which questions may be asked.
    pub fn new(
        transport: Arc<dyn Transport>,
        config: ClientConfig,
        answerer: Arc<dyn Answerer>,
    ) -> Self {
        let is_eager = config.reconnect.eager;
        let shared = Arc::new(Shared {
            transport,
            config: Arc::new(config),
            answerer,
            state: watch::Sender::new(State::Idle),
            demand: Notify::new(),
            events: Events::default(),
            watched: Mutex::default(),
            rewatch: Notify::new(),
        });
        if is_eager {
            shared.demand.notify_one();
        }
        let task = tokio::spawn(keep(shared.clone()));
        Self { guard: Arc::new(Guard(task, shared.clone())), shared }
    }

    /// A client that cannot answer questions.
    pub fn without_answers(transport: Arc<dyn Transport>, config: ClientConfig) -> Self {
        Self::new(transport, config, Arc::new(NoAnswers))
    }

    /// Opens the link, if it is not open, and returns the server. Fails after one attempt.
    pub async fn open(&self) -> Result<Arc<ServerInfo>, OpenError> {
        let mut state = self.shared.state.subscribe();
        let mut has_begun = false;
        loop {
            match &*state.borrow_and_update() {
                State::Open(connection) if connection.info().is_some() => {
                    return connection.info().ok_or(OpenError::Closed);
                }
                State::Waiting(reason) if has_begun => return Err(reason.clone()),
                State::Down(reason, until) if has_begun || Instant::now() < *until => {
                    return Err(reason.clone());
                }
                State::Closed => return Err(OpenError::Closed),
                State::Opening => has_begun = true,
                _ => {}
            }
            self.shared.demand.notify_one();
            state.changed().await.map_err(|_| OpenError::Closed)?;
        }
    }

    /// Closes the link and waits until it is closed: running calls fail, and a program has exited.
    pub async fn close(&self) {
        self.guard.0.abort();
        let state = self.shared.state.send_replace(State::Closed);
        if let State::Open(connection) = state {
            connection.close().await;
        }
    }

    /// The server, while the link is open.
    pub fn server(&self) -> Option<Arc<ServerInfo>> {
        match &*self.shared.state.borrow() {
            State::Open(connection) => connection.info(),
            _ => None,
        }
    }

    /// The events outside of calls. They are dropped until this is called for the first time.
    pub fn events(&self) -> Events {
        self.shared.events.own();
        self.shared.events.clone()
    }

    /// The last lines that the server wrote to standard error.
    pub fn stderr(&self) -> Vec<String> {
        self.shared.transport.stderr()
    }

    /// The configuration.
    pub fn config(&self) -> &ClientConfig {
        &self.shared.config
    }

    pub(crate) fn answerer(&self) -> &dyn Answerer {
        &*self.shared.answerer
    }

    /// Sends a request once the link is open. The caller takes the events of the call, and answers
    /// its questions.
    pub async fn start(&self, request: impl Into<CallRequest>) -> Result<Call, CallError> {
        let request = Arc::new(request.into());
        self.start_shared(&request).await
    }

    pub(crate) async fn start_shared(&self, request: &Arc<CallRequest>) -> Result<Call, CallError> {
        let time = request.options.timeout.or(self.shared.config.limits.call_time);
        let opening = self.connection();
        let (connection, info) = match time {
            Some(time) => tokio::time::timeout(time, opening)
                .await
                .map_err(|_| CallError::Unsent(self.why_not_open(time)))??,
            None => opening.await?,
        };
        let begun = connection.begin(request).await;
        Ok(Call::new(connection, begun, request.method(), info.revision))
    }

    /// Sends a request and returns its result. A request that certainly did not reach the server is
    /// sent once more. Questions in the middle of the call go to the answerer; those of a modern
    /// server are a part of the result ([`Reply::questions`]).
    pub async fn call(&self, request: impl Into<CallRequest>) -> Result<Reply, CallError> {
        let request = Arc::new(request.into());
        match self.attempt(&request).await {
            Err(CallError::Unsent(_)) => self.attempt(&request).await,
            other => other,
        }
    }

    async fn attempt(&self, request: &Arc<CallRequest>) -> Result<Reply, CallError> {
        let mut call = self.start_shared(request).await?;
        let mut answers = tokio::task::JoinSet::new();
        loop {
            match call.next().await {
                CallEvent::Done(result) => return result,
                CallEvent::Question(asked) => {
                    answers.spawn(self.answer(asked));
                }
                CallEvent::Progress(progress) => self.answerer().progress(&progress),
                CallEvent::Log(message) => self.answerer().log(&message),
                CallEvent::Listening(_) | CallEvent::Notification { .. } => {}
            }
        }
    }

    fn answer(&self, mut asked: Asked) -> impl Future<Output = ()> + Send + use<> {
        let answerer = self.shared.answerer.clone();
        async move {
            let question = asked.question().clone();
            let answered = tokio::select! {
                () = asked.withdrawn() => return,
                answered = answerer.answer(question) => answered,
            };
            match answered {
                Ok(answer) => asked.answer(answer),
                Err(error) => asked.refuse(error),
            }
        }
    }

    /// Sends a notification. Drops it and returns `false` if the link is not open or the server
    /// does not read.
    pub fn notify(&self, method: &str, params: Option<Raw>) -> bool {
        match &*self.shared.state.borrow() {
            State::Open(connection) if connection.info().is_some() => {
                connection.notify(method, params)
            }
            _ => false,
        }
    }

    /// Sets the changes to subscribe to; they arrive as [`ClientEvent::Changed`]. The subscriptions
    /// are renewed after a reconnection; those to resources open the link. Legacy servers announce
    /// changed lists without a subscription.
    pub fn watch(&self, filter: SubscriptionFilter) {
        let mut watched = self.shared.watched.lock().unwrap_or_else(PoisonError::into_inner);
        *watched = filter;
        drop(watched);
        self.shared.rewatch.notify_one();
        if self.shared.is_watching() {
            self.shared.demand.notify_one();
        }
    }

    async fn connection(&self) -> Result<(Arc<Connection>, Arc<ServerInfo>), CallError> {
        let mut state = self.shared.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                State::Open(connection) => {
                    if let Some(info) = connection.info() {
                        return Ok((connection.clone(), info));
                    }
                }
                State::Down(reason, until) if Instant::now() < *until => {
                    return Err(CallError::Down(reason.clone()));
                }
                State::Closed => return Err(CallError::Down(OpenError::Closed)),
                _ => {}
            }
            self.shared.demand.notify_one();
            if state.changed().await.is_err() {
                return Err(CallError::Down(OpenError::Closed));
            }
        }
    }

    fn why_not_open(&self, time: Duration) -> String {
        match &*self.shared.state.borrow() {
            State::Waiting(reason) => reason.to_string(),
            _ => format!("the server was not ready within {} ms", time.as_millis()),
        }
    }
}

/// A link that lasts so long was a success, even if no call was answered.
const LASTING: Duration = Duration::from_secs(10);

/// Opens the link when it is needed, and again, with growing pauses after failures.
async fn keep(shared: Arc<Shared>) {
    let settings = shared.config.reconnect.clone();
    let mut era = shared.config.era;
    let mut failures = 0;
    let mut is_wanted = settings.eager;
    loop {
        if !is_wanted && !shared.is_watching() {
            shared.demand.notified().await;
        }
        is_wanted = settings.eager;
        shared.state.send_replace(State::Opening);
        let reason = match shared.open(&mut era).await {
            Ok(connection) => {
                shared.state.send_replace(State::Open(connection.clone()));
                let opened = Instant::now();
                let reason = shared.follow(&connection).await;
                let was_useful = connection.has_answered() || opened.elapsed() >= LASTING;
                failures = if was_useful { 0 } else { failures + 1 };
                // A call that needs another link asks for it again after the change of the state.
                shared.demand.notify_one();
                shared.demand.notified().await;
                reason
            }
            Err(reason) => {
                failures += 1;
                reason
            }
        };
        if reason == OpenError::OtherEra {
            era = shared.config.era;
        }
        shared.events.push(ClientEvent::Closed(reason.clone()));
        if failures == 0 {
            shared.state.send_replace(State::Idle);
            continue;
        }
        if failures >= settings.attempts || reason.is_permanent() {
            let until = Instant::now() + settings.down_time;
            shared.state.send_replace(State::Down(reason, until));
            failures = 0;
            // A call after that time is the next attempt.
            if !settings.eager {
                shared.demand.notified().await;
            }
            tokio::time::sleep_until(until).await;
            is_wanted = true;
            continue;
        }
        shared.state.send_replace(State::Waiting(reason));
        tokio::time::sleep(settings.wait(failures)).await;
    }
}

impl Shared {
    /// Opens a link in the era, and finds the era if it is not known.
    async fn open(self: &Arc<Self>, era: &mut Option<Era>) -> Result<Arc<Connection>, OpenError> {
        let beginning = match era {
            None => Beginning::Probe,
            Some(Era::Modern) => Beginning::Modern,
            Some(Era::Legacy) => Beginning::Legacy,
        };
        let opened = match self.attempt(&*self.transport, beginning).await {
            // Some legacy servers exit on a request that they do not know.
            Err((_, true)) => self.attempt(&*self.transport, Beginning::Legacy).await,
            // A server that refuses the handshake may have only the transport of the first
            // revision.
            Err((
                reason @ (OpenError::Status { status: 400 | 404 | 405, .. } | OpenError::Rpc(_)),
                _,
            )) if let Some(other) = self.transport.fallback() => {
                let opened = self.attempt(&*other, Beginning::Legacy).await;
                opened.map_err(|_| (reason, false))
            }
            other => other,
        };
        match opened {
            Ok(connection) => {
                if let Some(info) = connection.info().filter(|info| info.is_certain) {
                    *era = Some(info.revision.era());
                }
                Ok(connection)
            }
            Err((reason, _)) => {
                // The remembered era may be wrong.
                *era = self.config.era;
                Err(reason)
            }
        }
    }

    /// Opens a link. A failure says whether the server may have exited because of the probe.
    async fn attempt(
        self: &Arc<Self>,
        transport: &dyn Transport,
        beginning: Beginning,
    ) -> Result<Arc<Connection>, (OpenError, bool)> {
        let events = self.events.clone();
        let announce = Box::new(move |said| events.push(ClientEvent::from(said)));
        let limit = self.config.limits.open_time;
        let opening = Connection::open(transport, &self.config, beginning, announce);
        let opened = tokio::time::timeout(limit, opening).await;
        let connection = match opened {
            Ok(Ok(connection)) => connection,
            Ok(Err(reason)) => return Err((reason, false)),
            Err(_) => return Err((OpenError::Timeout(limit), false)),
        };
        match connection.ready().await {
            Ok(info) => {
                self.events.push(ClientEvent::Opened(info));
                Ok(connection)
            }
            Err(reason) => {
                let may_retry = beginning == Beginning::Probe && connection.ended_in_probe();
                Err((reason, may_retry))
            }
        }
    }

    /// Whether the link is needed for updates of resources. Lists are read again when it is opened.
    fn is_watching(&self) -> bool {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        !watched.resource_subscriptions.is_empty()
    }

    /// Keeps the subscriptions until the link ends.
    async fn follow(&self, connection: &Arc<Connection>) -> OpenError {
        let Some(info) = connection.info() else { return connection.ended().await };
        let mut listening = Listening::default();
        let mut subscribed = SubscriptionFilter::default();
        let mut was_lost = false;
        loop {
            let wanted = self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if wanted != subscribed {
                let call = watch(connection, &info, &subscribed, &wanted).await;
                listening.replace(call);
                subscribed = wanted;
            }
            tokio::select! {
                reason = connection.ended() => return reason,
                () = self.rewatch.notified() => {}
                event = listening.next() => match event {
                    CallEvent::Listening(_) if std::mem::take(&mut was_lost) => {
                        // Changes may have been missed.
                        for topic in [Topic::Tools, Topic::Prompts, Topic::Resources] {
                            self.events.push(ClientEvent::Changed(topic));
                        }
                    }
                    // Another attempt would be refused as well.
                    CallEvent::Done(Err(CallError::Rpc(error))) => {
                        tracing::warn!(error = %error.message, "the server refused a subscription");
                    }
                    // The server ended the subscription; subscribe again after a pause.
                    CallEvent::Done(_) => {
                        tokio::time::sleep(self.config.reconnect.wait(3)).await;
                        subscribed = SubscriptionFilter::default();
                        was_lost = true;
                    }
                    _ => {}
                },
            }
        }
    }
}

impl From<Announcement> for ClientEvent {
    fn from(announcement: Announcement) -> Self {
        match announcement {
            Announcement::Changed(topic) => Self::Changed(topic),
            Announcement::Log { calls, message } => Self::Log { calls, message },
            Announcement::Question(handle) => Self::Question(Asked(handle)),
            Announcement::Notification { calls, method, params } => {
                Self::Notification { calls, method, params }
            }
        }
    }
}
