//! What a player can do: take what the client says, and tell what the server says and wants done.

use std::time::Duration;

use bytes::Bytes;
use sabir_session::CallNotification;
use sabir_wire::Raw;
use sabir_wire::types::Topic;

/// A server, at some level of the house, that a transcript can be played against.
pub trait Player {
    /// The client says something: one frame, without its newline.
    fn say(&mut self, frame: &[u8]);

    /// The client says no more.
    fn end_input(&mut self);

    /// What the server says next; `None` if it says nothing more by itself.
    fn hear(&mut self) -> Option<Bytes>;

    /// What happens next inside the server; `None` if nothing more does by itself.
    fn event(&mut self) -> Option<Event>;

    /// Ends a call.
    fn finish(&mut self, call: CallNumber, ending: Ending);

    /// A running call has something to say.
    fn note(&mut self, call: CallNumber, note: CallNotification);

    /// Something that is offered changed.
    fn change(&mut self, topic: Topic);

    /// Time passes.
    fn pass(&mut self, time: Duration);

    /// What was said before the script said that it would be, without waiting for more.
    fn said_too_much(&mut self) -> Option<Bytes>;

    /// The script is over: whatever the server still has to say.
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
    /// Nobody wants this call any more.
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
