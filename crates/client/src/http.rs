//! Streamable HTTP of both eras, and the old HTTP+SSE.

mod exchange; // one POST and its answer
mod old_sse; // HTTP+SSE of 2024-11-05
mod remote; // the server's address, and the session of the legacy era
mod stream; // server-sent events, resumed where the server allows it

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use sabir_outbound::{Body, HttpClient, Limits, Policy};
use sabir_wire::Method;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use self::old_sse::OldSseTransport;
use self::remote::Remote;
use crate::auth::{OAuth, SendError};
use crate::error::OpenError;
use crate::io::{CallKey, LinkKind, Order};
use crate::link::{Link, Opening, Transport};

/// How long requests wait until the server has opened the stream of notifications. A server without
/// one refuses it at once.
const STREAM_TIME: Duration = Duration::from_secs(1);

/// A server behind a URL.
#[derive(Clone, Debug)]
pub struct HttpTarget {
    /// The URL of the endpoint.
    pub url: String,
    /// Headers for each request, such as credentials. Mark secret values as sensitive.
    pub headers: HeaderMap,
    /// Sends the requests, and knows which addresses are allowed.
    pub http: HttpClient,
    /// Gets the access token that the server demands.
    pub auth: Option<Arc<OAuth>>,
}

impl HttpTarget {
    /// A server that a person chose: private addresses are allowed, plain `http` only on this
    /// machine.
    pub fn new(url: impl Into<String>) -> Result<Self, OpenError> {
        let http = HttpClient::new(Policy::trusting());
        let http = http.map_err(|error| OpenError::Impossible(error.to_string()))?;
        Ok(Self { url: url.into(), headers: HeaderMap::new(), http, auth: None })
    }

    /// Checks whether the URL may be reached, as far as possible before its name is resolved.
    pub fn check(&self) -> Result<(), OpenError> {
        let checked = self.http.check(&web_url(&self.url));
        checked.map_err(|error| OpenError::Impossible(error.to_string()))
    }

    /// Sends a request with the access token, if there is one. If the server refuses the token, the
    /// request is repeated with another.
    pub(crate) async fn send(
        &self,
        request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, SendError> {
        match &self.auth {
            Some(auth) => auth.send(&self.http, request, limits).await,
            None => Ok(self.http.send(request, limits).await?),
        }
    }

    /// Adds a secret header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, OpenError> {
        let invalid = || OpenError::Impossible(format!("invalid header `{name}`"));
        let header = HeaderName::try_from(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }
}

/// The URL of the first request: WebSocket begins with HTTP.
pub(crate) fn web_url(url: &str) -> Cow<'_, str> {
    match url.starts_with("ws://") || url.starts_with("wss://") {
        true => Cow::Owned(url.replacen("ws", "http", 1)),
        false => Cow::Borrowed(url),
    }
}

/// Streamable HTTP. If the server has only the old HTTP+SSE, that is used.
#[derive(Debug)]
pub struct HttpTransport(Arc<HttpTarget>);

impl HttpTransport {
    /// A transport to this server.
    pub fn new(target: HttpTarget) -> Self {
        Self(Arc::new(target))
    }
}

impl Transport for HttpTransport {
    fn kind(&self) -> LinkKind {
        LinkKind::Http
    }

    fn open(&self, link: Link) -> Opening<'_> {
        Box::pin(async move {
            self.0.check()?;
            let Link { orders, inbox } = link;
            let remote = Arc::new(Remote::new(self.0.clone(), inbox));
            tokio::spawn(run(remote, orders));
            Ok(())
        })
    }

    fn fallback(&self) -> Option<Arc<dyn Transport>> {
        Some(Arc::new(OldSseTransport(self.0.clone())))
    }
}

/// Carries out orders until there are no more.
async fn run(remote: Arc<Remote>, mut orders: mpsc::UnboundedReceiver<Order>) {
    // Tasks that still run when the link ends are aborted with the set.
    let mut tasks = JoinSet::new();
    let mut exchanges: HashMap<CallKey, AbortHandle> = HashMap::new();
    while let Some(order) = orders.recv().await {
        while tasks.try_join_next().is_some() {}
        if exchanges.len() > 2 * tasks.len() + 16 {
            exchanges.retain(|_, exchange| !exchange.is_finished());
        }
        match order {
            Order::Abort(call) => {
                if let Some(exchange) = exchanges.remove(&call) {
                    exchange.abort();
                }
            }
            Order::Send(outgoing) => {
                // Exchanges do not wait for each other; the table of calls bounds them.
                remote.inbox.sent(outgoing.frame.len());
                let is_initialized = outgoing.head.method == Some(Method::Initialized);
                match outgoing.call {
                    Some(call) => {
                        let task = tasks.spawn(exchange::call(remote.clone(), call, outgoing));
                        exchanges.insert(call, task);
                    }
                    // Servers may refuse requests that arrive before this notification.
                    None if is_initialized => {
                        exchange::tell(&remote, outgoing).await;
                        // Servers drop questions and notifications until the stream is open.
                        let (opened, is_open) = oneshot::channel();
                        tasks.spawn(stream::follow(remote.clone(), opened));
                        let _ = tokio::time::timeout(STREAM_TIME, is_open).await;
                    }
                    None => {
                        let remote = remote.clone();
                        tasks.spawn(async move { exchange::tell(&remote, outgoing).await });
                    }
                }
            }
        }
    }
    drop(tasks);
    exchange::leave(&remote).await;
}
