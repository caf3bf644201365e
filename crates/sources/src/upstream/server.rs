//! An upstream server: its instances, its catalog, its events.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use sabir_budget::CallQueue;
use sabir_client::{AuthError, Client, ClientConfig, ClientEvent, OAuth, ServerInfo};
use sabir_registry::{Context, Conversation, SourceHandle, StartError};
use sabir_supervisor::Supervisor;
use sabir_wire::Problem;
use sabir_wire::types::{ClientCapabilities, SubscriptionFilter, Topic, UI, UI_CLIENT};
use tokio::sync::Notify;

use super::catalog;
use super::instance::{Instance, Routed};
use super::link::OpenLink;
use super::mapping::{Mapped, Mapping};
use super::memory::UpstreamCatalog;
use super::parked::Parked;
use super::reach::Reach;
use super::settings::{SESSION_IDLE, Scope, Settings};
use crate::age::age;
use crate::login::User;

/// An upstream, and its known catalog.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) settings: Settings,
    pub(super) reach: Reach,
    supervisor: Supervisor,
    pub(super) mapping: Mapping,
    pub(super) mapped: ArcSwap<Mapped>,
    pub(super) known: Mutex<Known>,
    pub(super) handle: OnceLock<SourceHandle>,
    listing: Mutex<Listing>,
    /// Notified when an attempt to list the catalog has ended.
    learned: Notify,
    pub(super) instances: Mutex<HashMap<Option<Session>, Arc<Instance>>>,
    pub(super) parked: Parked,
    pub(super) queue: CallQueue,
    /// An earlier process tried to list the catalog, without success.
    pub(super) was_in_vain: bool,
    /// The watched URIs, as the upstream knows them.
    pub(super) watched: Mutex<BTreeSet<Box<str>>>,
    /// How often a connection was opened again.
    pub(super) restarts: AtomicU64,
}

/// The owner of an instance: the caller, and the session of the legacy era.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    user: User,
    conversation: Option<u64>,
}

/// The known catalog, and its state.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) catalog: Option<UpstreamCatalog>,
    /// When an earlier process listed it; `None` if this process has.
    pub(super) remembered: Option<SystemTime>,
    /// When it was last listed.
    pub(super) listed: Option<Instant>,
    pub(super) left_out: Vec<String>,
    /// Why the upstream cannot be used.
    pub(super) failure: Option<String>,
}

/// Whether the catalog is being listed, and with what it must be listed again after that.
#[derive(Debug, Default)]
struct Listing {
    is_running: bool,
    next: Option<(Arc<Instance>, Arc<ServerInfo>)>,
}

/// The shortest time between two listings.
const LIST_PAUSE: Duration = Duration::from_millis(250);

/// How many omissions of a listing are logged. The console and `sabir check` show all.
const MAX_SAID: usize = 8;

/// Instances of sessions. When full, the one that was idle longest is stopped; if all are in use,
/// a call of a further session is refused.
const MAX_INSTANCES: usize = 256;

/// Calls that wait in the queue. When full, a further call displaces the newest one of the caller
/// with the most waiting calls, or is refused.
const MAX_WAITING: usize = 1024;

/// How often instances are checked for being idle.
const IDLE_CHECK: Duration = Duration::from_secs(1);

