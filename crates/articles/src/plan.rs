//! What each word of a query may mean, and what it is worth.
//!
//! A word means itself; if it may be unfinished, also what it begins; if no article has it, what it
//! may be a misspelling of. A phrase means only itself.

use crate::index::View;
use crate::query::{Phrase, Query, Word};
use crate::results::Correction;
use crate::spelling::{Spread, completions, corrections, spread};
use crate::window::Clause;
use crate::words::Stems;

/// Postings that one query may read. The commonest words of a query that needs more are left out:
/// they say the least.
const MOST_POSTINGS: u64 = 600_000;

/// What a completed word is worth beside the word as typed, and when no article has it as typed.
const COMPLETED: f32 = 0.3;
const ONLY_COMPLETED: f32 = 0.8;

/// What a word is worth that was taken for another, by the number of typing errors.
const CORRECTED: [f32; 3] = [1.0, 0.6, 0.45];

/// A word in no more articles than this may be a typing error of an author, if a word beside it is
/// so many times as frequent: then both count.
const RARE: u64 = 2;
const FREQUENT: u64 = 20;

/// What a query comes to.
pub(crate) struct Plan {
    pub(crate) clauses: Vec<Clause>,
    /// The weight of words that no article has.
    pub(crate) unknown: f32,
    pub(crate) corrections: Vec<Correction>,
}

impl Plan {
    /// `None` if nothing can answer.
    pub(crate) fn new(view: &View, query: &Query, all: u64) -> tantivy::Result<Option<Self>> {
        let mut stems = Stems::new();
        let mut found: Vec<(u64, Clause)> = Vec::new();
        let mut unknown = 0_usize;
        let mut corrections = Vec::new();
        for phrase in &query.phrases {
            let rarest = rarest(view, phrase)?;
            // A phrase must stand in the article; if one of its words stands in none, nothing answers.
            if rarest.any() == 0 {
                return Ok(None);
            }
            let clause = Clause {
                phrases: vec![phrase.clone()],
                certainty: 1.0,
                required: true,
                ..Clause::default()
            };
            found.push((rarest.any(), clause.weighed(rarest, all)));
        }
        for word in &query.words {
            let meaning = Meaning::of(view, word, &mut stems)?;
            if meaning.is_unknown() {
                unknown += 1;
                continue;
            }
            if meaning.corrected {
                corrections
                    .push(Correction { word: word.text.clone(), taken_for: meaning.written });
            }
            let Meaning { terms, phrases, spread, certainty, .. } = meaning;
            let clause = Clause { terms, phrases, certainty, ..Clause::default() };
            found.push((spread.any(), clause.weighed(spread, all)));
        }
        if found.is_empty() {
            return Ok(None);
        }
        let mean = found.iter().map(|(_, clause)| clause.weight).sum::<f32>() / found.len() as f32;
        Ok(Some(Self { clauses: affordable(found), unknown: mean * unknown as f32, corrections }))
    }

    /// Everything that is looked for, by weight, to cut snippets around.
    pub(crate) fn stems(&self) -> Vec<(String, f32)> {
        let stems = self.clauses.iter().flat_map(|clause| {
            let in_phrases =
                clause.phrases.iter().flat_map(|phrase| &phrase.0).map(|(_, stem)| (stem, 1.0));
            let terms = clause.terms.iter().map(|(stem, worth)| (stem, *worth));
            terms.chain(in_phrases).map(|(stem, worth)| (stem.clone(), worth * clause.weight))
        });
        stems.collect()
    }
}

impl Clause {
    fn weighed(self, spread: Spread, all: u64) -> Self {
        Self {
            weight: weight(spread.any(), all),
            field_weights: spread.0.map(|count| weight(count, all)),
            ..self
        }
    }
}

/// The weight of what this many of all articles have.
fn weight(articles: u64, all: u64) -> f32 {
    let (articles, all) = (articles.min(all) as f32, all as f32);
    (1.0 + (all - articles + 0.5) / (articles + 0.5)).ln()
}

