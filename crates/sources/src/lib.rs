//! What can be served, one module per kind of source.

pub mod function; // a Rust function
