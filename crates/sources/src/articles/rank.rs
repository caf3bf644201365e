//! Which articles answer a query, and in what order.
//!
//! Each word (with what it may also mean) is one clause. An article scores by BM25 in each field,
//! weighted by the field; and it must carry a third of the query's weight, where rare words weigh
//! more than common ones, and is the better the more it carries. So a question finds articles that
//! lack its filler, and not those that have nothing but its filler.
//!
//! Scores that are nearly the same count as the same, and the newer article comes first.
//!
//! Documents are scored in windows, clause by clause, so the work is one pass over the postings and
//! the memory does not grow with the folder.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tantivy::columnar::Column;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{EnableScoring, PhraseQuery, Query, Scorer};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, SegmentReader, TERMINATED, Term};

use super::index::{View, WEIGHTS};
use super::query::Phrase;

/// Documents that are scored at a time.
const WINDOW: u32 = 4096;

/// BM25: how fast repetition stops to count, and how much length does.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;

/// The share of the query's weight that an article must carry.
const LEAST_SHARE: f32 = 1.0 / 3.0;

/// Scores within two per cent are the same.
const STEPS: f32 = 50.0;

/// One thing that is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clause {
    /// Stems, and what each is worth beside the word that was typed.
    pub(super) terms: Vec<(String, f32)>,
    /// Phrases that stand for the same.
    pub(super) phrases: Vec<Phrase>,
    /// How much the clause says: little if many articles have it.
    pub(super) weight: f32,
    /// The same, by field: a word that is common in texts may be rare in titles.
    pub(super) field_weights: [f32; 5],
    /// How sure it is that this was meant, from 0 to 1.
    pub(super) certainty: f32,
    /// An article without it is no answer.
    pub(super) required: bool,
}

/// An article that answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranked {
    pub(super) address: DocAddress,
    pub(super) score: f32,
}

/// The best answers, and how many there are.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Ranking {
    pub(super) best: Vec<Ranked>,
    pub(super) total: usize,
}

/// Finds the best answers to `clauses`. `unknown` is the weight of words that no article has.
pub(super) fn rank(
    view: &View,
    clauses: &[Clause],
    unknown: f32,
    most: usize,
) -> tantivy::Result<Ranking> {
    let whole = unknown + clauses.iter().map(|clause| clause.weight).sum::<f32>();
    let required = clauses.iter().filter(|clause| clause.required).count();
    let averages = average_lengths(view)?;
    let mut top = Top::new(most);
    for (place, segment) in (0..).zip(view.searcher.segment_readers()) {
        let updated = segment.fast_fields().i64("updated")?;
        let mut window = Window::new(segment, clauses, view, &averages)?;
        while let Some(start) = window.next() {
            for at in window.touched.drain(..) {
                let slot = std::mem::take(&mut window.slots[at as usize]);
                let doc = start + u32::from(at);
                let share = slot.carried / whole;
                if usize::from(slot.required) < required
                    || share < LEAST_SHARE
                    || segment.is_deleted(doc)
                {
                    continue;
                }
                top.offer(slot.score * share * share, doc, place, &updated);
            }
        }
    }
    Ok(top.ranking())
}

fn average_lengths(view: &View) -> tantivy::Result<[f32; 5]> {
    let mut averages = [1.0; 5];
    let documents = view
        .searcher
        .segment_readers()
        .iter()
        .map(|segment| u64::from(segment.max_doc()))
        .sum::<u64>();
    for (average, field) in averages.iter_mut().zip(view.fields.searched) {
        let mut tokens = 0;
        for segment in view.searcher.segment_readers() {
            tokens += segment.inverted_index(field)?.total_num_tokens();
        }
        *average = (tokens as f32 / documents.max(1) as f32).max(1.0);
    }
    Ok(averages)
}

/// What is known of one document of the window.
#[derive(Clone, Copy, Default)]
struct Slot {
    score: f32,
    /// The weight of the clauses that it has.
    carried: f32,
    required: u8,
    /// Of the current clause: its score so far, and its repetitions in the current field.
    clause: f32,
    repeated: f32,
}

/// The part of a segment that is being scored.
struct Window {
    slots: Vec<Slot>,
    /// Slots with anything in them.
    touched: Vec<u16>,
    clauses: Vec<ClauseCursor>,
    fields: Vec<FieldCosts>,
}

/// How much length costs in one field, by what is kept of the length.
struct FieldCosts {
    weight: f32,
    norms: FieldNormReader,
    costs: [f32; 256],
}

struct ClauseCursor {
    field_weights: [f32; 5],
    carries: f32,
    required: bool,
    /// By field: postings of the terms, with their worth.
    terms: Vec<Vec<(SegmentPostings, f32)>>,
    phrases: Vec<(usize, Box<dyn Scorer>)>,
}

impl Window {
    fn new(
        segment: &SegmentReader,
        clauses: &[Clause],
        view: &View,
        averages: &[f32; 5],
    ) -> tantivy::Result<Self> {
        let mut fields = Vec::new();
        for ((field, average), (_, weight)) in
            view.fields.searched.into_iter().zip(averages).zip(WEIGHTS)
        {
            let costs = std::array::from_fn(|id| {
                let length =
                    FieldNormReader::id_to_fieldnorm(u8::try_from(id).unwrap_or(u8::MAX)) as f32;
                SATURATION * (1.0 - LENGTH + LENGTH * length / average)
            });
            fields.push(FieldCosts { weight, norms: segment.get_fieldnorms_reader(field)?, costs });
        }
        let clauses = clauses
            .iter()
            .map(|clause| ClauseCursor::new(segment, clause, view))
            .collect::<tantivy::Result<_>>()?;
        Ok(Self {
            slots: vec![Slot::default(); WINDOW as usize],
            touched: Vec::new(),
            clauses,
            fields,
        })
    }