impl Upstream {
    /// An upstream that is not started. Its last known catalog is loaded.
    pub(super) fn new(settings: Settings, reach: Reach, supervisor: &Supervisor) -> Arc<Self> {
        let mapping = Mapping::new(&settings.name, settings.naming.clone(), settings.task);
        let now = SystemTime::now();
        let loaded = settings.memory.as_ref().and_then(|memory| memory.load(now));
        let (catalog, remembered) = match loaded {
            Some((catalog, age)) => (Some(catalog), Some(now - age)),
            None => (None, None),
        };
        let memory = settings.memory.as_ref().filter(|_| catalog.is_none());
        let was_in_vain = memory.is_some_and(|memory| !memory.note_attempt());
        let mut mapped = mapping.apply(&catalog.clone().unwrap_or_default());
        mapped.offer.is_unknown = catalog.is_none();
        Arc::new(Self {
            queue: CallQueue::new(settings.concurrency, MAX_WAITING),
            reach,
            supervisor: supervisor.clone(),
            mapping,
            mapped: ArcSwap::from_pointee(mapped),
            known: Mutex::new(Known { catalog, remembered, ..Known::default() }),
            handle: OnceLock::new(),
            listing: Mutex::default(),
            learned: Notify::new(),
            instances: Mutex::default(),
            parked: Parked::default(),
            watched: Mutex::default(),
            was_in_vain,
            restarts: AtomicU64::new(0),
            settings,
        })
    }

    /// The instance for a call; it is started with the call.
    pub(super) fn instance(self: &Arc<Self>, context: &Context) -> Result<Arc<Instance>, Problem> {
        let user = self.reach.user(&context.caller).map_err(|error| self.no_credentials(&error))?;
        let session = match (self.settings.scope, &user) {
            (Scope::Session, user) => Some(Session {
                user: match user {
                    Some(user) if user.has_token() => user.clone(),
                    _ => User::of(&context.caller),
                },
                conversation: context.conversation.as_ref().map(|conversation| conversation.number),
            }),
            // A caller with credentials of their own has an instance of their own.
            (Scope::Shared, Some(user)) if *user != User::local() => {
                Some(Session { user: user.clone(), conversation: None })
            }
            (Scope::Shared, _) => None,
        };
        self.instance_of(session, user, context.conversation.as_ref())
    }

    pub(super) fn instance_of(
        self: &Arc<Self>,
        session: Option<Session>,
        user: Option<User>,
        conversation: Option<&Arc<Conversation>>,
    ) -> Result<Arc<Instance>, Problem> {
        let mut instances = lock(&self.instances);
        if let Some(instance) = instances.get(&session) {
            return Ok(instance.clone());
        }
        let mut stopped = None;
        if instances.len() >= MAX_INSTANCES {
            let idle = instances.iter().filter_map(|(key, one)| Some((one.idle_time()?, key)));
            let Some((_, key)) = idle.max_by_key(|(time, _)| *time) else {
                let name = &self.settings.name;
                let reason =
                    format!("upstream `{name}`: too many sessions (limit {MAX_INSTANCES})");
                return Err(Problem::ToolFailed(reason.into()));
            };
            let key = key.clone();
            stopped = instances.remove(&key);
        }
        let is_of_session = session.as_ref().is_some_and(|one| one.conversation.is_some());
        let conversation = conversation.filter(|_| is_of_session).map(Arc::downgrade);
        let name = &self.settings.name;
        let is_personal = user.as_ref().is_some_and(|user| *user != User::local());
        let credentials = self.reach.credentials(name, &user.unwrap_or_else(User::local));
        let credentials = credentials.map_err(|error| self.no_credentials(&error))?;
        let client = self.connect(credentials.clone());
        let instance = Instance::new(client, credentials, is_personal, conversation);
        instances.insert(session.clone(), instance.clone());
        drop(instances);
        drop(stopped);
        self.follow(session, &instance);
        Ok(instance)
    }

    fn no_credentials(&self, error: &AuthError) -> Problem {
        Problem::ToolFailed(format!("upstream `{}`: {error}", self.settings.name).into())
    }

    fn connect(&self, credentials: Option<Arc<OAuth>>) -> Client {
        // A legacy upstream learns our capabilities once, so all are declared; whether the client
        // of a call can answer is checked for each question. Views are declared because our clients
        // may show them.
        let capabilities = ClientCapabilities::everything().with_extension(UI, UI_CLIENT);
        let mut config = ClientConfig { capabilities, ..ClientConfig::default() };
        // The client of each call decides how long to wait.
        config.limits.call_time = self.settings.timeout;
        config.limits.call_max = None;
        config.reconnect.eager = self.settings.eager;
        let name = &*self.settings.name;
        config.tap = self.settings.tap.clone().map(|tap| (tap, name.into()));
        Client::without_answers(self.reach.transport(&self.supervisor, credentials), config)
    }

