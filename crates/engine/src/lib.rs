//! Where the protocol meets the work.
//!
//! A transport hands frames to a [`Connection`] and sends what comes out. The connection drives
//! the session's state machine; what it wants started goes through the router to the one function
//! that answers it, and from there to the source that owns it.

mod bell; // something may have happened
mod connection; // the driver: wait, handle, act
mod context; // what a method works with, and what it gives
mod engine; // what all conversations of a server share
mod guard; // a panic becomes an answer
mod events; // what running calls have to say
mod methods; // one module per page of the specification
mod router; // request to work; one arm per method
mod seal; // what a client keeps for us, and cannot read or change

pub use bell::Bell;
pub use connection::{Connection, Frame};
pub use engine::{Engine, EngineLimits, Event, Settings};
/// What is offered, and by whom: for transports, which depend on the engine alone.
pub use sabir_registry as registry;
pub use seal::SealKey;
