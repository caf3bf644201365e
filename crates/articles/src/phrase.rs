//! The places in a field where stems stand together.
//!
//! To see that a document has all stems of a phrase is cheap; to see that they stand together is
//! not. So a cursor stops at every document that has them all, says how often they could stand
//! together at most, and looks at their places only when it is asked.

use tantivy::index::InvertedIndexReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, TERMINATED, Term};

use crate::query::Phrase;

/// Goes through the documents of one field that have all stems of a phrase.
pub(crate) struct PhraseCursor {
    /// Rarest first, each with what its positions need to meet those of the others.
    terms: Vec<(SegmentPostings, u32)>,
    doc: u32,
    together: Vec<u32>,
    next: Vec<u32>,
}

impl PhraseCursor {
    /// `None` if one of the stems does not stand in the field.
    pub(crate) fn new(
        index: &InvertedIndexReader,
        field: Field,
        phrase: &Phrase,
    ) -> tantivy::Result<Option<Self>> {
        let last = phrase.0.iter().map(|(at, _)| *at).max().unwrap_or(0);
        let mut terms = Vec::new();
        for (at, stem) in &phrase.0 {
            let term = Term::from_field_text(field, stem);
            let Some(postings) =
                index.read_postings(&term, IndexRecordOption::WithFreqsAndPositions)?
            else {
                return Ok(None);
            };
            terms.push((postings, u32::try_from(last - at).unwrap_or(u32::MAX)));
        }
        terms.sort_by_key(|(postings, _)| postings.doc_freq());
        let mut cursor = Self { terms, doc: TERMINATED, together: Vec::new(), next: Vec::new() };
        cursor.meet();
        Ok(Some(cursor))
    }

    /// The document that the cursor is at.
    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    pub(crate) fn advance(&mut self) {
        if let Some((lead, _)) = self.terms.first_mut() {
            lead.advance();
        }
        self.meet();
    }

    /// Goes on to this document, or to the next that has all stems.
    pub(crate) fn seek(&mut self, doc: u32) {
        if self.doc < doc {
            if let Some((lead, _)) = self.terms.first_mut() {
                lead.seek(doc);
            }
            self.meet();
        }
    }

    /// How often the phrase can stand in the document at most.
    pub(crate) fn at_most(&self) -> u32 {
        self.terms.iter().map(|(postings, _)| postings.term_freq()).min().unwrap_or(0)
    }

    /// How often the phrase stands in the document.
    pub(crate) fn count(&mut self) -> u32 {
        let Some(((lead, shift), others)) = self.terms.split_first_mut() else { return 0 };
        lead.positions_with_offset(*shift, &mut self.together);
        for (postings, shift) in others {
            postings.positions_with_offset(*shift, &mut self.next);
            keep_common(&mut self.together, &self.next);
            if self.together.is_empty() {
                return 0;
            }
        }
        u32::try_from(self.together.len()).unwrap_or(u32::MAX)
    }

    /// Moves all cursors to the next document that they have in common, beginning where the first is.
    fn meet(&mut self) {
        let Some(((lead, _), others)) = self.terms.split_first_mut() else { return };
        self.doc = 'next: loop {
            let doc = lead.doc();
            if doc == TERMINATED {
                break TERMINATED;
            }
            for (other, _) in &mut *others {
                if other.doc() < doc && other.seek(doc) == TERMINATED {
                    break 'next TERMINATED;
                }
                if other.doc() > doc {
                    lead.seek(other.doc());
                    continue 'next;
                }
            }
            break doc;
        };
    }
}

/// Keeps what is in both sorted lists.
fn keep_common(kept: &mut Vec<u32>, other: &[u32]) {
    let mut rest = other.iter().peekable();
    kept.retain(|position| {
        while rest.next_if(|&other| other < position).is_some() {}
        rest.peek() == Some(&position)
    });
}

#[cfg(test)]
mod tests {
    use tantivy::schema::{Schema, TEXT};

    use super::*;

    /// The documents that have all words, and how often the phrase is in each.
    fn found(texts: &[&str], phrase: &[(usize, &str)]) -> Option<Vec<(u32, u32, u32)>> {
        let mut schema = Schema::builder();
        let field = schema.add_text_field("text", TEXT);
        let index = tantivy::Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
        for text in texts {
            let mut document = tantivy::TantivyDocument::default();
            document.add_text(field, text);
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
        let searcher = index.reader().unwrap().searcher();
        let inverted = searcher.segment_reader(0).inverted_index(field).unwrap();
        let phrase = Phrase(phrase.iter().map(|(at, stem)| (*at, (*stem).to_owned())).collect());
        let mut cursor = PhraseCursor::new(&inverted, field, &phrase).unwrap()?;
        let mut found = Vec::new();
        while cursor.doc() != TERMINATED {
            found.push((cursor.doc(), cursor.at_most(), cursor.count()));
            cursor.advance();
        }
        Some(found)
    }

    #[test]
    fn a_phrase_stands_together_and_in_order() {
        let texts = ["a b", "b a", "a x b", "a b a b", "x", "a a b b"];
        assert_eq!(
            found(&texts, &[(0, "a"), (1, "b")]).unwrap(),
            [(0, 1, 1), (1, 1, 0), (2, 1, 0), (3, 2, 2), (5, 2, 1)]
        );
        assert_eq!(
            found(&texts, &[(0, "a"), (2, "b")]).unwrap(),
            [(0, 1, 0), (1, 1, 0), (2, 1, 1), (3, 2, 0), (5, 2, 2)]
        );
        assert_eq!(
            found(&["a b c", "c b a", "b c a b c"], &[(0, "a"), (1, "b"), (2, "c")]).unwrap(),
            [(0, 1, 1), (1, 1, 0), (2, 1, 1)]
        );
    }

    #[test]
    fn a_word_may_stand_twice_in_a_phrase() {
        assert_eq!(
            found(&["a a", "a b a", "a a a"], &[(0, "a"), (1, "a")]).unwrap(),
            [(0, 2, 1), (1, 2, 0), (2, 3, 2)]
        );
    }

    #[test]
    fn without_one_of_its_words_there_is_no_phrase() {
        assert_eq!(found(&["a b"], &[(0, "a"), (1, "z")]), None);
    }

    #[test]
    fn seeking_finds_the_next_document_and_never_goes_back() {
        let texts: Vec<String> = (0..1000)
            .map(|n| if n % 3 == 0 { "a b".to_owned() } else { format!("a x{n}") })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = found(&texts, &[(0, "a"), (1, "b")]).unwrap();
        assert_eq!(all.len(), 334);
        assert!(all.iter().all(|(doc, _, count)| doc % 3 == 0 && *count == 1));
    }
}
