//! One link: the conversation and its waiters.
//!
//! No task runs between the callers and the transport. Each of them locks the conversation, hands
//! in its input and carries out the outputs; nothing waits under the lock. So a call that is
//! dropped is cancelled at once, and an answer goes straight to its caller.

mod incoming; // reports of the transport, for the conversation and the tap
mod question; // a question that waits for its answer
mod waiter; // the holder of a call

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use sabir_wire::types::{LogMessage, Topic};
use sabir_wire::{Id, Raw};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

pub(crate) use self::question::QuestionHandle;
use self::waiter::Waiter;
pub(crate) use self::waiter::{Begun, Notice};

use self::incoming::{Incoming, open_link};
use crate::config::ClientConfig;
use crate::conversation::{Beginning, Conversation};
use crate::error::{CallError, OpenError};
use crate::io::{CallKey, Input, Order, Outgoing, Output, ServerInfo, only};
use crate::link::{Inbox, Link, Transport};
use crate::request::CallRequest;

/// Bytes that wait to be sent. Above this no call begins until the server has read some. Answers
/// and cancellations are still queued; the table of calls bounds them.
const MAX_UNSENT: usize = 16 << 20;

/// Answers to pings and refused requests that the server has not read. One more is dropped: a
/// server may send requests for ever, and read nothing.
const MAX_REPLIES: usize = 1024;

/// Events for the owner of the connection.
#[derive(Debug)]
pub(crate) enum Announcement {
    Changed(Topic),
    Log { calls: Vec<CallKey>, message: LogMessage },
    Question(QuestionHandle),
    Notification { calls: Vec<CallKey>, method: String, params: Option<Raw> },
}

pub(crate) type Announce = Box<dyn Fn(Announcement) + Send + Sync>;

/// The state of a link.
#[derive(Clone, Debug)]
pub(crate) enum LinkState {
    Opening,
    Open(Arc<ServerInfo>),
    Ended(OpenError),
}

/// One link to a server. When the last holder drops it, the link is closed.
pub(crate) struct Connection {
    core: Mutex<Core>,
    state: watch::Sender<LinkState>,
    /// Shared, so that the task that waits for it does not keep the connection alive.
    timer: Arc<Notify>,
    room: Notify,
    unsent: AtomicUsize,
    /// Counts, by its references, the answers of [`MAX_REPLIES`], plus one.
    replies: Arc<()>,
    has_answered: AtomicBool,
    announce: Announce,
    /// Notified when the transport has released the link.
    released: Arc<Notify>,
    /// For the handles that outlive a borrow.
    this: Weak<Connection>,
    config: Arc<ClientConfig>,
    /// The number of the link for the tap; 0 without a tap.
    link: u64,
}

#[derive(Debug)]
struct Core {
    conversation: Conversation,
    calls: HashMap<CallKey, Waiter>,
    questions: HashMap<Id, watch::Sender<bool>>,
    /// `None` after the end.
    orders: Option<mpsc::UnboundedSender<Order>>,
    /// The link ended before the server had answered the probe.
    ended_in_probe: bool,
    outputs: Vec<Output>,
}

impl Connection {
    /// Opens a link, without waiting for the server's answer.
    pub(crate) async fn open(
        transport: &dyn Transport,
        config: &Arc<ClientConfig>,
        beginning: Beginning,
        announce: Announce,
    ) -> Result<Arc<Self>, OpenError> {
        let (orders, taken) = mpsc::unbounded_channel();
        let conversation = Conversation::new(config.clone(), transport.kind(), beginning);
        let connection = Arc::new_cyclic(|this| Self {
            core: Mutex::new(Core {
                conversation,
                calls: HashMap::new(),
                questions: HashMap::new(),
                orders: Some(orders),
                ended_in_probe: false,
                outputs: Vec::new(),
            }),
            state: watch::Sender::new(LinkState::Opening),
            timer: Arc::default(),
            room: Notify::new(),
            unsent: AtomicUsize::new(0),
            replies: Arc::default(),
            has_answered: AtomicBool::new(false),
            announce,
            released: Arc::default(),
            this: this.clone(),
            config: config.clone(),
            link: open_link(config, transport.kind()),
        });
        let (this, released) = (connection.this.clone(), connection.released.clone());
        let receiver = Arc::new(Incoming { connection: this, released });
        let inbox = Inbox::new(receiver, config.limits.clone());
        transport.open(Link { orders: taken, inbox }).await?;
        tokio::spawn(keep_time(connection.this.clone()));
        connection.handle(Input::Open);
        Ok(connection)
    }