    /// Spawns the task that handles the events of an instance, and stops it when it is unused.
    fn follow(self: &Arc<Self>, session: Option<Session>, instance: &Arc<Instance>) {
        let upstream = Arc::downgrade(self);
        let events = instance.client.events();
        let weak = Arc::downgrade(instance);
        let task = tokio::spawn(async move {
            let mut tick = tokio::time::interval(IDLE_CHECK);
            loop {
                let event = tokio::select! {
                    event = events.next() => Some(event),
                    _ = tick.tick() => None,
                };
                let (Some(upstream), Some(instance)) = (upstream.upgrade(), weak.upgrade()) else {
                    return;
                };
                match event {
                    Some(event) => upstream.on_event(&instance, event),
                    None if upstream.stop_unused(session.as_ref(), &instance) => return,
                    None => {}
                }
            }
        });
        instance.set_follower(task.abort_handle());
    }

    /// Stops an instance whose session has ended or that has been idle for long; `false` if it is
    /// still wanted.
    fn stop_unused(&self, session: Option<&Session>, instance: &Arc<Instance>) -> bool {
        let mut instances = lock(&self.instances);
        if !instance.is_left() && !self.is_idle(instance) {
            return false;
        }
        // Another instance may have taken its place.
        let key = session.cloned();
        let is_kept = instances.get(&key).is_some_and(|kept| Arc::ptr_eq(kept, instance));
        let removed = is_kept.then(|| instances.remove(&key));
        drop(instances);
        drop(removed);
        true
    }

    fn is_idle(&self, instance: &Instance) -> bool {
        let limit = match instance.is_personal() {
            true => self.settings.idle_stop.or(Some(SESSION_IDLE)),
            false => self.settings.idle_time(),
        };
        let Some((limit, idle)) = limit.zip(instance.idle_time()) else { return false };
        let is_needed = self.settings.eager || !lock(&self.watched).is_empty();
        idle >= limit && !is_needed && instance.client.server().is_some()
    }

    fn on_event(self: &Arc<Self>, instance: &Arc<Instance>, event: ClientEvent) {
        match event {
            ClientEvent::Opened(server) => {
                let link = OpenLink {
                    upstream: self.settings.name.clone(),
                    revision: server.revision,
                    transport: self.reach.network(),
                    opened: Instant::now(),
                    handle: self.handle.get().cloned(),
                };
                if instance.on_opened(link) {
                    self.restarts.fetch_add(1, Ordering::Relaxed);
                    tracing::info!("upstream `{}`: opened again", self.settings.name);
                }
                instance.client.watch(self.filter(&server));
                // A catalog that was listed with a user's own credentials is used only if there is
                // no other.
                if !instance.is_personal() || lock(&self.known).catalog.is_none() {
                    self.learn(instance, &server);
                } else {
                    lock(&self.known).failure = None;
                }
            }
            ClientEvent::Closed(reason) => {
                instance.on_closed();
                let stderr = instance.client.stderr();
                let failure = with_stderr(&reason.to_string(), &stderr);
                let instances: Vec<_> = lock(&self.instances).values().cloned().collect();
                let is_kept = instances.iter().any(|one| Arc::ptr_eq(one, instance));
                // The upstream has not failed while another instance is open; this one is not.
                let is_reached = instances.iter().any(|one| one.client.server().is_some());
                let is_news = !is_reached
                    && lock(&self.known).failure.replace(failure.clone()).as_ref()
                        != Some(&failure);
                // A repeated reason is not a warning, nor is the end of an instance that we
                // stopped, which is no longer in the table.
                let name = &self.settings.name;
                match is_kept && is_news {
                    true => tracing::warn!("upstream `{name}`: closed: {failure}"),
                    false => tracing::debug!("upstream `{name}`: closed: {failure}"),
                }
                // Wakes those that wait for the first listing: it has failed.
                self.learned.notify_waiters();
            }
            ClientEvent::Changed(Topic::Resource(uri)) => {
                if let Some(handle) = self.handle.get() {
                    handle.updated(&*self.mapping.uris.outward(&uri));
                }
            }
            ClientEvent::Changed(_) => {
                if let Some(server) = instance.client.server().filter(|_| !instance.is_personal()) {
                    self.learn(instance, &server);
                }
            }
            ClientEvent::Log { calls, message } => instance.route(Routed::Log { calls, message }),
            ClientEvent::Question(asked) => instance.route(Routed::Question(asked)),
            ClientEvent::Notification { calls, method, params } => {
                instance.route(Routed::Notification { calls, method, params });
            }
            _ => {}
        }
    }

