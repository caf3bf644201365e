//! Server-sent events, resumed where the server allows it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sabir_outbound::{Body, Error};
use sabir_wire::{SseEvent, SseReader};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::SendError;
use super::exchange::is_of_type;
use super::remote::Remote;
use crate::error::CallError;
use crate::io::CallKey;
use crate::pending::{self, Pending};

/// Time before a stream is resumed, unless the server sends another.
const RETRY: Duration = Duration::from_secs(1);
/// The range for a time that the server sends: a server that closes every stream must not make us
/// reconnect without a pause.
const MIN_RETRY: Duration = Duration::from_millis(50);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// Attempts in a row to resume a stream that fail or bring nothing. Then its call has failed.
const MAX_ATTEMPTS: u32 = 5;
/// An attempt that lasts so long counts as a success even if it brings nothing: proxies close idle
/// connections.
const LASTING: Duration = Duration::from_secs(5);
/// How long a stream may take to end after its answer. Then the connection is closed.
const END_TIME: Duration = Duration::from_secs(1);

/// The position in a stream.
#[derive(Debug)]
struct Position {
    /// The last event with an id: the stream can be resumed after it.
    last: Option<String>,
    retry: Duration,
    attempts: u32,
}

/// How reading ended.
enum End {
    /// The answer has come.
    Answered,
    /// The server closed the stream, or the connection failed.
    Closed(Option<Error>),
}

impl Position {
    fn new() -> Self {
        Self { last: None, retry: RETRY, attempts: 0 }
    }

    fn note(&mut self, event: &SseEvent) {
        if let Some(id) = &event.id {
            self.last = Some(id.clone()).filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Duration::from_millis(retry).clamp(MIN_RETRY, MAX_RETRY);
        }
    }
}

/// Reads the stream of a call until its answer.
pub(super) async fn answer(remote: &Remote, call: CallKey, mut body: Body) {
    let mut position = Position::new();
    loop {
        let began = Instant::now();
        let end = read(remote, Some(call), &mut body, &mut position).await;
        if began.elapsed() >= LASTING {
            position.attempts = 0;
        }
        let error = match end {
            End::Answered => {
                // Once the body is read to its end, the connection can be used again.
                let _ = tokio::time::timeout(END_TIME, drain(body)).await;
                return;
            }
            End::Closed(error) => error,
        };
        let reason = error.map_or("the server closed the stream".to_owned(), |e| e.to_string());
        // Only legacy servers give events an id.
        body = match resume(remote, &mut position).await {
            Some(Ok(body)) => body,
            // The request was sent, even if resuming its stream failed before a connection was
            // made.
            Some(Err(error)) => {
                return remote.inbox.fail(call, CallError::Lost(error.to_string()), None);
            }
            None => return remote.inbox.fail(call, CallError::Lost(reason), None),
        };
    }
}

/// Opens the stream again after its last event; `None` if that is not possible.
async fn resume(remote: &Remote, position: &mut Position) -> Option<Result<Body, SendError>> {
    let last = position.last.clone()?;
    loop {
        if position.attempts >= MAX_ATTEMPTS {
            return None;
        }
        position.attempts += 1;
        tokio::time::sleep(position.retry).await;
        match remote.listen(Some(&last)).await {
            Ok(response) if is_stream(&response) => return Some(Ok(response.into_body())),
            Ok(_) => return None,
            Err(error) if position.attempts >= MAX_ATTEMPTS => return Some(Err(error)),
            Err(_) => {}
        }
    }
}

/// Follows the stream of messages that belong to no call, as long as the server offers it. `opened`
/// is dropped when the server has opened or refused it.
pub(super) async fn follow(remote: Arc<Remote>, opened: oneshot::Sender<()>) {
    let mut position = Position::new();
    let mut opened = Some(opened);
    loop {
        position.attempts = position.attempts.saturating_add(1);
        let response = remote.listen(position.last.as_deref()).await;
        opened.take();
        match response {
            Ok(response) if is_stream(&response) => {
                let mut body = response.into_body();
                let _ = read(&remote, None, &mut body, &mut position).await;
                position.attempts = 1;
            }
            // The stream is optional.
            Ok(response)
                if response.status().is_success()
                    || matches!(response.status().as_u16(), 400 | 404 | 405) =>
            {
                return;
            }
            // A proxy, while the server is restarted.
            Ok(response) => {
                tracing::debug!(status = %response.status(), "no stream of notifications");
            }
            Err(error) => tracing::debug!(%error, "the stream of notifications failed"),
        }
        let wait = position.retry.saturating_mul(position.attempts).min(MAX_RETRY);
        tokio::time::sleep(wait).await;
    }
}

/// Reads events until the answer of the call, or the end of the stream.
async fn read(
    remote: &Remote,
    call: Option<CallKey>,
    body: &mut Body,
    position: &mut Position,
) -> End {
    let mut events = SseReader::new(remote.inbox.limits.message_size);
    let mut pending = Pending::new();
    loop {
        let chunk = match body.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return End::Closed(None),
            Err(error) => return End::Closed(Some(error)),
        };
        // A comment will do: a server that makes its clients poll has nothing else to send.
        position.attempts = 0;
        for event in events.push(&chunk) {
            match event {
                Ok(event) => {
                    position.note(&event);
                    deliver(remote, call, event).await;
                }
                Err(_) => remote.inbox.receive_too_long(call),
            }
        }
        if call.is_some_and(|call| !remote.inbox.is_waiting(call)) {
            return End::Answered;
        }
        if let Err(full) = pending.resize(events.buffered()) {
            return End::Closed(Some(Error::Refused(full)));
        }
    }
}

async fn deliver(remote: &Remote, call: Option<CallKey>, event: SseEvent) {
    let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
    // An event without data only carries an id.
    if is_message && !event.data.is_empty() {
        remote.inbox.receive(call, pending::count(Bytes::from(event.data))).await;
    }
}

async fn drain(mut body: Body) {
    while let Ok(Some(_)) = body.chunk().await {}
}

fn is_stream(response: &http::Response<Body>) -> bool {
    response.status().is_success() && is_of_type(response, "text/event-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_within_bounds_when_to_come_back() {
        let mut position = Position::new();
        for (said, taken) in
            [(0, MIN_RETRY), (500, Duration::from_millis(500)), (u64::MAX, MAX_RETRY)]
        {
            position.note(&SseEvent { retry: Some(said), ..SseEvent::default() });
            assert_eq!(position.retry, taken);
        }
    }
}
