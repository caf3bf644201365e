//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// The media type of the text.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A text that is being written. Writing to a string cannot fail.
#[derive(Default)]
pub(crate) struct Exposition(String);

/// The labels of a sample, whose values may be any text.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Begins a metric; its samples follow.
    pub(crate) fn metric(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A metric with one sample.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.metric(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// A sample. Labels without a value are left out, as Prometheus does not tell them apart.
    pub(crate) fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        let mut separator = '{';
        for (label, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
            self.0.push(separator);
            separator = ',';
            self.0.push_str(label);
            self.0.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    c => self.0.push(c),
                }
            }
            self.0.push('"');
        }
        if separator == ',' {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    pub(crate) fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_a_label() {
        let mut out = Exposition::default();
        out.metric("m_total", "counter", "Help.");
        out.sample("m_total", &[("a", "x\"\\\n{ü}"), ("b", ""), ("c", "1")], 7);
        out.gauge("g", "Other.", 0.5);
        assert_eq!(
            out.text(),
            "# HELP m_total Help.\n# TYPE m_total counter\nm_total{a=\"x\\\"\\\\\\n{ü}\",c=\"1\"} \
             7\n# HELP g Other.\n# TYPE g gauge\ng 0.5\n"
        );
    }
}