    /// Lists the catalog in the background. Any number of changes during a listing cause one
    /// further listing.
    fn learn(self: &Arc<Self>, instance: &Arc<Instance>, server: &Arc<ServerInfo>) {
        let mut next = Some((instance.clone(), server.clone()));
        {
            let mut listing = lock(&self.listing);
            if std::mem::replace(&mut listing.is_running, true) {
                listing.next = next;
                return;
            }
        }
        let upstream = self.clone();
        tokio::spawn(async move {
            while let Some((instance, server)) = next.take() {
                upstream.list(&instance, &server).await;
                {
                    let mut listing = lock(&upstream.listing);
                    next = listing.next.take();
                    listing.is_running = next.is_some();
                }
                if next.is_some() {
                    tokio::time::sleep(LIST_PAUSE).await;
                }
            }
        });
    }

    async fn list(self: &Arc<Self>, instance: &Arc<Instance>, server: &Arc<ServerInfo>) {
        let known = lock(&self.known).catalog.clone();
        match catalog::list(&instance.client, server, known).await {
            Ok((catalog, left_out)) => {
                let is_said = lock(&self.known).left_out == left_out;
                for reason in left_out.iter().filter(|_| !is_said).take(MAX_SAID) {
                    tracing::warn!("upstream `{}`: {reason}", self.settings.name);
                }
                self.set_catalog(catalog, left_out).await;
            }
            Err(error) => {
                let failure = format!("cannot list what it offers: {error}");
                tracing::warn!("upstream `{}`: {failure}", self.settings.name);
                lock(&self.known).failure = Some(failure);
            }
        }
        self.learned.notify_waiters();
    }

    async fn set_catalog(self: &Arc<Self>, catalog: UpstreamCatalog, left_out: Vec<String>) {
        if !self.replace_catalog(&catalog, left_out) {
            return;
        }
        let upstream = self.clone();
        // Checking thousands of schemas takes long.
        let done = tokio::task::spawn_blocking(move || {
            let name = &upstream.settings.name;
            if let Some(Err(error)) = upstream.handle.get().map(SourceHandle::changed) {
                tracing::warn!("upstream `{name}`: {error}");
            }
            let saved = upstream.settings.memory.as_ref();
            let saved = saved.map(|memory| memory.save(&catalog, SystemTime::now()));
            if let Some(Err(error)) = saved {
                tracing::warn!("upstream `{name}`: cannot remember its catalog: {error}");
            }
        });
        // It fails only when the runtime ends.
        let _ = done.await;
    }

    /// Stores a listed catalog; `false` if the same one was listed before.
    fn replace_catalog(&self, catalog: &UpstreamCatalog, left_out: Vec<String>) -> bool {
        let mut known = lock(&self.known);
        let is_new = known.catalog.as_ref() != Some(catalog);
        let is_stale = known.remembered.is_some();
        let listed = Some(Instant::now());
        *known = Known { catalog: Some(catalog.clone()), left_out, listed, ..Known::default() };
        if is_new {
            self.mapped.store(Arc::new(self.mapping.apply(catalog)));
        }
        is_new || is_stale
    }

