//! The outline of a text: its sections and its plain text.
//!
//! One pass over the Markdown finds the range of each section, the text without markup (for the index
//! and for snippets), and a title and a description if the frontmatter has none.
//!
//! A section extends to the next heading of the same or a higher level, so it contains its
//! subsections. Headings inside quotes and lists are text.

use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};

use crate::asciidoc;
use crate::fold::fold;
use crate::format::Format;
use crate::macros::{references, without_macros};
use crate::markup::Prepared;
use crate::restructured;
use crate::words::{MARK, PASSAGE, Splitter};

/// The id and title of the text above the first heading.
const INTRO: (&str, &str) = ("intro", "Introduction");

/// What begins a note in the Markdown of site generators.
const ADMONITIONS: [&str; 4] = [":::", "!!! ", "??? ", "???+ "];

/// The limit of links of an article that are kept for backlinks. Further ones are not.
const MOST_LINKS: usize = 1000;

/// The Markdown that is understood.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_WIKILINKS
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) level: u8,
    /// The range in the Markdown, including subsections.
    pub(crate) range: Range<usize>,
    /// The number of its first passage in the index.
    pub(crate) passage: u32,
}

/// The text of a section without its subsections.
pub(crate) fn own_text<'a>(sections: &[Section], text: &'a str, at: usize) -> &'a str {
    let end = sections.get(at + 1).map_or(text.len(), |next| next.range.start);
    &text[sections[at].range.start..end]
}

/// Finds a section by id, by title, or by anchor. Of `Heading#Heading below it` the last one counts, and
/// `page=3` is the page of a PDF file.
pub(crate) fn find_section<'a>(sections: &'a [Section], asked: &str) -> Option<&'a Section> {
    let asked = asked.trim().trim_start_matches('#').trim();
    let found = section_named(sections, asked);
    let below =
        || asked.rsplit_once('#').and_then(|(_, last)| section_named(sections, last.trim()));
    let page = || section_named(sections, &asked.replace('=', "-"));
    // AsciiDoc's own ids: `_the_heading`.
    let underscored = || {
        asked.strip_prefix('_').and_then(|rest| section_named(sections, &rest.replace('_', "-")))
    };
    found.or_else(below).or_else(page).or_else(underscored)
}

fn section_named<'a>(sections: &'a [Section], asked: &str) -> Option<&'a Section> {
    let find =
        |matches: &dyn Fn(&Section) -> bool| sections.iter().find(|section| matches(section));
    find(&|section| section.id == asked)
        .or_else(|| find(&|section| fold(&section.title) == fold(asked)))
        .or_else(|| find(&|section| section.id == anchor(asked)))
        // A heading with an id of its own is also known by its title.
        .or_else(|| find(&|section| !asked.is_empty() && anchor(&section.title) == anchor(asked)))
}

/// The outline of a text.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) sections: Vec<Section>,
    /// The text without markup, one block per line. Each section starts with a [`MARK`] and its heading.
    pub(crate) plain: String,
    /// The first heading of level 1.
    pub(crate) heading: Option<String>,
    /// The first paragraph.
    pub(crate) paragraph: Option<String>,
    /// The addresses of its links, as written.
    pub(crate) links: Vec<String>,
    /// The ids that the file gives to its headings, in a markup other than Markdown.
    pub(crate) labels: Vec<String>,
    /// Positions in `plain` at which sections start, and their indices.
    starts: Vec<(usize, usize)>,
}

impl Outline {
    pub(crate) fn read(text: &str, format: Format) -> Self {
        match format {
            Format::Text => plain_text(text),
            Format::ReStructured => Self::prepared(restructured::prepared(text), format),
            Format::AsciiDoc => Self::prepared(asciidoc::prepared(text), format),
            _ => Reader::new(text, format).read(),
        }
    }

    fn prepared(Prepared { text, headings, .. }: Prepared, format: Format) -> Self {
        let labels = headings.values().filter_map(|(_, id)| id.clone()).collect();
        let outline = Reader { headings, ..Reader::new(&text, format) }.read();
        Self { labels, ..outline }
    }

