//! The best passage of an article: the one with most of the query near together.
//!
//! The positions of the words tell their passages (see [`PASSAGE`]), so no text is read.

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, SegmentReader, Term};

use crate::index::View;
use crate::plan::Clause;
use crate::words::PASSAGE;

/// How fast the repetitions of a word in a passage stop counting.
const SATURATION: f32 = 0.6;

/// Words at most this many positions apart are near together.
const NEAR: u32 = 3;

/// The value of nearness beside that of the words themselves.
const NEAR_BONUS: f32 = 1.25;

/// The limit of positions of one word in an article that are considered.
const MOST_POSITIONS: usize = 4096;

/// A passage of an article.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Passage {
    /// Its number in the article.
    pub(crate) number: u32,
    /// How much of the query it has, and how near together.
    pub(crate) value: f32,
}

/// The best passages of these articles, in the same order.
pub(crate) fn best_passages(
    view: &View,
    articles: &[DocAddress],
    clauses: &[Clause],
    unknown: f32,
) -> tantivy::Result<Vec<Passage>> {
    let whole = unknown + clauses.iter().map(|clause| clause.weight).sum::<f32>();
    let mut order: Vec<usize> = (0..articles.len()).collect();
    order.sort_unstable_by_key(|&at| articles[at]);
    let mut found: Vec<Found> = vec![Found::default(); articles.len()];
    for (place, segment) in (0..).zip(view.searcher.segment_readers()) {
        let inside: Vec<(usize, u32)> = order
            .iter()
            .filter(|&&at| articles[at].segment_ord == place)
            .map(|&at| (at, articles[at].doc_id))
            .collect();
        if !inside.is_empty() {
            look_up(view, segment, &inside, clauses, &mut found)?;
        }
    }
    Ok(found.iter_mut().map(|found| best(found, clauses, whole)).collect())
}

/// A clause that occurs at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Occurrence {
    position: u32,
    clause: usize,
}

/// The clauses of the query that an article has.
#[derive(Clone, Debug, Default)]
struct Found {
    in_text: Vec<Occurrence>,
    /// Clauses in the title, which hold for every passage.
    in_title: Vec<usize>,
}

fn look_up(
    view: &View,
    segment: &SegmentReader,
    articles: &[(usize, u32)],
    clauses: &[Clause],
    found: &mut [Found],
) -> tantivy::Result<()> {
    let mut positions = Vec::new();
    for (clause, of) in clauses.iter().enumerate() {
        let in_phrases = of.phrases.iter().flat_map(|phrase| &phrase.0).map(|(_, stem)| stem);
        for stem in of.terms.iter().map(|(stem, _)| stem).chain(in_phrases) {
            each_with(view.fields.title(), stem, segment, articles, |at, _| {
                found[at].in_title.push(clause);
            })?;
            each_with(view.fields.body(), stem, segment, articles, |at, postings| {
                postings.positions(&mut positions);
                let some = positions.iter().take(MOST_POSITIONS);
                found[at].in_text.extend(some.map(|&position| Occurrence { position, clause }));
            })?;
        }
    }
    Ok(())
}

/// Calls `found` for each article that has a stem in a field.
fn each_with(
    field: Field,
    stem: &str,
    segment: &SegmentReader,
    articles: &[(usize, u32)],
    mut found: impl FnMut(usize, &mut SegmentPostings),
) -> tantivy::Result<()> {
    let term = Term::from_field_text(field, stem);
    let option = IndexRecordOption::WithFreqsAndPositions;
    let Some(mut postings) = segment.inverted_index(field)?.read_postings(&term, option)? else {
        return Ok(());
    };
    for &(at, doc) in articles {
        if postings.doc() < doc {
            postings.seek(doc);
        }
        if postings.doc() == doc {
            found(at, &mut postings);
        }
    }
    Ok(())
}

/// The passage that is worth most.
fn best(Found { in_text, in_title }: &mut Found, clauses: &[Clause], whole: f32) -> Passage {
    in_text.sort_unstable();
    let number = |occurrence: &Occurrence| occurrence.position / PASSAGE as u32;
    let mut best = Passage { number: 0, value: value(&[], in_title, clauses, whole) };
    for passage in in_text.chunk_by(|a, b| number(a) == number(b)) {
        let value = value(passage, in_title, clauses, whole);
        if value > best.value {
            best = Passage { number: number(&passage[0]), value };
        }
    }
    best
}

/// The share of the query that a passage has, squared, and the share that is near together.
fn value(passage: &[Occurrence], in_title: &[usize], clauses: &[Clause], whole: f32) -> f32 {
    let mut repeated = vec![0_u16; clauses.len()];
    in_title.iter().for_each(|&clause| repeated[clause] = 1);
    let mut near: Vec<(usize, usize)> = Vec::new();
    for (at, occurrence) in passage.iter().enumerate() {
        repeated[occurrence.clause] = repeated[occurrence.clause].saturating_add(1);
        let before = passage[..at].iter().rev();
        let neighbours = before.take_while(|other| occurrence.position - other.position <= NEAR);
        for other in neighbours.filter(|other| other.clause != occurrence.clause) {
            let pair = (other.clause.min(occurrence.clause), other.clause.max(occurrence.clause));
            if !near.contains(&pair) {
                near.push(pair);
            }
        }
    }
    let weight = |clause: usize| clauses[clause].weight * clauses[clause].certainty;
    let counted = repeated.iter().enumerate().map(|(clause, &repeated)| {
        let repeated = f32::from(repeated);
        weight(clause) * repeated * (1.0 + SATURATION) / (repeated + SATURATION)
    });
    let share = counted.sum::<f32>() / whole;
    let near = near.into_iter().map(|(a, b)| weight(a).min(weight(b))).sum::<f32>() / whole;
    share * share + NEAR_BONUS * near.min(1.0)
}
