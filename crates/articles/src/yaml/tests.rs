use serde_json::json;

use super::*;

fn fields(text: &str) -> serde_json::Value {
    let reading = read(text).unwrap();
    assert_eq!(reading.faults, [], "{text}");
    as_json(&reading.fields)
}

fn as_json(fields: &[Field]) -> serde_json::Value {
    fields
        .iter()
        .map(|field| (field.key.clone(), field.value.json()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The fields that are recovered from a broken text, and the lines of the reported faults.
fn saved(text: &str) -> (serde_json::Value, Vec<usize>) {
    let reading = read(text).unwrap();
    (as_json(&reading.fields), reading.faults.iter().map(|fault| fault.line).collect())
}

#[test]
fn real_frontmatter_is_read() {
    let text = "\
# a comment
title: \"Context: a guide\"   # trailing comment
description: >-
  Folded over
  two lines.
tags: [mcp, 'tool design', \"a, b\"]
references:
  - title: One
    url: https://example.com/a?b=c#d
  - - nested
    - deeper
status: Live
publishedDate: 2025-01-31
version: 1.10
empty:
";
    assert_eq!(
        fields(text),
        json!({
            "title": "Context: a guide",
            "description": "Folded over two lines.",
            "tags": ["mcp", "tool design", "a, b"],
            "references": [{"title": "One", "url": "https://example.com/a?b=c#d"}, ["nested", "deeper"]],
            "status": "Live",
            "publishedDate": "2025-01-31",
            "version": 1.1,
            "empty": null,
        })
    );
}

#[test]
fn a_field_knows_its_line() {
    let reading = read("a: 1\nb:\n  - x\n\nc: 3\n").unwrap();
    let lines: Vec<_> = reading.fields.iter().map(|field| field.line).collect();
    assert_eq!(lines, [1, 2, 5]);
}

#[test]
fn windows_lines_and_lists_without_indentation_are_read() {
    assert_eq!(
        fields("title: A\r\ntags:\r\n- x\r\n- y\r\n"),
        json!({"title": "A", "tags": ["x", "y"]})
    );
}

#[test]
fn an_empty_text_has_no_fields_and_prose_is_not_frontmatter() {
    assert_eq!(fields(""), json!({}));
    assert_eq!(fields("# only a comment\n"), json!({}));
    assert_eq!(read("just a sentence"), None);
    assert_eq!(read("- a\n- list"), None);
}

#[test]
fn a_colon_in_an_unquoted_title_is_only_a_warning() {
    let (fields, lines) = saved("status: Draft\ntitle: Tools: a guide\ntags: [a]\n");
    assert_eq!(fields, json!({"status": "Draft", "title": "Tools: a guide", "tags": ["a"]}));
    assert_eq!(lines, [2]);
}

#[test]
fn an_invalid_line_does_not_affect_the_others() {
    for (broken, key, wanted) in [
        ("title: \"never closed", "title", json!("never closed")),
        ("title: 'it's wrong'", "title", json!("it's wrong")),
        ("tags: [a, b", "tags", json!("[a, b")),
        ("title: @handle", "title", json!("@handle")),
        ("title: `code`", "title", json!("`code`")),
        ("title: *star", "title", json!("*star")),
        ("tags:\n\t- a\n\t- b", "tags", json!(["a", "b"])),
        ("title: %percent", "title", json!("%percent")),
    ] {
        let (fields, lines) = saved(&format!("first: 1\n{broken}\nlast: Draft\n"));
        assert_eq!(fields["first"], json!(1), "{broken}");
        assert_eq!(fields[key], wanted, "{broken}");
        assert_eq!(fields["last"], json!("Draft"), "{broken}");
        assert!(
            lines.iter().all(|line| (2..=3).contains(line)) && !lines.is_empty(),
            "{broken} {lines:?}"
        );
    }
}

#[test]
fn anchors_are_followed_and_maps_are_merged() {
    assert_eq!(fields("a: &x [1, 2]\nb: *x\n"), json!({"a": [1, 2], "b": [1, 2]}));
    assert_eq!(
        fields("base: &b {status: Draft}\n<<: *b\ntitle: T\n"),
        json!({"base": {"status": "Draft"}, "status": "Draft", "title": "T"})
    );
}

#[test]
fn a_duplicate_key_is_reported_and_both_values_are_kept() {
    let reading = read("status: Live\ntitle: T\nstatus: Draft\n").unwrap();
    let statuses = reading.fields.iter().filter(|field| field.key == "status");
    assert_eq!(
        statuses.filter_map(|field| field.value.text()).collect::<Vec<_>>(),
        ["Live", "Draft"]
    );
    assert_eq!(reading.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [3]);
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let last = n - 1;
        text.push_str(&format!("a{n}: &a{n} [{}]\n", vec![format!("*a{last}"); 10].join(", ")));
    }
    text.push_str("title: T\n");
    let reading = read(&text).unwrap();
    assert!(!reading.faults.is_empty());
    assert!(reading.fields.iter().any(|field| field.key == "title"));
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&nested(DEEPEST)).unwrap().faults.is_empty());
    assert!(!read(&nested(DEEPEST + 2)).unwrap().faults.is_empty());
    assert!(!read(&nested(50_000)).unwrap().faults.is_empty());
}

#[test]
fn no_text_makes_the_reader_panic() {
    for text in [
        "\u{0}",
        ":",
        "::",
        "? ",
        "a: !!binary x",
        "%YAML 9\n---",
        "[",
        "{",
        "}",
        "&",
        "*",
        "a: |",
        "\t",
        "---\n---\n",
    ] {
        let _ = read(text);
        let _ = read(&format!("title: x\n{text}"));
    }
}
