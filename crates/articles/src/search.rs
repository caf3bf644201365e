//! From a query to hits: which articles answer, and where they say so.

use crate::answer::{limit, section_summary, summarised};
use crate::format::Format;
use crate::index::Stored;
use crate::plan::Plan;
use crate::query::Query;
use crate::rank::rank;
use crate::results::{AskError, Hit, Indexing, Search, Snippet};
use crate::sections::Outline;
use crate::snapshot::Snapshot;
use crate::snippet::Cutter;

/// Hits, if nothing else is asked for, and at most.
const USUAL_HITS: usize = 10;
const MOST_HITS: usize = 100;

/// What to look for and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchOptions {
    /// Hits at most; 10 if `None`, never more than 100.
    pub limit: Option<i64>,
    /// Whether hits bring their whole text.
    pub include_content: bool,
}

/// Searches a snapshot.
pub(crate) fn search(
    snapshot: &Snapshot,
    text: &str,
    options: SearchOptions,
    indexing: Option<Indexing>,
) -> Result<Search, AskError> {
    let most = limit(options.limit, USUAL_HITS, MOST_HITS)?;
    let query = Query::parse(text)?;
    let mut answer = Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing };
    let Some(view) = &snapshot.view else { return Ok(answer) };
    let all = snapshot.listing.articles().len() as u64;
    let Some(plan) = Plan::new(view, &query, all)? else { return Ok(answer) };
    let ranking = rank(view, &plan.clauses, plan.unknown, most)?;
    answer.total = ranking.total;
    let mut cutter = Cutter::new(plan.stems());
    for ranked in ranking.best {
        let Stored { meta, text, .. } = view.read(ranked.address)?;
        // An article that is on its way out is in the index a moment longer than on the listing.
        let Some(entry) = snapshot.listing.serves(&meta.path) else {
            answer.total -= 1;
            continue;
        };
        let outline = Outline::read(&text, Format::of(&entry.path).unwrap_or(Format::Text));
        let snippet = cutter.cut(&outline).map(|cut| Snippet {
            section: outline.section_at(cut.place).map(section_summary),
            text: cut.text,
            words: cut.words,
        });
        let size = text.len();
        let content = options.include_content.then_some(text);
        answer.hits.push(Hit {
            summary: summarised(entry, meta, size),
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
