//! Side by side against the peers: what is measured, and with what.

pub mod echo; // the server under test
pub mod load; // the load generator
pub mod process; // a server as a process, on its core
pub mod servers; // who is measured
pub mod run; // the cases, round by round
pub mod spread; // what several rounds say together
pub mod figures; // all that was measured
pub mod machine; // and on what
pub mod text; // numbers and tables for people
pub mod report; // the tables of the page
pub mod plots; // its drawings
pub mod record; // what the hot paths cost, counted
