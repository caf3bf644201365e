//! What can be served, one module per kind.

pub mod articles;
