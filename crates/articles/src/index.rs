//! The search index: its fields, its documents, and where it is kept.
//!
//! The index contains all titles and texts, and its own manifest: each document has the record of its
//! file (path, size, time, hash). So the manifest always matches the indexed files.
//!
//! Hidden files are documents with a record and no text: no search finds them, and they are not read
//! again.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Map;
use tantivy::collector::TopDocs;
use tantivy::error::DataCorruption;
use tantivy::indexer::IndexWriterOptions;
use tantivy::query::TermSetQuery;
use tantivy::schema::{FAST, NumericOptions};
use tantivy::schema::{
    Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{
    DocAddress, DocSet, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher,
    TERMINATED, TantivyDocument, Term,
};

use crate::article::ParsedArticle;
use crate::disk::DiskDirectory;
use crate::links;
use crate::listing::Entry;
use crate::problem::Problem;
use crate::sections::Section;
use crate::settings::FolderWeight;
use crate::words::{SpellingTokenizer, StemTokenizer, in_language};

/// The version of the fields, the records and the tokenizers. An index with another version is not
/// used.
pub(crate) const FORMAT: u32 = 6;

/// The searched fields, and their weights, chosen by `cargo xtask search-quality`.
pub(crate) const WEIGHTS: [(&str, f32); 5] =
    [("title", 2.25), ("tags", 2.5), ("description", 0.75), ("headings", 1.75), ("body", 0.25)];

/// Bytes that a writing thread collects before it writes a segment. The lower bound is tantivy's.
const WRITER_BUDGET: std::ops::RangeInclusive<usize> = 15_000_000..=80_000_000;

/// The fields of a document.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    /// The fields of [`WEIGHTS`], in that order: stems.
    pub(crate) searched: [Field; 5],
    /// Every word as written, for completions and corrections.
    pub(crate) spelling: Field,
    path: Field,
    record: Field,
    problems: Field,
    updated: Field,
    /// Every folder that the file is in.
    pub(crate) folders: Field,
    /// The weight of the article, by the settings.
    factor: Field,
    meta: Field,
    frontmatter: Field,
    sections: Field,
    /// The names that its links use, and its links as written.
    pub(crate) linked: Field,
    targets: Field,
    text: Field,
}

impl Fields {
    /// The field of the titles.
    pub(crate) fn title(&self) -> Field {
        self.searched[0]
    }

    /// The field of the texts.
    pub(crate) fn body(&self) -> Field {
        self.searched[4]
    }
}

/// The stored metadata of an article.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) status: Option<String>,
    pub(crate) published: Option<String>,
    pub(crate) updated: Option<String>,
}

/// The records in the index.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) problems: Vec<Problem>,
}

/// An index in memory or on the disk.
pub(crate) struct Index {
    on_disk: bool,
    index: tantivy::Index,
    reader: IndexReader,
    fields: Fields,
    /// The weights of the articles of some folders in the ranking.
    weights: Vec<FolderWeight>,
}

impl Index {
    pub(crate) fn in_memory() -> tantivy::Result<Self> {
        let (schema, fields) = schema();
        Self::new(tantivy::Index::create_in_ram(schema), fields, false)
    }

    /// Uses these weights for documents from now on.
    pub(crate) fn with_weights(self, weights: &[FolderWeight]) -> Self {
        Self { weights: weights.to_vec(), ..self }
    }

    /// The weight of the article of a file: that of the setting with the longest path.
    fn factor(&self, path: &str) -> f32 {
        let under = |weight: &&FolderWeight| {
            let folder = weight.path.trim_matches('/');
            folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let nearest = self.weights.iter().filter(under).max_by_key(|weight| weight.path.len());
        nearest.map_or(1.0, |weight| weight.factor)
    }

    /// Opens the index that another process writes in this folder.
    pub(crate) fn open(folder: &Path) -> tantivy::Result<Self> {
        let (schema, fields) = schema();
        let index = tantivy::Index::open(DiskDirectory::open(folder)?)?;
        if index.schema() != schema {
            return Err(tantivy::TantivyError::SchemaError(
                "the index has another schema".to_owned(),
            ));
        }
        Self::new(index, fields, true)
    }

    /// Opens the index in this folder, or creates one.
    pub(crate) fn on_disk(folder: &Path) -> tantivy::Result<Self> {
        let (schema, fields) = schema();
        let index = tantivy::Index::builder()
            .schema(schema)
            .settings(IndexSettings::default())
            .open_or_create(DiskDirectory::open(folder)?)?;
        check(&index)?;
        Self::new(index, fields, true)
    }

    fn new(index: tantivy::Index, fields: Fields, on_disk: bool) -> tantivy::Result<Self> {
        index.tokenizers().register("stems", TextAnalyzer::from(StemTokenizer::new()));
        index.tokenizers().register("spelling", TextAnalyzer::from(SpellingTokenizer::default()));
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { on_disk, index, reader, fields, weights: Vec::new() })
    }

