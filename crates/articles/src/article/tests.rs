use proptest::prelude::*;
use serde_json::json;

use super::*;

fn reading(path: &str, file: &str) -> ParsedArticle {
    read(path, file.as_bytes(), Some(&["Live".to_owned(), "Experimental".to_owned()]))
}

fn visible(matter: &str) -> bool {
    reading("a.md", &format!("---\n{matter}\n---\nText")).hidden.is_none()
}

#[test]
fn a_full_article_is_read() {
    let article = reading(
        "concepts/context.md",
        "---\ntitle: \"Context\"\ndescription: What it is\ntags: [mcp, tools]\nstatus: Live\npublishedDate: 2025-01-31\nlastUpdated: Feb 3, 2025\nrelatedIds:\n  - patterns/x\n---\n\n# Context\n\nText.\n",
    );
    assert_eq!(article.title, "Context");
    assert_eq!(article.description.as_deref(), Some("What it is"));
    assert_eq!(article.tags, ["mcp", "tools"]);
    assert_eq!(article.status.as_deref(), Some("Live"));
    assert_eq!(article.published.unwrap().shown, "2025-01-31");
    assert_eq!(article.updated.unwrap().shown, "2025-02-03");
    assert_eq!(article.frontmatter["relatedIds"], json!(["patterns/x"]));
    assert_eq!(article.text, "\n# Context\n\nText.\n");
    assert!(article.hidden.is_none() && !article.unfinished);
    assert_eq!(article.problems, []);
}

#[test]
fn missing_fields_are_taken_from_the_text_and_the_file_name() {
    let article = reading("deep/er/tool_design-basics.md", "# The *basics*\n\nFirst paragraph.\n");
    assert_eq!(
        (article.title.as_str(), article.description.as_deref()),
        ("The basics", Some("First paragraph."))
    );
    let article = reading("deep/er/tool_design-basics.txt", "First paragraph.\n");
    assert_eq!(article.title, "Tool design basics");
    let article = reading("x.md", "");
    assert_eq!(
        (article.title.as_str(), article.description, article.unfinished),
        ("X", None, true)
    );
    let long = "word ".repeat(200);
    let description = reading("x.md", &long).description.unwrap();
    assert!(
        description.chars().count() <= DESCRIPTION + 1 && description.ends_with("word…"),
        "{description}"
    );
}

#[test]
fn a_title_and_a_description_have_one_line() {
    let file = "---\ntitle: |\n  Two\n  lines\ndescription: \"One\\n\\n- two\"\n---\nText\n";
    let article = reading("a.md", file);
    assert_eq!(article.title, "Two lines");
    assert_eq!(article.description.as_deref(), Some("One - two"));
    assert_eq!(reading("a.md", "Two\nlines\n===\n").title, "Two lines");
}

#[test]
fn only_allowed_statuses_are_visible() {
    for matter in [
        "status: Live",
        "status: live",
        "status: \"Experimental\"",
        "status: ' Live '",
        "title: no status",
    ] {
        assert!(visible(matter), "{matter}");
    }
    for matter in [
        "status: Draft",
        "status: Proposed",
        "status: Deprecated",
        "status: Livee",
        "status:",
        "status: []",
        "status: [Live, Draft]",
        "status: Live\nstatus: Draft",
        "Status: Draft",
        "status: {is: Draft}",
        "status: [Live",
        "title: a: b\nstatus: Draft",
        "\"status\": Draft",
        "draft: true",
        "draft: yes",
        "published: false",
        "status: Live\ndraft: true",
        "a: \"x\nstatus: Draft\nb: y\"",
        "a: 'x\nstatus: Draft\nb: y'",
        "a: [x\nstatus: Draft\nb: y]",
        "a: {x: 1,\nstatus: Draft\n}",
        "a: |\nstatus: Draft",
        "a: >\n\nstatus: Draft",
        "a: # comment\nstatus: Draft",
        "- a\nstatus: Draft",
        "status : Draft",
        "status:Draft\nstatus: Draft",
    ] {
        assert!(!visible(matter), "{matter}");
    }
    assert!(
        visible("draft: false") && visible("published: true") && visible("published: 2025-01-01")
    );
}

#[test]
fn the_allowed_statuses_are_the_operators_choice() {
    let file = b"---\nstatus: Draft\n---\n";
    assert!(read("a.md", file, Some(&["draft".to_owned()])).hidden.is_none());
    assert_eq!(read("a.md", file, Some(&[])).hidden, Some(Hidden::Status));
    assert_eq!(read("a.md", file, None).hidden, None);
    let draft = read("a.md", b"---\nstatus: accepted\ndraft: true\n---\n", None);
    assert_eq!(draft.hidden, Some(Hidden::Draft));
}

