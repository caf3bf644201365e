//! Splits text into words, for the index and for queries.
//!
//! One splitter handles all scripts. Scripts with spaces between words are split into words, which are
//! folded: lower case, without accents. Scripts without (Chinese, Japanese, Korean, Thai, …) are split
//! into characters and pairs of characters. `camelCase` is split into its parts and also kept whole,
//! so that `structuredContent` is found in both spellings.
//!
//! Words are stemmed by the rules of the language that the text names, or else of English.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashSet};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_normalization::char::is_combining_mark;

use crate::fold::fold_into;
use crate::language::Language;
use crate::stems::Stems;

/// The longest word in bytes. A longer run of letters is not indexed, but takes a position.
pub(crate) const LONGEST_WORD: usize = 64;

/// Starts a passage: the words after it are at the next multiple of [`PASSAGE`]. So the position of a
/// word tells its passage, and no phrase goes across two.
pub(crate) const MARK: char = '\u{1e}';

/// Positions of a passage. A longer section takes several passages.
pub(crate) const PASSAGE: usize = 1024;

/// Starts a text in another language than English: the letter of the language follows.
const LANGUAGE_MARK: char = '\u{1d}';

/// A text for the index, with its language.
pub(crate) fn in_language(text: &str, language: Language) -> Cow<'_, str> {
    match language {
        Language::ENGLISH => Cow::Borrowed(text),
        other => Cow::Owned(format!("{LANGUAGE_MARK}{}{text}", other.letter())),
    }
}

/// A piece of a text, by its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) position: usize,
    pub(crate) kind: Kind,
}

/// The kind of a [`Piece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word between spaces or punctuation.
    Word,
    /// One part of a `camelCase` word.
    Part,
    /// A whole `camelCase` word, at the position of its first part.
    Whole,
    /// One character of a script without spaces.
    Sign,
    /// Two neighbouring characters of such a script, at the position of the first.
    Pair,
}

/// Splits a text into pieces, in order of position.
pub(crate) struct Splitter<'a> {
    text: &'a str,
    at: usize,
    position: usize,
    pending: VecDeque<Piece>,
}

impl<'a> Splitter<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, position: 0, pending: VecDeque::new() }
    }

    fn sign(&mut self, sign: char) -> Piece {
        let from = self.at;
        let to = from + sign.len_utf8();
        let position = self.position;
        self.at = to;
        self.position += 1;
        if let Some(next) = self.text[to..].chars().next().filter(|&c| is_unspaced(c)) {
            let to = to + next.len_utf8();
            self.pending.push_back(Piece { from, to, position, kind: Kind::Pair });
        }
        Piece { from, to, position, kind: Kind::Sign }
    }

    /// The word that starts here, or `None` if it is too long.
    fn word(&mut self) -> Option<Piece> {
        let from = self.at;
        let (length, camel) = run_length(&self.text[from..]);
        self.at = from + length;
        if length > LONGEST_WORD {
            self.position += 1;
            return None;
        }
        if camel {
            return Some(self.camel_case_word(from, self.at));
        }
        self.position += 1;
        Some(Piece { from, to: self.at, position: self.position - 1, kind: Kind::Word })
    }

    /// Splits a word with capitals inside: `camelCase`, or the plural of an abbreviation.
    fn camel_case_word(&mut self, from: usize, end: usize) -> Piece {
        let to = end - plural_of_letters(&self.text[from..end]);
        let position = self.position;
        let mut start = from;
        for cut in camel_case_splits(&self.text[from..to]) {
            let at = from + cut;
            self.pending.push_back(Piece {
                from: start,
                to: at,
                position: self.position,
                kind: Kind::Part,
            });
            self.position += 1;
            start = at;
        }
        self.position += 1;
        if self.pending.is_empty() {
            return Piece { from, to, position, kind: Kind::Word };
        }
        self.pending.push_back(Piece {
            from: start,
            to,
            position: self.position - 1,
            kind: Kind::Part,
        });
        Piece { from, to, position, kind: Kind::Whole }
    }
}

impl Iterator for Splitter<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if let Some(piece) = self.pending.pop_front() {
            return Some(piece);
        }
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            // A fast path: nearly all text is ASCII, and indexing spends its time here.
            if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
                if byte == MARK as u8 {
                    self.position = self.position.next_multiple_of(PASSAGE);
                }
                self.at += 1;
                continue;
            }
            if byte.is_ascii() {
                match self.word() {
                    Some(piece) => return Some(piece),
                    None => continue,
                }
            }
            let c = self.text[self.at..].chars().next()?;
            if is_unspaced(c) {
                return Some(self.sign(c));
            }
            if !c.is_alphanumeric() {
                self.at += c.len_utf8();
            } else if let Some(piece) = self.word() {
                return Some(piece);
            }
        }
        None
    }
}

/// The length of the word that starts here, and whether it has a capital after its first letter.
fn run_length(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut length = 0;
    let mut camel = false;
    while let Some(b) = bytes.get(length).filter(|b| b.is_ascii_alphanumeric()) {
        camel |= b.is_ascii_uppercase() && length > 0;
        length += 1;
    }
    if bytes.get(length).is_some_and(|b| !b.is_ascii() || *b == b'\'') {
        let rest = mixed_run_length(&text[length..], length > 0);
        camel |= bytes[length..length + rest].iter().any(u8::is_ascii_uppercase);
        length += rest;
    }
    (length, camel)
}