    pub(crate) fn is_on_disk(&self) -> bool {
        self.on_disk
    }

    /// A writer for files of this many bytes. There can be one writer at a time.
    pub(crate) fn writer(&self, threads: usize, bytes: u64) -> tantivy::Result<IndexWriter> {
        let each = usize::try_from(bytes).unwrap_or(usize::MAX) / threads;
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread(each.clamp(*WRITER_BUDGET.start(), *WRITER_BUDGET.end()))
            .num_merge_threads(1)
            .build();
        self.index.writer_with_options(options)
    }

    /// Opens the last commit for searching.
    pub(crate) fn reload(&self) -> tantivy::Result<View> {
        self.reader.reload()?;
        Ok(View { searcher: self.reader.searcher(), fields: self.fields.clone() })
    }

    /// The number of the last commit, and its payload.
    pub(crate) fn last_commit(&self) -> tantivy::Result<(u64, String)> {
        let meta = self.index.load_metas()?;
        Ok((meta.opstamp, meta.payload.unwrap_or_default()))
    }

    /// The term that identifies the document of a file.
    pub(crate) fn path_term(&self, path: &str) -> Term {
        Term::from_field_text(self.fields.path, path)
    }

    /// The document of a file.
    pub(crate) fn document(
        &self,
        entry: &Entry,
        reading: &ParsedArticle,
    ) -> tantivy::Result<TantivyDocument> {
        let fields = &self.fields;
        let mut document = TantivyDocument::default();
        document.add_text(fields.path, &entry.path);
        document.add_text(fields.record, entry.record());
        document.add_i64(fields.updated, entry.updated);
        for problem in &reading.problems {
            document.add_text(fields.problems, serde_json::to_string(problem).map_err(invalid)?);
        }
        if entry.hidden.is_some() {
            return Ok(document);
        }
        let meta = Meta {
            path: entry.path.to_string(),
            title: reading.title.clone(),
            description: reading.description.clone(),
            tags: reading.tags.clone(),
            status: reading.status.clone(),
            published: reading.published.as_ref().map(|when| when.shown.clone()),
            updated: reading.updated.as_ref().map(|when| when.shown.clone()),
        };
        document.add_text(
            fields.frontmatter,
            serde_json::to_string(&reading.frontmatter).map_err(invalid)?,
        );
        document.add_text(fields.meta, serde_json::to_string(&meta).map_err(invalid)?);
        for link in &reading.outline.links {
            if let Some(name) = links::name_in(link) {
                document.add_text(fields.linked, name);
            }
        }
        document.add_text(fields.targets, reading.outline.links.join("\n"));
        let sections = serde_json::to_string(&reading.outline.sections).map_err(invalid)?;
        document.add_text(fields.sections, sections);
        document.add_text(fields.text, &reading.text);
        document.add_f64(fields.factor, self.factor(&entry.path).into());
        for (at, _) in entry.path.match_indices('/') {
            document.add_text(fields.folders, &entry.path[..at]);
        }
        let mut search = |field: usize, text: &str| {
            document.add_text(fields.searched[field], in_language(text, entry.language));
            document.add_text(fields.spelling, text);
        };
        search(0, &reading.title);
        reading.tags.iter().for_each(|tag| search(1, tag));
        // People remember slugs and other titles, so they count as tags.
        search(1, &entry.slug().replace(['-', '_'], " "));
        reading.names.iter().for_each(|name| search(1, name));
        reading.description.iter().for_each(|description| search(2, description));
        reading
            .outline
            .sections
            .iter()
            .filter(|section| section.level > 0)
            .for_each(|section| search(3, &section.title));
        search(4, &reading.outline.plain);
        Ok(document)
    }

    /// Reads the records of all documents.
    pub(crate) fn load(&self, view: &View) -> tantivy::Result<Loaded> {
        let mut loaded = Loaded::default();
        for segment in view.searcher.segment_readers() {
            let texts = |name: &str| -> tantivy::Result<Vec<String>> {
                let Some(column) = segment.fast_fields().str(name)? else { return Ok(Vec::new()) };
                let mut all = Vec::with_capacity(column.num_terms());
                let mut stream = column.dictionary().stream()?;
                while stream.advance() {
                    all.push(String::from_utf8_lossy(stream.key()).into_owned());
                }
                // The ordinals follow the order of the dictionary.
                let ords = segment
                    .doc_ids_alive()
                    .flat_map(|doc| column.term_ords(doc).collect::<Vec<_>>());
                let mut ords: Vec<usize> =
                    ords.filter_map(|ord| usize::try_from(ord).ok()).collect();
                ords.sort_unstable();
                Ok(ords
                    .into_iter()
                    .filter_map(|ord| all.get_mut(ord).map(std::mem::take))
                    .collect())
            };
            let records = texts("record")?;
            loaded.entries.extend(
                records.iter().filter_map(|record| Entry::from_record(record)).map(Arc::new),
            );
            let problems = texts("problems")?;
            loaded
                .problems
                .extend(problems.iter().filter_map(|problem| serde_json::from_str(problem).ok()));
        }
        Ok(loaded)
    }
}

