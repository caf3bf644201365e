//! Parses a query into words and phrases.
//!
//! A query has no operators, no fields, and nothing to escape. `"words in quotes"` must be
//! adjacent, and everything that is not a word separates words. Only a text without a word and a
//! text over the limit are errors.
//!
//! Stop words ("how do I …") are left out unless there are no other words.

use crate::fold::fold;
use crate::language::Language;
use crate::results::StoreError;
use crate::stems::Stemming;
use crate::words::{Kind, Piece, Splitter};

/// The longest query in bytes. A longer one is refused.
pub(crate) const LONGEST_QUERY: usize = 4096;

/// The limit of words in a query. Further ones are ignored.
pub(crate) const MOST_WORDS: usize = 32;

/// Words and phrases to search for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Query {
    pub(crate) words: Vec<Word>,
    /// Each in every language.
    pub(crate) phrases: Vec<Vec<Phrase>>,
}

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    /// The folded word.
    pub(crate) text: String,
    /// Its stems, of which one is in the index: the query does not say its language.
    pub(crate) stems: Vec<String>,
    /// Whether it ends the query, so that it may be unfinished.
    pub(crate) open: bool,
    /// Whether it consists of letters, so that it may be misspelt.
    pub(crate) spelt: bool,
    /// The parts of a `camelCase` word, which may also be written separately.
    pub(crate) apart: Vec<Phrase>,
}

/// Stems, and their distances from the first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phrase(pub(crate) Vec<(usize, String)>);

impl Query {
    /// Parses a query for articles in these languages.
    pub(crate) fn parse(text: &str, languages: &[Language]) -> Result<Self, StoreError> {
        if text.len() > LONGEST_QUERY {
            return Err(StoreError::QueryTooLong { size: text.len(), most: LONGEST_QUERY });
        }
        let mut stems = Stemming::new(languages);
        let mut query = Self::default();
        for (part, quoted) in parts(text) {
            if quoted {
                let phrases = stems.phrases(part);
                query.phrases.extend((!phrases.is_empty()).then_some(phrases));
            } else {
                query.words.extend(stems.words(part));
            }
        }
        if let Some(last) = query.words.last_mut() {
            let unfinished = text.chars().next_back().is_some_and(char::is_alphanumeric);
            last.open = unfinished && last.spelt;
        }
        let mut seen: Vec<String> = Vec::new();
        // Of two words with one stem the later is kept: it may be the unfinished one.
        query.words.reverse();
        query.words.retain(|word| {
            !seen.contains(&word.stems[0]) && {
                seen.push(word.stems[0].clone());
                true
            }
        });
        query.words.reverse();
        if !query.phrases.is_empty() || query.words.iter().any(|word| !is_stop_word(&word.text)) {
            query.words.retain(|word| !is_stop_word(&word.text));
        }
        query.words.truncate(MOST_WORDS);
        query.phrases.truncate(MOST_WORDS);
        if query.words.is_empty() && query.phrases.is_empty() {
            return Err(StoreError::NoWords);
        }
        Ok(query)
    }
}

/// Splits the text at its quotes. A quote that is never closed is ignored.
fn parts(text: &str) -> Vec<(&str, bool)> {
    let is_quote = |c: char| matches!(c, '"' | '“' | '”' | '„' | '«' | '»');
    let mut parts: Vec<(&str, bool)> = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(is_quote) {
        let Some((inside, next)) = after.split_once(is_quote) else { break };
        parts.push((before, false));
        parts.push((inside, true));
        rest = next;
    }
    parts.push((rest, false));
    parts
}

impl Stemming<'_> {
    /// A text as a phrase, once for each language in which its stems differ.
    fn phrases(&mut self, text: &str) -> Vec<Phrase> {
        let single = |piece: &Piece| !matches!(piece.kind, Kind::Whole | Kind::Pair);
        let pieces: Vec<Piece> = Splitter::new(text).filter(single).take(MOST_WORDS).collect();
        let mut phrases: Vec<Phrase> = Vec::new();
        for language in self.languages.iter().filter(|_| !pieces.is_empty()) {
            let terms = pieces.iter().map(|piece| {
                (piece.position, self.stems.of(*language, &text[piece.from..piece.to]))
            });
            let phrase = Phrase(terms.collect());
            if !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
        phrases
    }

    fn words(&mut self, text: &str) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        let mut in_pair = false;
        let mut pieces = Splitter::new(text).peekable();
        while let Some(piece) = pieces.next() {
            let written = &text[piece.from..piece.to];
            let typed = fold(written);
            match piece.kind {
                Kind::Word | Kind::Whole => words.push(Word {
                    stems: self.all(written),
                    open: false,
                    spelt: !typed.contains(|c: char| c.is_numeric()),
                    apart: match piece.kind {
                        Kind::Whole => self.phrases(written),
                        _ => Vec::new(),
                    },
                    text: typed,
                }),
                Kind::Part => {}
                // A character in a pair is searched for as part of the pair.
                Kind::Sign => {
                    let pairs_on = pieces.peek().is_some_and(|next| next.kind == Kind::Pair);
                    if !pairs_on && !in_pair {
                        words.push(sign(typed));
                    }
                    in_pair = pairs_on;
                }
                Kind::Pair => words.push(sign(typed)),
            }
        }
        words
    }
}

fn sign(text: String) -> Word {
    let stems = vec![text.clone()];
    Word { stems, text, open: false, spelt: false, apart: Vec::new() }
}

