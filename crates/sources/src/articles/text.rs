//! Results as text for people and models.
//!
//! The text contains what the next call needs: ids, sections, and whether there is more.

use std::fmt::{self, Write as _};

use sabir_articles::{
    Article, Hit, Indexing, Links, List, Search, SectionSummary, Summary, shortened,
};

/// Sections in the outline of an article.
const MOST_SECTIONS: usize = 60;

/// From this length on, in bytes, a content has its outline above it.
const LONG: usize = 4000;

/// The longest part of a query that is repeated in the result, in characters.
const QUERY: usize = 100;

/// The longest description in a list, in characters.
const DESCRIPTION: usize = 160;

/// Folders in a list.
const MOST_FOLDERS: usize = 60;

/// Articles, one line each, up to `max_chars` bytes.
pub(super) fn list(list: &List, offset: usize, max_chars: usize) -> String {
    let List { articles, total, folders, .. } = list;
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
    let mut next = list.next_offset;
    for (place, article) in articles.iter().enumerate() {
        line(&mut text, "\n- ", article);
        if text.len() > max_chars && place + 1 < articles.len() {
            next = Some(offset + place + 1);
            break;
        }
    }
    if articles.len() < *total && !folders.is_empty() {
        let shown =
            folders.iter().take(MOST_FOLDERS).map(|(name, count)| format!("{name} ({count})"));
        let more = if folders.len() > MOST_FOLDERS { ", …" } else { "" };
        let shown = shown.collect::<Vec<_>>().join(", ");
        push(&mut text, format_args!("\nFolders, for `category`: {shown}{more}"));
    }
    if let Some(next) = next {
        push(&mut text, format_args!("\nMore: offset={next}."));
    }
    note_indexing(&mut text, list.indexing);
    text
}

/// An article: its metadata, its outline if it is long, then its Markdown.
pub(super) fn article(article: &Article, offset: usize) -> String {
    let Article { summary, content, section, sections, next_offset, links, .. } = article;
    let mut text = format!("{} (`{}`)", summary.title, summary.id);
    match section {
        Some(section) => push(&mut text, format_args!(", section `{}`", section.id)),
        None if offset > 0 => {}
        None => {
            add(&mut text, "\nStatus: ", summary.status.as_deref());
            add(&mut text, "\nUpdated: ", date(summary));
            if !summary.tags.is_empty() {
                add(&mut text, "\nTags: ", Some(summary.tags.join(", ").as_str()));
            }
            if sections.len() > 1 && (next_offset.is_some() || content.len() > LONG) {
                outline(&mut text, sections);
            }
        }
    }
    if let Some(Links { to, from }) = links {
        push(&mut text, format_args!("\nLinks to: {}", named(to)));
        push(&mut text, format_args!("\nLinked from: {}", named(from)));
    }
    text.push_str("\n\n");
    text.push_str(content.trim_start_matches(['\n', '\r']));
    if let Some(next) = next_offset {
        let of = section.as_ref().map_or(summary.size, |section| section.size as u64);
        let section =
            section.as_ref().map_or_else(String::new, |it| format!(", section `{}`", it.id));
        push(
            &mut text,
            format_args!(
                "\n\n[Cut at {next} of about {of} characters. To go on: slug `{}`{section}, offset {next}; or ask \
                 for one section.]",
                summary.id
            ),
        );
    }
    text
}

/// The sections of an article, the outer ones first if there are many.
fn outline(text: &mut String, sections: &[SectionSummary]) {
    let deepest = (0..=6).rev().find(|&level| {
        sections.iter().filter(|section| section.level <= level).count() <= MOST_SECTIONS
    });
    let shown =
        sections.iter().filter(|section| deepest.is_none_or(|level| section.level <= level));
    text.push_str("\nSections:");
    for section in shown.take(MOST_SECTIONS) {
        let indent = "  ".repeat(usize::from(section.level.saturating_sub(1)));
        push(text, format_args!("\n{indent}- `{}` ({} characters)", section.id, section.size));
    }
    if deepest.is_none_or(|level| level < 6) {
        text.push_str("\n- …");
    }
}

/// The hits of a search, one line each, up to `max_chars` bytes.
pub(super) fn search(query: &str, search: &Search, offset: usize, max_chars: usize) -> String {
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
    for (place, hit) in search.hits.iter().enumerate() {
        hit_line(&mut text, offset + place + 1, hit);
        if let Some(content) = &hit.content {
            push(&mut text, format_args!("\n\n{}\n", content.trim_end()));
        }
        if text.len() > max_chars && place + 1 < search.hits.len() {
            let cut = floor(&text, max_chars.max(LONG));
            text.truncate(cut);
            push(&mut text, format_args!("…\n[Cut. More: offset={}.]", offset + place + 1));
            break;
        }
    }
    note_indexing(&mut text, search.indexing);
    text
}

/// A hit: its title, its id and section, and what matches.
fn hit_line(text: &mut String, number: usize, hit: &Hit) {
    push(text, format_args!("\n{number}. {} (`{}`", hit.summary.title, hit.summary.id));
    let section = hit.snippet.as_ref().and_then(|snippet| snippet.section.as_ref());
    if let Some(section) = section {
        push(text, format_args!(", section `{}`", section.id));
    }
    text.push(')');
    match &hit.snippet {
        Some(snippet) => push(text, format_args!(": {}", snippet.text.replace('\n', " "))),
        None => describe(text, &hit.summary),
    }
}

fn describe(text: &mut String, article: &Summary) {
    if let Some(description) = &article.description {
        push(text, format_args!(": {}", shortened(description, DESCRIPTION)));
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn line(text: &mut String, start: &str, article: &Summary) {
    push(text, format_args!("{start}{} (`{}`", article.title, article.id));
    add(text, ", ", date(article));
    text.push(')');
    describe(text, article);
    if !article.tags.is_empty() {
        push(text, format_args!(" [{}]", article.tags.join(", ")));
    }
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
        assert_eq!(list(&list_of_all, 0, 99), "There are no articles.");
        assert_eq!(search(" x ", &search_of_all, 0, 99), "No article matches \"x\".");
        let (some, found) = empty(Some(Indexing { done: 3, total: 7 }));
        let more = "\n\nThe folder is still being read (3 of 7 files): more may come.";
        assert_eq!(list(&some, 0, 99), format!("There are no articles.{more}"));
        assert_eq!(search("x", &found, 0, 99), format!("No article matches \"x\".{more}"));
        let (none, _) = empty(Some(Indexing { done: 0, total: 0 }));
        assert!(list(&none, 0, 99).ends_with("\n\nThe folder is still being read: more may come."));
    }

    #[test]
    fn only_the_start_of_a_long_query_is_repeated() {
        let (_, found) = empty(None);
        assert!(search(&"word ".repeat(800), &found, 0, 99).chars().count() < 150);
    }
}
