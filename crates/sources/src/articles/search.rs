//! From a query to hits: what each word may mean, which articles answer, and where they say so.

use super::answer::{limit, section_summary, summarised};
use super::format::Format;
use super::index::View;
use super::query::{Phrase, Query, Word};
use super::rank::{Clause, rank, weight};
use super::results::{AskError, Correction, Hit, Indexing, Search, Snippet};
use super::sections::Outline;
use super::snapshot::Snapshot;
use super::snippet;
use super::spelling::{articles_with, completions, corrections};

/// Hits, if nothing else is asked for, and at most.
const USUAL_HITS: usize = 10;
const MOST_HITS: usize = 100;

/// Postings that one query may read. The commonest words of a query that needs more are left out:
/// they say the least.
const MOST_POSTINGS: u64 = 600_000;

/// What a completed word is worth beside the word as typed, and when no article has it as typed.
const COMPLETED: f32 = 0.3;
const ONLY_COMPLETED: f32 = 0.8;

/// What a word is worth that was taken for another, by typing errors.
const CORRECTED: [f32; 3] = [1.0, 0.6, 0.45];

/// A word this many times rarer than its neighbour may be a typing error of an author: both count.
const SUSPICIOUSLY_RARE: u64 = 20;

/// What to look for and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchOptions {
    /// Hits at most; 10 if `None`, never more than 100.
    pub limit: Option<i64>,
    /// Whether hits bring their whole text.
    pub include_content: bool,
}

/// Searches a snapshot.
pub(super) fn search(
    snapshot: &Snapshot,
    text: &str,
    options: SearchOptions,
    indexing: Option<Indexing>,
) -> Result<Search, AskError> {
    let most = limit(options.limit, USUAL_HITS, MOST_HITS)?;
    let query = Query::parse(text)?;
    let mut answer = Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing };
    let Some(view) = &snapshot.view else { return Ok(answer) };
    let all = snapshot.shelf.articles().len() as u64;
    let Some(Plan { clauses, unknown, corrections }) = plan(view, &query, all)? else {
        return Ok(answer);
    };
    let ranking = rank(view, &clauses, unknown, most)?;
    answer.total = ranking.total;
    let stems = stems(&clauses);
    for ranked in ranking.best {
        let (meta, text) = view.read(ranked.address)?;
        // An article that is on its way out is in the index a moment longer than on the shelf.
        let Some(entry) = snapshot.shelf.serves(&meta.path) else {
            answer.total -= 1;
            continue;
        };
        let outline = Outline::read(&text, Format::of(&entry.path).unwrap_or(Format::Text));
        let snippet = snippet::cut(&outline, &stems).map(|cut| Snippet {
            section: outline.section_at(cut.place).map(section_summary),
            text: cut.text,
            words: cut.words,
        });
        let content = options.include_content.then_some(text);
        answer.hits.push(Hit {
            summary: summarised(entry, meta),
            score: ranked.score,
            snippet,
            content,
        });
    }
    if answer.total > 0 {
        answer.corrections = corrections;
    }
    Ok(answer)
}

/// What a query comes to.
struct Plan {
    clauses: Vec<Clause>,
    /// The weight of words that no article has.
    unknown: f32,
    corrections: Vec<Correction>,
}

