//! Cuts a result to its limit: fewer articles or a part of a text, and how to go on.

use sabir_articles::{List, Search};
use serde::Serialize;

use super::text;

/// Room for the text around the lines of a result: the count, and how to go on.
const AROUND: usize = 200;

/// The smallest part of a text that is worth showing, in bytes.
const LEAST_PART: usize = 200;

/// The length of an item in a result: of its line, or of its JSON, which is what models see of a
/// structured result.
fn length(item: &impl Serialize, line: &str, structured: bool) -> usize {
    match structured {
        true => serde_json::to_string(item).map_or(0, |json| json.len()),
        false => line.len(),
    }
}

/// How many items of these lengths fit, at least one.
fn fitting(lengths: impl Iterator<Item = usize>, most: usize) -> usize {
    let mut sum = 0;
    let fits = |length: &usize| {
        sum += length;
        sum <= most
    };
    lengths.take_while(fits).count().max(1)
}

/// Leaves as many articles in a list as fit.
pub(super) fn cut_list(list: &mut List, offset: usize, most: usize, structured: bool) {
    let most = most.saturating_sub(AROUND + text::folders(list).len());
    let lengths =
        list.articles.iter().map(|item| length(item, &text::article_line(item), structured));
    let shown = fitting(lengths, most);
    if shown < list.articles.len() {
        list.articles.truncate(shown);
        list.next_offset = Some(offset + shown);
    }
}

/// Leaves as many hits as fit, then as much of their contents as fits, best first. A content that
/// is cut says so.
pub(super) fn cut_search(search: &mut Search, most: usize, structured: bool, get: &str) {
    let mut contents: Vec<Option<String>> =
        search.hits.iter_mut().map(|hit| hit.content.take()).collect();
    let most = most.saturating_sub(AROUND);
    let lengths = search.hits.iter().map(|hit| length(hit, &text::hit_line(0, hit), structured));
    let lengths: Vec<usize> = lengths.collect();
    let shown = fitting(lengths.iter().copied(), most);
    search.hits.truncate(shown);
    let mut left = most.saturating_sub(lengths[..shown.min(lengths.len())].iter().sum());
    for (hit, content) in search.hits.iter_mut().zip(&mut contents) {
        let Some(content) = content.take().filter(|_| left >= LEAST_PART) else { continue };
        if content.len() + 4 <= left {
            left -= content.len() + 4;
            hit.content = Some(content);
            continue;
        }
        let end = text::floor(&content, left.saturating_sub(AROUND));
        let (part, whole, id) = (&content[..end], content.len(), &hit.summary.id);
        hit.content = Some(format!(
            "{part}…\n[Cut at {end} of {whole} characters. To go on: `{get}`, slug `{id}`, offset \
             {end}.]"
        ));
        left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_items_are_left_as_fit_and_at_least_one() {
        for (lengths, most, shown) in
            [(&[5, 5, 5][..], 15, 3), (&[5, 5, 5], 14, 2), (&[50, 5], 14, 1), (&[5], 0, 1)]
        {
            assert_eq!(fitting(lengths.iter().copied(), most), shown, "{lengths:?} in {most}");
        }
    }
}