    /// Scores the next window that has anything, and says where it starts.
    fn next(&mut self) -> Option<u32> {
        let first =
            self.clauses.iter().map(ClauseCursor::doc).min().filter(|&doc| doc != TERMINATED)?;
        let start = first - first % WINDOW;
        let mut found: Vec<u16> = Vec::new();
        for clause in &mut self.clauses {
            clause.score(start, &self.fields, &mut self.slots, &mut found);
            for at in found.drain(..) {
                let slot = &mut self.slots[usize::from(at)];
                if slot.carried == 0.0 {
                    self.touched.push(at);
                }
                slot.score += slot.clause;
                slot.carried += clause.carries;
                slot.required += u8::from(clause.required);
                slot.clause = 0.0;
            }
        }
        Some(start)
    }
}

impl ClauseCursor {
    fn new(segment: &SegmentReader, clause: &Clause, view: &View) -> tantivy::Result<Self> {
        let mut terms = Vec::new();
        let mut phrases: Vec<(usize, Box<dyn Scorer>)> = Vec::new();
        for (place, field) in view.fields.searched.into_iter().enumerate() {
            let index = segment.inverted_index(field)?;
            let mut postings = Vec::new();
            let single = clause.phrases.iter().filter_map(|phrase| match &phrase.0[..] {
                [(_, stem)] => Some((stem, 1.0)),
                _ => None,
            });
            for (stem, worth) in
                clause.terms.iter().map(|(stem, worth)| (stem, *worth)).chain(single)
            {
                let term = Term::from_field_text(field, stem);
                if let Some(found) = index.read_postings(&term, IndexRecordOption::WithFreqs)? {
                    postings.push((found, worth));
                }
            }
            terms.push(postings);
            for phrase in clause.phrases.iter().filter(|phrase| phrase.0.len() > 1) {
                let stems =
                    phrase.0.iter().map(|(at, stem)| (*at, Term::from_field_text(field, stem)));
                let query = PhraseQuery::new_with_offset(stems.collect());
                let weight = query.weight(EnableScoring::disabled_from_searcher(&view.searcher))?;
                phrases.push((place, weight.scorer(segment, 1.0)?));
            }
        }
        let carries = clause.weight * clause.certainty;
        Ok(Self {
            field_weights: clause.field_weights,
            carries,
            required: clause.required,
            terms,
            phrases,
        })
    }

    fn doc(&self) -> u32 {
        let terms = self.terms.iter().flatten().map(|(postings, _)| postings.doc());
        terms.chain(self.phrases.iter().map(|(_, scorer)| scorer.doc())).min().unwrap_or(TERMINATED)
    }

    /// Adds what each document of the window scores for this clause, and names those that score.
    fn score(
        &mut self,
        start: u32,
        fields: &[FieldCosts],
        slots: &mut [Slot],
        found: &mut Vec<u16>,
    ) {
        let end = start + WINDOW;
        let mut repeated: Vec<u16> = Vec::new();
        for (place, field) in fields.iter().enumerate() {
            for (postings, worth) in &mut self.terms[place] {
                while postings.doc() < end {
                    let at = (postings.doc() - start) as u16;
                    let slot = &mut slots[usize::from(at)];
                    if slot.repeated == 0.0 {
                        repeated.push(at);
                    }
                    slot.repeated += *worth * postings.term_freq() as f32;
                    postings.advance();
                }
            }
            for (_, scorer) in self.phrases.iter_mut().filter(|(of, _)| *of == place) {
                while scorer.doc() < end {
                    let at = (scorer.doc() - start) as u16;
                    let slot = &mut slots[usize::from(at)];
                    if slot.repeated == 0.0 {
                        repeated.push(at);
                    }
                    slot.repeated += 1.0;
                    scorer.advance();
                }
            }
            for at in repeated.drain(..) {
                let slot = &mut slots[usize::from(at)];
                let cost =
                    field.costs[usize::from(field.norms.fieldnorm_id(start + u32::from(at)))];
                if slot.clause == 0.0 {
                    found.push(at);
                }
                slot.clause +=
                    field.weight * self.field_weights[place] * slot.repeated * (1.0 + SATURATION)
                        / (slot.repeated + cost);
                slot.repeated = 0.0;
            }
        }
    }
}

/// A score, rounded; then the date; then the place in the index, so that the order is always the same.
type Key = (i32, i64, Reverse<(u32, u32)>);

/// The best documents so far.
struct Top {
    most: usize,
    heap: BinaryHeap<Reverse<(Key, u32)>>,
    total: usize,
}

impl Top {
    fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::with_capacity(most + 1), total: 0 }
    }

    fn offer(&mut self, score: f32, doc: u32, segment: u32, updated: &Column<i64>) {
        self.total += 1;
        let rounded = (score.ln() * STEPS).floor() as i32;
        let worst = self.heap.peek().map(|Reverse((key, _))| key.0);
        if self.heap.len() >= self.most && worst.is_some_and(|worst| rounded < worst) {
            return;
        }
        let key = (rounded, updated.first(doc).unwrap_or(i64::MIN), Reverse((segment, doc)));
        self.heap.push(Reverse((key, score.to_bits())));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn ranking(self) -> Ranking {
        let best = self.heap.into_sorted_vec().into_iter().map(
            |Reverse(((_, _, Reverse((segment, doc))), score))| Ranked {
                address: DocAddress::new(segment, doc),
                score: f32::from_bits(score),
            },
        );
        Ranking { best: best.collect(), total: self.total }
    }
}
