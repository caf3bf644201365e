//! The entry points of fuzzers and property tests: reading untrusted files.

use crate::format::Format;
use crate::frontmatter::split;
use crate::sections::Outline;

/// Any text has a frontmatter and a rest, and the lines that are reported exist.
pub fn frontmatter(bytes: &[u8]) {
    let file = String::from_utf8_lossy(bytes);
    let (matter, text) = split(&file, Format::Markdown);
    assert!(file.ends_with(text), "the text is not what follows the frontmatter");
    // A carriage return alone ends a line in YAML, too.
    let last = file.replace("\r\n", "\n").split(['\n', '\r']).count();
    let lines = matter.fields.iter().map(|field| field.line);
    for line in lines.chain(matter.faults.iter().map(|fault| fault.line)) {
        assert!((1..=last).contains(&line), "line {line} of {last}");
    }
}

/// Any text has an outline: sections in their order, inside the text, and each with its own id.
pub fn sections(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let formats =
        [Format::Markdown, Format::Mdx, Format::Text, Format::ReStructured, Format::AsciiDoc];
    for format in formats {
        let outline = Outline::read(&text, format);
        let mut ids = std::collections::HashSet::new();
        let mut start = 0;
        for section in &outline.sections {
            assert!(text.get(section.range.clone()).is_some(), "{:?}", section.range);
            assert!(section.range.start >= start, "sections are out of order");
            start = section.range.start;
            // The text above the first heading has level 0.
            assert!(section.level <= 6, "level {}", section.level);
            assert!(!section.id.is_empty() && ids.insert(&section.id), "id `{}`", section.id);
        }
    }
}
