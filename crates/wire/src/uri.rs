//! URI templates (RFC 6570), as far as resources need them: reading a URI back into variables.
//!
//! Supported are `{name}`, which matches one path segment or query value, and `{+name}`, `{name*}` and
//! `{/name*}`, which match across slashes.

/// A parsed URI template.
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

/// A mistake in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// A brace is not closed, or not opened.
    #[error("invalid URI template: unbalanced brace")]
    Brace,
    /// Two variables without a text between them, so that a URI has several readings.
    #[error("invalid URI template: no text between two variables")]
    Ambiguous,
    /// An expression that is not supported.
    #[error(
        "unsupported URI template expression (expected `{{name}}`, `{{+name}}` or `{{name*}}`)"
    )]
    Expression,
    /// It has more parts than [`UriTemplate::MAX_PARTS`].
    #[error("invalid URI template: more than {} variables and texts", UriTemplate::MAX_PARTS)]
    TooLong,
}

impl UriTemplate {
    /// How many variables and texts between them a template may have. It may come from an untrusted
    /// server, and each part needs memory of the length of the URI that is matched.
    pub const MAX_PARTS: usize = 64;

    /// Greatest length of a URI that is matched.
    pub const MAX_URI: usize = 64 << 10;

    /// Parses a template.
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
        if parts.len() > Self::MAX_PARTS {
            return Err(BadTemplate::TooLong);
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

    /// The names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Segment(name) | Part::Path(name) => Some(name.as_ref()),
        })
    }

    /// The values of the variables in `uri`, decoded; `None` if it does not match.
    ///
    /// Each variable takes as much as it can. The URI is untrusted: the time is linear in its length,
    /// and a URI of more than [`UriTemplate::MAX_URI`] bytes does not match.
    pub fn read(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        if uri.len() > Self::MAX_URI {
            return None;
        }
        // Most URIs do not match, which their beginning shows.
        if matches!(self.parts.first(), Some(Part::Literal(head)) if !uri.starts_with(&**head)) {
            return None;
        }
        let cuts = cuts(uri)?;
        let starts = self.starts(uri, &cuts);
        let mut values = Vec::new();
        let mut at = 0;
        for (part, next) in self.parts.iter().zip(&starts[1..]) {
            let end = part.ends(uri, &cuts, next)[at]?;
            if let Part::Segment(name) | Part::Path(name) = part {
                values.push((name.as_ref(), decode(&uri[at..end])?));
            }
            at = end;
        }
        (at == uri.len()).then_some(values)
    }

    /// For each part, and for the end after the last one: the positions where it may begin so that
    /// it and all parts after it match.
    fn starts(&self, uri: &str, cuts: &[bool]) -> Vec<Vec<bool>> {
        let mut next: Vec<bool> = (0..=uri.len()).map(|at| at == uri.len()).collect();
        let mut all = Vec::with_capacity(self.parts.len() + 1);
        for part in self.parts.iter().rev() {
            let starts = part.ends(uri, cuts, &next).iter().map(Option::is_some).collect();
            all.push(std::mem::replace(&mut next, starts));
        }
        all.push(next);
        all.reverse();
        all
    }
}

impl Part {
    /// For each position where it may begin: the last position where it may end so that the `next`
    /// part may begin there.
    fn ends(&self, uri: &str, cuts: &[bool], next: &[bool]) -> Vec<Option<usize>> {
        match self {
            Self::Literal(text) => literal_ends(uri, text, next),
            Self::Segment(_) => variable_ends(uri, cuts, next, b"/?#"),
            Self::Path(_) => variable_ends(uri, cuts, next, b""),
        }
    }
}

fn literal_ends(uri: &str, text: &str, next: &[bool]) -> Vec<Option<usize>> {
    let fits = |at: &usize| uri.as_bytes()[*at..].starts_with(text.as_bytes());
    let ends = (0..=uri.len()).map(|at| Some(at).filter(fits).map(|at| at + text.len()));
    ends.map(|end| end.filter(|end| next[*end])).collect()
}