    /// The changes that we subscribe to.
    fn filter(&self, server: &ServerInfo) -> SubscriptionFilter {
        let has = &server.discovered.capabilities;
        SubscriptionFilter {
            tools_list_changed: has.tools,
            prompts_list_changed: has.prompts,
            resources_list_changed: has.resources,
            resource_subscriptions: lock(&self.watched).iter().cloned().collect(),
            ..SubscriptionFilter::default()
        }
    }

    /// Updates the subscriptions after a change of `watched`. A shared upstream is started if it is
    /// not running.
    pub(super) fn rewatch(self: &Arc<Self>) {
        let instances: Vec<_> = match self.settings.scope {
            Scope::Shared => self.instance_of(None, None, None).into_iter().collect(),
            Scope::Session => lock(&self.instances).values().cloned().collect(),
        };
        for instance in instances {
            match instance.client.server() {
                Some(server) => instance.client.watch(self.filter(&server)),
                None => {
                    let resource_subscriptions = lock(&self.watched).iter().cloned().collect();
                    let filter =
                        SubscriptionFilter { resource_subscriptions, ..Default::default() };
                    instance.client.watch(filter);
                }
            }
        }
    }

    /// Why a call cannot be made, for its client.
    pub(super) fn describe_failure(&self, instance: &Instance, reason: &str) -> String {
        let mut text = format!("upstream `{}`: {reason}", self.settings.name);
        if reason.ends_with(&AuthError::LoginNeeded.to_string()) {
            text.push_str(&format!(" (run `sabir upstream login {}`)", self.settings.name));
        }
        text = with_stderr(&text, &instance.client.stderr());
        if let Some(since) = lock(&self.known).remembered {
            let since = since.elapsed().unwrap_or_default();
            text.push_str(&format!("\n(its tools are listed as they were {} ago)", age(since)));
        }
        text
    }

    /// Starts the upstream, and waits until its catalog is known.
    pub(super) async fn learn_first(self: Arc<Self>) -> Result<(), StartError> {
        let learned = self.learned.notified();
        tokio::pin!(learned);
        learned.as_mut().enable();
        let instance = self
            .instance_of(None, None, None)
            .map_err(|problem| StartError::new(problem.to_error().message))?;
        if let Some(credentials) = &instance.credentials
            && !credentials.is_ready().await
        {
            let reason = AuthError::LoginNeeded.to_string();
            let failure = self.describe_failure(&instance, &reason);
            lock(&self.known).failure = Some(failure.clone());
            return Err(StartError::new(failure));
        }
        match instance.client.server() {
            // The link was opened before, but the listing failed.
            Some(server) => self.learn(&instance, &server),
            // The follower of the instance lists the catalog once the link is open.
            None => drop(instance.client.open().await.map_err(|error| {
                StartError::new(self.describe_failure(&instance, &error.to_string()))
            })?),
        }
        if lock(&self.known).catalog.is_none() {
            learned.await;
        }
        let known = lock(&self.known);
        match (&known.catalog, &known.failure) {
            (None, Some(failure)) => Err(StartError::new(failure.clone())),
            _ => Ok(()),
        }
    }
}

/// A reason, and the last lines that the upstream wrote to standard error.
fn with_stderr(reason: &str, stderr: &[String]) -> String {
    const LINES: usize = 5;
    // The reason names the last line.
    if stderr.len() == 1 && reason.ends_with(&*stderr[0]) {
        return reason.to_owned();
    }
    let last = stderr[stderr.len().saturating_sub(LINES)..].iter();
    last.fold(reason.to_owned(), |text, line| text + "\n  stderr: " + line)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
