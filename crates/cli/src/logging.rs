//! The log on standard error: a line for people, or JSON for programs.

mod line; // a line for people

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::line::Line;

/// What is logged, and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Log {
    /// The least level of the log on standard error (off, error, warn, info, debug, trace), or
    /// levels by part: `info,sabir::articles=debug`. `info` has one line per call
    /// [default: info for an HTTP server on a terminal, else warn]
    #[arg(long = "log", global = true, value_name = "LEVELS", value_parser = targets,
          env = "SABIR_LOG")]
    levels: Option<Targets>,

    /// The form of the log: lines for people, or one JSON object per line
    #[arg(
        long = "log-format",
        global = true,
        value_name = "FORM",
        default_value = "text",
        env = "SABIR_LOG_FORMAT"
    )]
    form: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Text,
    Json,
}

/// The parts that can be named, beside `call`: our crates.
const PARTS: &[&str] = &[
    "articles",
    "auth",
    "budget",
    "call",
    "client",
    "cluster",
    "engine",
    "observe",
    "openapi",
    "outbound",
    "sources",
    "supervisor",
    "transports",
];

impl Log {
    /// Starts the log. `is_lively`: on a terminal, each call is shown by default.
    pub(crate) fn start(&self, is_lively: bool) {
        let on_terminal = io::stderr().is_terminal();
        let usual = match is_lively && on_terminal {
            true => LevelFilter::INFO,
            false => LevelFilter::WARN,
        };
        let levels = self.levels.clone().unwrap_or_else(|| of_level(usual));
        let log = tracing_subscriber::registry().with(levels);
        match self.form {
            Form::Text => {
                let line = Line { has_colors: on_terminal && allows_colors(), on_terminal };
                log.with(fmt::layer().event_format(line).with_writer(io::stderr)).init();
            }
            Form::Json => {
                let json = fmt::layer().json().flatten_event(true).with_span_list(false);
                log.with(json.with_writer(io::stderr)).init();
            }
        }
    }
}

/// See <https://no-color.org>. A dumb terminal would show the codes.
fn allows_colors() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A level for our crates. Other crates only warn: their lower levels are for their own developers.
fn of_level(level: LevelFilter) -> Targets {
    Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("sabir", level)
}

/// Reads `info`, `sabir::articles=debug` or several of them.
fn targets(text: &str) -> Result<Targets, String> {
    let mut levels = of_level(LevelFilter::WARN);
    for directive in text.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        match directive.split_once('=') {
            None => {
                let level = level(directive)?;
                let default = level.min(LevelFilter::WARN);
                levels = levels.with_default(default).with_target("sabir", level);
            }
            Some((part, written)) => {
                levels = levels.with_target(target(part.trim())?, level(written.trim())?);
            }
        }
    }
    Ok(levels)
}

fn level(text: &str) -> Result<LevelFilter, String> {
    let level = text.parse().ok().filter(|_| !text.bytes().all(|byte| byte.is_ascii_digit()));
    level.ok_or_else(|| {
        format!("unknown level `{text}` (expected off, error, warn, info, debug or trace)")
    })
}

/// The name that a part has in the log: `sabir::articles` is the crate `sabir_articles`.
fn target(part: &str) -> Result<String, String> {
    let Some(ours) = part.strip_prefix("sabir::") else { return Ok(part.to_owned()) };
    let (name, rest) = ours.split_at(ours.find("::").unwrap_or(ours.len()));
    match name {
        "call" => Ok(part.to_owned()),
        _ if PARTS.contains(&name) => Ok(format!("sabir_{name}{rest}")),
        _ => Err(format!("unknown part `{part}` (expected sabir::{})", PARTS.join(", sabir::"))),
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_that_of_our_crates() {
        let levels = targets("debug").unwrap();
        assert!(levels.would_enable("sabir_articles::reader", &Level::DEBUG));
        assert!(levels.would_enable("sabir::call", &Level::DEBUG));
        assert!(!levels.would_enable("hyper::proto", &Level::INFO));
        assert!(levels.would_enable("hyper::proto", &Level::WARN));
        let off = targets("off").unwrap();
        assert!(!off.would_enable("sabir_engine", &Level::ERROR));
        assert!(!off.would_enable("hyper", &Level::ERROR));
    }

    #[test]
    fn a_part_has_its_own_level() {
        let levels = targets("sabir::articles=debug, hyper=trace").unwrap();
        assert!(levels.would_enable("sabir_articles::reader", &Level::DEBUG));
        assert!(!levels.would_enable("sabir_engine", &Level::INFO));
        assert!(levels.would_enable("sabir_engine", &Level::WARN));
        assert!(levels.would_enable("hyper::proto", &Level::TRACE));
        let levels = targets("info,sabir::call=off").unwrap();
        assert!(levels.would_enable("sabir_sources", &Level::INFO));
        assert!(!levels.would_enable("sabir::call", &Level::ERROR));
        let levels = targets("sabir::sources::upstream=debug").unwrap();
        assert!(levels.would_enable("sabir_sources::upstream::server", &Level::DEBUG));
        assert!(!levels.would_enable("sabir_sources::http", &Level::DEBUG));
    }

    #[test]
    fn a_mistake_names_what_was_expected() {
        let wrong = |text| targets(text).unwrap_err();
        assert!(wrong("loud").starts_with("unknown level `loud` (expected off, error,"));
        assert!(wrong("3").starts_with("unknown level `3`"));
        assert!(
            wrong("sabir::article=debug").starts_with("unknown part `sabir::article` (expected")
        );
    }
}
