//! Metrics in the text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

use super::histogram::Buckets;

/// The media type of the text.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric and its samples, with the names of OpenTelemetry.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// `s`, `By`, or empty for a plain number.
    pub(crate) unit: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    pub(crate) samples: Vec<(Labels, Sample)>,
}

/// The labels of a sample. One without a value is left out.
pub(crate) type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gauge,
    /// A number that only grows.
    Counter,
    Histogram,
}

#[derive(Clone, Debug)]
pub(crate) enum Sample {
    Number(f64),
    Histogram(Buckets),
}

impl Family {
    pub(crate) fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, kind: Kind::Gauge, help, samples: Vec::new() }
    }

    /// A number that only grows, since the process has started.
    pub(crate) fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, kind: Kind::Counter, help, samples: Vec::new() }
    }

    /// Durations in seconds.
    pub(crate) fn durations(name: &'static str, help: &'static str) -> Self {
        Self { name, unit: "s", kind: Kind::Histogram, help, samples: Vec::new() }
    }

    /// The same with a number.
    #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^52")]
    pub(crate) fn with(self, number: usize) -> Self {
        self.with_labels(Vec::new(), Sample::Number(number as f64))
    }

    pub(crate) fn with_labels(mut self, labels: Labels, sample: Sample) -> Self {
        self.samples.push((labels, sample));
        self
    }

    /// Its name in Prometheus, which ends with the unit.
    pub(crate) fn text_name(&self) -> String {
        let unit = match self.unit {
            "s" => "_seconds",
            "By" => "_bytes",
            _ => "",
        };
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }

    /// Writes it, unless it has no samples. Writing to a string cannot fail.
    pub(crate) fn write(&self, out: &mut String) {
        if self.samples.is_empty() {
            return;
        }
        let (name, help) = (self.text_name(), self.help);
        let kind = match self.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, sample) in &self.samples {
            match sample {
                Sample::Number(number) => write_sample(out, &name, labels, None, number),
                Sample::Histogram(buckets) => {
                    let bucket = format!("{name}_bucket");
                    let mut count = 0;
                    for (bound, of_bucket) in buckets.labelled() {
                        count += of_bucket;
                        write_sample(out, &bucket, labels, Some(bound), count);
                    }
                    let seconds = buckets.sum.as_secs_f64();
                    write_sample(out, &format!("{name}_sum"), labels, None, seconds);
                    write_sample(out, &format!("{name}_count"), labels, None, count);
                }
            }
        }
    }
}

fn write_sample(
    out: &mut String,
    name: &str,
    labels: &Labels,
    bound: Option<&str>,
    value: impl Display,
) {
    out.push_str(name);
    let mut separator = '{';
    let labels = labels.iter().map(|(label, value)| (label.replace('.', "_"), value.as_str()));
    let bound = bound.map(|bound| ("le".to_owned(), bound));
    for (label, value) in labels.chain(bound).filter(|(_, value)| !value.is_empty()) {
        out.push(separator);
        separator = ',';
        out.push_str(&label);
        out.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    if separator == ',' {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_a_label() {
        let labels =
            vec![("a.b", "x\"\\\n{ü}".to_owned()), ("b", String::new()), ("c", "1".into())];
        let family =
            Family::gauge("m.used", "By", "Help.").with_labels(labels, Sample::Number(7.0));
        let mut out = String::new();
        family.write(&mut out);
        Family::gauge("g", "", "Other.")
            .with_labels(Vec::new(), Sample::Number(0.5))
            .write(&mut out);
        Family::gauge("none", "", "Without samples.").write(&mut out);
        assert_eq!(
            out,
            "# HELP m_used_bytes Help.\n# TYPE m_used_bytes gauge\nm_used_bytes{a_b=\"x\\\"\\\\\\n{ü}\",\
             c=\"1\"} 7\n# HELP g Other.\n# TYPE g gauge\ng 0.5\n"
        );
    }
}
