//! Rewrites the links in a text to the ids of the articles that they lead to, and to the URIs of files.
//!
//! A relative link means nothing without its page; an id and a URI can be asked for. Links to other
//! places, and those that lead to several articles, stay as they are. A link by reference
//! (`[text][name]`) gets its address, because its definition may be outside of what is returned.

use std::ops::Range;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pulldown_cmark::{Event, LinkType, Parser, Tag};

use crate::files::{Files, path_in};
use crate::folder::Folder;
use crate::format::Format;
use crate::links::Link;
use crate::listing::{Entry, Listing};
use crate::macros::references;
use crate::sections::options;
use crate::uri::ArticleUris;

/// The characters that end the address of a link in Markdown.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'(').add(b')').add(b'<').add(b'>').add(b'%').add(b'#');

/// The limit of files that are looked up for one text. Links to further ones stay as they are.
const MOST_FILES: usize = 100;

/// The possible targets of links.
pub(crate) struct Rewriting<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) files: &'a Files,
    pub(crate) site: Option<&'a str>,
    pub(crate) folder: &'a Folder,
    pub(crate) uris: &'a ArticleUris,
}

impl Rewriting<'_> {
    /// A part of the text of an article with its links as ids.
    pub(crate) fn text(&self, text: &str, part: Range<usize>, entry: &Entry) -> String {
        if !Format::of(&entry.path).is_some_and(Format::is_markdown) {
            return text[part].to_owned();
        }
        let mut pass =
            Pass { rewriting: self, text, from: entry.id(), files: 0, changes: Vec::new() };
        let mut code = Vec::new();
        let parser = Parser::new_ext(text, options());
        for (_, definition) in parser.reference_definitions().iter() {
            if is_in(&part, &definition.span) {
                pass.address(definition.span.clone(), &definition.dest);
            }
        }
        for (event, range) in parser.into_offset_iter() {
            if !is_in(&part, &range) {
                continue;
            }
            match event {
                Event::Start(
                    Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. },
                ) => pass.link(link_type, range, &dest_url),
                Event::Html(_) | Event::InlineHtml(_) => pass.html(range),
                Event::Code(_) | Event::Start(Tag::CodeBlock(_)) => code.push(range),
                _ => {}
            }
        }
        let macros = references(text, &code).into_iter().filter(|range| is_in(&part, range));
        macros.for_each(|range| pass.replace(range));
        applied(text, part, pass.changes)
    }

    /// The article that a link leads to, and the section.
    fn article(&self, written: &str, from: &str) -> Option<(&str, Option<String>)> {
        if self.uris.other_folder(written).is_some() {
            return None;
        }
        let link = Link::parse(written, self.site)?;
        let entry = match link.path.is_empty() {
            // A section of the same page.
            true => self.listing.article(from).filter(|_| link.section.is_some())?,
            false => self.listing.linked(&link, from)?,
        };
        Some((entry.id(), link.section))
    }
}

/// One text whose links are rewritten.
struct Pass<'a> {
    rewriting: &'a Rewriting<'a>,
    text: &'a str,
    /// The id of its article.
    from: &'a str,
    /// The files that were looked for.
    files: usize,
    changes: Vec<(Range<usize>, String)>,
}

