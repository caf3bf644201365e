//! Side by side against the peers: what is measured, and with what.

pub mod load; // the load generator
