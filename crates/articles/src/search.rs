//! Searches a snapshot.

use crate::answer::{known_folder, limit, section_summary, summarize};
use crate::article::shortened;
use crate::format::Format;
use crate::index::{Stored, View};
use crate::plan::Plan;
use crate::query::Query;
use crate::rank::{MOST_RANKED, Ranked, Ranking, rank};
use crate::results::{Hit, Indexing, Search, Snippet, StoreError};
use crate::sections::{Outline, Section, own_text};
use crate::snapshot::Snapshot;
use crate::snippet::{Cut, Cutter};
use crate::uri::ArticleUris;
use crate::vectors::{Near, Vectors};
use crate::words::MARK;

/// The default and the largest number of hits.
const DEFAULT_HITS: usize = 10;
const MOST_HITS: usize = 100;

/// The limit of articles that a search by meaning adds, and of the best by words that they are
/// merged with.
const MOST_NEAR: usize = 30;

/// The usual constant of reciprocal rank fusion.
const RANK_CONSTANT: f32 = 60.0;

/// The length of the beginning of a text that is shown, in characters.
const BEGINNING: usize = 200;

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
    /// Links in that text become the ids of the articles that they lead to, or the URIs of files.
    pub uris: Option<ArticleUris>,
    /// The vector of the query, for a search by meaning as well.
    pub vector: Option<Vec<f32>>,
}

/// Finds the articles that match a query best.
pub(crate) fn search(
    snapshot: &Snapshot,
    text: &str,
    options: &SearchOptions,
    vectors: Option<&Vectors>,
    indexing: Option<Indexing>,
) -> Result<Search, StoreError> {
    let most = limit(options.limit, DEFAULT_HITS, MOST_HITS)?;
    let languages = snapshot.listing.languages();
    let query = Query::parse(text, languages)?;
    let mut answer = Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing };
    let Some(view) = &snapshot.view else { return Ok(answer) };
    let all = snapshot.listing.articles().len() as u64;
    let plan = Plan::new(view, &query, languages, all)?;
    let folder = options.folder.as_deref().map(|folder| folder.trim_matches('/'));
    let folder = folder.filter(|folder| !folder.is_empty());
    if let Some(folder) = folder {
        known_folder(snapshot, folder, indexing)?;
    }
    let mut near = match (vectors, &options.vector) {
        (Some(vectors), Some(vector)) => vectors.nearest(vector, folder, MOST_NEAR),
        _ => Vec::new(),
    };
    // An article may be gone, or hidden, a moment before its vectors are.
    near.retain(|near| snapshot.listing.serves(&near.path).is_some());
    let wanted = options.offset.saturating_add(most).min(MOST_RANKED);
    let ranked = if near.is_empty() { wanted } else { wanted.max(MOST_NEAR) };
    let ranking = match &plan {
        Some(plan) => rank(view, plan, folder, ranked)?,
        None => Ranking::default(),
    };
    let ranking = fused(view, ranking, near)?;
    answer.total = ranking.total;
    let mut cutter = Cutter::new(plan.as_ref().map_or_else(Vec::new, Plan::stems));
    for ranked in ranking.best.into_iter().skip(options.offset).take(most) {
        let Stored { meta, text, sections, .. } = view.read(ranked.address)?;
        // A removed article may be in the index a moment longer than in the listing.
        let Some(entry) = snapshot.listing.serves(&meta.path) else {
            answer.total -= 1;
            continue;
        };
        let (section, own) = passage(&sections, &text, ranked.passage);
        let format = Format::of(&entry.path).unwrap_or(Format::Text);
        let number = ranked.passage - section.map_or(0, |section| section.passage);
        let outline = Outline::read(own, format);
        let cut = cutter.cut(&outline, number, entry.language);
        // An article that is only near in meaning shows its beginning.
        let cut = cut.or_else(|| options.vector.is_some().then(|| beginning(&outline)));
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
    if let Some(plan) = plan.filter(|_| answer.total > 0) {
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
    (Some(section), own_text(sections, text, after - 1))
}

/// Merges the articles that are near in meaning with those that have the words, by their ranks in
/// both lists: scores of words and of vectors cannot be compared.
fn fused(view: &View, words: Ranking, near: Vec<Near>) -> tantivy::Result<Ranking> {
    if near.is_empty() {
        return Ok(words);
    }
    let value = |rank: usize| 1.0 / (RANK_CONSTANT + rank as f32);
    let mut ranking = words;
    for (rank, ranked) in ranking.best.iter_mut().enumerate() {
        ranked.score = value(rank);
    }
    for (rank, Near { path, section, .. }) in near.into_iter().enumerate() {
        let Some(address) = view.find(&path)? else { continue };
        match ranking.best.iter_mut().find(|ranked| ranked.address == address) {
            Some(ranked) => ranked.score += value(rank),
            None => {
                let sections = view.read(address)?.sections;
                let passage = sections.get(section).map_or(0, |section| section.passage);
                ranking.best.push(Ranked { address, score: value(rank), passage });
                ranking.total += 1;
            }
        }
    }
    ranking.best.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(ranking)
}

/// The beginning of a text, below its heading.
fn beginning(outline: &Outline) -> Cut {
    let text = outline.plain.trim_start_matches(MARK);
    let below = text.split_once('\n').map_or(text, |(_, below)| below);
    let text = if below.trim().is_empty() { text } else { below };
    let text = text.replace(MARK, " ").split_whitespace().collect::<Vec<_>>().join(" ");
    Cut { text: shortened(&text, BEGINNING), words: Vec::new() }
}
