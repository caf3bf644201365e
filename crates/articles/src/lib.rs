//! A folder of Markdown, served: listed, read in sections, searched, watched.
//!
//! Start at [`Store`]. A file goes `folder` → `page` → `article` → `index` and appears on the
//! `listing`; a question goes `store` → `answer` or `search` → `index` and back. The two sides meet in
//! `snapshot` only.
//!
//! Nothing here knows MCP: `sabir-sources` serves a store as a source.

mod settings; // what the keeper of the folder decides

mod folder; // the disk, and nothing outside the folder
mod format; // which files are articles
mod page; // one file, or why not yet

mod article; // what a file says, and whether it is visible
mod date; // dates in all their forms
mod frontmatter; // what stands above the text
mod problem; // what its author should put right
mod sections; // the outline, and the plain words
mod value; // values of a frontmatter
mod yaml; // YAML, right or wrong

mod index; // fields, documents, records
mod listing; // ids and dates, in memory
mod words; // text to words

mod cache; // the index on the disk, and its lock
mod context; // what the parts of the worker share
mod events; // what the worker waits for
mod indexer; // brings the index in line with the folder
mod worker; // the life of the thread behind a store
mod reader; // many files at once
mod snapshot; // what is served at this moment
mod watcher; // watches the folder

mod answer; // lists and articles
mod phrase; // where words stand together
mod plan; // what each word may mean
mod query; // what was typed
mod rank; // which articles answer, in what order
mod results; // what is answered, and why not
mod search; // from a query to hits
mod snippet; // where an article says it
mod spelling; // completions and typing errors
mod store; // the one entry point
mod uri; // the address of an article
mod window; // scores, document by document

pub use article::shortened;
pub use problem::Problem;
pub use results::{
    Article, AskError, Change, Completion, Correction, Hit, Indexing, List, Search, SectionSummary,
    Snippet, Summary,
};
pub use search::SearchOptions;
pub use settings::Settings;
pub use store::{Figures, OpenError, Store};
pub use uri::{Addresses, URI_PREFIX, id_in, uri_of};
