//! Results as text for people and models.
//!
//! The text contains what the next call needs: ids, sections, and whether there is more.

use std::fmt::{self, Write as _};

use sabir_articles::{Article, Hit, Indexing, List, Search, SectionSummary, Summary, shortened};

/// Sections that are listed above an article. The structured result has all of them.
const MOST_SECTIONS: usize = 50;

/// The longest part of a query that is repeated in the result, in characters.
const QUERY: usize = 100;

/// Articles, one line each.
pub(super) fn list(list: &List) -> String {
    let shown = list.articles.len();
    let mut text = match (shown, list.total) {
        (0, _) => "There are no articles.".to_owned(),
        (1, 1) => "1 article.".to_owned(),
        (shown, total) if shown == total => format!("{total} articles, newest first."),
        (shown, total) => format!("The newest {shown} of {total} articles."),
    };
    for article in &list.articles {
        line(&mut text, "\n- ", article);
    }
    note_indexing(&mut text, list.indexing);
    text
}

/// An article: its metadata, then its Markdown.
pub(super) fn article(article: &Article) -> String {
    let Article { summary, content, section, sections, .. } = article;
    let mut text = format!("{} (`{}`)", summary.title, summary.id);
    add(&mut text, "\nStatus: ", summary.status.as_deref());
    add(&mut text, "\nUpdated: ", date(summary));
    if !summary.tags.is_empty() {
        add(&mut text, "\nTags: ", Some(summary.tags.join(", ").as_str()));
    }
    if let Some(section) = section {
        add(&mut text, "\nThis section: ", Some(named(section).as_str()));
    }
    if sections.len() > 1 {
        let names: Vec<String> = sections.iter().take(MOST_SECTIONS).map(named).collect();
        let more = if sections.len() > MOST_SECTIONS { ", …" } else { "" };
        add(&mut text, "\nSections: ", Some(&format!("{}{more}", names.join(", "))));
    }
    text.push_str("\n\n");
    text.push_str(content.trim_start_matches(['\n', '\r']));
    text
}

/// The hits of a search.
pub(super) fn search(query: &str, search: &Search) -> String {
    let query = shortened(query.trim(), QUERY);
    let mut text = match (search.hits.len(), search.total) {
        (0, _) => format!("No article matches \"{query}\"."),
        (1, 1) => format!("1 article matches \"{query}\"."),
        (shown, total) if shown == total => {
            format!("{total} articles match \"{query}\", best first.")
        }
        (shown, total) => format!("The best {shown} of {total} articles that match \"{query}\"."),
    };
    for correction in &search.corrections {
        let taken_for = correction.taken_for.join(" or ");
        push(&mut text, format_args!(" \"{}\" was taken for {taken_for}.", correction.word));
    }
    for (place, hit) in search.hits.iter().enumerate() {
        line(&mut text, &format!("\n{}. ", place + 1), &hit.summary);
        snippet(&mut text, hit);
        if let Some(content) = &hit.content {
            push(&mut text, format_args!("\n\n{}\n", content.trim_end()));
        }
    }
    note_indexing(&mut text, search.indexing);
    text
}

fn line(text: &mut String, start: &str, article: &Summary) {
    push(text, format_args!("{start}{} (`{}`", article.title, article.id));
    add(text, ", ", date(article));
    text.push(')');
    add(text, ": ", article.description.as_deref());
    if !article.tags.is_empty() {
        push(text, format_args!(" [{}]", article.tags.join(", ")));
    }
}

fn snippet(text: &mut String, hit: &Hit) {
    let Some(snippet) = &hit.snippet else { return };
    push(text, format_args!("\n   > {}", snippet.text.replace('\n', " ")));
    if let Some(section) = &snippet.section {
        push(text, format_args!(" (section {})", named(section)));
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

fn named(section: &SectionSummary) -> String {
    format!("`{}`", section.id)
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
        let list = List { articles: Vec::new(), total: 0, indexing };
        (list, Search { hits: Vec::new(), total: 0, corrections: Vec::new(), indexing })
    }

    #[test]
    fn a_result_says_whether_more_may_come() {
        let (list_of_all, search_of_all) = empty(None);
        assert_eq!(list(&list_of_all), "There are no articles.");
        assert_eq!(search(" x ", &search_of_all), "No article matches \"x\".");
        let (some, found) = empty(Some(Indexing { done: 3, total: 7 }));
        let more = "\n\nThe folder is still being read (3 of 7 files): more may come.";
        assert_eq!(list(&some), format!("There are no articles.{more}"));
        assert_eq!(search("x", &found), format!("No article matches \"x\".{more}"));
        let (none, _) = empty(Some(Indexing { done: 0, total: 0 }));
        assert!(list(&none).ends_with("\n\nThe folder is still being read: more may come."));
    }

    #[test]
    fn only_the_start_of_a_long_query_is_repeated() {
        let (_, found) = empty(None);
        assert!(search(&"word ".repeat(800), &found).chars().count() < 150);
    }
}
