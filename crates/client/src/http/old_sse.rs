//! HTTP+SSE of 2024-11-05: one stream of events for all messages of the server, and an address,
//! named by its first event, for all messages of the client.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Request};
use sabir_outbound::{Body, Limits};
use sabir_wire::{SseEvent, SseReader};
use tokio::sync::mpsc;
use url::Url;

use super::exchange::is_of_type;
use super::remote::failure;
use super::{HttpTarget, SendError};
use crate::error::{CallError, OpenError};
use crate::io::{LinkKind, Order};
use crate::link::{Inbox, Link, Opening, Transport};

/// The old transport to a server.
#[derive(Debug)]
pub(super) struct OldSseTransport(pub(super) Arc<HttpTarget>);

impl Transport for OldSseTransport {
    fn kind(&self) -> LinkKind {
        LinkKind::Pipe
    }

    fn open(&self, link: Link) -> Opening<'_> {
        Box::pin(async move {
            let Link { orders, inbox } = link;
            let mut stream = Stream::open(&self.0, &inbox).await?;
            let endpoint = stream.endpoint(&self.0).await?;
            let target = self.0.clone();
            tokio::spawn(async move {
                let reason = tokio::select! {
                    reason = stream.deliver(&inbox) => reason,
                    () = post_all(&target, &endpoint, orders, &inbox) => "closed".to_owned(),
                };
                inbox.end(OpenError::Ended(reason), &[]);
            });
            Ok(())
        })
    }
}

struct Stream {
    body: Body,
    events: SseReader,
    /// Events that were read and not yet delivered.
    waiting: Vec<SseEvent>,
}

impl Stream {
    async fn open(target: &HttpTarget, inbox: &Inbox) -> Result<Self, OpenError> {
        let start = |error: &dyn std::fmt::Display| OpenError::Start(error.to_string());
        let mut request = Request::get(&target.url).body(Bytes::new()).map_err(|e| start(&e))?;
        request.headers_mut().extend(target.headers.clone());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let limits = Limits { idle: None, total: None, body: u64::MAX, ..Limits::default() };
        let response = target.send(request, &limits).await.map_err(|error| match error {
            SendError::Auth(error) => OpenError::Auth(error),
            SendError::Http(error) => start(&error),
        })?;
        let status = response.status();
        if !status.is_success() || !is_of_type(&response, "text/event-stream") {
            let body = "neither Streamable HTTP nor a stream of events".to_owned();
            return Err(OpenError::Status { status: status.as_u16(), body });
        }
        let events = SseReader::new(inbox.limits.message_size);
        Ok(Self { body: response.into_body(), events, waiting: Vec::new() })
    }

    /// The address to post to. It must have the origin of the stream, or the server could direct
    /// our messages, with their headers, to any host.
    async fn endpoint(&mut self, target: &HttpTarget) -> Result<String, OpenError> {
        let invalid = |reason: &str| OpenError::Invalid(reason.to_owned());
        while self.waiting.is_empty() {
            let chunk = self.body.chunk().await.map_err(|e| OpenError::Ended(e.to_string()))?;
            let chunk = chunk.ok_or_else(|| invalid("no `endpoint` event"))?;
            self.waiting.extend(self.events.push(&chunk).into_iter().flatten());
        }
        let first = self.waiting.remove(0);
        if first.event.as_deref() != Some("endpoint") {
            return Err(invalid("the first event is not `endpoint`"));
        }
        let base = Url::parse(&target.url).map_err(|_| invalid("the URL"))?;
        let endpoint = base.join(&first.data).map_err(|_| invalid("the URL in `endpoint`"))?;
        if endpoint.origin() != base.origin() {
            return Err(invalid("the URL in `endpoint` has another origin"));
        }
        Ok(endpoint.into())
    }

    /// Delivers the messages of the server. Returns the reason of the end.
    async fn deliver(&mut self, inbox: &Inbox) -> String {
        loop {
            for event in self.waiting.drain(..) {
                if event.event.as_deref().is_none_or(|kind| kind == "message") {
                    inbox.receive(None, Bytes::from(event.data)).await;
                }
            }
            match self.body.chunk().await {
                Ok(Some(chunk)) => {
                    for event in self.events.push(&chunk) {
                        match event {
                            Ok(event) => self.waiting.push(event),
                            Err(_) => inbox.receive_too_long(None),
                        }
                    }
                }
                Ok(None) => return "the server closed the stream".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }
}

/// Posts messages one after the other, until there are no more.
async fn post_all(
    target: &HttpTarget,
    endpoint: &str,
    mut orders: mpsc::UnboundedReceiver<Order>,
    inbox: &Inbox,
) {
    while let Some(order) = orders.recv().await {
        let Order::Send(outgoing) = order else { continue };
        let length = outgoing.frame.len();
        let Ok(mut request) = Request::post(endpoint).body(outgoing.frame) else { continue };
        request.headers_mut().extend(target.headers.clone());
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let sent = target.send(request, &Limits::default()).await;
        inbox.sent(length);
        let error = match sent {
            Ok(response) if response.status().is_success() => continue,
            Ok(response) => {
                let status = response.status().as_u16();
                CallError::Status { status, body: String::new() }
            }
            Err(error) => failure(&error),
        };
        match outgoing.call {
            Some(call) => inbox.fail(call, error, None),
            None => tracing::debug!(%error, "a message that has no answer was not sent"),
        }
    }
}
