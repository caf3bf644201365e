//! A received message, parsed in place or by the computing pool.

use bytes::Bytes;
use sabir_budget::{ComputeError, compute};
use sabir_engine::Connection;
use sabir_session::StreamId;
use sabir_wire::{Caller, Incoming, Malformed, Message, Method, ParsedRequest, decode};

/// Longer messages are parsed by the pool: the threads of the transports serve other clients, too.
pub(crate) const PARSED_IN_PLACE: usize = 256 << 10;

/// A message that was parsed.
#[expect(clippy::large_enum_variant, reason = "nearly all messages are the large variant")]
pub(crate) enum ReceivedMessage {
    /// A request.
    Request(ParsedRequest),
    /// Anything else.
    Other(Result<Incoming, Malformed>),
}

impl ReceivedMessage {
    /// Parses a message with a nesting of at most `depth`.
    pub(crate) fn parse(text: &Bytes, depth: usize) -> Self {
        if let Some(request) = ParsedRequest::decode(text, depth) {
            return Self::Request(request);
        }
        match decode(text, depth) {
            Ok(Incoming::One(Message::Request { id, method, params })) => {
                Self::Request(ParsedRequest::read(id, method, params))
            }
            frame => Self::Other(frame),
        }
    }

    /// Parses a message that may be long.
    pub(crate) async fn parse_long(
        caller: &Caller,
        text: Bytes,
        depth: usize,
    ) -> Result<Self, ComputeError> {
        match text.len() {
            ..=PARSED_IN_PLACE => Ok(Self::parse(&text, depth)),
            _ => compute(caller.share(), move |_| Ok(Self::parse(&text, depth))).await,
        }
    }

    pub(crate) fn hand_to(self, connection: &mut Connection, stream: StreamId, caller: Caller) {
        match self {
            Self::Request(request) => connection.receive_request(stream, caller, request, None),
            Self::Other(frame) => connection.receive_decoded(stream, caller, frame),
        }
    }

    /// Whether it is a request with this method.
    pub(crate) fn is(&self, method: &Method) -> bool {
        matches!(self, Self::Request(request) if request.method == *method)
    }
}
