//! The log, on the standard error.

use std::io;
use std::sync::OnceLock;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;

use crate::args::LogLevel;

pub(crate) fn start(level: LogLevel) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // It is the first, so there is no other that it could replace.
    let _ = tracing::subscriber::set_global_default(Late { level, log: OnceLock::new() });
}

/// A log that is set up when there is something to log: most runs have nothing to say, and a program
/// that is started anew for every client shall not prepare for it.
struct Late {
    level: LevelFilter,
    log: OnceLock<Box<dyn Subscriber + Send + Sync>>,
}

impl Late {
    fn log(&self) -> &(dyn Subscriber + Send + Sync) {
        self.log.get_or_init(|| {
            let log = tracing_subscriber::fmt().with_max_level(self.level);
            Box::new(log.with_writer(io::stderr).finish())
        })
    }
}

impl Subscriber for Late {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.log().new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.log().record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.log().record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        self.log().event(event);
    }

    fn enter(&self, span: &Id) {
        self.log().enter(span);
    }

    fn exit(&self, span: &Id) {
        self.log().exit(span);
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.log().clone_span(span)
    }

    fn try_close(&self, span: Id) -> bool {
        self.log().try_close(span)
    }
}
