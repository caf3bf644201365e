//! The part of a text that matches best.

use std::collections::HashMap;

use crate::fold::fold_into;
use crate::language::Language;
use crate::macros::without_macros;
use crate::sections::Outline;
use crate::stems::Stems;
use crate::words::{MARK, PASSAGE, Splitter};

/// The limit of bytes between the first and the last matching word.
const SPAN: usize = 160;

/// The limit of bytes before the first and after the last matching word.
const AROUND: usize = 60;

/// The limit of bytes of a text that are searched.
const LOOKED_AT: usize = 256 * 1024;

/// A part of a text, with `…` where it was cut.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) text: String,
    /// The matching words as written.
    pub(crate) words: Vec<String>,
}

struct Match {
    from: usize,
    to: usize,
    stem: usize,
}

/// Cuts snippets around the same words from many texts.
pub(crate) struct Cutter {
    /// The stems and their weights.
    stems: Vec<(String, f32)>,
    by_stem: HashMap<String, usize>,
    /// The first letters of words that may match.
    initials: [bool; 128],
    stemmer: Stems,
}

impl Cutter {
    pub(crate) fn new(stems: Vec<(String, f32)>) -> Self {
        let by_stem = stems.iter().enumerate().map(|(at, (stem, _))| (stem.clone(), at)).collect();
        let mut initials = [false; 128];
        for first in stems.iter().filter_map(|(stem, _)| stem.bytes().next()) {
            // Letters with accents fold to plain ones, so words that start with one may match.
            if let Some(initial) = initials.get_mut(usize::from(first)) {
                *initial = true;
            }
        }
        Self { stems, by_stem, initials, stemmer: Stems::new() }
    }

