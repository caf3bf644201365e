//! Searches a snapshot.

use crate::answer::{limit, section_summary, summarize};
use crate::format::Format;
use crate::index::Stored;
use crate::plan::Plan;
use crate::query::Query;
use crate::rank::{MOST_RANKED, rank};
use crate::results::{Hit, Indexing, Search, Snippet, StoreError};
use crate::sections::{Outline, Section};
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
        let Stored { meta, text, sections, .. } = view.read(ranked.address)?;
        // A removed article may be in the index a moment longer than in the listing.
        let Some(entry) = snapshot.listing.serves(&meta.path) else {
            answer.total -= 1;
            continue;
        };
        let (section, own) = passage(&sections, &text, ranked.passage);
        let format = Format::of(&entry.path).unwrap_or(Format::Text);
        let number = ranked.passage - section.map_or(0, |section| section.passage);
        let cut = cutter.cut(&Outline::read(own, format), number);
        let section = section.map(section_summary);
        let snippet = cut.map(|cut| Snippet { text: cut.text, words: cut.words, section });
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

/// The section of a passage, and its own text, without its subsections. An article without sections has
/// its text only.
fn passage<'a>(
    sections: &'a [Section],
    text: &'a str,
    number: u32,
) -> (Option<&'a Section>, &'a str) {
    let after = sections.partition_point(|section| section.passage <= number);
    let Some(section) = sections[..after].last() else { return (None, text) };
    let end = sections.get(after).map_or(text.len(), |next| next.range.start);
    (Some(section), &text[section.range.start..end])
}
