//! Runs the requests of sessions with the sources of a registry.
//!
//! A transport hands frames to a [`Connection`] and sends the frames that it returns. The
//! connection drives the session's state machine; a call goes through the router to the one
//! function that answers its method, and from there to its source.

mod admitted; // an outcome that there is memory for
mod await_result; // a tool for clients that know no tasks
mod calls; // a running call
mod connection; // the driver of one session
mod context; // the context of a method, and its answer
mod engine; // the state that all connections of a server share
mod events; // the events of running calls
mod guard; // a panic becomes an answer
mod methods; // one module per page of the specification
mod observe; // the events for observers
mod overseen; // requests under oversight
mod oversight; // the trait that admits requests and learns of their ends
mod peers; // other nodes that serve the same clients
mod router; // request to method; one arm each
mod seal; // state that a client keeps for us, and cannot read or change
mod start; // the start of a server
mod tasks; // calls whose results are fetched later
mod trace; // one span per request
mod wait; // waiting without holding the connection
mod work; // a call that is to be run

pub use connection::{Connection, Frame};
pub use engine::{Engine, EngineLimits, Settings};
pub use observe::{
    ClientEvent, ClientEventKind, Ended, Ending, ObservedCall, Observer, TransportKind,
};
pub use oversight::{Admission, CallEnd, Decision, Limited, Oversee, OverseenCall};
pub use peers::{Changes, Owner, PeerNews, Peers, Telling, split_route};
pub use seal::SealKey;
pub use tasks::TaskSettings;
pub use wait::Wait;
pub use work::{Done, Progress, Turn, Waiting, Work};