    /// Numbers the passages as the index does. A section without words has the number of the next.
    fn number_passages(&mut self) {
        let mut pieces = Splitter::new(&self.plain).peekable();
        let mut last = 0;
        for &(start, section) in &self.starts {
            while let Some(piece) = pieces.next_if(|piece| piece.from < start) {
                last = piece.position / PASSAGE;
            }
            let passage = pieces.peek().map_or(last, |piece| piece.position / PASSAGE);
            self.sections[section].passage = u32::try_from(passage).unwrap_or(u32::MAX);
        }
    }
}

fn plain_text(text: &str) -> Outline {
    let paragraph = text
        .split("\n\n")
        .flat_map(|block| block.split("\r\n\r\n"))
        .map(|block| block.split_whitespace().collect::<Vec<_>>().join(" "))
        .find(|block| !block.is_empty());
    Outline { plain: text.to_owned(), paragraph, ..Outline::default() }
}

struct Reader<'a> {
    text: &'a str,
    format: Format,
    outline: Outline,
    /// The levels of headings and the ids that the file gives them, by the place where they start, in
    /// a text that is not Markdown itself.
    headings: HashMap<usize, (u8, Option<String>)>,
    /// The ids so far, each with the number that its next duplicate gets.
    ids: HashMap<String, usize>,
    /// The number of quotes, lists and tables around the current event.
    depth: usize,
    heading: Option<(u8, String, Option<String>)>,
    paragraph: Option<String>,
    /// The anchor above the next heading.
    anchor: Option<String>,
    /// The block of HTML that is open.
    html: String,
    in_image: bool,
    skipping: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, format: Format) -> Self {
        Self {
            text,
            format,
            outline: Outline::default(),
            headings: HashMap::new(),
            ids: HashMap::new(),
            depth: 0,
            heading: None,
            paragraph: None,
            anchor: None,
            html: String::new(),
            in_image: false,
            skipping: false,
        }
    }

    fn read(mut self) -> Outline {
        let mut code = Vec::new();
        for (event, range) in Parser::new_ext(self.text, options()).into_offset_iter() {
            if matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_))) {
                code.push(range.clone());
            }
            match event {
                Event::Start(tag) => self.start(tag, range),
                Event::End(tag) => self.end(tag),
                Event::Text(text) | Event::Code(text) => self.push_text(&text),
                Event::Html(html) => {
                    self.html.push_str(&html);
                    self.note_anchor(&html);
                    self.push_text(without_tags(&html).trim());
                }
                Event::InlineHtml(html) => {
                    self.note_anchor(&html);
                    self.push_text(&without_tags(&html));
                }
                Event::SoftBreak | Event::HardBreak => self.push_text(" "),
                _ => {}
            }
        }
        for range in references(self.text, &code) {
            self.link(LinkType::Inline, &self.text[range]);
        }
        self.close_sections();
        self.outline.number_passages();
        self.outline
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Heading { level, id, .. } if self.depth == 0 => {
                self.intro(range.start);
                let markdown = (level as u8, id.map(|id| id.to_string()));
                let (level, id) = self.headings.remove(&range.start).unwrap_or(markdown);
                let id = id.or(self.anchor.take());
                self.heading = Some((level, String::new(), id));
                let section = Section {
                    id: String::new(),
                    title: String::new(),
                    level,
                    range: range.start..0,
                    passage: 0,
                };
                self.outline.sections.push(section);
            }
            Tag::Paragraph if self.depth == 0 => {
                let source = &self.text[range];
                self.skipping = self.format == Format::Mdx
                    && (["import ", "export "].iter().any(|word| source.starts_with(word))
                        || (source.starts_with("{/*") && source.trim_end().ends_with("*/}")));
                let is_text = !self.skipping && !is_directive(source, self.format);
                if self.outline.paragraph.is_none() && is_text {
                    self.paragraph = Some(String::new());
                }
            }
            Tag::Link { link_type, dest_url, .. } => self.link(link_type, &dest_url),
            // `![[Note]]` shows another article.
            Tag::Image { link_type, dest_url, .. } => {
                if matches!(link_type, LinkType::WikiLink { .. }) {
                    self.link(link_type, &dest_url);
                }
                self.in_image = true;
            }
            // In a list without blank lines, nothing else ends the text in front of these.
            Tag::BlockQuote(_) | Tag::List(_) | Tag::Table(_) | Tag::FootnoteDefinition(_) => {
                self.break_line();
                self.depth += 1;
            }
            Tag::Item | Tag::CodeBlock(_) | Tag::HtmlBlock => self.break_line(),
            _ => {}
        }
    }

    fn link(&mut self, link_type: LinkType, written: &str) {
        if self.outline.links.len() < MOST_LINKS {
            self.outline.links.push(match link_type {
                LinkType::WikiLink { .. } => format!("[[{written}]]"),
                _ => written.to_owned(),
            });
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::Paragraph => {
                self.skipping = false;
                if let Some(text) = self.paragraph.take().map(|text| without_macros(&text)) {
                    self.outline.paragraph = Some(text).filter(|text| !text.is_empty());
                }
                self.break_line();
            }
            TagEnd::Image => self.in_image = false,
            TagEnd::BlockQuote(_)
            | TagEnd::List(_)
            | TagEnd::Table
            | TagEnd::FootnoteDefinition => {
                self.depth = self.depth.saturating_sub(1);
                self.break_line();
            }
            TagEnd::HtmlBlock => {
                let html = std::mem::take(&mut self.html);
                if self.outline.heading.is_none() && self.depth == 0 {
                    self.outline.heading = heading_in(&html);
                }
                self.break_line();
            }
            TagEnd::Item | TagEnd::CodeBlock | TagEnd::TableRow | TagEnd::TableHead => {
                self.break_line();
            }
            TagEnd::TableCell => self.push_text(" "),
            _ => {}
        }
    }

    fn end_heading(&mut self) {
        let Some((level, title, id)) = self.heading.take() else { return self.break_line() };
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let id = self.unique(id.unwrap_or_else(|| anchor(&title)));
        if self.outline.heading.is_none() && level == 1 {
            self.outline.heading = Some(without_macros(&title)).filter(|title| !title.is_empty());
        }
        self.break_line();
        self.outline.starts.push((self.outline.plain.len(), self.outline.sections.len() - 1));
        self.outline.plain.push(MARK);
        self.outline.plain.push_str(&title);
        self.outline.plain.push('\n');
        let at = self.outline.sections.len() - 1;
        let section = &mut self.outline.sections[at];
        section.id = id;
        section.title = title;
    }

    /// Makes a section of the text above the first heading, if it is not blank.
    fn intro(&mut self, end: usize) {
        if !self.outline.sections.is_empty() || self.text[..end].trim().is_empty() {
            return;
        }
        let id = self.unique(INTRO.0.to_owned());
        self.outline.sections.push(Section {
            id,
            title: INTRO.1.to_owned(),
            level: 0,
            range: 0..end,
            passage: 0,
        });
        self.outline.starts.push((0, 0));
    }

    /// Notes the id of `<a id="…">` in a heading, or on a line of its own, which may be above one.
    fn note_anchor(&mut self, html: &str) {
        let Some(id) = anchor_in(html) else { return };
        match &mut self.heading {
            Some((_, _, named)) => _ = named.get_or_insert_with(|| id.to_owned()),
            None if self
                .outline
                .plain
                .rsplit('\n')
                .next()
                .is_none_or(|line| line.trim().is_empty()) =>
            {
                self.anchor = Some(id.to_owned());
            }
            None => {}
        }
    }

    fn push_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.anchor = None;
        }
        if let Some((_, title, _)) = &mut self.heading {
            title.push_str(text);
        } else if !self.skipping {
            self.outline.plain.push_str(text);
            if let Some(paragraph) = self.paragraph.as_mut().filter(|_| !self.in_image) {
                paragraph.push_str(text);
            }
        }
    }

    fn break_line(&mut self) {
        if !self.outline.plain.is_empty() && !self.outline.plain.ends_with('\n') {
            self.outline.plain.push('\n');
        }
    }

    /// The id, with a number if others have it. The numbers go on where they stopped, so that many equal
    /// headings take linear time.
    fn unique(&mut self, id: String) -> String {
        let wanted = if id.is_empty() { "section".to_owned() } else { id };
        let mut id = wanted.clone();
        let mut number = self.ids.get(&wanted).copied().unwrap_or(0);
        while self.ids.contains_key(&id) {
            number += 1;
            id = format!("{wanted}-{number}");
        }
        self.ids.insert(wanted, number);
        self.ids.entry(id.clone()).or_default();
        id
    }

    /// Ends every section where the next one of its level or above starts.
    fn close_sections(&mut self) {
        let sections = &mut self.outline.sections;
        let mut open: Vec<usize> = Vec::new();
        for at in 0..sections.len() {
            let (level, start) = (sections[at].level, sections[at].range.start);
            while let Some(&last) = open
                .last()
                .filter(|&&last| sections[last].level >= level || sections[last].level == 0)
            {
                sections[last].range.end = start;
                open.pop();
            }
            open.push(at);
        }
        for at in open {
            sections[at].range.end = self.text.len();
        }
    }
}

