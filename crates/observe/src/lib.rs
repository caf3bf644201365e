//! What operators see: metrics for Prometheus, a console in the browser, and recordings.
//!
//! [`Metrics`] and [`Timeline`] observe an engine; [`OperatorPages`] serves what they know beside
//! the endpoint. Neither of them is needed to serve clients.

mod console; // the pages that operators look at
mod mask; // secrets in messages
mod metrics; // counts and durations, for Prometheus
mod otlp; // traces and metrics for OpenTelemetry
mod recorder; // every message, in a file
mod recording; // a recording that is read
mod timeline; // the last calls, and what passed for them

pub use console::{ConsoleSettings, ConsoleToken, OperatorPages};
pub use metrics::Metrics;
pub use otlp::{Exporter, OtlpSettings, Tracer};
pub use recorder::Recorder;
pub use recording::{Difference, Event, EventKind, Head, Recording, Rules, differences, stories};
pub use timeline::{Bounds, Timeline};
