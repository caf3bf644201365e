//! The meanings of each word of a query, and their weights.
//!
//! A word means itself; if it may be unfinished, also its completions; if no article has it, its
//! corrections. A phrase means only itself.

use crate::index::View;
use crate::language::Language;
use crate::query::{Phrase, Query, Word};
use crate::results::Correction;
use crate::spelling::{completions, corrections};
use crate::stems::Stemming;

/// The value of a completed word beside the word as typed, and if no article has it as typed.
const COMPLETED: f32 = 0.3;
const ONLY_COMPLETED: f32 = 0.8;

/// The value of two words that are written as one, beside each of them.
const JOINED: f32 = 0.9;

/// The value of a corrected word, by the number of typing errors.
const CORRECTED: [f32; 3] = [1.0, 0.6, 0.45];

/// One alternative set of words and phrases that is searched for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Clause {
    /// Stems, and the value of each beside the word that was typed.
    pub(crate) terms: Vec<(String, f32)>,
    /// Phrases that mean the same.
    pub(crate) phrases: Vec<Phrase>,
    /// The weight of the clause: small if many articles have it.
    pub(crate) weight: f32,
    /// The probability that this was meant, from 0 to 1.
    pub(crate) certainty: f32,
    /// Whether an article without it does not match.
    pub(crate) required: bool,
}

/// The clauses of a query.
pub(crate) struct Plan {
    pub(crate) clauses: Vec<Clause>,
    /// The weight of words that no article has.
    pub(crate) unknown: f32,
    pub(crate) corrections: Vec<Correction>,
}

impl Plan {
    /// `None` if nothing can match.
    pub(crate) fn new(
        view: &View,
        query: &Query,
        languages: &[Language],
        all: u64,
    ) -> tantivy::Result<Option<Self>> {
        let mut stems = Stemming::new(languages);
        let mut clauses = Vec::new();
        let mut unknown = 0_usize;
        let mut corrections = Vec::new();
        for phrase in &query.phrases {
            let (phrases, articles) = possible(view, phrase)?;
            // A phrase must be in the article; if one of its words is in none, nothing matches.
            if articles == 0 {
                return Ok(None);
            }
            clauses.push(Clause {
                phrases,
                weight: weight(articles, all),
                certainty: 1.0,
                required: true,
                ..Clause::default()
            });
        }
        for (at, word) in query.words.iter().enumerate() {
            let mut meaning = Meaning::of(view, word, &mut stems)?;
            meaning.join(view, at, &query.words, &mut stems)?;
            if meaning.is_unknown() {
                unknown += 1;
                continue;
            }
            if meaning.corrected {
                corrections
                    .push(Correction { word: word.text.clone(), taken_for: meaning.written });
            }
            let Meaning { terms, phrases, articles, certainty, .. } = meaning;
            let weight = weight(articles, all);
            clauses.push(Clause { terms, phrases, weight, certainty, required: false });
        }
        if clauses.is_empty() {
            return Ok(None);
        }
        let mean = clauses.iter().map(|clause| clause.weight).sum::<f32>() / clauses.len() as f32;
        Ok(Some(Self { clauses, unknown: mean * unknown as f32, corrections }))
    }

    /// Everything that is searched for, by weight, to cut snippets around.
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

/// The weight of a word that this many of all articles have.
fn weight(articles: u64, all: u64) -> f32 {
    let (articles, all) = (articles.min(all) as f32, all as f32);
    (1.0 + (all - articles + 0.5) / (articles + 0.5)).ln()
}

/// The number of articles with the rarest word of a phrase.
fn rarest(view: &View, phrase: &Phrase) -> tantivy::Result<u64> {
    let mut rarest = u64::MAX;
    for (_, stem) in &phrase.0 {
        rarest = rarest.min(view.articles_with(stem)?);
    }
    Ok(rarest)
}

/// Those of some phrases that articles may have, and about how many have one.
fn possible(view: &View, phrases: &[Phrase]) -> tantivy::Result<(Vec<Phrase>, u64)> {
    let (mut possible, mut articles) = (Vec::new(), 0);
    for phrase in phrases {
        let count = rarest(view, phrase)?;
        if count > 0 {
            possible.push(phrase.clone());
            articles += count;
        }
    }
    Ok((possible, articles))
}

/// The meanings of a word.
#[derive(Default)]
struct Meaning {
    terms: Vec<(String, f32)>,
    phrases: Vec<Phrase>,
    articles: u64,
    certainty: f32,
    corrected: bool,
    /// The words that it was taken for.
    written: Vec<String>,
}

impl Meaning {
    fn of(view: &View, word: &Word, stems: &mut Stemming<'_>) -> tantivy::Result<Self> {
        let mut meaning = Self { certainty: 1.0, ..Self::default() };
        meaning.add(view, word.stems.clone(), 1.0)?;
        let is_exact = !meaning.terms.is_empty();
        let (apart, articles) = possible(view, &word.apart)?;
        meaning.phrases.extend(apart);
        meaning.articles += articles;
        if word.open {
            let worth = if is_exact { COMPLETED } else { ONLY_COMPLETED };
            for found in completions(view, &word.text)? {
                meaning.add(view, stems.all(&found.word), worth)?;
            }
        }
        // A word that an article has is never corrected.
        if word.spelt && meaning.is_unknown() {
            for found in corrections(view, &word.text)? {
                let worth = CORRECTED[found.edits.min(CORRECTED.len() - 1)];
                meaning.certainty = worth;
                meaning.corrected = true;
                meaning.add(view, stems.all(&found.word), worth)?;
                meaning.written.push(found.word);
            }
        }
        Ok(meaning)
    }

    /// Two words may be written as one: `web socket`, `config map`.
    fn join(
        &mut self,
        view: &View,
        at: usize,
        words: &[Word],
        stems: &mut Stemming<'_>,
    ) -> tantivy::Result<()> {
        for pair in words[at.saturating_sub(1)..words.len().min(at + 2)].windows(2) {
            self.add(view, stems.all(&format!("{}{}", pair[0].text, pair[1].text)), JOINED)?;
        }
        Ok(())
    }

    /// Adds those of some stems that articles have.
    fn add(&mut self, view: &View, stems: Vec<String>, worth: f32) -> tantivy::Result<()> {
        for stem in stems {
            let articles = view.articles_with(&stem)?;
            if articles > 0 && !self.terms.iter().any(|(known, _)| *known == stem) {
                self.articles += articles;
                self.terms.push((stem, worth));
            }
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
}