/// Whether a paragraph is a directive of a site generator: `:::note`, `!!! note`, `:toc:`, `.. toctree::`,
/// `include::x[]`.
fn is_directive(paragraph: &str, format: Format) -> bool {
    let is_field = |line: &str| {
        line.trim().strip_prefix(':').is_some_and(|rest| rest.trim_start_matches('!').contains(':'))
    };
    match format {
        Format::AsciiDoc => paragraph.lines().all(|line| is_field(line) || is_block_macro(line)),
        Format::ReStructured => paragraph.starts_with(".. ") || paragraph.lines().all(is_field),
        _ => ADMONITIONS.iter().any(|mark| paragraph.starts_with(mark)),
    }
}

/// `include::x.adoc[]`, `image::x.png[]`, or the title of a block: `.Example`.
fn is_block_macro(line: &str) -> bool {
    let name = line.split_once("::").map(|(name, _)| name);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(char::is_alphanumeric);
    let is_title = |line: &str| {
        line.strip_prefix('.').is_some_and(|title| title.starts_with(char::is_alphanumeric))
    };
    (name.is_some_and(is_name) && line.trim_end().ends_with(']')) || is_title(line)
}

/// The anchor of a heading, as on web sites: `Why it matters!` becomes `why-it-matters`.
fn anchor(title: &str) -> String {
    let lower = title.trim().to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The id in `<a id="…">` or `<a name="…">`.
fn anchor_in(html: &str) -> Option<&str> {
    let tag = html.trim_start().strip_prefix("<a ")?.split('>').next()?;
    let value = ["id=", "name="].into_iter().find_map(|name| {
        let (before, value) = tag.split_once(name)?;
        (before.is_empty() || before.ends_with(' ')).then_some(value)
    })?;
    let id = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split_whitespace().next()?,
    };
    Some(id).filter(|id| !id.is_empty() && !id.contains(char::is_whitespace))
}

/// The text of the first `<h1>` in HTML.
fn heading_in(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let (start, end) = (lower.find("<h1")?, lower.find("</h1>")?);
    let text = without_tags(html.get(start..end)?);
    let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(without_macros(&title)).filter(|title| !title.is_empty())
}

/// Removes tags and comments from HTML.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        let (end, length) = if rest[open..].starts_with("<!--") { ("-->", 3) } else { (">", 1) };
        match rest[open..].find(end) {
            Some(close) => rest = &rest[open + close + length..],
            // The tag continues in the next event.
            None => return text,
        }
        text.push(' ');
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests;
