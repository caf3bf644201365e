use std::time::Duration;

use super::*;

fn markdown(text: &str) -> Outline {
    Outline::read(text, Format::Markdown)
}

/// Sections as `level id: text`, with the text of each cut to one line.
fn shown(text: &str) -> Vec<String> {
    let outline = markdown(text);
    let shown = outline.sections.iter().map(|section| {
        format!(
            "{} {}: {}",
            section.level,
            section.id,
            text[section.range.clone()].replace('\n', "/")
        )
    });
    shown.collect()
}

#[test]
fn a_section_contains_its_subsections() {
    assert_eq!(
        shown("# A\nx\n## B\ny\n### C\nz\n## D\nw\n# E\n"),
        [
            "1 a: # A/x/## B/y/### C/z/## D/w/",
            "2 b: ## B/y/### C/z/",
            "3 c: ### C/z/",
            "2 d: ## D/w/",
            "1 e: # E/",
        ]
    );
}

#[test]
fn the_text_above_the_first_heading_is_a_section() {
    assert_eq!(shown("Hello.\n\n## B\ny"), ["0 intro: Hello.//", "2 b: ## B/y"]);
    assert_eq!(shown("\n\n## B\ny"), ["2 b: ## B/y"]);
    assert_eq!(shown("No headings."), Vec::<String>::new());
    assert_eq!(shown("x\n# Intro\n"), ["0 intro: x/", "1 intro-1: # Intro/"]);
}

#[test]
fn ids_are_unique_anchors() {
    let outline = markdown(
        "# Why it matters!\n# Why it matters\n# `code` and *more*\n# 上下文\n# ?\n# Own {#chosen}\nSet\n===\n",
    );
    let ids: Vec<_> = outline.sections.iter().map(|section| section.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "why-it-matters",
            "why-it-matters-1",
            "code-and-more",
            "上下文",
            "section",
            "chosen",
            "set"
        ]
    );
    assert_eq!(outline.sections[2].title, "code and more");
}

#[test]
fn an_anchor_in_or_above_a_heading_is_its_id() {
    let outline = markdown(
        "# T\n\n## One <a name=\"i\"></a>two\n\n<a id=\"custom\"></a>\n## X\n\n<a class=x id='own'></a>\n\n## Y\n\n\
         Text <a id=\"not\"></a>\n\n## Z <b>bold</b> end\n\n<a id=\"nor\"></a>\ntext\n\n## Ä\n\n\
         <a href=\"#x\">link</a>\n## W {#given} <a id=\"w\"></a>\n",
    );
    let shown = outline.sections.iter().map(|it| format!("{}: {}", it.id, it.title));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "t: T",
            "i: One two",
            "custom: X",
            "own: Y",
            "z-bold-end: Z bold end",
            "ä: Ä",
            "w: W {#given}"
        ]
    );
    // The anchor that web sites make of the title leads there, too.
    let found = find_section(&outline.sections, "one-two").map(|section| section.id.as_str());
    assert_eq!(found, Some("i"));
}

#[test]
fn a_section_is_found_by_id_title_or_anchor() {
    let outline = markdown("# A\n## Why it matters\n");
    for asked in [
        "why-it-matters",
        "Why it matters",
        "WHY IT MATTERS ",
        "#why-it-matters",
        "Why It Matters!",
    ] {
        assert_eq!(
            find_section(&outline.sections, asked).map(|section| section.id.as_str()),
            Some("why-it-matters"),
            "{asked}"
        );
    }
    assert!(find_section(&outline.sections, "why").is_none());
    assert!(find_section(&outline.sections, "").is_none());
}

#[test]
fn headings_in_code_quotes_and_lists_are_not_sections() {
    let text = "# A\n```\n# not\n```\n> # not either\n\n- # nor this\n";
    assert_eq!(markdown(text).sections.len(), 1);
    assert!(markdown(text).plain.contains("not either"));
}

#[test]
fn plain_text_has_no_markup() {
    let text = "# A\n\nSome **bold** [link](https://x.y/z) and `code`\nmore.\n\n- one\n- [x] two\n\n| a | b |\n|---|---|\n| c | d |\n\n<div>html</div>\n<!-- hidden note -->\n";
    let plain = markdown(text).plain;
    assert_eq!(plain, "\u{1e}A\nSome bold link and code more.\none\ntwo\na b \nc d \nhtml\n");
}

#[test]
fn blocks_in_a_tight_list_are_lines_of_their_own() {
    for (text, plain) in [
        ("- one\n  - two\n    - three\n  - four\n", "one\ntwo\nthree\nfour\n"),
        ("1. one\n   - two\n2. three\n", "one\ntwo\nthree\n"),
        ("- one\n  ```\n  two\n  ```\n", "one\ntwo\n"),
        ("- one\n  > two\n", "one\ntwo\n"),
        ("- one\n  | a | b |\n  |---|---|\n  | c | d |\n", "one\na b \nc d \n"),
        ("- one\n  <div>two</div>\n", "one\ntwo\n"),
    ] {
        assert_eq!(markdown(text).plain, plain, "{text}");
    }
}

