//! One connection to an upstream, and the calls in it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sabir_budget::RunningCall;
use sabir_client::{Asked, CallError, CallKey, CallRequest, Client, OAuth};
use sabir_registry::{Context, Conversation};
use sabir_wire::types::{ClientCapabilities, Level, LogMessage, Question};
use sabir_wire::{Caller, Code, Era, ErrorObject, Raw, Request, Revision};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::calls::LiveCall;
use super::link::OpenLink;

/// Messages of the upstream to one call that the call has not taken. When full, log messages are
/// dropped and questions are refused.
const MAX_ROUTED: usize = 64;

/// Ended calls whose clients are remembered. A message that may belong to an older call is dropped.
const MAX_ENDED: usize = 4096;

/// One connection to an upstream.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) client: Client,
    /// The credentials that it uses.
    pub(super) credentials: Option<Arc<OAuth>>,
    /// The credentials are those of one caller.
    is_personal: bool,
    /// The legacy session that the instance belongs to, if any.
    conversation: Option<Weak<Conversation>>,
    state: Mutex<State>,
    has_refused: AtomicBool,
}

#[derive(Debug)]
struct State {
    calls: BTreeMap<CallKey, Route>,
    /// The clients of calls that are being sent. Such a call has no key yet, but the upstream may
    /// already ask.
    beginning: Vec<Arc<Whose>>,
    /// The clients of the last calls that have ended, at most [`MAX_ENDED`].
    ended: BTreeMap<CallKey, Arc<Whose>>,
    /// Messages that may belong to such a call, at most [`MAX_ROUTED`].
    early: Vec<Routed>,
    /// The number of [`InUse`] guards.
    users: usize,
    last_used: Instant,
    /// The log level that was set at a legacy upstream.
    level: Option<Level>,
    /// The connection, while it is open.
    link: Option<OpenLink>,
    /// Whether it was open before.
    was_open: bool,
    follower: Option<AbortHandle>,
}

/// The client of a call.
#[derive(Debug)]
struct Whose {
    caller: Caller,
    /// The session of the legacy era. Clients without a token are the same caller, and only their
    /// sessions tell them apart.
    conversation: Option<u64>,
}

impl Whose {
    /// Whether it can be told apart from others.
    fn is_known(&self) -> bool {
        self.conversation.is_some() || self.caller.is_vouched_for() || self.caller.is_local()
    }

    /// A number that other clients do not have.
    fn number(&self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let call = (!self.is_known()).then(|| LAST.fetch_add(1, Ordering::Relaxed));
        let mut hasher = DefaultHasher::new();
        (self.conversation, self.caller.issuer(), self.caller.subject(), call).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether both are certainly one client.
    fn is_same_as(&self, other: &Self) -> bool {
        self.is_known()
            && self.conversation == other.conversation
            && self.caller.is_same_as(&other.caller)
    }
}

/// How messages reach a call.
#[derive(Debug)]
struct Route {
    client: Arc<Whose>,
    capabilities: ClientCapabilities,
    /// The call waits for its client.
    is_parked: bool,
    sender: mpsc::Sender<Routed>,
}

impl Route {
    /// Whether the client declared what a question needs.
    fn can_answer(&self, question: &Question) -> bool {
        self.capabilities.lacks(&question.needs()).is_none()
    }
}

/// A message of the upstream that does not say which call it belongs to.
#[derive(Debug)]
pub(super) enum Routed {
    Question(Asked),
    Log { calls: Vec<CallKey>, message: LogMessage },
    Notification { calls: Vec<CallKey>, method: String, params: Option<Raw> },
}

impl Routed {
    /// The calls that it can belong to: those that ran when it arrived.
    fn calls(&self) -> &[CallKey] {
        match self {
            Self::Question(asked) => asked.calls(),
            Self::Log { calls, .. } | Self::Notification { calls, .. } => calls,
        }
    }
}

impl Instance {
    pub(super) fn new(
        client: Client,
        credentials: Option<Arc<OAuth>>,
        is_personal: bool,
        conversation: Option<Weak<Conversation>>,
    ) -> Arc<Self> {
        let state = State {
            calls: BTreeMap::new(),
            beginning: Vec::new(),
            ended: BTreeMap::new(),
            early: Vec::new(),
            users: 0,
            last_used: Instant::now(),
            level: None,
            link: None,
            was_open: false,
            follower: None,
        };
        let (state, has_refused) = (Mutex::new(state), AtomicBool::new(false));
        Arc::new(Self { client, credentials, is_personal, conversation, state, has_refused })
    }

