//! Documents scored a window at a time, clause by clause.
//!
//! The first clauses find documents; the others are looked up only for documents that were found.
//! A field scores by BM25.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, SegmentReader, TERMINATED, Term};

use crate::index::{View, WEIGHTS};
use crate::phrase::PhraseCursor;
use crate::query::Phrase;

/// Documents that are scored at a time.
const WINDOW: u32 = 4096;

/// BM25: how fast repetition stops to count, and how much length does.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;

/// One thing that is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Clause {
    /// Stems, and what each is worth beside the word that was typed.
    pub(crate) terms: Vec<(String, f32)>,
    /// Phrases that stand for the same.
    pub(crate) phrases: Vec<Phrase>,
    /// How much the clause says: little if many articles have it.
    pub(crate) weight: f32,
    /// The same, by field: a word that is common in texts may be rare in titles.
    pub(crate) field_weights: [f32; 5],
    /// How sure it is that this was meant, from 0 to 1.
    pub(crate) certainty: f32,
    /// An article without it is no answer.
    pub(crate) required: bool,
}

/// What is known of one document of the window.
#[derive(Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) score: f32,
    /// The weight of the clauses that it has.
    pub(crate) carried: f32,
    pub(crate) required: u8,
    /// Of the current clause: its score so far, and its repetitions in the current field.
    clause: f32,
    repeated: f32,
}

/// The part of a segment that is being scored.
pub(crate) struct Window {
    pub(crate) slots: Vec<Slot>,
    /// Slots with anything in them.
    pub(crate) touched: Vec<u16>,
    clauses: Vec<ClauseCursor>,
    /// The first so many clauses find documents; the others only add to them.
    leading: usize,
    fields: Vec<FieldCosts>,
}

/// How much length costs in one field, by what is kept of the length.
struct FieldCosts {
    weight: f32,
    norms: FieldNormReader,
    costs: [f32; 256],
}

impl FieldCosts {
    /// What so many repetitions in a document are worth.
    fn score(&self, repeated: f32, doc: u32) -> f32 {
        let cost = self.costs[usize::from(self.norms.fieldnorm_id(doc))];
        self.weight * repeated * (1.0 + SATURATION) / (repeated + cost)
    }
}

struct ClauseCursor {
    field_weights: [f32; 5],
    carries: f32,
    required: bool,
    /// By field: postings of the terms, with their worth; and of the phrases.
    terms: Vec<Vec<(SegmentPostings, f32)>>,
    phrases: Vec<Vec<PhraseCursor>>,
}

impl Window {
    pub(crate) fn new(
        segment: &SegmentReader,
        clauses: &[&Clause],
        leading: usize,
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
            leading,
            fields,
        })
    }

    /// Scores the next window that has anything, and says where it starts. Documents that are sure to
    /// score less than `floor` may be left out.
    pub(crate) fn next(&mut self, floor: f32) -> Option<u32> {
        let leaders = &self.clauses[..self.leading];
        let first = leaders.iter().map(ClauseCursor::doc).min().filter(|&doc| doc != TERMINATED)?;
        let start = first - first % WINDOW;
        let mut found: Vec<u16> = Vec::new();
        for (place, clause) in self.clauses.iter_mut().enumerate() {
            if place < self.leading {
                clause.score_all(start, &self.fields, &mut self.slots, &mut found, floor);
            } else {
                self.touched.sort_unstable();
                clause.score_some(start, &self.touched, &self.fields, &mut self.slots, &mut found);
            }
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
        let mut phrases = Vec::new();
        for field in view.fields.searched {
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
            let mut cursors = Vec::new();
            for phrase in clause.phrases.iter().filter(|phrase| phrase.0.len() > 1) {
                cursors.extend(PhraseCursor::new(&index, field, phrase)?);
            }
            phrases.push(cursors);
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
        terms
            .chain(self.phrases.iter().flatten().map(PhraseCursor::doc))
            .min()
            .unwrap_or(TERMINATED)
    }

    /// Adds what every document of the window scores for this clause, and names those that score.
    fn score_all(
        &mut self,
        start: u32,
        fields: &[FieldCosts],
        slots: &mut [Slot],
        found: &mut Vec<u16>,
        floor: f32,
    ) {
        let end = start + WINDOW;
        let mut repeated: Vec<u16> = Vec::new();
        for (place, field) in fields.iter().enumerate() {
            let field_weight = self.field_weights[place];
            for (postings, worth) in &mut self.terms[place] {
                while postings.doc() < end {
                    let at = (postings.doc() - start) as u16;
                    repeat(
                        &mut slots[usize::from(at)],
                        at,
                        *worth * postings.term_freq() as f32,
                        &mut repeated,
                    );
                    postings.advance();
                }
            }
            for cursor in &mut self.phrases[place] {
                while cursor.doc() < end {
                    let at = (cursor.doc() - start) as u16;
                    let slot = &mut slots[usize::from(at)];
                    let at_most = slot.clause
                        + field_weight * field.score(cursor.at_most() as f32, cursor.doc());
                    let hopeless = place + 1 == fields.len() && at_most < floor;
                    let count = if hopeless { 0 } else { cursor.count() };
                    if count > 0 {
                        repeat(slot, at, count as f32, &mut repeated);
                    }
                    cursor.advance();
                }
            }
            for at in repeated.drain(..) {
                let slot = &mut slots[usize::from(at)];
                if slot.clause == 0.0 {
                    found.push(at);
                }
                slot.clause += field_weight * field.score(slot.repeated, start + u32::from(at));
                slot.repeated = 0.0;
            }
        }
    }

    /// The same, for documents that other clauses have found, in order.
    fn score_some(
        &mut self,
        start: u32,
        touched: &[u16],
        fields: &[FieldCosts],
        slots: &mut [Slot],
        found: &mut Vec<u16>,
    ) {
        for (place, field) in fields.iter().enumerate() {
            if self.terms[place].is_empty() && self.phrases[place].is_empty() {
                continue;
            }
            for &at in touched {
                let doc = start + u32::from(at);
                let mut repeated = 0.0;
                for (postings, worth) in &mut self.terms[place] {
                    if postings.doc() < doc {
                        postings.seek(doc);
                    }
                    if postings.doc() == doc {
                        repeated += *worth * postings.term_freq() as f32;
                    }
                }
                for cursor in &mut self.phrases[place] {
                    cursor.seek(doc);
                    if cursor.doc() == doc {
                        repeated += cursor.count() as f32;
                    }
                }
                if repeated > 0.0 {
                    let slot = &mut slots[usize::from(at)];
                    if slot.clause == 0.0 {
                        found.push(at);
                    }
                    slot.clause += self.field_weights[place] * field.score(repeated, doc);
                }
            }
        }
    }
}

fn repeat(slot: &mut Slot, at: u16, more: f32, repeated: &mut Vec<u16>) {
    if slot.repeated == 0.0 {
        repeated.push(at);
    }
    slot.repeated += more;
}

/// The usual length of each field, in words.
pub(crate) fn average_lengths(view: &View) -> tantivy::Result<[f32; 5]> {
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