    /// Waits until the server is known.
    pub(crate) async fn ready(&self) -> Result<Arc<ServerInfo>, OpenError> {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| !matches!(state, LinkState::Opening)).await;
        match state.as_deref() {
            Ok(LinkState::Open(info)) => Ok(info.clone()),
            Ok(LinkState::Ended(reason)) => Err(reason.clone()),
            _ => Err(OpenError::Closed),
        }
    }

    /// Waits until the link has ended.
    pub(crate) async fn ended(&self) -> OpenError {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| matches!(state, LinkState::Ended(_))).await;
        match state.as_deref() {
            Ok(LinkState::Ended(reason)) => reason.clone(),
            _ => OpenError::Closed,
        }
    }

    /// The server, while the link is open.
    pub(crate) fn info(&self) -> Option<Arc<ServerInfo>> {
        match &*self.state.borrow() {
            LinkState::Open(info) => Some(info.clone()),
            _ => None,
        }
    }

    /// Whether the server has answered a call that is more than a list.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Whether the link ended before the server had answered the probe.
    pub(crate) fn ended_in_probe(&self) -> bool {
        self.lock().ended_in_probe
    }

    /// Sends a notification, if there is room for it.
    pub(crate) fn notify(&self, method: &str, params: Option<Raw>) -> bool {
        let has_room = self.unsent.load(Ordering::Relaxed) <= MAX_UNSENT;
        if has_room {
            self.handle(Input::Notify { method: method.to_owned(), params });
        }
        has_room
    }

    /// Begins a call, when there is room for it.
    pub(crate) async fn begin(&self, request: &Arc<CallRequest>) -> Begun {
        loop {
            // Registered before the check: the link may end right after it.
            let room = self.room.notified();
            if self.unsent.load(Ordering::Relaxed) <= MAX_UNSENT || self.info().is_none() {
                break;
            }
            room.await;
        }
        let (waiter, notices) = Waiter::new(request.options.origin, request.may_ask());
        let mut core = self.lock();
        let key = core.conversation.reserve();
        if core.orders.is_some() {
            core.calls.insert(key, waiter);
            self.advance(core, Input::Start { call: key, request: request.clone() }, None);
        } else {
            // The link ended after the caller had seen it open.
            waiter.finish(Err(CallError::Unsent("the link has ended".to_owned())));
        }
        Begun { key, notices }
    }

    /// Cancels a call that its holder has dropped.
    pub(crate) fn cancel(&self, call: CallKey) {
        let mut core = self.lock();
        let waiter = core.calls.remove(&call);
        self.advance(core, Input::Cancel(call), None);
        drop(waiter);
    }

    /// Hands in an input, and carries out its outputs.
    pub(crate) fn handle(&self, input: Input) {
        self.advance(self.lock(), input, None);
    }

    /// The same under the lock. `arrived` is the received frame, for the tap.
    fn advance(&self, mut core: MutexGuard<'_, Core>, input: Input, arrived: Option<&Bytes>) {
        let mut outputs = std::mem::take(&mut core.outputs);
        let wake = core.conversation.wake_at();
        let (is_arrival, exchange) = match &input {
            Input::Received { exchange, .. } => (true, *exchange),
            _ => (false, None),
        };
        core.conversation.handle(Instant::now().into_std(), input, &mut outputs);
        if let (Some((tap, _)), Some(frame)) = (&self.config.tap, arrived) {
            let call = exchange.or_else(|| outputs.iter().find_map(Output::call));
            let origin = core.origin(call);
            tap.tell(|tap| tap.received(self.link, origin, frame, &[]));
        }
        if core.conversation.wake_at() != wake {
            self.timer.notify_one();
        }
        let mut announcements = Vec::new();
        let mut refused = None;
        for output in outputs.drain(..) {
            match output {
                Output::Order(Order::Send(reply)) if is_arrival && reply.call.is_none() => {
                    self.reply(&mut core, reply);
                }
                Output::Order(order) => self.order(&mut core, order),
                Output::Ready(info) => {
                    self.state.send_replace(LinkState::Open(Arc::new(info)));
                }
                Output::Refused(reason) => refused = Some(reason),
                other => self.tell(&mut core, other, &mut announcements),
            }
        }
        core.outputs = outputs;
        drop(core);
        // Not under the lock: the owner's code may call back.
        for announcement in announcements {
            (self.announce)(announcement);
        }
        if let Some(reason) = refused {
            self.finish(reason, &[]);
        }
    }

    /// Answers a request of the server, unless too many answers wait.
    fn reply(&self, core: &mut Core, reply: Outgoing) {
        if Arc::strong_count(&self.replies) > MAX_REPLIES {
            return tracing::debug!("the server does not read the answers to its requests");
        }
        let reply = Outgoing { reply: Some(self.replies.clone()), ..reply };
        self.order(core, Order::Send(reply));
    }

    fn order(&self, core: &mut Core, order: Order) {
        if let Order::Send(outgoing) = &order {
            self.unsent.fetch_add(outgoing.frame.len(), Ordering::Relaxed);
            if let Some((tap, _)) = &self.config.tap {
                let origin = core.origin(outgoing.call);
                tap.tell(|tap| tap.sent(self.link, origin, &outgoing.frame));
            }
        }
        if let Some(orders) = &core.orders {
            // If this fails the transport has ended, and reports that itself.
            let _ = orders.send(order);
        }
    }

    /// Notifies the holder of a call, or the owner.
    fn tell(&self, core: &mut Core, output: Output, announcements: &mut Vec<Announcement>) {
        match output {
            Output::Finished { call, result } => {
                if let Some(waiter) = core.calls.remove(&call) {
                    let is_answered = waiter.is_work && result.is_ok();
                    self.has_answered.fetch_or(is_answered, Ordering::Relaxed);
                    waiter.finish(result);
                }
            }
            Output::Progress { call, progress } => core.notice(call, Notice::Progress(progress)),
            Output::Listening { call, filter } => core.notice(call, Notice::Listening(filter)),
            Output::Ask { question, asked, calls } => {
                let (withdraw, withdrawn) = watch::channel(false);
                core.questions.insert(question.clone(), withdraw);
                let connection = self.this.clone();
                let handle = QuestionHandle {
                    asked: Some(asked),
                    id: question,
                    calls,
                    withdrawn,
                    connection,
                };
                match core.waiter(&handle.calls) {
                    // The destructor of a refused question answers it; it needs this lock.
                    Some(waiter) => {
                        if let Err(refused) = waiter.tell(Notice::Question(handle)) {
                            tokio::spawn(async move { drop(refused) });
                        }
                    }
                    None => announcements.push(Announcement::Question(handle)),
                }
            }
            Output::Withdraw(question) => {
                if let Some(withdraw) = core.questions.remove(&question) {
                    withdraw.send_replace(true);
                }
            }
            Output::Log { calls, message } => match core.waiter(&calls) {
                // The queue is full, or the holder has dropped the call.
                Some(waiter) => drop(waiter.tell(Notice::Log(message))),
                None => announcements.push(Announcement::Log { calls, message }),
            },
            Output::Changed(topic) => announcements.push(Announcement::Changed(topic)),
            Output::Notification { calls, method, params } => {
                let method = method.name().to_owned();
                match core.waiter(&calls) {
                    Some(waiter) => drop(waiter.tell(Notice::Notification { method, params })),
                    None => {
                        announcements.push(Announcement::Notification { calls, method, params });
                    }
                }
            }
            Output::Order(_) | Output::Ready(_) | Output::Refused(_) => {}
        }
    }

    /// Ends the link, and waits until the transport has released it: queued messages are sent by
    /// then, and a program has exited.
    pub(crate) async fn close(&self) {
        self.finish(OpenError::Closed, &[]);
        self.released.notified().await;
    }

    /// Ends the link and fails every call.
    pub(crate) fn finish(&self, reason: OpenError, unsent: &[CallKey]) {
        let mut core = self.lock();
        if core.orders.take().is_none() {
            return;
        }
        core.ended_in_probe = core.conversation.is_probing();
        let calls = std::mem::take(&mut core.calls);
        let questions = std::mem::take(&mut core.questions);
        self.state.send_replace(LinkState::Ended(reason.clone()));
        drop(core);
        for (call, waiter) in calls {
            let error = match unsent.contains(&call) {
                true => CallError::Unsent(reason.to_string()),
                false => CallError::Lost(reason.to_string()),
            };
            waiter.finish(Err(error));
        }
        for withdraw in questions.into_values() {
            withdraw.send_replace(true);
        }
        self.timer.notify_one();
        self.room.notify_waiters();
    }

    /// The next deadline, and a signal that it has changed; `None` after the end.
    fn alarm(&self) -> Option<(Option<std::time::Instant>, Arc<Notify>)> {
        let core = self.lock();
        core.orders.as_ref()?;
        Some((core.conversation.wake_at(), self.timer.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    fn notice(&self, call: CallKey, notice: Notice) {
        if let Some(waiter) = self.calls.get(&call) {
            // The queue is full, or the holder has dropped the call.
            let _ = waiter.tell(notice);
        }
    }

    /// The holder of the only one of some calls.
    fn waiter(&self, calls: &[CallKey]) -> Option<&Waiter> {
        only(calls).and_then(|call| self.calls.get(&call))
    }

    /// The call on whose behalf a call is made, by its number for the tap; 0 for none.
    fn origin(&self, call: Option<CallKey>) -> u64 {
        let waiter = call.and_then(|call| self.calls.get(&call));
        waiter.map_or(0, Waiter::origin)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}

/// Wakes the conversation at its deadlines, as long as the connection exists.
async fn keep_time(connection: Weak<Connection>) {
    loop {
        let Some((wake, timer)) = connection.upgrade().and_then(|it| it.alarm()) else { return };
        let sleep = async {
            match wake {
                Some(wake) => tokio::time::sleep_until(wake.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timer.notified() => {}
            () = sleep => {
                if let Some(connection) = connection.upgrade() {
                    connection.handle(Input::Tick);
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.timer.notify_one();
        if let Some((tap, _)) = &self.config.tap {
            tap.tell(|tap| tap.closed(self.link));
        }
    }
}

#[cfg(test)]
mod tests;