/// The length of the rest of a word. An apostrophe joins a short ending (`don't`, `server's`) and
/// separates a longer one (`l'article`).
fn mixed_run_length(text: &str, begun: bool) -> usize {
    for (at, c) in text.char_indices() {
        let joins = match c {
            '\'' | '\u{2019}' => (begun || at > 0) && short_ending(&text[at + c.len_utf8()..]),
            _ => (c.is_alphanumeric() || is_combining_mark(c)) && !is_unspaced(c),
        };
        if !joins {
            return at;
        }
    }
    text.len()
}

fn short_ending(text: &str) -> bool {
    let letters = text.chars().take(3).take_while(|c| c.is_alphabetic()).count();
    (1..=2).contains(&letters)
}

/// The length of the plural ending of `APIs` and `URLs`, which the stemmer does not know.
fn plural_of_letters(run: &str) -> usize {
    let is_plural = run.strip_suffix('s').is_some_and(|letters| {
        letters.len() >= 2 && letters.bytes().all(|b| b.is_ascii_uppercase())
    });
    usize::from(is_plural)
}

/// The positions at which a `camelCase` word is split. Parts have at least two letters.
fn camel_case_splits(run: &str) -> impl Iterator<Item = usize> {
    let bytes = run.as_bytes();
    let mut last = 0;
    (1..bytes.len()).filter(move |&at| {
        let next_is_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let cut = bytes[at].is_ascii_uppercase()
            && (bytes[at - 1].is_ascii_lowercase()
                || bytes[at - 1].is_ascii_uppercase() && next_is_lower)
            && at - last >= 2
            && bytes.len() - at >= 2;
        if cut {
            last = at;
        }
        cut
    })
}

/// Whether a character belongs to a script without spaces between words.
fn is_unspaced(c: char) -> bool {
    // A fast path: all scripts below Thai have spaces.
    c >= '\u{0E00}'
        && (c.is_alphanumeric() || is_combining_mark(c))
        && matches!(c,
            '\u{0E00}'..='\u{0EFF}' // Thai, Lao
            | '\u{1000}'..='\u{109F}' // Myanmar
            | '\u{1100}'..='\u{11FF}' // Hangul letters
            | '\u{1780}'..='\u{17FF}' // Khmer
            | '\u{2E80}'..='\u{2FDF}' // Han radicals
            | '\u{3005}'..='\u{31FF}' // Kana, Bopomofo, Hangul letters
            | '\u{3400}'..='\u{9FFF}' // Han
            | '\u{AC00}'..='\u{D7FF}' // Hangul syllables
            | '\u{F900}'..='\u{FAFF}' // Han, compatibility
            | '\u{FF66}'..='\u{FFDC}' // halfwidth Kana and Hangul
            | '\u{20000}'..='\u{3FFFF}') // Han, rare
}

/// The tokenizer of the searched fields: stems, characters, pairs.
#[derive(Clone)]
pub(crate) struct StemTokenizer(Stems);

impl StemTokenizer {
    pub(crate) fn new() -> Self {
        Self(Stems::new())
    }
}

impl Tokenizer for StemTokenizer {
    type TokenStream<'a> = PieceStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> PieceStream<'a> {
        let mut rest = text.strip_prefix(LANGUAGE_MARK).unwrap_or("").chars();
        let (language, text) = match rest.next().and_then(Language::of_letter) {
            Some(language) => (language, rest.as_str()),
            None => (Language::ENGLISH, text),
        };
        PieceStream {
            pieces: Splitter::new(text),
            wanted: Wanted::Stems(&mut self.0, language),
            token: Token::default(),
        }
    }
}

/// The tokenizer of the dictionary: each word once, as written.
#[derive(Clone, Default)]
pub(crate) struct SpellingTokenizer {
    seen: FxHashSet<u64>,
}

impl Tokenizer for SpellingTokenizer {
    type TokenStream<'a> = PieceStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> PieceStream<'a> {
        self.seen.clear();
        let wanted = Wanted::Spelling(&mut self.seen);
        PieceStream { pieces: Splitter::new(text), wanted, token: Token::default() }
    }
}

/// How a piece becomes a token.
enum Wanted<'a> {
    Stems(&'a mut Stems, Language),
    /// The hashes of the words so far. On a collision, a word is missing in the dictionary.
    Spelling(&'a mut FxHashSet<u64>),
}

/// Pieces as a stream of tokens.
pub(crate) struct PieceStream<'a> {
    pieces: Splitter<'a>,
    wanted: Wanted<'a>,
    token: Token,
}

impl TokenStream for PieceStream<'_> {
    fn advance(&mut self) -> bool {
        let text = self.pieces.text;
        for piece in self.pieces.by_ref() {
            let word = &text[piece.from..piece.to];
            match &mut self.wanted {
                Wanted::Stems(stems, language) => {
                    stems.stem_into(*language, word, &mut self.token.text);
                }
                Wanted::Spelling(_) if matches!(piece.kind, Kind::Sign | Kind::Pair) => continue,
                Wanted::Spelling(seen) => {
                    self.token.text.clear();
                    fold_into(word, &mut self.token.text);
                    if !seen.insert(FxBuildHasher.hash_one(&self.token.text)) {
                        continue;
                    }
                }
            }
            self.token.offset_from = piece.from;
            self.token.offset_to = piece.to;
            self.token.position = piece.position;
            return true;
        }
        false
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests;
