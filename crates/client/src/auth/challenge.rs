//! The challenge of a refusal: the header `WWW-Authenticate`. Spec: RFC 9110 11.6.1, RFC 6750,
//! RFC 9728 5.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// The demands of a server on the token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// Where the server's metadata is.
    pub(crate) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(crate) scopes: Vec<String>,
    pub(crate) error: Option<String>,
    /// The token must be bound to a key.
    pub(crate) wants_proof: bool,
}

impl Challenge {
    /// The challenge for a token; an empty one if the headers have none.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut challenges = values.filter_map(|value| value.to_str().ok()).flat_map(parse);
        let found = challenges.find(|(scheme, _)| {
            scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("dpop")
        });
        let Some((scheme, params)) = found else { return Self::default() };
        let wants_proof = scheme.eq_ignore_ascii_case("dpop");
        let mut challenge = Self { wants_proof, ..Self::default() };
        for (name, value) in params {
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => challenge.scopes = value.split_whitespace().map(Into::into).collect(),
                "error" => challenge.error = Some(value),
                _ => {}
            }
        }
        challenge
    }

    /// Whether the token is valid but lacks scopes.
    pub(crate) fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

type Params = Vec<(String, String)>;

/// The schemes of a header, each with its parameters. Malformed parts are skipped.
fn parse(mut rest: &str) -> Vec<(String, Params)> {
    let mut challenges: Vec<(String, Params)> = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let after_space = after.trim_start_matches([' ', '\t']);
        match after_space.strip_prefix('=') {
            _ if rest.is_empty() => return challenges,
            Some(after) => {
                let (value, after) = value(after.trim_start_matches([' ', '\t', '=']));
                if let Some((_, params)) = challenges.last_mut().filter(|_| !word.is_empty()) {
                    params.push((word.to_owned(), value));
                }
                rest = after;
            }
            None => {
                challenges.push((word.to_owned(), Vec::new()));
                rest = after;
            }
        }
    }
}

/// A quoted or plain value, and the rest of the text.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find([' ', '\t', ',']).unwrap_or(text.len()));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Challenge {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
        }
        Challenge::read(&headers)
    }

    #[test]
    fn parameters_are_read_in_any_order_and_quoting() {
        let found = read(&[
            r#"Bearer realm="a, b", scope="one  two",error=insufficient_scope, resource_metadata="https://x/\"y\"""#,
        ]);
        assert_eq!(found.scopes, ["one", "two"]);
        assert!(found.wants_more_scopes());
        assert_eq!(found.resource_metadata.as_deref(), Some("https://x/\"y\""));
    }

    #[test]
    fn only_the_challenge_for_a_token_counts() {
        let found = read(&[
            r#"Basic realm="x", scope="not this""#,
            r#"Negotiate abc==, bearer Scope = "this", Digest scope="nor this""#,
        ]);
        assert_eq!(found.scopes, ["this"]);
        assert_eq!(read(&["Basic realm=x"]), Challenge::default());
        assert_eq!(read(&[]), Challenge::default());
    }

    #[test]
    fn a_malformed_challenge_is_ignored() {
        for text in ["", ",,,", "=", "Bearer", "Bearer =x", "Bearer scope=\"", "\"", "Bearer a=\\"]
        {
            assert_eq!(read(&[text]).resource_metadata, None, "{text}");
        }
    }
}