/// The index at one commit.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) searcher: Searcher,
    pub(crate) fields: Fields,
}

impl View {
    /// The document of a file.
    pub(crate) fn find(&self, path: &str) -> tantivy::Result<Option<DocAddress>> {
        let term = Term::from_field_text(self.fields.path, path);
        for (place, segment) in (0..).zip(self.searcher.segment_readers()) {
            let Some(mut found) = segment
                .inverted_index(self.fields.path)?
                .read_postings(&term, IndexRecordOption::Basic)?
            else {
                continue;
            };
            while found.doc() != TERMINATED {
                if !segment.is_deleted(found.doc()) {
                    return Ok(Some(DocAddress::new(place, found.doc())));
                }
                found.advance();
            }
        }
        Ok(None)
    }

    /// The number of articles with this stem: of the field that has it most often, so that a word that is
    /// common in texts does not count as rare in titles.
    pub(crate) fn articles_with(&self, stem: &str) -> tantivy::Result<u64> {
        let mut most = 0;
        for field in self.fields.searched {
            most = most.max(self.searcher.doc_freq(&Term::from_field_text(field, stem))?);
        }
        Ok(most)
    }

    /// Documents with a link that uses one of these names.
    pub(crate) fn linking_to(
        &self,
        names: &[String],
        most: usize,
    ) -> tantivy::Result<Vec<DocAddress>> {
        let terms = names.iter().map(|name| Term::from_field_text(self.fields.linked, name));
        let found = TopDocs::with_limit(most).order_by_score();
        let found = self.searcher.search(&TermSetQuery::new(terms), &found)?;
        Ok(found.into_iter().map(|(_, address)| address).collect())
    }

    /// Reads the stored fields of a document.
    pub(crate) fn read(&self, address: DocAddress) -> tantivy::Result<Stored> {
        let document: TantivyDocument = self.searcher.doc(address)?;
        let text =
            |field| document.get_first(field).and_then(|value| value.as_str()).unwrap_or_default();
        let meta = serde_json::from_str(text(self.fields.meta)).map_err(invalid)?;
        let frontmatter = text(self.fields.frontmatter).to_owned();
        let sections = serde_json::from_str(text(self.fields.sections)).map_err(invalid)?;
        let links = text(self.fields.targets).lines().map(str::to_owned).collect();
        Ok(Stored { meta, frontmatter, sections, links, text: text(self.fields.text).to_owned() })
    }
}

/// The stored fields of an article.
pub(crate) struct Stored {
    pub(crate) meta: Meta,
    pub(crate) text: String,
    pub(crate) sections: Vec<Section>,
    pub(crate) links: Vec<String>,
    /// JSON, parsed on demand.
    frontmatter: String,
}

impl Stored {
    pub(crate) fn frontmatter(&self) -> tantivy::Result<Map<String, serde_json::Value>> {
        serde_json::from_str(&self.frontmatter).map_err(invalid)
    }
}

/// Compares the files of an index with their checksums.
fn check(index: &tantivy::Index) -> tantivy::Result<()> {
    match index.validate_checksum()?.into_iter().next() {
        None => Ok(()),
        Some(file) => Err(damaged(format!("the checksum of {} is wrong", file.display()))),
    }
}

/// The error of a damaged index.
pub(crate) fn damaged(reason: String) -> tantivy::TantivyError {
    tantivy::TantivyError::DataCorruption(DataCorruption::comment_only(reason))
}

fn invalid(error: serde_json::Error) -> tantivy::TantivyError {
    tantivy::TantivyError::InternalError(error.to_string())
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let stems = TextFieldIndexing::default()
        .set_tokenizer("stems")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let spelling = TextFieldIndexing::default()
        .set_tokenizer("spelling")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    let fast = TextOptions::default().set_fast("raw");
    let fields = Fields {
        searched: WEIGHTS.map(|(name, _)| {
            builder.add_text_field(name, TextOptions::default().set_indexing_options(stems.clone()))
        }),
        spelling: builder
            .add_text_field("spelling", TextOptions::default().set_indexing_options(spelling)),
        path: builder.add_text_field("path", STRING),
        record: builder.add_text_field("record", fast.clone()),
        problems: builder.add_text_field("problems", fast),
        updated: builder.add_i64_field("updated", NumericOptions::from(FAST)),
        folders: builder.add_text_field("folders", STRING),
        factor: builder.add_f64_field("factor", NumericOptions::from(FAST)),
        meta: builder.add_text_field("meta", STORED),
        frontmatter: builder.add_text_field("frontmatter", STORED),
        sections: builder.add_text_field("sections", STORED),
        linked: builder.add_text_field("linked", STRING),
        targets: builder.add_text_field("targets", STORED),
        text: builder.add_text_field("text", STORED),
    };
    (builder.build(), fields)
}
