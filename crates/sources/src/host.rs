//! The process that started us, as a source: an editor that offers its tools over our standard
//! streams.
//!
//! The pipe carries the protocol of the specification, with the host as the server.
//! `docs/editors.md` describes the additions: notifications about clients that connect and leave,
//! and those of the host.

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

/// The process that started us: the server at our standard streams.
pub struct Host {
    client: Client,
    events: Events,
    tools: Mutex<Vec<Tool>>,
    on_own: OnceLock<OnOwn>,
    has_ended: watch::Sender<bool>,
}

/// Handles the notifications that are for us and not for our clients.
type OnOwn = Box<dyn Fn(&str, Option<&Raw>) + Send + Sync>;

impl Host {
    /// A host at the other end of `transport`. Must be called inside a tokio runtime.
    pub fn new(transport: Arc<dyn Transport>) -> Arc<Self> {
        // Plug-ins are written by hand and speak the legacy era, so the era is not probed.
        let mut config = ClientConfig { era: Some(Era::Legacy), ..ClientConfig::default() };
        // A diff may stay open for hours. The caller's session has the time limit.
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

    /// Sets the handler of the notifications that are for us. Only the first call counts.
    pub fn on_own(&self, on_own: impl Fn(&str, Option<&Raw>) + Send + Sync + 'static) {
        let _ = self.on_own.set(Box::new(on_own));
    }

    /// Sends a notification to the host. Dropped while the host has not completed its handshake, and
    /// while it does not read.
    pub fn tell(&self, method: &str, params: Raw) {
        if !self.client.notify(method, Some(params)) {
            tracing::debug!(method, "a notification to the host was dropped");
        }
    }

    /// Waits for the handshake with the host. Returns `false` if it fails.
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

    /// Handles the events of the host outside of calls until its connection closes.
    async fn follow(self: Arc<Self>, handle: SourceHandle) {
        loop {
            match self.events.next().await {
                ClientEvent::Changed(Topic::Tools) => {
                    if let Err(error) = self.list(&handle).await {
                        tracing::warn!("the host does not list its tools: {error}");
                    }
                }
                ClientEvent::Notification { method, params, .. } if method.starts_with(OWN) => {
                    if let Some(on_own) = self.on_own.get() {
                        on_own(&method, params.as_ref());
                    }
                }
                ClientEvent::Notification { method, params, .. } => {
                    handle.notify(&method, params.as_ref());
                }
                ClientEvent::Closed(_) => break,
                _ => {}
            }
        }
        self.has_ended.send_replace(true);
    }
}

/// A host as a source.
#[derive(Debug, Clone)]
pub struct HostSource(pub Arc<Host>);

impl Source for HostSource {
    fn name(&self) -> String {
        "host".to_owned()
    }

    fn offer(&self) -> Offer {
        let tools = self.0.tools.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The host may register a tool at any moment, so the list must not be cached.
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
                // Dropping the call cancels it at the host.
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