#[test]
fn passages_are_numbered_as_in_the_index() {
    let long = "word ".repeat(PASSAGE + 1);
    let text = format!("before\n# A\nalpha\n## B\n{long}\n# \n# C\ngamma\n");
    let outline = markdown(&text);
    let numbers: Vec<u32> = outline.sections.iter().map(|section| section.passage).collect();
    assert_eq!(numbers, [0, 1, 2, 4, 4]);
    let position = |word: &str| {
        let at = outline.plain.find(word).unwrap();
        Splitter::new(&outline.plain).find(|piece| piece.from == at).unwrap().position / PASSAGE
    };
    assert_eq!((position("before"), position("alpha"), position("gamma")), (0, 1, 4));
}

#[test]
fn many_equal_headings_take_little_time() {
    let started = std::time::Instant::now();
    let outline = markdown(&"# a\n".repeat(20_000));
    assert_eq!(outline.sections.len(), 20_000);
    assert_eq!(outline.sections[19_999].id, "a-19999");
    // Quadratic time takes half a minute. A binary that is not optimized, on a busy machine, has longer.
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 3000 } else { 50 });
    assert!(started.elapsed() < limit, "{:?}", started.elapsed());
}

#[test]
fn title_and_description_come_from_the_text() {
    let outline = markdown(
        "![badge](b.svg)\n\n## Second\n\n# First\n\nThe *first* paragraph\ngoes on.\n\nNot this.",
    );
    assert_eq!(outline.heading.as_deref(), Some("First"));
    assert_eq!(outline.paragraph.as_deref(), Some("The first paragraph goes on."));
    let outline = markdown("## Only\n# One\n# Two\n> quoted\n");
    assert_eq!(outline.heading.as_deref(), Some("One"));
    assert_eq!(outline.paragraph, None);
    // A note that begins with `##` has the title of its file.
    assert_eq!(markdown("## Second\n\nText\n").heading, None);
    let outline = markdown("{{APIRef(\"DOM\")}}\n\nThe {{domxref(\"Window\")}} object.\n");
    assert_eq!(outline.paragraph.as_deref(), Some("The Window object."));
}

#[test]
fn the_syntax_of_site_generators_is_no_description() {
    for text in [
        "{/* a comment\nof two lines */}\n\nText.\n",
        ":::note\n\nText.\n\n:::\n",
        ":::tip Heading\nInside.\n:::\n\nText.\n",
        "!!! note \"Heading\"\n    Inside.\n\nText.\n",
        "???+ warning\n    Inside.\n\nText.\n",
    ] {
        let outline = Outline::read(text, Format::Mdx);
        assert_eq!(outline.paragraph.as_deref(), Some("Text."), "{text}");
        assert!(!outline.plain.contains("comment"), "{}", outline.plain);
    }
}

#[test]
fn a_heading_in_html_is_a_title() {
    for (text, title) in [
        ("<h1>Zappy</h1>\n\n# Install\n", Some("Zappy")),
        (
            "<div>\n<h1 align=\"center\">\n  <img src=x.png>\n  <b>Zappy</b>\n  server\n</h1>\n</div>\n\n## Install\n",
            Some("Zappy server"),
        ),
        ("# First\n\n<h1>Zappy</h1>\n", Some("First")),
        ("<h1><img src=x.png></h1>\n\n# Install\n", Some("Install")),
        ("</h1><h1>\n", None),
    ] {
        assert_eq!(markdown(text).heading.as_deref(), title, "{text}");
    }
}

#[test]
fn mdx_imports_are_not_text() {
    let text = "import { Note } from './note'\nexport const x = 1\n\n# T\n\n<Note kind=\"tip\">\n\nInside the note.\n\n</Note>\n";
    let outline = Outline::read(text, Format::Mdx);
    assert_eq!(outline.paragraph.as_deref(), Some("Inside the note."));
    assert!(!outline.plain.contains("import") && !outline.plain.contains("kind"));
    assert!(Outline::read("import x\n", Format::Markdown).plain.contains("import"));
}

#[test]
fn a_text_file_has_no_sections() {
    let outline = Outline::read("\n\nFirst\nblock.\n\n# not a heading\n", Format::Text);
    assert!(outline.sections.is_empty());
    assert_eq!(outline.heading, None);
    assert_eq!(outline.paragraph.as_deref(), Some("First block."));
    assert_eq!(Outline::read("a\r\nb\r\n\r\nc", Format::Text).paragraph.as_deref(), Some("a b"));
}

#[test]
fn unusual_markdown_is_text() {
    for text in
        ["", "#", "<", "<!--", "<div", "[[[[", "# \n# \n", "\u{0}", "> > > # x", "{/* note */}"]
    {
        let outline = markdown(text);
        for section in &outline.sections {
            assert!(text.get(section.range.clone()).is_some());
        }
    }
}
