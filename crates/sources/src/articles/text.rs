//! Results as text for people and models.
//!
//! The text contains what the next call needs: ids, sections, and whether there is more.

use std::fmt::{self, Write as _};

use sabir_articles::{
    Article, Hit, Indexing, Links, List, Search, SectionSummary, Summary, shortened,
};

/// Sections in the outline of an article.
const MOST_SECTIONS: usize = 60;

/// With fewer sections than these, an outline shows a part of the next level, too.
const FEW_SECTIONS: usize = 5;

/// The longest title of a section in an outline, in characters.
const SECTION_TITLE: usize = 100;

/// The outline takes at most this part of an answer: one third.
const OUTLINE_SHARE: usize = 3;

/// From this length on, in bytes, an outline that is cut says how to find the other sections.
const LEAST_FOR_HINT: usize = 300;

/// From this length on, in bytes, a content has its outline above it.
const LONG: usize = 4000;

/// The longest part of a query that is repeated in the result, in characters.
const QUERY: usize = 100;

/// The longest description in a list, in characters.
const DESCRIPTION: usize = 160;

/// Folders in a list.
const MOST_FOLDERS: usize = 60;

/// Articles, one line each.
pub(super) fn list(list: &List, offset: usize) -> String {
    let List { articles, total, .. } = list;
    let mut text = match (articles.len(), *total) {
        (0, 0) => "There are no articles.".to_owned(),
        (0, total) => format!("There are only {total} articles."),
        (1, 1) => "1 article.".to_owned(),
        (shown, total) if shown == total => format!("{total} articles, newest first."),
        (shown, total) if offset == 0 => format!("The newest {shown} of {total} articles."),
        (shown, total) => {
            format!("Articles {} to {} of {total}, newest first.", offset + 1, offset + shown)
        }
    };
    articles.iter().for_each(|article| text.push_str(&article_line(article)));
    if articles.len() < *total {
        text.push_str(&folders(list));
    }
    if let Some(next) = list.next_offset {
        push(&mut text, format_args!("\nMore: offset={next}."));
    }
    note_indexing(&mut text, list.indexing);
    text
}

/// The folders of a list: in one line, or as a tree if they have folders in them.
pub(super) fn folders(list: &List) -> String {
    let mut folders: Vec<(Vec<&str>, usize)> =
        list.folders.iter().map(|(name, count)| (name.split('/').collect(), *count)).collect();
    folders.sort_unstable();
    let Some(top) = folders.iter().map(|(parts, _)| parts.len()).min() else {
        return String::new();
    };
    let is_tree = folders.iter().any(|(parts, _)| parts.len() > top);
    let mut text = "\nFolders, for `category`:".to_owned();
    for (place, (parts, count)) in folders.iter().take(MOST_FOLDERS).enumerate() {
        let before = match is_tree {
            true => format!("\n{}- ", "  ".repeat(parts.len() - top)),
            false if place == 0 => " ".to_owned(),
            false => ", ".to_owned(),
        };
        push(&mut text, format_args!("{before}{} ({count})", parts.join("/")));
    }
    if folders.len() > MOST_FOLDERS {
        text.push_str(", …");
    }
    text
}

