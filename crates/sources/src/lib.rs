//! What can be served, one module per kind.

pub mod keeper; // children that never outlive us
