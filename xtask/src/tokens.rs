//! Rust text as a flat list of tokens, read by `proc-macro2`. Comments and doc comments are dropped,
//! so no rule mistakes a word in prose for code.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};

/// A word, literal or mark, and the line that it begins on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or an identifier (a raw one without its `r#`).
    Word,
    /// A string, character or number, with its quotes and prefix.
    Literal,
    /// `::`, or any other single character; brackets too.
    Mark,
}

impl Token {
    /// Is this the word or mark `text`? A literal never is.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }
}

/// Splits Rust text into tokens. Text that is not Rust has none: the compiler reports it.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    flatten(text.parse().unwrap_or_default(), &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut is_joined = false;
    let push = |kind, text: String, span: Span, tokens: &mut Vec<Token>| {
        tokens.push(Token { kind, text, line: span.start().line });
    };
    for tree in stream {
        match tree {
            TokenTree::Group(group) if is_doc(&group.stream()) => {
                // The `#` or `#!` before it.
                while tokens.last().is_some_and(|last| last.is("#") || last.is("!")) {
                    tokens.pop();
                }
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(Kind::Mark, open.into(), group.span_open(), tokens);
                flatten(group.stream(), tokens);
                push(Kind::Mark, close.into(), group.span_close(), tokens);
            }
            TokenTree::Ident(word) => {
                let text = word.to_string().trim_start_matches("r#").into();
                push(Kind::Word, text, word.span(), tokens);
            }
            TokenTree::Literal(literal) => {
                push(Kind::Literal, literal.to_string(), literal.span(), tokens);
            }
            TokenTree::Punct(mark) => {
                let text = mark.as_char();
                match tokens.last_mut() {
                    Some(last) if is_joined && text == ':' && last.is(":") => last.text.push(':'),
                    _ => push(Kind::Mark, text.into(), mark.span(), tokens),
                }
                is_joined = mark.spacing() == Spacing::Joint;
            }
        }
    }
}

/// `doc = "…"`, the form in which a doc comment is read.
fn is_doc(attribute: &TokenStream) -> bool {
    let mut trees = attribute.clone().into_iter();
    let is_doc = matches!(trees.next(), Some(TokenTree::Ident(word)) if word == "doc");
    is_doc && matches!(trees.next(), Some(TokenTree::Punct(mark)) if mark.as_char() == '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = tokens(text).into_iter().map(|t| t.text).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn words_marks_and_double_colons() {
        check("use a::b_1;", &["use", "a", "::", "b_1", ";"]);
        check("r#type::x", &["type", "::", "x"]);
        check("x: ::std::A", &["x", ":", "::", "std", "::", "A"]);
        check("f(a)[1]{}", &["f", "(", "a", ")", "[", "1", "]", "{", "}"]);
    }

    #[test]
    fn comments_are_dropped() {
        check("a // b\nc /* d */", &["a", "c"]);
        check("//! file\n/// doc\n#[doc = \"x\"]\nfn", &["fn"]);
        check("#[doc(hidden)] a", &["#", "[", "doc", "(", "hidden", ")", "]", "a"]);
    }

    #[test]
    fn a_literal_is_never_a_word() {
        assert!(tokens("use")[0].is("use"));
        assert!(!tokens("\"use\"")[0].is("\"use\""));
        check(r###"r#"a " b"# c"###, &[r###"r#"a " b"#"###, "c"]);
    }

    #[test]
    fn a_token_has_the_line_that_it_begins_on() {
        let lines: Vec<_> =
            tokens("a\n\"x\ny\" b\n/* \n */ c\n(\n)").iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 2, 3, 5, 6, 7]);
    }

    #[test]
    fn text_that_is_not_rust_has_no_tokens() {
        check("fn f( {", &[]);
        check("\"open", &[]);
    }
}
