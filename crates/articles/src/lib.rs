//! A folder of documents: read, indexed, searched, watched.
//!
//! Start at [`Store`]. A file is read through `folder`, `page` and `article`, and added to `index` and
//! `listing`. A question goes from `store` through `answer` or `search` to `index`. The two sides share
//! a `snapshot` only.
//!
//! This crate knows nothing of MCP: `sabir-sources` serves a store as a source.

#[cfg(not(unix))]
compile_error!("sabir-articles supports Unix only");

mod settings; // how a folder is served

mod folder; // scanning and reading files
mod ignored; // files that are left out by rules
mod files; // images and other files, by name
mod edit; // changing files
mod format; // which files are articles
mod page; // one file, or why it is not read yet

mod article; // parses a file
mod date; // dates in many formats
mod frontmatter; // metadata above the text
mod html; // HTML -> Markdown
mod notebook; // Jupyter notebooks -> Markdown
mod pdf; // PDF -> Markdown, by a program
mod macros; // macros of site generators
mod problem; // problems for the author
mod markup; // other markups as Markdown
mod asciidoc; // the headings of AsciiDoc
mod restructured; // the headings of reStructuredText
mod sections; // the outline, and the plain text
mod value; // values in a frontmatter
mod yaml; // YAML, valid or not

mod index; // the search index
mod links; // links as pages and models write them
mod roles; // links of AsciiDoc and reStructuredText
mod listing; // all files, in memory
mod fold; // words without case and accents
mod language; // languages, and how a document names its own
mod stems; // the stems of words
mod words; // splits text into words

pub mod fuzzing; // the entry points of fuzzers

mod cache; // the index on the disk, and its lock
mod disk; // the folder of an index on the disk
mod context; // the context of the worker
mod events; // the events of the worker
mod indexer; // keeps the index equal to the folder
mod reader; // reads many files in parallel
mod regular; // opens regular files only
mod snapshot; // the current state
mod threads; // parallel work
mod watcher; // watches the folder
mod worker; // the thread behind a store

mod answer; // lists and articles
mod rewrite; // links in a text -> ids
mod passage; // the best passage of an article
mod plan; // the alternatives of each word
mod query; // parses a query
mod coverage; // a query of which an article must match a part
mod rank; // orders the matching articles
mod results; // results and errors
mod search; // searches the index
mod vectors; // vectors of passages, for a search by meaning
mod snippet; // the best part of a text
mod spelling; // completions and corrections
mod store; // the entry point, and changes of articles
mod texts; // a search over short texts in memory
mod uri; // the URIs of articles

pub use answer::ReadOptions;
pub use article::{Hidden, shortened};
pub use edit::{WriteError, Written};
pub use language::Language;
pub use pdf::PdfReader;
pub use problem::Problem;
pub use results::{
    Article, Change, Completion, Correction, File, Hit, Indexing, Links, List, Search,
    SectionSummary, Snippet, StoreError, Summary,
};
pub use search::SearchOptions;
pub use settings::{FolderWeight, Settings};
pub use store::{Figures, OpenError, Store};
pub use texts::TextIndex;
pub use uri::ArticleUris;
pub use vectors::Passage;
