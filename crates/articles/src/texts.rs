//! A search over short texts in memory: the words and the ranking of articles, without a folder.

use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, TokenStream as _, Tokenizer as _};
use tantivy::{Searcher, TantivyDocument, TantivyError, Term};

use crate::words::StemTokenizer;

/// The weights of a text's title and of its body.
const WEIGHTS: [f32; 2] = [2.0, 1.0];

/// The limit of words in a query. Further ones are ignored.
const MAX_WORDS: usize = 32;

/// The memory of the one writing thread. The lower bound is tantivy's.
const WRITER_BUDGET: usize = 15_000_000;

/// An index of texts, each of which has a title and a body.
pub struct TextIndex {
    searcher: Searcher,
    fields: [Field; 2],
}

impl TextIndex {
    /// Indexes texts. A text is known by its number in their order.
    pub fn new<'t>(texts: impl IntoIterator<Item = [&'t str; 2]>) -> Result<Self, TantivyError> {
        let mut schema = Schema::builder();
        let stems = TextFieldIndexing::default()
            .set_tokenizer("stems")
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(stems);
        let fields = ["title", "body"].map(|name| schema.add_text_field(name, options.clone()));
        let number = schema.add_u64_field(NUMBER, FAST);
        let index = tantivy::Index::create_in_ram(schema.build());
        index.tokenizers().register("stems", TextAnalyzer::from(StemTokenizer::new()));
        let mut writer = index.writer_with_num_threads(1, WRITER_BUDGET)?;
        for (at, text) in (0u64..).zip(texts) {
            let mut document = TantivyDocument::new();
            document.add_u64(number, at);
            for (field, part) in fields.into_iter().zip(text) {
                document.add_text(field, part);
            }
            writer.add_document(document)?;
        }
        writer.commit()?;
        Ok(Self { searcher: index.reader()?.searcher(), fields })
    }

    /// The numbers of the texts that match best, best first. A text matches if it has any word of
    /// the query; the more, the better.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<usize>, TantivyError> {
        let mut tokenizer = StemTokenizer::new();
        let mut words = tokenizer.token_stream(query);
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        while parts.len() < MAX_WORDS * WEIGHTS.len() && words.advance() {
            for (field, weight) in self.fields.into_iter().zip(WEIGHTS) {
                let term = Term::from_field_text(field, &words.token().text);
                let word = TermQuery::new(term, IndexRecordOption::WithFreqs);
                parts.push((Occur::Should, Box::new(BoostQuery::new(Box::new(word), weight))));
            }
        }
        let best = TopDocs::with_limit(limit.max(1)).order_by_score();
        let found = self.searcher.search(&BooleanQuery::new(parts), &best)?;
        let mut numbers = Vec::new();
        for (_, address) in found.into_iter().take(limit) {
            let segment = self.searcher.segment_reader(address.segment_ord);
            let number = segment.fast_fields().u64(NUMBER)?.first(address.doc_id);
            numbers.extend(number.and_then(|number| usize::try_from(number).ok()));
        }
        Ok(numbers)
    }
}

const NUMBER: &str = "number";

impl std::fmt::Debug for TextIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextIndex").field("texts", &self.searcher.num_docs()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_stems_and_parts_of_names_and_titles_count_more() {
        let texts = [
            ["issuesListForRepo", "GET /repos/{owner}/{repo}/issues List repository issues"],
            ["repos_create", "POST /user/repos Create a repository"],
            ["labels", "Labels of an issue"],
        ];
        let index = TextIndex::new(texts).unwrap();
        assert_eq!(index.search("listing issues", 10).unwrap(), [0, 2]);
        assert_eq!(index.search("create", 10).unwrap(), [1]);
        assert_eq!(index.search("repositories", 1).unwrap().len(), 1);
        assert!(index.search("", 10).unwrap().is_empty());
        assert!(index.search("zebra", 10).unwrap().is_empty());
    }
}
