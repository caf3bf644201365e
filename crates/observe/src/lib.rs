//! Observation for operators: metrics for Prometheus, a console in the browser, and recordings.
//!
//! [`Metrics`] and [`Timeline`] observe an engine; [`OperatorPages`] serves their data beside the
//! endpoint. None of them is needed to serve clients.

mod console; // the pages that operators look at
mod mask; // secrets in messages
mod metrics; // counts and durations, for Prometheus
mod otlp; // traces and metrics for OpenTelemetry
mod recorder; // every message, in a file
mod recording; // a recording that is read
mod timeline; // the last calls and their messages

pub use console::{ConsoleSettings, ConsoleToken, OperatorPages};
pub use metrics::Metrics;
pub use otlp::{Exporter, OtlpSettings, Tracer};
pub use recorder::Recorder;
pub use recording::{Difference, Event, EventKind, Head, Recording, Rules, differences, stories};
pub use timeline::{Bounds, Timeline};
