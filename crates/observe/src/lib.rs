//! What operators see: metrics for Prometheus, and a console in the browser.
//!
//! [`Metrics`] and [`Timeline`] observe an engine; [`OperatorPages`] serves what they know beside
//! the endpoint. Neither of them is needed to serve clients.

mod console; // the pages that operators look at
mod metrics; // counts and durations, for Prometheus
mod timeline; // the last calls

pub use console::{ConsoleToken, OperatorPages};
pub use metrics::Metrics;
pub use timeline::{Bounds, Timeline};
