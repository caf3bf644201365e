//! The benchmark: Sabir side by side with its peers.

pub mod echo; // the server under test
pub mod load; // the load generator
pub mod process; // a server as a process on its core
pub mod servers; // the servers that are measured
pub mod run; // the cases and their rounds
pub mod spread; // median and range of several rounds
pub mod figures; // the results
pub mod machine; // the machine that they belong to
pub mod goals; // the goals, and whether they are reached
pub mod text; // numbers and tables
pub mod report; // the tables of docs/performance.md
pub mod plots; // its plots
pub mod record; // instructions and allocations of the hot paths