/// An article: its metadata, its outline if it is long, then its Markdown. `search` is the name of the
/// tool that finds sections.
pub(super) fn article(article: &Article, offset: usize, max_chars: usize, search: &str) -> String {
    let Article { summary, content, section, sections, next_offset, links, .. } = article;
    let mut text = format!("{} (`{}`)", summary.title, summary.id);
    match section {
        Some(section) => push(&mut text, format_args!(", section `{}`", section.id)),
        None if offset > 0 => {}
        None => {
            if let Some(missing) = &article.missing_section {
                push(
                    &mut text,
                    format_args!(
                        ": it has no section `{missing}`, so this is the article from its start"
                    ),
                );
            }
            add(&mut text, "\nStatus: ", summary.status.as_deref());
            add(&mut text, "\nUpdated: ", date(summary));
            if !summary.tags.is_empty() {
                add(&mut text, "\nTags: ", Some(summary.tags.join(", ").as_str()));
            }
            if sections.len() > 1 && (next_offset.is_some() || content.len() > LONG) {
                outline(&mut text, sections, max_chars / OUTLINE_SHARE, search);
            }
        }
    }
    if let Some(etag) = &article.etag {
        push(&mut text, format_args!("\nEtag: `{etag}`"));
    }
    if let Some(Links { to, from }) = links {
        push(&mut text, format_args!("\nLinks to: {}", named(to)));
        push(&mut text, format_args!("\nLinked from: {}", named(from)));
    }
    text.push_str("\n\n");
    text.push_str(content.trim_start_matches(['\n', '\r']));
    let of = section.as_ref().map_or(summary.size, |section| section.size as u64);
    if let Some(next) = next_offset {
        let section =
            section.as_ref().map_or_else(String::new, |it| format!(", section `{}`", it.id));
        let or = if sections.is_empty() { "" } else { "; or ask for one section" };
        push(
            &mut text,
            format_args!(
                "\n\n[Cut at {next} of about {of} characters. To go on: slug `{}`{section}, offset {next}{or}.]",
                summary.id
            ),
        );
    } else if offset > 0 && content.is_empty() {
        push(
            &mut text,
            format_args!(
                "[It ends at about {of} characters: there is nothing at offset {offset}.]"
            ),
        );
    }
    text
}

/// The sections of an article up to a number of bytes, the outer ones only if there are many.
fn outline(text: &mut String, sections: &[SectionSummary], most: usize, search: &str) {
    let up_to = |level: u8| sections.iter().filter(move |section| section.level <= level);
    let deepest = (0..=6).rev().find(|&level| up_to(level).count() <= MOST_SECTIONS);
    // A title alone says nothing: then the first sections below it are shown.
    let deepest = deepest.map_or(6, |level| match up_to(level).count() {
        0..FEW_SECTIONS => (level + 1).min(6),
        _ => level,
    });
    text.push_str("\nSections:");
    let mut is_whole = up_to(deepest).count() <= MOST_SECTIONS && deepest == 6;
    let mut left = most;
    for section in up_to(deepest).take(MOST_SECTIONS) {
        let indent = "  ".repeat(usize::from(section.level.saturating_sub(1)));
        let SectionSummary { id, title, size, .. } = section;
        let title = match is_same(title, id) {
            true => String::new(),
            false => format!(" {}", shortened(title, SECTION_TITLE)),
        };
        let line = format!("\n{indent}- `{id}`{title} ({size} characters)");
        if line.len() > left {
            is_whole = false;
            break;
        }
        left -= line.len();
        text.push_str(&line);
    }
    if !is_whole {
        let how = match most >= LEAST_FOR_HINT {
            true => format!(": `{search}` names the one that matches"),
            false => String::new(),
        };
        push(text, format_args!("\n- … ({} sections in all{how})", sections.len()));
    }
}

/// Whether two names have the same letters and digits.
pub(super) fn is_same(a: &str, b: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(a) == letters(b)
}

/// The hits of a search, one line each.
pub(super) fn search(query: &str, search: &Search, offset: usize) -> String {
    let query = shortened(query.trim(), QUERY);
    let mut text = match (search.hits.len(), search.total) {
        (0, 0) => format!("No article matches \"{query}\"."),
        (0, total) => format!("Only {total} articles match \"{query}\"."),
        (1, 1) => format!("1 article matches \"{query}\"."),
        (shown, total) if shown == total => {
            format!("{total} articles match \"{query}\", best first.")
        }
        (shown, total) if offset == 0 => {
            format!("The best {shown} of {total} articles that match \"{query}\".")
        }
        (shown, total) => format!(
            "Articles {} to {} of {total} that match \"{query}\".",
            offset + 1,
            offset + shown
        ),
    };
    for correction in &search.corrections {
        let taken_for = correction.taken_for.join(" or ");
        push(&mut text, format_args!(" \"{}\" was taken for {taken_for}.", correction.word));
    }
    for (number, hit) in (offset + 1..).zip(&search.hits) {
        text.push_str(&hit_line(number, hit));
        if let Some(content) = &hit.content {
            push(&mut text, format_args!("\n\n{}\n", content.trim_end()));
        }
    }
    let next = offset + search.hits.len();
    if next < search.total && !search.hits.is_empty() {
        push(&mut text, format_args!("\nMore: offset={next}."));
    }
    note_indexing(&mut text, search.indexing);
    text
}

