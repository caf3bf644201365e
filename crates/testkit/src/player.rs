//! The interface of a player: it takes the client's messages, and returns those of the server and the
//! events inside it.

use std::time::Duration;

use bytes::Bytes;
use sabir_session::CallNotification;
use sabir_wire::Raw;
use sabir_wire::types::Topic;

/// A server, at some level of the architecture, that a transcript can be played against.
pub trait Player {
    /// The client sends one frame, without its newline.
    fn say(&mut self, frame: &[u8]);

    /// The client closes its input.
    fn end_input(&mut self);

    /// The next frame of the server; `None` if it sends no more by itself.
    fn hear(&mut self) -> Option<Bytes>;

    /// The next event inside the server; `None` if there are no more by themselves.
    fn event(&mut self) -> Option<Event>;

    /// Ends a call.
    fn finish(&mut self, call: CallNumber, ending: Ending);

    /// A running call reports something.
    fn note(&mut self, call: CallNumber, note: CallNotification);

    /// Something that is offered changed.
    fn change(&mut self, topic: Topic);

    /// Time passes.
    fn pass(&mut self, time: Duration);

    /// The frames that arrived before the script expects them, without waiting for more.
    fn said_too_much(&mut self) -> Option<Bytes>;

    /// The script is over: the remaining frames of the server.
    fn leave(&mut self) -> Vec<Bytes>;

    /// Whether this player sees calls begin and end. A program over a pipe does not.
    fn sees_inside(&self) -> bool {
        true
    }
}

/// Names a call within one player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallNumber(pub u64);

/// Something that happened inside the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A call began, or began again.
    Start(CallNumber),
    /// The call was cancelled.
    Abort(CallNumber),
    /// A handshake is complete.
    Ready,
    /// The connection is over.
    Close,
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// With a result, in the newest shape of the specification.
    Result(Raw),
    /// With an error of its own choice.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// With questions, in the shape of an `input_required` result.
    Asks(Raw),
    /// The tool says that it failed.
    Fails(String),
    /// With a panic.
    Panics,
}