    /// Whether it uses the credentials of one caller.
    pub(super) fn is_personal(&self) -> bool {
        self.is_personal
    }

    /// Sets the task that is aborted with the instance.
    pub(super) fn set_follower(&self, task: AbortHandle) {
        self.lock().follower = Some(task);
    }

    /// Begins a call. The log level of a legacy upstream is set first.
    pub(super) async fn begin(
        self: &Arc<Self>,
        mut request: CallRequest,
        context: &Context,
        permit: Option<RunningCall>,
    ) -> Result<LiveCall, CallError> {
        let in_use = InUse::new(self);
        if let Some(level) = context.call.log_level() {
            Box::pin(self.lower_level(level)).await;
        }
        let method = request.method();
        let conversation = context.conversation.as_ref().map(|one| one.number);
        let client = Arc::new(Whose { caller: context.caller.clone(), conversation });
        request.options.client_number = client.number();
        let beginning = Beginning::new(self, client.clone());
        let call = self.client.start(request).await?;
        let (sender, routed) = mpsc::channel(MAX_ROUTED);
        let capabilities = context.capabilities.clone();
        let route = Route { client, capabilities, is_parked: false, sender };
        let mut state = self.lock();
        // A call of an earlier link had the same key.
        state.ended.remove(&call.key());
        state.calls.insert(call.key(), route);
        drop(state);
        drop(beginning);
        Ok(LiveCall::new(call, method, routed, context.caller.clone(), in_use, permit))
    }

    /// Lowers the log level of a legacy upstream if this client wants more messages. Each client
    /// still gets only the messages of its own level.
    async fn lower_level(&self, wanted: Level) {
        if self.lock().level.is_some_and(|level| level <= wanted) {
            return;
        }
        // If it cannot be opened, the call itself says why.
        let Ok(server) = self.client.open().await else { return };
        let has_levels =
            server.revision.era() == Era::Legacy && server.discovered.capabilities.logging;
        self.lock().level = Some(wanted);
        if !has_levels {
            return;
        }
        match self.client.start(Request::SetLevel(wanted)).await {
            Ok(call) => drop(tokio::spawn(call.result())),
            // The request was not sent: the next call tries again.
            Err(_) => self.lock().level = None,
        }
    }

    /// Routes a message to the call that it may belong to. It must not reach another client: if
    /// calls of several clients are candidates, a question is refused and any other message is
    /// dropped.
    pub(super) fn route(&self, routed: Routed) {
        let mut state = self.lock();
        let place = state.place(&routed);
        if matches!(place, Place::Later) && state.early.len() < MAX_ROUTED {
            return state.early.push(routed);
        }
        drop(state);
        let too_many = "too many messages wait for the call";
        let refused = match place {
            Place::Call(sender) => {
                sender.try_send(routed).err().map(|refused| (refused.into_inner(), too_many))
            }
            Place::Later => Some((routed, too_many)),
            Place::Nowhere(reason) => Some((routed, reason)),
        };
        if let Some((routed, reason)) = refused {
            self.refuse(routed, reason);
        }
    }

    /// Only the first refusal is logged as a warning: an upstream may ask again and again.
    fn refuse(&self, routed: Routed, reason: &'static str) {
        match routed {
            Routed::Question(asked) => {
                asked.refuse(ErrorObject::new(Code::INTERNAL, reason));
                match self.has_refused.swap(true, Ordering::Relaxed) {
                    false => tracing::warn!("a question of an upstream was refused: {reason}"),
                    true => tracing::debug!("a question of an upstream was refused: {reason}"),
                }
            }
            Routed::Log { message, .. } => {
                tracing::debug!(data = %message.data.text(), "log of an upstream");
            }
            Routed::Notification { method, .. } => tracing::debug!(method, "dropped notification"),
        }
    }

    /// Whether the client of a call declared what a question needs.
    pub(super) fn can_answer(&self, call: CallKey, question: &Question) -> bool {
        let state = self.lock();
        state.calls.get(&call).is_some_and(|route| route.can_answer(question))
    }

    pub(super) fn set_parked(&self, call: CallKey, is_parked: bool) {
        if let Some(route) = self.lock().calls.get_mut(&call) {
            route.is_parked = is_parked;
        }
    }

