//! A query of which an article must match a part.
//!
//! Each clause is a query of tantivy. An article must match three tenths of the weight of all
//! clauses, where rare words weigh more than common ones, and scores the better the more it
//! matches. So a question finds articles without its filler words, and not those with filler words
//! only.
//!
//! The work grows with the rare words only: an article that has none of them matches too little, so
//! the common ones are looked up only where a rare one was found.

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError};

/// The share of the query's weight that an article must match.
const LEAST_SHARE: f32 = 0.3;

/// One clause.
#[derive(Debug)]
pub(crate) struct Part<T> {
    pub(crate) inner: T,
    pub(crate) weight: f32,
    /// How sure it is that this was meant, from 0 to 1.
    pub(crate) certainty: f32,
    /// Whether an article without it does not match.
    pub(crate) required: bool,
}

impl<T> Part<T> {
    fn map<U>(&self, change: impl Fn(&T) -> tantivy::Result<U>) -> tantivy::Result<Part<U>> {
        let Self { inner, weight, certainty, required } = self;
        Ok(Part {
            inner: change(inner)?,
            weight: *weight,
            certainty: *certainty,
            required: *required,
        })
    }
}

/// Clauses, and the weight of the words that no article has.
#[derive(Debug)]
pub(crate) struct Coverage<T> {
    parts: Vec<Part<T>>,
    whole: f32,
    /// The number of clauses, weightiest first, of which an article must have one.
    leading: usize,
}

impl<T> Coverage<T> {
    pub(crate) fn new(mut parts: Vec<Part<T>>, unknown: f32) -> Self {
        parts.sort_by(|a, b| b.required.cmp(&a.required).then(b.weight.total_cmp(&a.weight)));
        let whole = unknown + parts.iter().map(|part| part.weight).sum::<f32>();
        let leading = leading(&parts, whole);
        Self { parts, whole, leading }
    }

    /// Every clause finds articles.
    #[cfg(test)]
    pub(crate) fn all_leading(self) -> Self {
        Self { leading: self.parts.len(), ..self }
    }

    fn map<U>(&self, change: impl Fn(&T) -> tantivy::Result<U>) -> tantivy::Result<Coverage<U>> {
        let parts: tantivy::Result<_> = self.parts.iter().map(|part| part.map(&change)).collect();
        Ok(Coverage { parts: parts?, whole: self.whole, leading: self.leading })
    }
}

/// The number of leading clauses: all others together have too little weight.
fn leading<T>(parts: &[Part<T>], whole: f32) -> usize {
    if parts.first().is_some_and(|part| part.required) {
        return 1;
    }
    let mut rest: f32 = parts.iter().map(|part| part.weight).sum();
    let mut leading = 0;
    while leading < parts.len() && rest >= LEAST_SHARE * whole {
        rest -= parts[leading].weight;
        leading += 1;
    }
    leading.max(1)
}

impl Clone for Coverage<Box<dyn Query>> {
    fn clone(&self) -> Self {
        let parts = self.parts.iter().map(|part| Part { inner: part.inner.box_clone(), ..*part });
        Self { parts: parts.collect(), whole: self.whole, leading: self.leading }
    }
}

impl Query for Coverage<Box<dyn Query>> {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.map(|query| query.weight(scoring))?))
    }
}

impl Weight for Coverage<Box<dyn Weight>> {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let coverage = self.map(|weight| weight.scorer(segment, boost))?;
        let mut scorer = CoverageScorer { coverage, doc: 0, score: 0.0 };
        scorer.find();
        Ok(Box::new(scorer))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Err(TantivyError::InvalidArgument("a coverage is not explained".to_owned()))
    }
}

struct CoverageScorer {
    coverage: Coverage<Box<dyn Scorer>>,
    doc: DocId,
    score: Score,
}

impl CoverageScorer {
    /// Advances to the first document that matches enough, beginning where the leading clauses are.
    fn find(&mut self) {
        let Coverage { parts, whole, leading } = &mut self.coverage;
        loop {
            let leaders = parts[..*leading].iter().map(|part| part.inner.doc());
            self.doc = leaders.min().unwrap_or(TERMINATED);
            if self.doc == TERMINATED {
                return;
            }
            let (mut carried, mut complete) = (0.0, true);
            self.score = 0.0;
            for part in parts.iter_mut() {
                if part.inner.doc() < self.doc {
                    part.inner.seek(self.doc);
                }
                if part.inner.doc() == self.doc {
                    carried += part.weight * part.certainty;
                    self.score += part.inner.score();
                } else {
                    complete &= !part.required;
                }
            }
            let share = carried / *whole;
            if complete && share >= LEAST_SHARE {
                self.score *= share;
                return;
            }
            advance(&mut parts[..*leading], self.doc);
        }
    }
}

/// Moves the clauses that are at this document to their next one.
fn advance(leaders: &mut [Part<Box<dyn Scorer>>], doc: DocId) {
    for part in leaders.iter_mut().filter(|part| part.inner.doc() == doc) {
        part.inner.advance();
    }
}

impl DocSet for CoverageScorer {
    fn advance(&mut self) -> DocId {
        if self.doc != TERMINATED {
            advance(&mut self.coverage.parts[..self.coverage.leading], self.doc);
            self.find();
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        let leaders = &self.coverage.parts[..self.coverage.leading];
        leaders.iter().map(|part| part.inner.size_hint()).max().unwrap_or(0)
    }
}

impl Scorer for CoverageScorer {
    fn score(&mut self) -> Score {
        self.score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_do_not_lead() {
        let part = |(weight, required)| Part { inner: (), weight, certainty: 1.0, required };
        let count = |parts: &[(f32, bool)]| {
            Coverage::new(parts.iter().copied().map(part).collect(), 0.0).leading
        };
        assert_eq!(count(&[(0.1, false), (5.0, false), (0.1, false)]), 1);
        assert_eq!(count(&[(1.0, false), (1.0, false), (1.0, false)]), 3);
        assert_eq!(count(&[(1.0, false), (1.0, false), (0.8, false)]), 2);
        assert_eq!(count(&[(9.0, false), (0.1, true)]), 1);
        assert_eq!(count(&[(0.1, false)]), 1);
    }
}