/// A variable is at least one byte long and holds none of the `stops`.
fn variable_ends(uri: &str, cuts: &[bool], next: &[bool], stops: &[u8]) -> Vec<Option<usize>> {
    let mut ends = vec![None; uri.len() + 1];
    // The last valid end of a variable that begins before this position.
    let mut last: Option<usize> = None;
    for at in (0..uri.len()).rev() {
        let end = at + 1;
        if cuts[end] && next[end] && last.is_none() {
            last = Some(end);
        }
        if stops.contains(&uri.as_bytes()[at]) {
            last = None;
        }
        ends[at] = last.filter(|_| cuts[at]);
    }
    ends
}

/// The positions at which a URI may be cut without cutting a character, plain or `%`-escaped;
/// `None` if an escape is invalid.
fn cuts(uri: &str) -> Option<Vec<bool>> {
    let bytes = uri.as_bytes();
    let mut cuts = vec![false; bytes.len() + 1];
    let mut at = 0;
    while at < bytes.len() {
        let (byte, width) = match bytes[at] {
            b'%' => (escaped(&bytes[at..])?, 3),
            plain => (plain, 1),
        };
        let begins_character = byte & 0b1100_0000 != 0b1000_0000;
        cuts[at] = begins_character;
        at += width;
    }
    cuts[bytes.len()] = true;
    Some(cuts)
}

/// The byte of a `%`-escape.
fn escaped(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    Some((digit(1)? * 16 + digit(2)?) as u8)
}

/// Decodes percent-encoding; `None` if the bytes are not UTF-8.
fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            bytes.push(escaped(rest)?);
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
    fn each_variable_takes_as_much_as_it_can() {
        assert_eq!(
            read("x:{+a}/{b}-{c}", "x:1/2/3-4-5"),
            pairs(&[("a", "1/2"), ("b", "3-4"), ("c", "5")])
        );
        assert_eq!(read("x:{+a}.{+b}", "x:a.b.c/d"), pairs(&[("a", "a.b"), ("b", "c/d")]));
        assert_eq!(read("x:{a}", "x:"), None);
        assert_eq!(read("x:y", "x:y"), pairs(&[]));
        assert_eq!(read("x:y", "x:yz"), None);
    }

    #[test]
    fn no_character_is_cut_in_two() {
        assert_eq!(read("x:{a}%A9", "x:%C3%A9"), None);
        assert_eq!(read("x:{a}/b", "x:%C3%A9é%2F/b"), pairs(&[("a", "éé/")]));
        for wrong in ["x:%", "x:%4", "x:%zz", "x:%+1", "x:%C3", "x:%A9"] {
            assert_eq!(read("x:{a}", wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_uri_may_be_so_long_and_no_longer_and_is_read_in_no_time() {
        let dashes = "-".repeat(UriTemplate::MAX_URI - 5);
        let longest = format!("t://{dashes}/");
        let head = &dashes[3..];
        let values = pairs(&[("a", head), ("b", "-"), ("c", "/")]);
        assert_eq!(read("t://{+a}-{+b}-{+c}", &longest), values);
        assert_eq!(read("t://{+a}-{+b}-{c}", &longest), None);
        assert_eq!(read("t://{+a}", &longest).map(|values| values.len()), Some(1));
        assert_eq!(read("t://{+a}", &format!("{longest}-")), None);
    }

    #[test]
    fn a_template_may_have_so_many_parts_and_no_more() {
        let template = |variables: usize| format!("t:{}", "/{+a}".repeat(variables));
        let most = UriTemplate::MAX_PARTS / 2;
        assert_eq!(UriTemplate::parse(&template(100_000)), Err(BadTemplate::TooLong));
        assert_eq!(UriTemplate::parse(&template(most + 1)), Err(BadTemplate::TooLong));
        let uri = format!("t:{}", "/-".repeat(UriTemplate::MAX_URI / 2 - 1));
        assert_eq!(read(&template(most), &uri).map(|values| values.len()), Some(most));
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
