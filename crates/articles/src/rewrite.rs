//! Rewrites the links in a text to the ids of the articles that they lead to, and to the URIs of files.
//!
//! A relative link means nothing without its page; an id and a URI can be asked for. Links to other
//! places, and those that lead to several articles, stay as they are.

use std::ops::Range;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use pulldown_cmark::{Event, LinkType, Parser, Tag};

use crate::folder::Folder;
use crate::format::{Format, media_type};
use crate::links::{Link, join};
use crate::listing::{Entry, Listing};
use crate::sections::options;
use crate::uri::ArticleUris;

/// The characters that end the address of a link in Markdown.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'(').add(b')').add(b'<').add(b'>').add(b'%').add(b'#');

/// The files of one text that are looked for. Links to further ones stay as they are.
const MOST_FILES: usize = 100;

/// What links may lead to.
pub(crate) struct Rewriting<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) site: Option<&'a str>,
    pub(crate) folder: &'a Folder,
    pub(crate) uris: &'a ArticleUris,
}

impl Rewriting<'_> {
    /// A text of an article with its links as ids.
    pub(crate) fn text(&self, text: &str, entry: &Entry) -> String {
        if !Format::of(&entry.path).is_some_and(Format::is_markdown) {
            return text.to_owned();
        }
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        let mut files = 0;
        let mut change = |range: Range<usize>, written: &str| {
            // The text and the title of a link may be the same as its address.
            let before = ["](", "](<", "]: ", "]: <", "]:"];
            let find = |before: &&str| {
                let at = text[range.clone()].rfind(&format!("{before}{written}"))?;
                Some(at + before.len())
            };
            let at = before.iter().find_map(find).filter(|_| !written.is_empty());
            let target = self.article(written, entry.id()).or_else(|| {
                files += usize::from(media_type(written).is_some());
                self.file(written, entry.id()).filter(|_| files <= MOST_FILES)
            });
            if let (Some(at), Some(target)) = (at, target.filter(|target| target != written)) {
                let start = range.start + at;
                changes.push((start..start + written.len(), target));
            }
        };
        let parser = Parser::new_ext(text, options());
        for (_, definition) in parser.reference_definitions().iter() {
            change(definition.span.clone(), &definition.dest);
        }
        for (event, range) in parser.into_offset_iter() {
            if let Event::Start(
                Tag::Link { link_type: LinkType::Inline, dest_url, .. }
                | Tag::Image { link_type: LinkType::Inline, dest_url, .. },
            ) = event
            {
                change(range, &dest_url);
            }
        }
        applied(text, changes)
    }

    /// The id of the article that a link leads to, with its section.
    fn article(&self, written: &str, from: &str) -> Option<String> {
        let link = Link::parse(written, self.site).filter(|link| !link.path.is_empty())?;
        let id = utf8_percent_encode(self.listing.linked(&link, from)?.id(), ESCAPED).to_string();
        let section = link.section.map(|it| format!("#{}", utf8_percent_encode(&it, ESCAPED)));
        Some(format!("{id}{}", section.unwrap_or_default()))
    }

    /// The URI of the file in the folder that a link leads to.
    fn file(&self, written: &str, from: &str) -> Option<String> {
        let path = percent_decode_str(written).decode_utf8().ok()?;
        media_type(&path).filter(|_| !path.contains("://"))?;
        let near = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = join(if path.starts_with('/') { "" } else { near }, &path)?;
        self.folder.has_file(&path).then(|| self.uris.uri_of(&path))
    }
}

/// The text with these parts of it changed.
fn applied(text: &str, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (range, target) in changes {
        if range.start >= end {
            out.push_str(&text[end..range.start]);
            out.push_str(&target);
            end = range.end;
        }
    }
    out.push_str(&text[end..]);
    out
}
