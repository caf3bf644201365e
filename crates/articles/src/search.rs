//! Searches a snapshot.

use crate::answer::{limit, section_summary, summarize};
use crate::format::Format;
use crate::index::Stored;
use crate::plan::Plan;
use crate::query::Query;
use crate::rank::{MOST_RANKED, rank};
use crate::results::{Hit, Indexing, Search, Snippet, StoreError};
use crate::sections::Outline;
use crate::snapshot::Snapshot;
use crate::snippet::Cutter;

/// The default and the largest number of hits.
const DEFAULT_HITS: usize = 10;
const MOST_HITS: usize = 100;

/// Options of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    /// The largest number of hits (default 10, limit 100).
    pub limit: Option<i64>,
    /// The number of hits that are left out, best first.
    pub offset: usize,
    /// Only articles in this folder, which is a category or a folder in one.
    pub folder: Option<String>,
    /// Whether hits contain the whole text.
    pub include_content: bool,
}

/// Finds the articles that match a query best.
pub(crate) fn search(
    snapshot: &Snapshot,
    text: &str,
    options: &SearchOptions,
    indexing: Option<Indexing>,
) -> Result<Search, StoreError> {
    let most = limit(options.limit, DEFAULT_HITS, MOST_HITS)?;
    let query = Query::parse(text)?;
    let mut answer = Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing };
    let Some(view) = &snapshot.view else { return Ok(answer) };
    let all = snapshot.listing.articles().len() as u64;
    let Some(plan) = Plan::new(view, &query, all)? else { return Ok(answer) };
    let folder = options.folder.as_deref().map(|folder| folder.trim_matches('/'));
    let wanted = options.offset.saturating_add(most).min(MOST_RANKED);
    let ranking = rank(view, &plan, folder.filter(|folder| !folder.is_empty()), wanted)?;
    answer.total = ranking.total;
    let mut cutter = Cutter::new(plan.stems());
    for ranked in ranking.best.into_iter().skip(options.offset) {
        let Stored { meta, text, .. } = view.read(ranked.address)?;
        // A removed article may be in the index a moment longer than in the listing.
        let Some(entry) = snapshot.listing.serves(&meta.path) else {
            answer.total -= 1;
            continue;
        };
        let outline = Outline::read(&text, Format::of(&entry.path).unwrap_or(Format::Text));
        let snippet = cutter.cut(&outline, ranked.passage).map(|cut| Snippet {
            section: outline.section_at(cut.place).map(section_summary),
            text: cut.text,
            words: cut.words,
        });
        let size = text.len();
        let content = options.include_content.then_some(text);
        answer.hits.push(Hit {
            summary: summarize(entry, meta, size),
            score: ranked.score,
            snippet,
            content,
        });
    }
    if answer.total > 0 {
        answer.corrections = plan.corrections;
    }
    Ok(answer)
}