    /// Notes that the link was opened: the upstream does not know the log level. Returns whether it
    /// was open before.
    pub(super) fn on_opened(&self, link: OpenLink) -> bool {
        let mut state = self.lock();
        state.level = None;
        state.ended.clear();
        let ended = state.link.replace(link);
        let was_open = std::mem::replace(&mut state.was_open, true);
        drop(state);
        drop(ended);
        was_open
    }

    /// Notes that the link has ended, and the log level with it.
    pub(super) fn on_closed(&self) {
        let mut state = self.lock();
        state.level = None;
        let ended = state.link.take();
        drop(state);
        drop(ended);
    }

    /// The revision that is spoken and since when, while the link is open.
    pub(super) fn open_since(&self) -> Option<(Revision, std::time::Instant)> {
        self.lock().link.as_ref().map(|link| (link.revision, link.opened))
    }

    /// Whether the session that it was started for has ended.
    pub(super) fn is_left(&self) -> bool {
        self.conversation.as_ref().is_some_and(|one| one.strong_count() == 0)
    }

    /// How long the instance has been unused; `None` while it is in use.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let state = self.lock();
        (state.users == 0).then(|| state.last_used.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The destination of a message that names no call.
enum Place {
    /// To this call.
    Call(mpsc::Sender<Routed>),
    /// To a call that is being sent.
    Later,
    Nowhere(&'static str),
}

const NO_CALL: &str = "no call is running that could have asked";

impl State {
    /// The call that a message may belong to, if all candidates are calls of one client.
    fn place(&self, routed: &Routed) -> Place {
        let keys = routed.calls();
        let candidates = keys.iter().filter_map(|key| Some((key, self.calls.get(key)?)));
        let ended = keys.iter().filter_map(|key| self.ended.get(key));
        // The others are being sent, or ended long ago.
        let unknown = keys.len() - candidates.clone().count() - ended.clone().count();
        let beginning = self.beginning.iter().filter(|_| unknown > 0);
        let mut clients =
            candidates.clone().map(|(_, route)| &route.client).chain(ended).chain(beginning);
        let first = clients.next().filter(|_| unknown <= self.beginning.len());
        let Some(first) = first else { return Place::Nowhere(NO_CALL) };
        if !clients.all(|client| client.is_same_as(first)) {
            return Place::Nowhere(
                "calls of several callers are running, and the server does not say which of them \
                 asks (the upstream needs `scope = \"session\"`)",
            );
        }
        let can_answer = |route: &Route| match routed {
            Routed::Question(asked) => route.can_answer(asked.question()),
            _ => true,
        };
        let best = candidates
            .max_by_key(|(key, route)| (can_answer(route), !route.is_parked, Reverse(**key)));
        match best {
            Some((_, route)) => Place::Call(route.sender.clone()),
            None if unknown > 0 => Place::Later,
            None => Place::Nowhere(NO_CALL),
        }
    }
}

/// A call that is being sent.
struct Beginning<'i> {
    instance: &'i Instance,
    client: Arc<Whose>,
}

impl<'i> Beginning<'i> {
    fn new(instance: &'i Instance, client: Arc<Whose>) -> Self {
        instance.lock().beginning.push(client.clone());
        Self { instance, client }
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        let mut state = self.instance.lock();
        state.beginning.retain(|client| !Arc::ptr_eq(client, &self.client));
        let early = std::mem::take(&mut state.early);
        drop(state);
        for routed in early {
            self.instance.route(routed);
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(follower) = self.lock().follower.take() {
            follower.abort();
        }
    }
}

/// Keeps an instance from being stopped while it is in use.
#[derive(Debug)]
pub(super) struct InUse(pub(super) Arc<Instance>);

impl InUse {
    pub(super) fn new(instance: &Arc<Instance>) -> Self {
        instance.lock().users += 1;
        Self(instance.clone())
    }

    /// The call has ended.
    pub(super) fn forget(&self, call: CallKey) {
        let mut state = self.0.lock();
        let Some(route) = state.calls.remove(&call) else { return };
        state.ended.insert(call, route.client);
        if state.ended.len() > MAX_ENDED {
            state.ended.pop_first();
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users -= 1;
        state.last_used = Instant::now();
    }
}

#[cfg(test)]
mod tests;
