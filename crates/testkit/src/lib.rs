//! Transcripts and their players; fakes of a source and of the clock. For tests only.
//!
//! A protocol test reads as a connection ([`Transcript`]). The same text is played against the
//! state machine alone ([`SessionPlayer`]), the engine without I/O ([`ConnectionPlayer`]), a
//! client and a server joined in memory ([`Pair`]), and a program over a pipe ([`Program`]).
//!
//! Nothing here waits in real time, except for a program that has not answered or exited yet.

#[cfg(feature = "acme")]
mod acme; // an authority that issues certificates by ACME
mod call; // the context of a call without an engine
mod connection; // the engine, without I/O
pub mod fuzz; // the functions of fuzzers and property tests
mod house; // a server whose source is a script
mod housed; // players whose server is a house
#[cfg(target_os = "linux")]
pub mod leftovers; // processes that should be gone
mod matching; // compares a value with the expected one
mod pair; // a client and a server in memory
mod play; // a transcript against a player
mod player; // the interface of a player
mod program; // a program over a pipe
#[cfg(feature = "provider")]
mod provider; // a server that demands tokens, and issues them
mod scripts; // the transcripts that run everywhere
mod session; // the state machine alone
mod settings; // the settings of a script
mod source; // a source whose calls are ended by a script
mod server; // the stand-in as a server
mod stand_in; // a source that offers one of everything
#[cfg(feature = "tls")]
mod authority; // signs certificates
#[cfg(feature = "tls")]
mod tls; // TLS before a server that has none
mod transcript; // parses the text of a transcript

#[cfg(feature = "acme")]
pub use acme::{AcmeAuthority, Order};
#[cfg(feature = "tls")]
pub use authority::Authority;
pub use call::local_context;
pub use connection::ConnectionPlayer;
pub use house::House;
pub use housed::Housed;
pub use matching::difference;
pub use pair::Pair;
pub use play::{play, play_with};
pub use player::{CallNumber, Ending, Event, Player};
pub use program::Program;
#[cfg(feature = "provider")]
pub use provider::{Issued, Provider};
pub use scripts::{Script, all_scripts, play_scripts};
pub use server::{ClientPipe, StandInServer};
pub use session::SessionPlayer;
pub use settings::{BadSetting, apply_setting};
pub use source::{Called, ScriptedSource};
pub use stand_in::StandIn;
#[cfg(feature = "tls")]
pub use tls::TlsFront;
pub use transcript::{Step, Transcript};
