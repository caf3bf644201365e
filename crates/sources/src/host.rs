//! The process that started us, as a source: an editor that offers its tools over our standard
//! streams.
//!
//! The protocol of the pipe is that of the specification, in which the host is the server. What it
//! adds is in `docs/editors.md`: notifications of clients that come and go, and of the host's own.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sabir_client::{CallError, Client, ClientConfig, ClientEvent, Events, Transport};
use sabir_registry::{
    Offer, Outcome, Pending, Source, SourceHandle, StartError, Starting, ToolCall,
};
use sabir_wire::types::{CacheHint, CacheScope, Tool, ToolReply, Topic};
use sabir_wire::{Era, Problem, Raw};
use tokio::sync::watch;

/// The prefix of the notifications that are for us and not for our clients.
const OWN: &str = "notifications/";

/// A host. Clones of its `Arc` are the same one.
pub struct Host {
    client: Client,
    events: Events,
    tools: Mutex<Vec<Tool>>,
    on_own: OnceLock<OnOwn>,
    has_ended: watch::Sender<bool>,
}

/// Takes what the host tells us and not our clients.
type OnOwn = Box<dyn Fn(&str, Option<&Raw>) + Send + Sync>;

impl Host {
    /// A host at the other end of `transport`. Must be called inside a tokio runtime.
    pub fn new(transport: Arc<dyn Transport>) -> Arc<Self> {
        // A plug-in is written by hand: it is spared the question for its era.
        let mut config = ClientConfig { era: Some(Era::Legacy), ..ClientConfig::default() };
        // A diff stays open as long as its user thinks. The session of the caller has the limit.
        (config.limits.call_time, config.limits.call_max) = (None, None);
        let client = Client::without_answers(transport, config);
        let events = client.events();
        Arc::new(Self {
            client,
            events,
            tools: Mutex::default(),
            on_own: OnceLock::new(),
            has_ended: watch::Sender::new(false),
        })
    }

    /// Sets who takes the notifications that are for us. Only the first one counts.
    pub fn on_own(&self, on_own: impl Fn(&str, Option<&Raw>) + Send + Sync + 'static) {
        let _ = self.on_own.set(Box::new(on_own));
    }

    /// Sends a notification to the host. Dropped while the host has not completed its handshake, and
    /// while it does not read.
    pub fn tell(&self, method: &str, params: Raw) {
        if !self.client.notify(method, Some(params)) {
            tracing::debug!(method, "the host was not told");
        }
    }

    /// Waits until the host has completed its handshake, or cannot.
    pub async fn opened(&self) -> bool {
        self.client.open().await.is_ok()
    }

    /// Waits until the host is gone.
    pub async fn ended(&self) {
        let mut has_ended = self.has_ended.subscribe();
        let _ = has_ended.wait_for(|ended| *ended).await;
    }

    async fn list(&self, handle: &SourceHandle) -> Result<(), CallError> {
        let tools = self.client.list_tools().await?;
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
        if let Err(bad) = handle.changed() {
            tracing::warn!("the host's tools cannot be offered: {bad}");
        }
        Ok(())
    }

    /// Takes what the host says outside of calls, until it is gone.
    async fn follow(self: Arc<Self>, handle: SourceHandle) {
        loop {
            match self.events.next().await {
                ClientEvent::Changed(Topic::Tools) => {
                    if let Err(error) = self.list(&handle).await {
                        tracing::warn!("the host does not list its tools: {error}");
                    }
                }
                ClientEvent::Notification { method, params } if method.starts_with(OWN) => {
                    if let Some(on_own) = self.on_own.get() {
                        on_own(&method, params.as_ref());
                    }
                }
                ClientEvent::Notification { method, params } => {
                    handle.notify(&method, params.as_ref());
                }
                ClientEvent::Closed(_) => break,
                _ => {}
            }
        }
        self.has_ended.send_replace(true);
    }
}

/// A host as a source: all clones of the `Arc` are the same one.
#[derive(Debug, Clone)]
pub struct HostSource(pub Arc<Host>);

impl Source for HostSource {
    fn name(&self) -> String {
        "host".to_owned()
    }

    fn offer(&self) -> Offer {
        let tools = self.0.tools.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Who may register a tool at any moment promises nothing.
        let cache = CacheHint { ttl_ms: 0, scope: CacheScope::Private };
        Offer { tools, tolerant: true, changes: true, cache, ..Offer::default() }
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        let host = self.0.clone();
        Box::pin(async move {
            let failed = |reason: &dyn std::fmt::Display| {
                StartError::new(format!("the host does not answer: {reason}"))
            };
            let listed = match host.client.open().await {
                Ok(_) => host.list(&handle).await.map_err(|error| failed(&error)),
                Err(error) => Err(failed(&error)),
            };
            match listed {
                Ok(()) => drop(tokio::spawn(host.follow(handle))),
                Err(_) => drop(host.has_ended.send_replace(true)),
            }
            listed
        })
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let client = self.0.client.clone();
        Box::pin(async move {
            let ToolCall { name, arguments, context } = call;
            let calling = client.call_tool(&name, arguments);
            tokio::select! {
                called = calling => called.map(Outcome::Done).map_err(problem),
                // Dropping the call tells the host.
                () = context.call.cancelled() => Err(Problem::Internal("cancelled".into())),
            }
        })
    }
}

fn problem(error: CallError) -> Problem {
    match error {
        CallError::Rpc(error) => Problem::Chosen(error),
        other => Problem::ToolFailed(format!("the editor does not answer: {other}").into()),
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
