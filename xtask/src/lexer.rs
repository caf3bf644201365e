//! Rust text as a flat list of tokens.
//!
//! Enough to tell code, literals and comments apart, so that a rule is never
//! fooled by a word in a string or in a doc comment. Comments are dropped.
//! Nothing here knows about items, blocks or tests.

/// A word, literal or mark of the code, and the line that it begins on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    pub(crate) text: &'t str,
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or an identifier (a raw one without its `r#`).
    Word,
    /// A string, character or number, with its quotes and prefix.
    Literal,
    /// `::`, a lifetime, or any other single character.
    Mark,
}

impl Token<'_> {
    /// Is this the word or mark `text`? A literal never is.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }
}

/// Splits Rust text into tokens. Text that is not Rust gives odd tokens, never a panic.
pub(crate) fn lex(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1 };
    let mut tokens = Vec::with_capacity(text.len() / 5);
    while let Some(token) = lexer.token() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    line: usize,
}

impl<'t> Lexer<'t> {
    fn token(&mut self) -> Option<Token<'t>> {
        self.skip_blanks_and_comments();
        let (start, line) = (self.at, self.line);
        let kind = match self.peek(0)? {
            b'"' => self.string(),
            b'\'' => self.quote(),
            b':' if self.peek(1) == Some(b':') => self.mark(2),
            first if is_word(first) => return Some(self.word()),
            _ => self.mark(1),
        };
        Some(Token { kind, text: &self.text[start..self.at], line })
    }

    fn skip_blanks_and_comments(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b), _) if b.is_ascii_whitespace() => self.advance(1),
                (Some(b'/'), Some(b'/')) => {
                    while self.peek(0).is_some_and(|b| b != b'\n') {
                        self.at += 1;
                    }
                }
                (Some(b'/'), Some(b'*')) => self.skip_block_comment(),
                _ => return,
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => (depth, self.at) = (depth + 1, self.at + 2),
                (Some(b'*'), Some(b'/')) => (depth, self.at) = (depth - 1, self.at + 2),
                (Some(_), _) => self.advance(1),
                (None, _) => return,
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// A word, or the literal that it turns out to be the prefix of.
    fn word(&mut self) -> Token<'t> {
        let (start, line) = (self.at, self.line);
        self.skip_word();
        let word = &self.text[start..self.at];
        let hashes = self.bytes[self.at..].iter().take_while(|b| **b == b'#').count();
        let kind = match (word, self.peek(hashes)) {
            ("r" | "br" | "cr", Some(b'"')) => self.raw_string(hashes),
            ("b" | "c", Some(b'"')) if hashes == 0 => self.string(),
            ("b", Some(b'\'')) if hashes == 0 => self.quote(),
            ("r", Some(next)) if hashes == 1 && is_word(next) => {
                self.at += 1;
                let name = self.at;
                self.skip_word();
                return Token { kind: Kind::Word, text: &self.text[name..self.at], line };
            }
            _ if word.as_bytes()[0].is_ascii_digit() => Kind::Literal,
            _ => Kind::Word,
        };
        Token { kind, text: &self.text[start..self.at], line }
    }

    fn skip_word(&mut self) {
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Kind {
        self.at += 1;
        self.skip_to_closing(b'"')
    }

    fn raw_string(&mut self, hashes: usize) -> Kind {
        self.at += hashes + 1;
        while let Some(b) = self.peek(0) {
            self.advance(1);
            let closing = &self.bytes[self.at..];
            if b == b'"' && closing.len() >= hashes && closing[..hashes].iter().all(|b| *b == b'#')
            {
                self.at += hashes;
                break;
            }
        }
        Kind::Literal
    }

    /// A character, or else a lifetime: `'a'` has a second quote, `'a` has none.
    fn quote(&mut self) -> Kind {
        let inner = self.text[self.at + 1..].chars().next().map_or(0, char::len_utf8);
        if self.peek(1) == Some(b'\\') || self.peek(1 + inner) == Some(b'\'') {
            self.at += 1;
            return self.skip_to_closing(b'\'');
        }
        self.at += 1;
        self.skip_word();
        Kind::Mark
    }

    fn skip_to_closing(&mut self, quote: u8) -> Kind {
        while let Some(b) = self.peek(0) {
            self.advance(1);
            match b {
                b'\\' => self.advance(1),
                b if b == quote => break,
                _ => {}
            }
        }
        // An escape at the very end, or before a character of several bytes.
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        Kind::Literal
    }

    fn mark(&mut self, length: usize) -> Kind {
        self.at += length;
        Kind::Mark
    }

    fn advance(&mut self, count: usize) {
        for _ in 0..count {
            match self.peek(0) {
                Some(b'\n') => (self.at, self.line) = (self.at + 1, self.line + 1),
                Some(_) => self.at += 1,
                None => return,
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }
}

/// Every byte of a character beyond ASCII counts as part of a word.
fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = lex(text).iter().map(|t| t.text).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn words_marks_and_double_colons() {
        check("use a::b_1;", &["use", "a", "::", "b_1", ";"]);
        check("r#type::x", &["type", "::", "x"]);
        check("1_000..0x1f", &["1_000", ".", ".", "0x1f"]);
        check("naïve→", &["naïve→"]);
    }

    #[test]
    fn comments_are_dropped_even_nested_and_unfinished_ones() {
        check("a // b\nc", &["a", "c"]);
        check("a /* b /* c */ d */ e", &["a", "e"]);
        check("a /* b", &["a"]);
        check("/// doc\n//! inner\nx", &["x"]);
    }

    #[test]
    fn a_string_is_one_literal_whatever_it_holds() {
        check(r#"f("a // \" b", 1)"#, &["f", "(", r#""a // \" b""#, ",", "1", ")"]);
        check(r###"r#"a " b"# c"###, &[r###"r#"a " b"#"###, "c"]);
        check(r#"b"x" c"y" br"z" r"\" w"#, &[r#"b"x""#, r#"c"y""#, r#"br"z""#, r#"r"\""#, "w"]);
        check("\"open", &["\"open"]);
        check("r##\"open\"#", &["r##\"open\"#"]);
        check("\"\\é\" a", &["\"\\é\"", "a"]);
    }

    #[test]
    fn a_character_and_a_lifetime_are_told_apart() {
        check(
            r"'a' 'b '\'' '\u{1F}' b'\\' 'é' '(' x",
            &["'a'", "'b", r"'\''", r"'\u{1F}'", r"b'\\'", "'é'", "'('", "x"],
        );
        check("&'static str", &["&", "'static", "str"]);
    }

    #[test]
    fn a_token_knows_the_line_that_it_begins_on() {
        let lines: Vec<_> =
            lex("a\n\"x\ny\" b\n/* \n */ c\nr\"\n\"\nd").iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 2, 3, 5, 6, 8]);
    }

    #[test]
    fn a_literal_is_no_word() {
        assert!(lex("use")[0].is("use"));
        assert!(!lex("\"use\"")[0].is("\"use\""));
        assert_eq!(lex("\"use\"")[0].kind, Kind::Literal);
    }

    #[test]
    fn any_prefix_of_a_program_is_lexed_without_a_panic() {
        let text = "fn f<'a>(x: &'a str) { r#\"é\"#; '\\é'; b'x'; /* é */ \"\\\n\"; ' } // →";
        for (end, _) in text.char_indices() {
            lex(&text[..end]);
        }
        check("\\é '\\", &["\\", "é", "'\\"]);
    }
}
