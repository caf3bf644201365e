//! A line for people. Foreign text in it cannot move the cursor, nor begin another line.

use std::fmt;
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::escape::escaped;

/// How lines are written.
pub(super) struct Line {
    pub(super) has_colors: bool,
    /// A terminal gets the local time of day; others get date and time in UTC.
    pub(super) on_terminal: bool,
}

const DIM: &str = "2";
const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.paint(&mut out, DIM, self.time())?;
        out.write_char(' ')?;
        if event.metadata().target() == "sabir::call" {
            return self.call(&mut out, &fields);
        }
        let level = *event.metadata().level();
        let color = match level {
            Level::ERROR => RED,
            Level::WARN => YELLOW,
            _ => DIM,
        };
        self.paint(&mut out, color, level)?;
        write!(out, " {}: {}", part(event.metadata().target()), fields.text("message"))?;
        for (name, value) in fields.0.iter().filter(|(name, _)| *name != "message") {
            write!(out, " {name}={value}")?;
        }
        if let Some(span) = context.lookup_current()
            && let Some(of_span) = span.extensions().get::<FormattedFields<N>>()
            && !of_span.fields.is_empty()
        {
            self.paint(&mut out, DIM, format_args!(" [{}]", escaped(&of_span.fields)))?;
        }
        writeln!(out)
    }
}

impl Line {
    /// `14:03:07.123 tools/call search: ok, 1.2 ms, 4.1 KB (claude-code, ann@token, 2025-11-25)`.
    fn call(&self, out: &mut Writer<'_>, fields: &Fields) -> fmt::Result {
        let outcome = fields.text("outcome");
        let color = match outcome {
            "ok" | "listening" => GREEN,
            "input required" => YELLOW,
            _ => RED,
        };
        write!(out, "{}", fields.text("method"))?;
        if let Some(tool) = fields.get("tool") {
            out.write_char(' ')?;
            self.paint(out, BOLD, tool)?;
        }
        out.write_str(": ")?;
        self.paint(out, color, outcome)?;
        let number = |name| fields.text(name).parse().unwrap_or(0);
        let took = Duration::from_micros(number("duration_us"));
        write!(out, ", {}, {}", duration(took), size(number("bytes")))?;
        let who = ["client", "caller", "revision"].into_iter().filter_map(|name| fields.get(name));
        let who: Vec<_> = who.collect();
        self.paint(out, DIM, format_args!(" ({})", who.join(", ")))?;
        if let Some(arguments) = fields.get("arguments") {
            write!(out, " {arguments}")?;
        }
        writeln!(out)
    }

    fn paint(&self, out: &mut Writer<'_>, color: &str, text: impl fmt::Display) -> fmt::Result {
        match self.has_colors {
            true => write!(out, "\x1b[{color}m{text}\x1b[0m"),
            false => write!(out, "{text}"),
        }
    }

    fn time(&self) -> String {
        match self.on_terminal {
            true => Zoned::now().strftime("%H:%M:%S%.3f").to_string(),
            false => Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        }
    }
}

/// The fields of an event, as text that a terminal only shows.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), escaped(value).into_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// The part of the program that an event comes from: `articles` for the crate `sabir_articles`.
fn part(target: &str) -> &str {
    let name = target.split("::").next().unwrap_or(target);
    name.strip_prefix("sabir_").unwrap_or(name)
}

/// A time with two or three digits.
fn duration(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{} ms", micros / 1_000),
        1_000_000..60_000_000 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
    }
}

/// A size, as people write it.
fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit behind the point is shown")]
    let bytes_ = bytes as f64;
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KB", bytes_ / 1024.0),
        _ => format!("{:.1} MB", bytes_ / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_short() {
        let micros = [0, 999, 1_234, 9_999, 12_345, 1_500_000, 61_000_000];
        let times: Vec<_> = micros.map(|n| duration(Duration::from_micros(n))).into();
        let expected = ["0 µs", "999 µs", "1.2 ms", "10.0 ms", "12 ms", "1.5 s", "1 min 1 s"];
        assert_eq!(times, expected);
        let sizes: Vec<_> = [0, 1_023, 1_024, 1_536, 3 << 20].map(size).into();
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KB", "1.5 KB", "3.0 MB"]);
    }

    #[test]
    fn a_part_is_named_without_its_prefix() {
        assert_eq!(part("sabir_articles::reader"), "articles");
        assert_eq!(part("hyper::proto"), "hyper");
    }
}
