//! Which articles match a query, and in what order.
//!
//! Each word (with its other meanings) is one clause of a [`Coverage`], and scores by BM25 in each
//! field, weighted by the field. The rarity of a word is that of its most frequent field: a verb
//! that is rare in titles is not a rare word. The best articles are then compared by their best
//! passages.
//!
//! Scores that are nearly the same count as the same, and the newer article comes first.

use std::cmp::Reverse;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, DisjunctionMaxQuery, Occur, PhraseQuery,
    Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocId, Score, Searcher, SegmentReader, Term};

use crate::coverage::{Coverage, Part};
use crate::index::{View, WEIGHTS};
use crate::passage::{Passage, best_passages};
use crate::plan::{Clause, Plan};
use crate::query::Phrase;

/// The articles of which the passages are compared.
const CANDIDATES: usize = 60;

/// The limit of articles that are ordered. A page of results beyond it is empty.
pub(crate) const MOST_RANKED: usize = 1000;

/// The bonus of an article whose best passage has the whole query.
const PASSAGE_BONUS: f32 = 0.75;

/// Scores within two per cent are the same.
const STEPS: f32 = 50.0;

/// An article that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) address: DocAddress,
    pub(crate) score: f32,
    /// The number of its best passage.
    pub(crate) passage: u32,
}

/// The best articles, and how many match.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) best: Vec<Ranked>,
    pub(crate) total: usize,
}

/// A rounded score, then the date.
type Key = (i32, i64, f32);

/// Finds the best `most` articles, below `folder` only if there is one.
pub(crate) fn rank(
    view: &View,
    plan: &Plan,
    folder: Option<&str>,
    most: usize,
) -> tantivy::Result<Ranking> {
    let mut query: Box<dyn Query> = Box::new(coverage(view, plan));
    if let Some(folder) = folder {
        let term = Term::from_field_text(view.fields.folders, folder);
        let inside: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::Basic));
        let inside: Box<dyn Query> = Box::new(BoostQuery::new(inside, 0.0));
        query = Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, inside)]));
    }
    let top = TopDocs::with_limit(most.max(CANDIDATES)).tweak_score(keys);
    let (top, total) =
        view.searcher.search_with_statistics_provider(&*query, &(top, Count), &Rarity(view))?;
    let addresses: Vec<DocAddress> = top.iter().map(|(_, address)| *address).collect();
    let passages = best_passages(view, &addresses, &plan.clauses, plan.unknown)?;
    let mut best: Vec<(Key, Ranked)> = Vec::with_capacity(top.len());
    for (((_, updated, score), address), Passage { number, value }) in top.into_iter().zip(passages)
    {
        let score = score * (1.0 + PASSAGE_BONUS * value);
        let ranked = Ranked { address, score, passage: number };
        best.push(((rounded(score), updated, score), ranked));
    }
    best.sort_by_key(|((rounded, updated, _), ranked)| {
        (Reverse((*rounded, *updated)), ranked.address)
    });
    let best = best.into_iter().map(|(_, ranked)| ranked).take(most).collect();
    Ok(Ranking { best, total })
}

fn coverage(view: &View, plan: &Plan) -> Coverage<Box<dyn Query>> {
    let parts = plan.clauses.iter().map(|clause| Part {
        inner: clause.query(&view.fields.searched),
        weight: clause.weight,
        certainty: clause.certainty,
        required: clause.required,
    });
    Coverage::new(parts.collect(), plan.unknown)
}

/// The keys by which the articles of a segment are sorted.
fn keys(segment: &SegmentReader) -> impl Fn(DocId, Score) -> Key + use<> {
    // Without its columns, a segment cannot be opened.
    let updated = segment.fast_fields().i64("updated").ok();
    let factor = segment.fast_fields().f64("factor").ok();
    move |doc, score| {
        let factor = factor.as_ref().and_then(|factor| factor.first(doc)).unwrap_or(1.0);
        let score = score * factor as f32;
        let updated = updated.as_ref().and_then(|updated| updated.first(doc));
        (rounded(score), updated.unwrap_or(i64::MIN), score)
    }
}

fn rounded(score: f32) -> i32 {
    (score.ln() * STEPS).floor() as i32
}

impl Clause {
    /// The best of its meanings, each the sum over all fields.
    fn query(&self, fields: &[Field; 5]) -> Box<dyn Query> {
        let in_fields = |make: &dyn Fn(Field) -> Box<dyn Query>, worth: f32| -> Box<dyn Query> {
            let fields = fields.iter().zip(WEIGHTS).map(|(field, (_, weight))| {
                let query: Box<dyn Query> = Box::new(BoostQuery::new(make(*field), weight * worth));
                (Occur::Should, query)
            });
            Box::new(BooleanQuery::new(fields.collect()))
        };
        let terms = self.terms.iter().map(|(stem, worth)| in_fields(&|at| term(at, stem), *worth));
        let phrases = self.phrases.iter().map(|phrase| in_fields(&|at| adjacent(at, phrase), 1.0));
        let mut meanings: Vec<Box<dyn Query>> = terms.chain(phrases).collect();
        match meanings.len() {
            1 => meanings.remove(0),
            _ => Box::new(DisjunctionMaxQuery::new(meanings)),
        }
    }
}

fn term(field: Field, stem: &str) -> Box<dyn Query> {
    let term = Term::from_field_text(field, stem);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn adjacent(field: Field, phrase: &Phrase) -> Box<dyn Query> {
    if let [(_, stem)] = &phrase.0[..] {
        return term(field, stem);
    }
    let terms = phrase.0.iter().map(|(at, stem)| (*at, Term::from_field_text(field, stem)));
    Box::new(PhraseQuery::new_with_offset(terms.collect()))
}

/// The rarity of words over all fields.
struct Rarity<'a>(&'a View);

impl Bm25StatisticsProvider for Rarity<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Searcher::total_num_tokens(&self.0.searcher, field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Searcher::total_num_docs(&self.0.searcher)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        match term.value().as_str() {
            Some(stem) => self.0.articles_with(stem),
            None => self.0.searcher.doc_freq(term),
        }
    }
}

#[cfg(test)]
mod tests;
