//! Which articles answer a query, and in what order.
//!
//! Each word (with what it may also mean) is one clause. An article scores by BM25 in each field,
//! weighted by the field; and it must carry a third of the query's weight, where rare words weigh
//! more than common ones, and is the better the more it carries. So a question finds articles that
//! lack its filler, and not those that have nothing but its filler.
//!
//! Scores that are nearly the same count as the same, and the newer article comes first.
//!
//! Documents are scored in windows, clause by clause, so the memory does not grow with the folder.
//! The work grows with the rare words only: an article that has none of them carries too little,
//! so the common ones are looked up just where a rare one was found.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::DocAddress;
use tantivy::columnar::Column;

use crate::index::View;
use crate::window::{Clause, Window, average_lengths};

/// The share of the query's weight that an article must carry.
const LEAST_SHARE: f32 = 1.0 / 3.0;

/// Scores within two per cent are the same.
const STEPS: f32 = 50.0;

/// An article that answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) address: DocAddress,
    pub(crate) score: f32,
}

/// The best answers, and how many there are.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) best: Vec<Ranked>,
    pub(crate) total: usize,
}

/// Finds the best answers to `clauses`. `unknown` is the weight of words that no article has.
pub(crate) fn rank(
    view: &View,
    clauses: &[Clause],
    unknown: f32,
    most: usize,
) -> tantivy::Result<Ranking> {
    let whole = unknown + clauses.iter().map(|clause| clause.weight).sum::<f32>();
    let required = clauses.iter().filter(|clause| clause.required).count();
    let mut clauses: Vec<&Clause> = clauses.iter().collect();
    clauses.sort_by(|a, b| {
        (b.required, b.weight).partial_cmp(&(a.required, a.weight)).unwrap_or(Ordering::Equal)
    });
    let search = Search {
        clauses: &clauses,
        leading: leading(&clauses, whole),
        prunes: clauses.len() == 1,
        whole,
        required,
    };
    search.run(view, most)
}

/// What is looked for, and how much of the work may be left out.
struct Search<'a> {
    /// Weightiest first.
    clauses: &'a [&'a Clause],
    leading: usize,
    /// Whether an article's score for a clause is all its score.
    prunes: bool,
    whole: f32,
    required: usize,
}

impl Search<'_> {
    fn run(&self, view: &View, most: usize) -> tantivy::Result<Ranking> {
        let averages = average_lengths(view)?;
        let mut top = Top::new(most);
        for (place, segment) in (0..).zip(view.searcher.segment_readers()) {
            let updated = segment.fast_fields().i64("updated")?;
            let mut window = Window::new(segment, self.clauses, self.leading, view, &averages)?;
            while let Some(start) = window.next(if self.prunes { top.floor } else { 0.0 }) {
                for at in window.touched.drain(..) {
                    let slot = std::mem::take(&mut window.slots[usize::from(at)]);
                    let doc = start + u32::from(at);
                    let share = slot.carried / self.whole;
                    if usize::from(slot.required) == self.required
                        && share >= LEAST_SHARE
                        && !segment.is_deleted(doc)
                    {
                        top.offer(slot.score * share * share, doc, place, &updated);
                    }
                }
            }
        }
        Ok(top.ranking())
    }
}

/// How many clauses, rarest first, an article must have one of. The others together are not enough,
/// so they are only looked up for articles that one of these has found.
fn leading(clauses: &[&Clause], whole: f32) -> usize {
    if clauses.first().is_some_and(|clause| clause.required) {
        return 1;
    }
    let mut rest: f32 = clauses.iter().map(|clause| clause.weight).sum();
    let mut leading = 0;
    while leading < clauses.len() && rest >= LEAST_SHARE * whole {
        rest -= clauses[leading].weight;
        leading += 1;
    }
    leading.max(1)
}

/// A score, rounded; then the date; then the place in the index, so that the order is always the same.
type Key = (i32, i64, Reverse<(u32, u32)>);

/// The best documents so far.
struct Top {
    most: usize,
    heap: BinaryHeap<Reverse<(Key, u32)>>,
    total: usize,
    /// What scores less cannot get in.
    floor: f32,
}

impl Top {
    fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::with_capacity(most + 1), total: 0, floor: 0.0 }
    }

    fn offer(&mut self, score: f32, doc: u32, segment: u32, updated: &Column<i64>) {
        self.total += 1;
        if score < self.floor {
            return;
        }
        let rounded = (score.ln() * STEPS).floor() as i32;
        let key = (rounded, updated.first(doc).unwrap_or(i64::MIN), Reverse((segment, doc)));
        self.heap.push(Reverse((key, score.to_bits())));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
        if self.heap.len() == self.most {
            let worst = self.heap.peek().map_or(i32::MIN, |Reverse((key, _))| key.0);
            // A little less, so that no rounding keeps out what is as good as the worst.
            self.floor = (worst as f32 / STEPS).exp() * 0.999;
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

#[cfg(test)]
mod tests;