/// Stop words: words that are in every English text, and the words of questions.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[rustfmt::skip]
const STOP_WORDS: [&str; 116] = [
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "between", "both", "but", "by", "can", "cannot", "cant",
    "could", "did", "do", "does", "doing", "dont", "else", "every", "few", "for", "from", "get",
    "had", "has", "have", "having", "he", "her", "here", "him", "his", "how", "i", "if", "im",
    "in", "into", "is", "isnt", "it", "its", "just", "let", "like", "may", "me", "might", "more",
    "most", "must", "my", "no", "not", "of", "on", "once", "only", "or", "other", "our", "out",
    "over", "own", "please", "shall", "she", "should", "so", "some", "such", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too",
    "under", "until", "us", "very", "was", "we", "were", "what", "when", "where", "which",
    "while", "who", "why", "will", "with", "would", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: [Language; 1] = [Language::ENGLISH];

    /// Words as `text>stem`, `*` for an open one; phrases as `"stem stem"`.
    fn shown(text: &str) -> String {
        let query = match Query::parse(text, &ENGLISH) {
            Ok(query) => query,
            Err(error) => return error.to_string(),
        };
        let words = query.words.iter().map(|word| {
            let apart: String =
                word.apart.iter().map(|phrase| format!("={}", stems(phrase))).collect();
            let open = if word.open { "*" } else { "" };
            format!("{}>{}{open}{apart}", word.text, word.stems.join("/"))
        });
        words.chain(query.phrases.iter().flatten().map(stems)).collect::<Vec<_>>().join(" ")
    }

    fn stems(phrase: &Phrase) -> String {
        let terms = phrase.0.iter().map(|(at, stem)| format!("{stem}@{at}"));
        format!("\"{}\"", terms.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn words_are_stemmed_and_the_last_one_is_open() {
        assert_eq!(shown("Designing Tools"), "designing>design tools>tool*");
        assert_eq!(shown("designing tools "), "designing>design tools>tool");
        assert_eq!(shown("version 2"), "version>version 2>2");
    }

    #[test]
    fn a_question_is_searched_without_stop_words() {
        assert_eq!(
            shown("How do I keep the context small?"),
            "keep>keep context>context small>small"
        );
        assert_eq!(shown("what is it"), "what>what is>is it>it*");
        assert_eq!(shown("don't do that"), "dont>dont do>do that>that*");
    }

    #[test]
    fn quotes_make_phrases_and_an_open_quote_is_none() {
        assert_eq!(shown("\"context engineering\" tools"), "tools>tool* \"context@0 engin@1\"");
        assert_eq!(shown("“to be or not”"), "\"to@0 be@1 or@2 not@3\"");
        assert_eq!(shown("«one» the"), "\"one@0\"");
        assert_eq!(shown("tools \"half open"), "tools>tool half>half open>open*");
        assert_eq!(shown("\"\" tools"), "tools>tool*");
    }

    #[test]
    fn a_word_counts_once_and_the_open_one_is_kept() {
        assert_eq!(shown("tool tools TOOL"), "tool>tool*");
    }

    #[test]
    fn camel_case_may_be_written_apart() {
        assert_eq!(
            shown("structuredContent x"),
            "structuredcontent>structuredcont=\"structur@0 content@1\" x>x*"
        );
    }

    #[test]
    fn scripts_without_spaces_are_searched_in_pairs() {
        assert_eq!(shown("上下文工程"), "上下>上下 下文>下文 文工>文工 工程>工程");
        assert_eq!(shown("文"), "文>文");
        assert_eq!(shown("文 工具 x"), "文>文 工具>工具 x>x*");
        assert_eq!(shown("\"上下文\""), "\"上@0 下@1 文@2\"");
    }

    #[test]
    fn a_word_has_a_stem_in_each_language() {
        let languages = ["en", "de"].map(|tag| Language::of_tag(tag).unwrap());
        let query = Query::parse("Häuser \"alte Häuser\"", &languages).unwrap();
        assert_eq!(query.words[0].stems, ["hauser", "haus"]);
        assert_eq!(query.phrases[0].len(), 2);
    }

    #[test]
    fn operators_and_fields_are_only_words() {
        assert_eq!(
            shown("title:foo AND (bar OR -baz) +qux^2 a~1"),
            "title>titl foo>foo bar>bar baz>baz qux>qux 2>2 1>1"
        );
        assert_eq!(shown("/^[a-z]+$/ *"), "z>z");
    }

    #[test]
    fn a_query_without_a_word_is_refused() {
        for text in ["", " ", "&& || !", "\"\"", "\u{0}\u{1b}[\u{7f}", "🙂", "+-*/"] {
            assert_eq!(shown(text), "the query has no word to search for", "{text:?}");
        }
    }

    #[test]
    fn the_limits_hold_at_their_edges() {
        let longest = "a".repeat(LONGEST_QUERY);
        assert!(!matches!(Query::parse(&longest, &ENGLISH), Err(StoreError::QueryTooLong { .. })));
        assert!(matches!(
            Query::parse(&format!("{longest}a"), &ENGLISH),
            Err(StoreError::QueryTooLong { .. })
        ));
        assert!(matches!(
            Query::parse(&"x ".repeat(50_000), &ENGLISH),
            Err(StoreError::QueryTooLong { size: 100_000, .. })
        ));
        let many = |count: usize| (0..count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(Query::parse(&many(MOST_WORDS), &ENGLISH).unwrap().words.len(), MOST_WORDS);
        assert_eq!(Query::parse(&many(MOST_WORDS + 1), &ENGLISH).unwrap().words.len(), MOST_WORDS);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
            if let Ok(query) = Query::parse(&text, &ENGLISH) {
                proptest::prop_assert!(query.words.len() + query.phrases.len() > 0);
            }
        }
    }
}