/// `None` if nothing that is asked for stands in any article.
fn plan(view: &View, query: &Query, all: u64) -> Result<Option<Plan>, AskError> {
    let mut found: Vec<(u64, Clause)> = Vec::new();
    let mut unknown = 0_usize;
    let mut taken_for = Vec::new();
    for phrase in &query.phrases {
        match quoted(view, phrase, all)? {
            Some(clause) => found.push(clause),
            // A phrase must stand in the article; if one of its words stands in none, nothing answers.
            None => return Ok(None),
        }
    }
    for word in &query.words {
        let meant = meaning(view, word)?;
        if meant.terms.is_empty() && meant.phrases.is_empty() {
            unknown += 1;
            continue;
        }
        if meant.corrected {
            taken_for.push(Correction { word: word.text.clone(), taken_for: meant.written });
        }
        let Meaning { terms, phrases, articles, certainty, .. } = meant;
        found.push((
            articles,
            Clause { terms, phrases, weight: weight(articles, all), certainty, required: false },
        ));
    }
    if found.is_empty() {
        return Ok(None);
    }
    let mean = found.iter().map(|(_, clause)| clause.weight).sum::<f32>() / found.len() as f32;
    let clauses = affordable(found);
    Ok(Some(Plan { clauses, unknown: mean * unknown as f32, corrections: taken_for }))
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

/// A phrase in quotes; `None` if one of its words stands in no article.
fn quoted(view: &View, phrase: &Phrase, all: u64) -> Result<Option<(u64, Clause)>, AskError> {
    let mut rarest = u64::MAX;
    for (_, stem) in &phrase.0 {
        rarest = rarest.min(articles_with(view, stem)?);
    }
    if rarest == 0 {
        return Ok(None);
    }
    let clause = Clause {
        phrases: vec![phrase.clone()],
        weight: weight(rarest, all),
        certainty: 1.0,
        required: true,
        terms: Vec::new(),
    };
    Ok(Some((rarest, clause)))
}

/// What a word may mean.
#[derive(Default)]
struct Meaning {
    terms: Vec<(String, f32)>,
    phrases: Vec<Phrase>,
    articles: u64,
    certainty: f32,
    corrected: bool,
    /// The words that it was completed to or taken for.
    written: Vec<String>,
}

impl Meaning {
    fn add(&mut self, view: &View, written: String, worth: f32) -> Result<(), AskError> {
        let stem = super::words::Stems::new().of(&written);
        if !self.terms.iter().any(|(known, _)| *known == stem) {
            self.articles += articles_with(view, &stem)?;
            self.terms.push((stem, worth));
        }
        self.written.push(written);
        Ok(())
    }
}

fn meaning(view: &View, word: &Word) -> Result<Meaning, AskError> {
    let exact = articles_with(view, &word.stem)?;
    let mut meaning = Meaning { articles: exact, certainty: 1.0, ..Meaning::default() };
    if exact > 0 {
        meaning.terms.push((word.stem.clone(), 1.0));
    }
    if let Some(apart) = &word.apart {
        let mut rarest = u64::MAX;
        for (_, stem) in &apart.0 {
            rarest = rarest.min(articles_with(view, stem)?);
        }
        if rarest > 0 {
            meaning.phrases.push(apart.clone());
            meaning.articles = meaning.articles.max(1);
        }
    }
    if word.open {
        let worth = if exact > 0 { COMPLETED } else { ONLY_COMPLETED };
        for found in completions(view, &word.text)? {
            meaning.add(view, found.word, worth)?;
        }
    }
    let known = !meaning.terms.is_empty() || !meaning.phrases.is_empty();
    if word.spelt && (!known || exact > 0 && exact <= 2 && word.text.len() > 4) {
        for found in corrections(view, &word.text)? {
            if known && found.articles < exact * SUSPICIOUSLY_RARE {
                continue;
            }
            let worth = CORRECTED[found.edits.min(2)];
            meaning.add(view, found.word, if known { worth / 2.0 } else { worth })?;
            if !known {
                meaning.certainty = worth;
                meaning.corrected = true;
            }
        }
    }
    Ok(meaning)
}

/// Everything that is looked for, by weight, to cut snippets around.
fn stems(clauses: &[Clause]) -> Vec<(String, f32)> {
    let mut stems: Vec<(String, f32)> = Vec::new();
    for clause in clauses {
        let of_phrases =
            clause.phrases.iter().flat_map(|phrase| phrase.0.iter().map(|(_, stem)| (stem, 1.0)));
        for (stem, worth) in
            clause.terms.iter().map(|(stem, worth)| (stem, *worth)).chain(of_phrases)
        {
            stems.push((stem.clone(), worth * clause.weight));
        }
    }
    stems
}