#[test]
fn problems_have_a_file_and_a_line() {
    let article = reading("a/b.md", "---\ntitle: a: b\nlastUpdated: soonish\nstatus:\n---\n");
    let shown: Vec<_> = article.problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with("a/b.md:2: "), "{shown:?}");
    assert_eq!(shown[1], "a/b.md:3: invalid date in `lastUpdated`: soonish");
    assert_eq!(shown[2], "a/b.md:4: not served: `status` is empty");
    assert_eq!(article.title, "a: b");
}

#[test]
fn a_wrong_date_falls_back_to_the_next_name() {
    let article = reading("a.md", "---\nlastUpdated: soon\nupdated: 2025-02-01\n---\n");
    assert_eq!(article.updated.unwrap().shown, "2025-02-01");
    let article = reading("a.md", "---\ndate: 2025-02-01T10:00:00Z\n---\n");
    assert_eq!(article.published.unwrap().shown, "2025-02-01T10:00:00Z");
    assert_eq!(article.updated, None);
}

#[test]
fn tags_have_many_formats() {
    for (matter, wanted) in [
        ("tags: [a, 'b c']", vec!["a", "b c"]),
        ("tags:\n  - a\n  - [b, c]\n  - a", vec!["a", "b", "c"]),
        ("tags: a, b c ,#d", vec!["a", "b c", "d"]),
        ("tags: [\"a, b\"]", vec!["a, b"]),
        ("tags: 2025", vec!["2025"]),
        ("tags:", vec![]),
        ("keywords: x", vec!["x"]),
        ("tags: [~, '']", vec![]),
    ] {
        assert_eq!(reading("a.md", &format!("---\n{matter}\n---\n")).tags, wanted, "{matter}");
    }
    let many = (0..=MOST_TAGS).map(|n| format!("t{n}")).collect::<Vec<_>>().join(", ");
    assert_eq!(reading("a.md", &format!("---\ntags: {many}\n---\n")).tags.len(), MOST_TAGS);
}

#[test]
fn other_encodings_are_read() {
    let text = "---\ntitle: Ünï\n---\n";
    let with_mark = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
    let little: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> =
        [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    for bytes in [with_mark, little, big] {
        let article = read("a.md", &bytes, None);
        assert_eq!(article.title, "Ünï");
        assert_eq!(article.problems, []);
    }
}

#[test]
fn invalid_bytes_are_reported_and_binary_files_are_left_out() {
    let article = read("a.md", b"---\ntitle: A\n---\n\nb\xFFd\n", None);
    assert!(article.hidden.is_none());
    assert_eq!(article.problems[0].line, Some(5));
    assert!(article.text.contains("b\u{FFFD}d"));
    let article = read("a.txt", b"PK\x03\x04\x00\x00", None);
    assert!(article.hidden.is_some());
    assert_eq!(article.problems.len(), 1);
}

#[test]
fn a_half_written_draft_is_not_an_article() {
    let whole = "---\ntitle: Secret\nstatus: Draft\ntags: [a]\n---\n\nText\n";
    for end in 0..whole.len() {
        let article = reading("a.md", &whole[..end]);
        assert!(article.hidden.is_some() || article.unfinished, "{:?}", &whole[..end]);
    }
}

/// Text made of what frontmatter and Markdown are made of, and of anything else.
fn any_file() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("---\n".to_owned()),
        Just("+++\n".to_owned()),
        Just("status: Draft\n".to_owned()),
        Just("tags: [a, \"b".to_owned()),
        Just("\n# Heading\n".to_owned()),
        Just("```\n".to_owned()),
        Just("<!--".to_owned()),
        Just("| a | b |\n|---|---|\n".to_owned()),
        Just("上下文".to_owned()),
        Just("\r\n\t- ".to_owned()),
        "[ -~]{0,20}",
        "\\PC{0,10}",
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_file_makes_reading_panic(file in any_file(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for path in ["a.md", "a.mdx", "a.txt"] {
            let article = reading(path, &file);
            for section in &article.outline.sections {
                prop_assert!(article.text.get(section.range.clone()).is_some());
            }
            prop_assert!(file.ends_with(&article.text));
            read(path, &bytes, None);
        }
    }

    #[test]
    fn a_draft_stays_hidden_whatever_surrounds_it(before in "[a-z]{1,8}: [ -~]{0,30}\n", after in "[a-z]{1,8}: [ -~]{0,30}\n", text in any_file()) {
        let file = format!("---\n{before}status: Draft\n{after}---\n{text}");
        prop_assert!(reading("a.md", &file).hidden.is_some(), "{file}");
    }
}