/// The rarest words that can be read in time. There is always one, and phrases always stay.
fn affordable(mut found: Vec<(u64, Clause)>) -> Vec<Clause> {
    found.sort_by_key(|(articles, clause)| (!clause.required, *articles));
    let mut postings = 0;
    let mut clauses = Vec::new();
    for (articles, clause) in found {
        postings += articles;
        if clauses.is_empty() || clause.required || postings <= MOST_POSTINGS {
            clauses.push(clause);
        }
    }
    clauses
}

/// How many articles have the rarest word of a phrase.
fn rarest(view: &View, phrase: &Phrase) -> tantivy::Result<Spread> {
    let mut rarest = Spread([u64::MAX; 5]);
    for (_, stem) in &phrase.0 {
        let found = spread(view, stem)?;
        if found.any() < rarest.any() {
            rarest = found;
        }
    }
    Ok(rarest)
}

/// What a word may mean.
#[derive(Default)]
struct Meaning {
    terms: Vec<(String, f32)>,
    phrases: Vec<Phrase>,
    spread: Spread,
    certainty: f32,
    corrected: bool,
    /// The words that it was completed to or taken for.
    written: Vec<String>,
}

impl Meaning {
    fn of(view: &View, word: &Word, stems: &mut Stems) -> tantivy::Result<Self> {
        let mut meaning = Self { certainty: 1.0, ..Self::default() };
        let exact = spread(view, &word.stem)?.any();
        if exact > 0 {
            meaning.add(view, word.stem.clone(), 1.0)?;
        }
        if let Some(apart) = &word.apart {
            let rarest = rarest(view, apart)?;
            if rarest.any() > 0 {
                meaning.phrases.push(apart.clone());
                meaning.spread.add(rarest);
            }
        }
        if word.open {
            let worth = if exact > 0 { COMPLETED } else { ONLY_COMPLETED };
            for found in completions(view, &word.text)? {
                meaning.add(view, stems.of(&found.word), worth)?;
            }
        }
        if word.spelt {
            meaning.correct(view, word, exact, stems)?;
        }
        Ok(meaning)
    }

    /// Takes the word for others, if no article has it, or hardly any.
    fn correct(
        &mut self,
        view: &View,
        word: &Word,
        exact: u64,
        stems: &mut Stems,
    ) -> tantivy::Result<()> {
        let unknown = self.is_unknown();
        if !unknown && !(1..=RARE).contains(&exact) {
            return Ok(());
        }
        for found in corrections(view, &word.text)? {
            let worth = CORRECTED[found.edits.min(CORRECTED.len() - 1)];
            let stem = stems.of(&found.word);
            if unknown {
                self.certainty = worth;
                self.corrected = true;
                self.written.push(found.word);
                self.add(view, stem, worth)?;
            } else if found.articles >= exact * FREQUENT {
                self.add(view, stem, worth / 2.0)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, view: &View, stem: String, worth: f32) -> tantivy::Result<()> {
        if !self.terms.iter().any(|(known, _)| *known == stem) {
            self.spread.add(spread(view, &stem)?);
            self.terms.push((stem, worth));
        }
        Ok(())
    }

    fn is_unknown(&self) -> bool {
        self.terms.is_empty() && self.phrases.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_weigh_more_and_words_of_all_articles_nearly_nothing() {
        assert!(weight(1, 100) > weight(10, 100));
        assert!(weight(100, 100) < 0.01);
        assert!(weight(200, 100) > 0.0 && weight(0, 0) > 0.0);
    }

    #[test]
    fn the_commonest_words_are_left_out_when_a_query_needs_too_much() {
        let clause = |required| Clause { required, ..Clause::default() };
        let count = |articles: &[(u64, bool)]| {
            affordable(articles.iter().map(|&(n, required)| (n, clause(required))).collect()).len()
        };
        assert_eq!(count(&[(MOST_POSTINGS / 2, false), (MOST_POSTINGS / 2, false)]), 2);
        assert_eq!(count(&[(MOST_POSTINGS / 2, false), (MOST_POSTINGS / 2 + 1, false)]), 1);
        assert_eq!(count(&[(MOST_POSTINGS * 2, false)]), 1);
        assert_eq!(count(&[(MOST_POSTINGS * 2, true), (MOST_POSTINGS, true)]), 2);
    }
}