    /// The part of a passage with the most and heaviest different words. `None` if it has none.
    pub(crate) fn cut(
        &mut self,
        outline: &Outline,
        passage: u32,
        language: Language,
    ) -> Option<Cut> {
        let text = &outline.plain;
        let matches = self.matches(text, passage, language);
        let heading =
            if text.starts_with(MARK) { text.find('\n').map_or(0, |at| at + 1) } else { 0 };
        let below = matches.partition_point(|found| found.from < heading);
        let (inside, matches) = matches.split_at(below);
        let (shown, from, to) = match best_span(matches, &self.stems) {
            Some((first, last)) => (&matches[first..=last], matches[first].from, matches[last].to),
            // If only the heading matches, the text below it is shown.
            None if !text[heading..].trim().is_empty() => {
                (inside, heading, floor_char_boundary(text, heading + SPAN))
            }
            None => (inside, 0, heading),
        };
        if shown.is_empty() {
            return None;
        }
        let (from, to) = (start_of(text, from), end_of(text, to));
        let mut words: Vec<String> = Vec::new();
        for word in shown.iter().map(|found| &text[found.from..found.to]) {
            if !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
        let body = without_macros(&text[from..to].replace(MARK, ""));
        let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
        let before = if from > 0 && !text[..from].ends_with('\n') { "…" } else { "" };
        let after = if to < text.len() && !text[to..].starts_with('\n') { "…" } else { "" };
        Some(Cut { text: format!("{before}{body}{after}"), words })
    }

    fn matches(&mut self, text: &str, passage: u32, language: Language) -> Vec<Match> {
        let mut folded = String::new();
        let mut found = Vec::new();
        for piece in Splitter::new(text).take_while(|piece| piece.from < LOOKED_AT) {
            if piece.position / PASSAGE != passage as usize {
                continue;
            }
            let word = &text[piece.from..piece.to];
            let first = word.as_bytes()[0].to_ascii_lowercase();
            if self.initials.get(usize::from(first)) == Some(&false) {
                continue;
            }
            folded.clear();
            fold_into(word, &mut folded);
            // Checking the first letters is cheaper than stemming.
            if self.stems.iter().any(|(stem, _)| begins_alike(&folded, stem)) {
                self.stemmer.stem_into(language, word, &mut folded);
                if let Some(&stem) = self.by_stem.get(&folded) {
                    found.push(Match { from: piece.from, to: piece.to, stem });
                }
            }
        }
        found
    }
}

/// Whether a word may have this stem: they are equal except for the end.
fn begins_alike(word: &str, stem: &str) -> bool {
    let head = &stem.as_bytes()[..stem.len().saturating_sub(1)];
    word.as_bytes().starts_with(head)
}

/// The first and the last match of the part whose different stems weigh most.
fn best_span(matches: &[Match], stems: &[(String, f32)]) -> Option<(usize, usize)> {
    let mut counts = vec![0_usize; stems.len()];
    let mut first = 0;
    let mut weight = 0.0;
    let mut best: Option<(f32, usize, usize)> = None;
    for last in 0..matches.len() {
        let stem = matches[last].stem;
        counts[stem] += 1;
        if counts[stem] == 1 {
            weight += stems[stem].1;
        }
        while matches[last].to - matches[first].from > SPAN && first < last {
            let gone = matches[first].stem;
            counts[gone] -= 1;
            if counts[gone] == 0 {
                weight -= stems[gone].1;
            }
            first += 1;
        }
        if best.is_none_or(|(most, ..)| weight > most + f32::EPSILON) {
            best = Some((weight, first, last));
        }
    }
    best.map(|(_, first, last)| (first, last))
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The start of the sentence or line if it is near, else of a word.
fn start_of(text: &str, from: usize) -> usize {
    let earliest = floor_char_boundary(text, from.saturating_sub(AROUND));
    let near = &text[earliest..from];
    let sentence = near.rfind(". ").map(|at| at + 2);
    let line = near.rfind('\n').map(|at| at + 1);
    let word =
        near.char_indices().find(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
    let start = match sentence.max(line) {
        Some(start) => start,
        None if earliest == 0 => 0,
        None => word.unwrap_or(0),
    };
    earliest + start
}

/// The end of the sentence or line if it is near, else of a word.
fn end_of(text: &str, to: usize) -> usize {
    let mut latest = (to + AROUND).min(text.len());
    while !text.is_char_boundary(latest) {
        latest += 1;
    }
    let near = &text[to..latest];
    if let Some(at) = near.find('\n') {
        return to + at;
    }
    if latest == text.len() {
        return latest;
    }
    let sentence = near.rfind(". ").map(|at| at + 1);
    to + sentence.or_else(|| near.rfind(char::is_whitespace)).unwrap_or(near.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    fn shown(markdown: &str, stems: &[&str]) -> Option<(String, String)> {
        let outline = Outline::read(markdown, Format::Markdown);
        let stems: Vec<_> = stems.iter().map(|stem| ((*stem).to_owned(), 1.0)).collect();
        Cutter::new(stems)
            .cut(&outline, 0, Language::ENGLISH)
            .map(|cut| (cut.text, cut.words.join(" ")))
    }

    #[test]
    fn the_part_with_the_most_different_words_is_shown() {
        let filler = "nothing of note stands here. ".repeat(20);
        let text = format!(
            "Context and context again. {filler}Good context engineering keeps tools small. {filler}"
        );
        let (text, words) = shown(&text, &["context", "engin", "tool"]).unwrap();
        assert!(text.contains("Good context engineering keeps tools small."), "{text}");
        assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
        assert_eq!(words, "context engineering tools");
    }

    #[test]
    fn a_short_text_is_shown_whole_and_a_snippet_stays_in_its_line() {
        assert_eq!(
            shown("Small tools.\n\nOther line.", &["tool"]),
            Some(("Small tools.".into(), "tools".into()))
        );
        assert_eq!(shown("One line.\n\nSmall tools", &["tool"]).unwrap().0, "Small tools");
    }

    #[test]
    fn a_text_without_the_words_has_no_snippet() {
        assert_eq!(shown("Nothing here.", &["tool"]), None);
        assert_eq!(shown("", &["tool"]), None);
        assert_eq!(shown("# tools", &["tool"]).unwrap().0, "tools");
        assert_eq!(shown("# tools\n\nThe text.", &["tool"]).unwrap().0, "The text.");
    }

    #[test]
    fn any_script_is_cut_at_whole_characters() {
        let text = "前".repeat(200) + "工具" + &"后\u{3000}".repeat(200);
        let (text, words) = shown(&text, &["工具"]).unwrap();
        assert!(text.contains("工具"), "{text}");
        assert_eq!(words, "工具");
        let text = "é\u{a0}".repeat(200) + "tools" + &"\u{a0}ü".repeat(200);
        assert!(shown(&text, &["tool"]).unwrap().0.contains("tools"));
    }

    #[test]
    fn heavier_words_decide() {
        let filler = "x ".repeat(200);
        let outline =
            Outline::read(&format!("common common. {filler} rare. {filler}"), Format::Markdown);
        let found = Cutter::new(vec![("common".into(), 0.1), ("rare".into(), 2.0)])
            .cut(&outline, 0, Language::ENGLISH)
            .unwrap();
        assert_eq!(found.words, ["rare"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_cut_at_whole_characters(text in "(\\PC|tool| |\n){0,200}") {
            if let Some((cut, words)) = shown(&text, &["tool", "上", "a"]) {
                proptest::prop_assert!(!words.is_empty());
                proptest::prop_assert!(cut.len() <= SPAN + 2 * AROUND + 600);
            }
        }
    }
}
