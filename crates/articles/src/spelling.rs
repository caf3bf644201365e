//! From a word that was typed to the words that the articles use.
//!
//! The index keeps every word as it is written. An unfinished word is completed from that
//! dictionary; a word that stands in no article is taken for those that are a typing error away:
//! one edit up to seven letters, two above. An edit is a letter too many, too few, wrong, or two
//! letters exchanged.

use std::collections::HashMap;

use tantivy::Term;
use tantivy::query::FuzzyTermQuery;

use crate::index::View;
use crate::query::is_filler;

/// Letters up to which one edit is allowed; above, two.
const ONE_EDIT: usize = 7;

/// A shorter word has too many neighbours to guess.
const SHORTEST_CORRECTED: usize = 3;

/// Up to this length the first letter must be right: short words differ in little else.
const FIRST_LETTER: usize = 4;

/// A shorter beginning completes to nearly anything.
const SHORTEST_COMPLETED: usize = 2;

/// Words that a completion or correction is taken for: the most frequent.
const MOST_WORDS: usize = 8;

/// Words of the dictionary that are looked at for one beginning. A shorter one that has more
/// is completed from the first of them.
const MOST_LOOKED_AT: usize = 4096;

/// A word of the dictionary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) word: String,
    /// Articles that have it.
    pub(crate) articles: u64,
    /// Typing errors between it and what was typed.
    pub(crate) edits: usize,
}

/// The words that begin with `prefix`, itself left out, most frequent first.
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

/// The words that `word` may be a misspelling of, nearest first and then most frequent.
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
        (edits > 0 && edits <= usize::from(most) && first_is_right && !is_filler(other))
            .then_some(edits)
    });
    // A word that is nearer is meant; the others are chance.
    let nearest = found.first().map_or(0, |found| found.edits);
    found.retain(|found| found.edits == nearest);
    Ok(found)
}

/// How many articles have something, by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread(pub(crate) [u64; 5]);

impl Spread {
    /// How many have it in any field: at least those of the field that has it most.
    pub(crate) fn any(self) -> u64 {
        self.0.into_iter().max().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}

/// How many articles have this stem.
pub(crate) fn spread(view: &View, stem: &str) -> tantivy::Result<Spread> {
    let mut spread = Spread::default();
    for (count, field) in spread.0.iter_mut().zip(view.fields.searched) {
        let term = Term::from_field_text(field, stem);
        for segment in view.searcher.segment_readers() {
            *count += u64::from(segment.inverted_index(field)?.doc_freq(&term)?);
        }
    }
    Ok(spread)
}

#[derive(Default)]
struct Counts(HashMap<String, u64>);

impl Counts {
    fn add(&mut self, word: &[u8], articles: u32) {
        if let Ok(word) = std::str::from_utf8(word) {
            *self.0.entry(word.to_owned()).or_default() += u64::from(articles);
        }
    }

    /// The words that `edits` accepts: nearest, then most frequent, then by the alphabet.
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
