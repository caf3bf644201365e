//! Rewrites the links in a text to the ids of the articles that they lead to.
//!
//! A relative link means nothing without its page; an id can be asked for. Links to other places, and those
//! that lead to several articles, stay as they are.

use std::ops::Range;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pulldown_cmark::{Event, LinkType, Parser, Tag};

use crate::format::Format;
use crate::links::Link;
use crate::listing::Listing;
use crate::sections::options;

/// The characters that end the address of a link in Markdown.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'(').add(b')').add(b'<').add(b'>').add(b'%').add(b'#');

/// The text of the article `from` with its links as ids.
pub(crate) fn with_ids(
    text: &str,
    format: Format,
    from: &str,
    listing: &Listing,
    site: Option<&str>,
) -> String {
    if !format.is_markdown() {
        return text.to_owned();
    }
    let target = |written: &str| -> Option<String> {
        let link = Link::parse(written, site).filter(|link| !link.path.is_empty())?;
        let id = utf8_percent_encode(listing.linked(&link, from)?.id(), ESCAPED).to_string();
        let section = link.section.map(|it| format!("#{}", utf8_percent_encode(&it, ESCAPED)));
        let section = section.unwrap_or_default();
        Some(format!("{id}{section}")).filter(|target| target != written)
    };
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut change = |range: Range<usize>, written: &str| {
        // The text and the title of a link may be the same as its address.
        let before = ["](", "](<", "]: ", "]: <", "]:"];
        let find = |before: &&str| {
            let at = text[range.clone()].rfind(&format!("{before}{written}"))?;
            Some(at + before.len())
        };
        let at = before.iter().find_map(find).filter(|_| !written.is_empty());
        if let (Some(at), Some(target)) = (at, target(written)) {
            let start = range.start + at;
            changes.push((start..start + written.len(), target));
        }
    };
    let parser = Parser::new_ext(text, options());
    for (_, definition) in parser.reference_definitions().iter() {
        change(definition.span.clone(), &definition.dest);
    }
    for (event, range) in parser.into_offset_iter() {
        if let Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, .. }) = event {
            change(range, &dest_url);
        }
    }
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