/// A hit: its title, its id and section, and what matches.
pub(super) fn hit_line(number: usize, hit: &Hit) -> String {
    let mut text = format!("\n{number}. {} (`{}`", hit.summary.title, hit.summary.id);
    let section = hit.snippet.as_ref().and_then(|snippet| snippet.section.as_ref());
    if let Some(section) = section {
        push(&mut text, format_args!(", section `{}`", section.id));
    }
    text.push(')');
    match &hit.snippet {
        Some(snippet) => push(&mut text, format_args!(": {}", snippet.text.replace('\n', " "))),
        None => describe(&mut text, &hit.summary),
    }
    text
}

fn describe(text: &mut String, article: &Summary) {
    if let Some(description) = &article.description {
        push(text, format_args!(": {}", shortened(description, DESCRIPTION)));
    }
}

/// The end of the last whole character up to `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// An article of a list.
pub(super) fn article_line(article: &Summary) -> String {
    let mut text = format!("\n- {} (`{}`", article.title, article.id);
    add(&mut text, ", ", date(article));
    text.push(')');
    describe(&mut text, article);
    if !article.tags.is_empty() {
        let tags = shortened(&article.tags.join(", "), DESCRIPTION);
        push(&mut text, format_args!(" [{tags}]"));
    }
    text
}

/// Appends a note if the result may be incomplete.
fn note_indexing(text: &mut String, indexing: Option<Indexing>) {
    match indexing {
        None => {}
        Some(Indexing { total: 0, .. }) => {
            text.push_str("\n\nThe folder is still being read: more may come.");
        }
        Some(Indexing { done, total }) => push(
            text,
            format_args!(
                "\n\nThe folder is still being read ({done} of {total} files): more may come."
            ),
        ),
    }
}

fn named(ids: &[String]) -> String {
    if ids.is_empty() { "none".to_owned() } else { format!("`{}`", ids.join("`, `")) }
}

fn date(article: &Summary) -> Option<&str> {
    article.last_updated.as_deref().or(article.published_date.as_deref())
}

fn add(text: &mut String, before: &str, part: Option<&str>) {
    if let Some(part) = part {
        text.push_str(before);
        text.push_str(part);
    }
}

fn push(text: &mut String, part: fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = text.write_fmt(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(indexing: Option<Indexing>) -> (List, Search) {
        let list = List { indexing, ..List::default() };
        (list, Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing })
    }

    #[test]
    fn a_result_says_whether_more_may_come() {
        let (list_of_all, search_of_all) = empty(None);
        assert_eq!(list(&list_of_all, 0), "There are no articles.");
        assert_eq!(search(" x ", &search_of_all, 0), "No article matches \"x\".");
        let (some, found) = empty(Some(Indexing { done: 3, total: 7 }));
        let more = "\n\nThe folder is still being read (3 of 7 files): more may come.";
        assert_eq!(list(&some, 0), format!("There are no articles.{more}"));
        assert_eq!(search("x", &found, 0), format!("No article matches \"x\".{more}"));
        let (none, _) = empty(Some(Indexing { done: 0, total: 0 }));
        assert!(list(&none, 0).ends_with("\n\nThe folder is still being read: more may come."));
    }

    #[test]
    fn only_the_start_of_a_long_query_is_repeated() {
        let (_, found) = empty(None);
        assert!(search(&"word ".repeat(800), &found, 0).chars().count() < 150);
    }
}
