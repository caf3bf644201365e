//! Completions and corrections from the dictionary of the index.
//!
//! The index has every word as written. An unfinished word is completed from that dictionary; a word
//! that is in no article is replaced by similar ones: one edit away up to seven letters, two above. An
//! edit is an insertion, a deletion, a substitution, or a transposition of neighbours.

use std::collections::HashMap;

use tantivy::Term;
use tantivy::query::FuzzyTermQuery;

use crate::index::View;
use crate::query::is_stop_word;

/// The longest word, in letters, for which one edit is allowed; longer ones allow two.
const ONE_EDIT: usize = 7;

/// The shortest word, in letters, that is corrected.
const SHORTEST_CORRECTED: usize = 3;

/// The longest word, in letters, whose first letter must match.
const FIRST_LETTER: usize = 4;

/// The shortest prefix, in letters, that is completed.
const SHORTEST_COMPLETED: usize = 2;

/// The limit of completions or corrections of a word. The most frequent ones are kept.
const MOST_WORDS: usize = 8;

/// The limit of words of the dictionary that are considered for a prefix.
const MOST_LOOKED_AT: usize = 4096;

/// A word of the dictionary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) word: String,
    /// The number of articles with this word.
    pub(crate) articles: u64,
    /// The edit distance.
    pub(crate) edits: usize,
}

/// The words that start with `prefix`, except itself, most frequent first.
pub(crate) fn completions(view: &View, prefix: &str) -> tantivy::Result<Vec<Found>> {
    if prefix.chars().count() < SHORTEST_COMPLETED {
        return Ok(Vec::new());
    }
    let mut found = Counts::default();
    for segment in view.searcher.segment_readers() {
        let dictionary = segment.inverted_index(view.fields.spelling)?;
        let mut stream = dictionary.terms().range().gt(prefix).into_stream()?;
        let mut looked_at = 0;
        while looked_at < MOST_LOOKED_AT
            && stream.advance()
            && stream.key().starts_with(prefix.as_bytes())
        {
            found.add(stream.key(), stream.value().doc_freq);
            looked_at += 1;
        }
    }
    Ok(found.best(|_| Some(0)))
}

/// Corrections of `word`, nearest first and then most frequent.
pub(crate) fn corrections(view: &View, word: &str) -> tantivy::Result<Vec<Found>> {
    let letters = word.chars().count();
    if letters < SHORTEST_CORRECTED {
        return Ok(Vec::new());
    }
    let most = if letters <= ONE_EDIT { 1 } else { 2 };
    let mut found = Counts::default();
    for segment in view.searcher.segment_readers() {
        let term = Term::from_field_text(view.fields.spelling, word);
        let automaton = FuzzyTermQuery::new(term, most, true).automaton()?;
        let dictionary = segment.inverted_index(view.fields.spelling)?;
        let mut stream = dictionary.terms().search(automaton).into_stream()?;
        while stream.advance() {
            found.add(stream.key(), stream.value().doc_freq);
        }
    }
    let mut found = found.best(|other| {
        let edits = strsim::osa_distance(word, other);
        let first_is_right = letters > FIRST_LETTER || first_letters_agree(word, other);
        (edits > 0 && edits <= usize::from(most) && first_is_right && !is_stop_word(other))
            .then_some(edits)
    });
    // Only the nearest words are used.
    let nearest = found.first().map_or(0, |found| found.edits);
    found.retain(|found| found.edits == nearest);
    Ok(found)
}

#[derive(Default)]
struct Counts(HashMap<String, u64>);

impl Counts {
    fn add(&mut self, word: &[u8], articles: u32) {
        if let Ok(word) = std::str::from_utf8(word) {
            *self.0.entry(word.to_owned()).or_default() += u64::from(articles);
        }
    }

    /// The words that `edits` accepts: nearest, then most frequent, then alphabetically.
    fn best(self, edits: impl Fn(&str) -> Option<usize>) -> Vec<Found> {
        let found = self.0.into_iter();
        let mut found: Vec<Found> = found
            .filter_map(|(word, articles)| {
                edits(&word).map(|edits| Found { word, articles, edits })
            })
            .collect();
        found.sort_unstable_by(|a, b| {
            (a.edits, b.articles, &a.word).cmp(&(b.edits, a.articles, &b.word))
        });
        found.truncate(MOST_WORDS);
        found
    }
}

fn first_letters_agree(a: &str, b: &str) -> bool {
    let two = |text: &str| {
        let mut chars = text.chars();
        (chars.next(), chars.next())
    };
    let (a, b) = (two(a), two(b));
    a.0 == b.0 || (a.0, a.1) == (b.1, b.0)
}