impl Pass<'_> {
    fn link(&mut self, link_type: LinkType, range: Range<usize>, address: &str) {
        match link_type {
            LinkType::Inline => self.address(range, address),
            LinkType::WikiLink { .. } => self.wiki_link(range, address),
            LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut => {
                self.reference(link_type, range, address);
            }
            _ => {}
        }
    }

    /// Writes the address into a link by reference: `[text][name]`, `[text][]`, `[text]`.
    fn reference(&mut self, link_type: LinkType, range: Range<usize>, address: &str) {
        let name = match link_type {
            LinkType::Shortcut => range.end..range.end,
            // The range of a collapsed link may end in front of its `[]`.
            LinkType::Collapsed if self.text[range.end..].starts_with("[]") => {
                range.end..range.end + 2
            }
            // The text may have brackets, a name has none.
            _ => match self.text[range.clone()].rfind("][") {
                Some(at) => range.start + at + 1..range.end,
                None => return,
            },
        };
        let target = self.target(address).unwrap_or_else(|| {
            let is_plain = !address.contains([' ', '(', ')', '<', '>']);
            if is_plain { address.to_owned() } else { format!("<{address}>") }
        });
        self.changes.push((name, format!("({target})")));
    }

    /// Rewrites the address of a link in Markdown.
    fn address(&mut self, range: Range<usize>, written: &str) {
        // The text and the title of a link may be the same as its address.
        let before = ["](", "](<", "]: ", "]: <", "]:"];
        let find = |before: &&str| {
            let at = self.text[range.clone()].rfind(&format!("{before}{written}"))?;
            Some(range.start + at + before.len())
        };
        if let Some(at) = before.iter().find_map(find) {
            self.replace(at..at + written.len());
        }
    }

    /// Rewrites the addresses in the attributes of HTML.
    fn html(&mut self, range: Range<usize>) {
        let html = &self.text[range.clone()];
        for (at, _) in html.match_indices('=') {
            // `to` is that of Docusaurus' `<Link>`.
            let is_address = ["src", "href", "to"].iter().any(|name| {
                let before = html[..at].strip_suffix(name);
                before.is_some_and(|before| before.ends_with(char::is_whitespace))
            });
            let quote = html[at + 1..].chars().next().filter(|quote| matches!(quote, '"' | '\''));
            if let Some(quote) = quote.filter(|_| is_address)
                && let Some(length) = html[at + 2..].find(quote)
            {
                let start = range.start + at + 2;
                self.replace(start..start + length);
            }
        }
    }

    /// Makes an id or a URI of an address in the text.
    fn replace(&mut self, range: Range<usize>) {
        let written = &self.text[range.clone()];
        if written.is_empty() {
            return;
        }
        let target = self.target(written).filter(|target| target != written);
        self.changes.extend(target.map(|target| (range, target)));
    }

    /// The id or the URI that a link leads to.
    fn target(&mut self, written: &str) -> Option<String> {
        let article = self.rewriting.article(written, self.from).map(|(id, section)| {
            let section = section.map(|it| format!("#{}", utf8_percent_encode(&it, ESCAPED)));
            format!("{}{}", utf8_percent_encode(id, ESCAPED), section.unwrap_or_default())
        });
        article.or_else(|| self.file(written))
    }

    /// Makes an id of the name in a wiki link, and an image of one that embeds a file.
    fn wiki_link(&mut self, range: Range<usize>, name: &str) {
        let link = &self.text[range.clone()];
        let Some(at) = link.find("[[").map(|at| at + 2) else { return };
        let (name, mark) = (name.trim_end_matches('\\'), &link[..at - 2]);
        if let Some((id, section)) = self.rewriting.article(&format!("[[{name}]]"), self.from) {
            // These would be read as parts of the link.
            if id.contains(['#', '|', '[', ']']) || !link[at..].starts_with(name) {
                return;
            }
            let target = section.map_or(id.to_owned(), |section| format!("{id}#{section}"));
            let start = range.start + at;
            self.changes.push((start..start + name.len(), target));
        } else if let Some(uri) = self.file(&format!("[[{name}]]")) {
            let shown = link[at..].trim_end_matches(']').split_once('|').map(|(_, shown)| shown);
            // Obsidian's `|200x100` is a size.
            let is_size = |shown: &str| shown.bytes().all(|b| b.is_ascii_digit() || b == b'x');
            let shown = shown.filter(|shown| !is_size(shown)).unwrap_or(name);
            self.changes.push((range, format!("{mark}[{shown}]({uri})")));
        }
    }

    /// The URI of the file in the folder that a link leads to.
    fn file(&mut self, written: &str) -> Option<String> {
        let Rewriting { files, folder, uris, .. } = self.rewriting;
        let path = path_in(written)?;
        self.files += 1;
        let path = (self.files <= MOST_FILES).then(|| files.at(&path, self.from, folder))??;
        Some(uris.uri_of(&path))
    }
}

fn is_in(part: &Range<usize>, range: &Range<usize>) -> bool {
    part.start <= range.start && range.end <= part.end
}

/// A part of a text with these places in it changed.
fn applied(text: &str, part: Range<usize>, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(part.len());
    let mut end = part.start;
    for (range, target) in changes {
        if range.start >= end {
            out.push_str(&text[end..range.start]);
            out.push_str(&target);
            end = range.end;
        }
    }
    out.push_str(&text[end..part.end]);
    out
}
