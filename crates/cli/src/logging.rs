//! The log on standard error.

use std::io;

use tracing_subscriber::filter::LevelFilter;

use crate::args::LogLevel;

/// Starts the log. At `info` it has one line per call: method, tool, caller, revision, duration and
/// outcome.
pub(crate) fn start(level: LogLevel) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).init();
}
