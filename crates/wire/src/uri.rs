//! URI templates (RFC 6570), as far as resources need them: reading a URI back into variables.
//!
//! Understood are simple expressions `{name}`, which match one path segment or query value, and
//! `{+name}` or `{name*}` (also `{/name*}`), which match across slashes.

/// A URI template, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Box<str>),
    /// Matches anything but `/`, `?` and `#`.
    Segment(Box<str>),
    /// Matches anything.
    Path(Box<str>),
}

/// Why a template cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// A brace has no partner.
    #[error("a brace is not closed")]
    Brace,
    /// Two variables stand side by side, so that a URI could be read in several ways.
    #[error("two variables stand side by side")]
    Ambiguous,
    /// An expression is none of those understood.
    #[error("only `{{name}}`, `{{+name}}` and `{{name*}}` are understood")]
    Expression,
}

impl UriTemplate {
    /// Takes `template` apart.
    pub fn parse(template: &str) -> Result<Self, BadTemplate> {
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            if open > 0 {
                parts.push(Part::Literal(rest[..open].into()));
            } else if matches!(parts.last(), Some(Part::Segment(_) | Part::Path(_))) {
                return Err(BadTemplate::Ambiguous);
            }
            let close = rest.find('}').filter(|close| *close > open).ok_or(BadTemplate::Brace)?;
            let expression = &rest[open + 1..close];
            if let Some(path) = expression.strip_prefix('/') {
                parts.push(Part::Literal("/".into()));
                parts.push(Self::variable(path)?);
            } else {
                parts.push(Self::variable(expression)?);
            }
            rest = &rest[close + 1..];
        }
        if rest.contains('}') {
            return Err(BadTemplate::Brace);
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.into()));
        }
        Ok(Self { parts })
    }

    fn variable(expression: &str) -> Result<Part, BadTemplate> {
        let legal = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        };
        let (name, crosses) = match (expression.strip_prefix('+'), expression.strip_suffix('*')) {
            (Some(name), _) | (_, Some(name)) => (name, true),
            _ => (expression, false),
        };
        match (legal(name), crosses) {
            (false, _) => Err(BadTemplate::Expression),
            (true, true) => Ok(Part::Path(name.into())),
            (true, false) => Ok(Part::Segment(name.into())),
        }
    }

    /// The names of its variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Segment(name) | Part::Path(name) => Some(name.as_ref()),
        })
    }

    /// The values of the variables in `uri`, decoded; `None` if it is not of this family.
    pub fn read(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        let mut values = Vec::new();
        read_parts(&self.parts, uri, &mut values).then_some(values)
    }
}

fn read_parts<'t>(parts: &'t [Part], uri: &str, values: &mut Vec<(&'t str, String)>) -> bool {
    let Some((part, after)) = parts.split_first() else { return uri.is_empty() };
    match part {
        Part::Literal(text) => {
            uri.strip_prefix(text.as_ref()).is_some_and(|rest| read_parts(after, rest, values))
        }
        Part::Segment(name) => {
            let end = uri.find(['/', '?', '#']).unwrap_or(uri.len());
            read_variable(name, after, uri, end, values)
        }
        Part::Path(name) => read_variable(name, after, uri, uri.len(), values),
    }
}

/// Gives `name` the longest value of at most `end` bytes that lets the rest match.
fn read_variable<'t>(
    name: &'t str,
    after: &'t [Part],
    uri: &str,
    end: usize,
    values: &mut Vec<(&'t str, String)>,
) -> bool {
    for at in (1..=end).rev().filter(|at| uri.is_char_boundary(*at)) {
        let Some(value) = decode(&uri[..at]) else { continue };
        values.push((name, value));
        if read_parts(after, &uri[at..], values) {
            return true;
        }
        values.pop();
    }
    false
}

/// Undoes percent-encoding; `None` if the bytes are no text.
fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let hex = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let template = UriTemplate::parse(template).unwrap();
        let values = template.read(uri)?;
        Some(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
    }

    #[test]
    fn variables_are_read_back() {
        assert_eq!(
            read("test://template/{id}/data", "test://template/123/data"),
            pairs(&[("id", "123")])
        );
        assert_eq!(
            read("article:///{category}/{slug}", "article:///how/to%20go"),
            pairs(&[("category", "how"), ("slug", "to go")])
        );
        assert_eq!(read("file:///{+path}", "file:///a/b/c.txt"), pairs(&[("path", "a/b/c.txt")]));
        assert_eq!(read("file://{/path*}", "file:///a/b"), pairs(&[("path", "a/b")]));
    }

    #[test]
    fn a_segment_does_not_cross_a_slash() {
        assert_eq!(read("t://{id}/data", "t://1/2/data"), None);
        assert_eq!(read("t://{id}/data", "t:///data"), None);
    }

    #[test]
    fn broken_templates_are_refused() {
        for (template, error) in [
            ("t://{id", BadTemplate::Brace),
            ("t://id}", BadTemplate::Brace),
            ("t://{a}{b}", BadTemplate::Ambiguous),
            ("t://{?q}", BadTemplate::Expression),
            ("t://{}", BadTemplate::Expression),
        ] {
            assert_eq!(UriTemplate::parse(template), Err(error), "{template}");
        }
    }
}
