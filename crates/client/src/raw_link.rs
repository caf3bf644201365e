//! A link without a conversation, for a program that sends prepared messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sabir_wire::{Id, Incoming, Malformed, Message, decode};
use tokio::sync::mpsc;

use crate::config::Limits;
use crate::error::OpenError;
use crate::io::{CallKey, Head, Input, Order, Outgoing};
use crate::link::{Inbox, Link, Receiver, Transport};

/// Received frames that the program has not taken. When full, further ones are dropped.
const MAX_WAITING: usize = 10_000;

/// A link that carries messages as they are.
#[derive(Debug)]
pub struct RawLink {
    orders: mpsc::UnboundedSender<Order>,
    arrived: mpsc::Receiver<Result<Bytes, String>>,
    arrivals: Arc<Arrivals>,
    last_call: i64,
    depth: usize,
}

/// Receives the frames of a link.
#[derive(Debug)]
struct Arrivals {
    frames: mpsc::Sender<Result<Bytes, String>>,
    /// Requests without an answer.
    waiting: Mutex<HashMap<Id, CallKey>>,
}

impl RawLink {
    /// Opens a link.
    pub async fn open(transport: &dyn Transport) -> Result<Self, OpenError> {
        let (orders, taken) = mpsc::unbounded_channel();
        let (frames, arrived) = mpsc::channel(MAX_WAITING);
        let limits = Limits::default();
        let (depth, waiting) = (limits.message_depth, Mutex::default());
        let arrivals = Arc::new(Arrivals { frames, waiting });
        let inbox = Inbox::new(arrivals.clone(), limits);
        transport.open(Link { orders: taken, inbox }).await?;
        Ok(Self { orders, arrived, arrivals, last_call: 0, depth })
    }

    /// Sends a message. `head` has the parts that HTTP repeats in its headers.
    pub fn send(&mut self, frame: impl Into<Bytes>, head: Head) {
        let frame = frame.into();
        let request = match decode(&frame, self.depth) {
            Ok(Incoming::One(Message::Request { id, .. })) => Some(id),
            // The answers to a batch arrive together.
            Ok(Incoming::Batch(_)) => Some(Id::from(-1)),
            // The answer may have no id.
            Err(malformed) if malformed.answerable => Some(Id::from(-2)),
            _ => None,
        };
        let call = request.map(|id| {
            self.last_call += 1;
            let call = CallKey(self.last_call);
            self.arrivals.lock().insert(id, call);
            call
        });
        // A transport that has ended has reported it.
        let _ = self.orders.send(Order::Send(Outgoing { call, frame, head, reply: None }));
    }

    /// The next message of the server, or why there is none. `None` after the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, String>> {
        self.arrived.recv().await
    }
}

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, CallKey>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver for Arrivals {
    fn receive(&self, call: Option<CallKey>, frame: &Bytes, parsed: Result<Incoming, Malformed>) {
        match parsed {
            Ok(Incoming::One(Message::Response { id: Some(id), .. })) => {
                self.lock().remove(&id);
            }
            // Over HTTP, the exchange tells which request is answered.
            Ok(Incoming::One(Message::Response { id: None, .. }) | Incoming::Batch(_)) => {
                self.lock().retain(|_, waiting| Some(*waiting) != call);
            }
            _ => {}
        }
        let _ = self.frames.try_send(Ok(frame.clone()));
    }

    fn handle(&self, input: Input) {
        let failed = match input {
            Input::Failed { exchange, failure, .. } => {
                self.lock().retain(|_, waiting| *waiting != exchange);
                failure.to_string()
            }
            Input::Received { .. } => "a message is too long".to_owned(),
            _ => return,
        };
        let _ = self.frames.try_send(Err(failed));
    }

    fn end(&self, reason: OpenError, _: &[CallKey]) {
        let _ = self.frames.try_send(Err(reason.to_string()));
    }

    fn sent(&self, _: usize) {}

    fn is_waiting(&self, call: CallKey) -> bool {
        self.lock().values().any(|waiting| *waiting == call)
    }
}
