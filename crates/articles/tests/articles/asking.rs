use sabir_articles::{SearchOptions, StoreError};
use serde_json::json;

use crate::support::{Home, error, found, listed};

const CONTEXT: &str = "---
title: Context engineering
description: Choosing what a model sees
tags: [context, models]
status: Live
publishedDate: 2025-01-10
lastUpdated: 2025-03-01
supersededBy: ~
references:
  - https://example.com
---

Before.

# Context

## Why it matters

Because.

## How
";

fn home() -> Home {
    Home::new(&[
        ("concepts/context.md", CONTEXT),
        ("concepts/deep/tools.md", "# Tools\n\nSmall ones.\n"),
        ("patterns/context.mdx", "---\ntitle: The context pattern\ndate: 2025-02-01\n---\nText.\n"),
        (
            "patterns/draft.md",
            "---\ntitle: Secret plan\nstatus: Draft\n---\nContext of the secret.\n",
        ),
        ("about.txt", "About this folder.\n\nMore.\n"),
        (".hidden/x.md", "# Hidden\n"),
        ("notes.docx", "<p>not an article</p>"),
    ])
}

#[test]
fn a_list_is_newest_first_and_hides_drafts() {
    let home = home();
    let store = home.store();
    let ids = listed(&store);
    assert_eq!(ids.len(), 4);
    // Without a date in the frontmatter, the modification time counts, which is today.
    assert_eq!(ids[2..], ["concepts/context", "patterns/context"]);
    let list = store.list(Some("concepts"), Some(1)).unwrap();
    assert_eq!((list.articles.len(), list.total, list.indexing), (1, 2, None));
    assert_eq!(list.articles[0].id, "concepts/deep/tools");
    assert_eq!(store.categories(), [("concepts".to_owned(), 2), ("patterns".to_owned(), 1)]);
}

#[test]
fn limits_and_categories_are_checked() {
    let home = home();
    let store = home.store();
    assert_eq!(error(store.list(None, Some(0))), "limit must be at least 1, not 0");
    assert_eq!(error(store.list(None, Some(-1))), "limit must be at least 1, not -1");
    assert_eq!(store.list(None, Some(1_000_000_000)).unwrap().articles.len(), 4);
    assert_eq!(store.list(None, Some(i64::MAX)).unwrap().articles.len(), 4);
    assert_eq!(
        error(store.list(Some("nope"), None)),
        "unknown category `nope` (expected one of: concepts, patterns)"
    );
    assert_eq!(
        error(store.list(Some(""), None)),
        "unknown category `` (expected one of: concepts, patterns)"
    );
    assert_eq!(
        error(store.list(Some("../concepts"), None)),
        "unknown category `../concepts` (expected one of: concepts, patterns)"
    );
    let search = |limit| {
        store.search("context", SearchOptions { limit: Some(limit), ..SearchOptions::default() })
    };
    assert_eq!(error(search(0)), "limit must be at least 1, not 0");
    assert_eq!(search(1).unwrap().hits.len(), 1);
    assert_eq!(search(1).unwrap().total, 2);
    assert_eq!(search(1_000_000_000).unwrap().hits.len(), 2);
}

#[test]
fn an_article_has_its_whole_frontmatter() {
    let home = home();
    let store = home.store();
    let article = store.article("concepts/context", None).unwrap();
    let mut json = serde_json::to_value(&article).unwrap();
    assert!(json["lastModified"].take().as_str().unwrap().ends_with('Z'));
    assert_eq!(
        json,
        json!({
            "id": "concepts/context",
            "category": "concepts",
            "slug": "context",
            "title": "Context engineering",
            "description": "Choosing what a model sees",
            "tags": ["context", "models"],
            "status": "Live",
            "publishedDate": "2025-01-10",
            "lastUpdated": "2025-03-01",
            "lastModified": null,
            "size": 57,
            "uri": "article:///concepts/context",
            "content": "\nBefore.\n\n# Context\n\n## Why it matters\n\nBecause.\n\n## How\n",
            "sections": [
                {"id": "intro", "title": "Introduction", "level": 0, "size": 10},
                {"id": "context", "title": "Context", "level": 1, "size": 47},
                {"id": "why-it-matters", "title": "Why it matters", "level": 2, "size": 29},
                {"id": "how", "title": "How", "level": 2, "size": 7},
            ],
            "frontmatter": {
                "title": "Context engineering",
                "description": "Choosing what a model sees",
                "tags": ["context", "models"],
                "status": "Live",
                "publishedDate": "2025-01-10",
                "lastUpdated": "2025-03-01",
                "supersededBy": null,
                "references": ["https://example.com"],
            },
        })
    );
}

#[test]
fn a_section_is_returned_alone_and_an_unknown_one_lists_the_others() {
    let home = home();
    let store = home.store();
    let article = store.article("concepts/context", Some("Why it matters")).unwrap();
    assert_eq!(article.content, "## Why it matters\n\nBecause.\n\n");
    assert_eq!(article.section.unwrap().id, "why-it-matters");
    assert_eq!(article.sections.len(), 4);
    assert_eq!(
        error(store.article("concepts/context", Some("nope"))),
        "`concepts/context` has no section `nope` (expected one of: intro, context, why-it-matters, how)"
    );
    assert_eq!(
        error(store.article("about", Some("x"))),
        "`about` has no section `x` (it has no sections)"
    );
}

#[test]
fn a_name_in_two_categories_is_ambiguous() {
    let home = home();
    let store = home.store();
    assert_eq!(
        error(store.article("context", None)),
        "`context` is ambiguous (expected one of: concepts/context, patterns/context)"
    );
    assert_eq!(
        store.article("patterns/context", None).unwrap().summary.title,
        "The context pattern"
    );
    assert_eq!(store.article("tools", None).unwrap().summary.id, "concepts/deep/tools");
    assert_eq!(store.article("about", None).unwrap().summary.category, None);
}

#[test]
fn hidden_and_outside_files_are_not_found() {
    let home = home();
    std::fs::write(home.folder().parent().unwrap().join("outside.md"), "# Outside").unwrap();
    let store = home.store();
    for name in [
        "draft",
        "patterns/draft",
        "patterns/draft.md",
        "x",
        ".hidden/x",
        "hidden",
        "notes",
        "../outside",
        "patterns/../../outside",
        "/etc/passwd",
        "..",
        "",
        "\0",
        "concepts/context\0",
        &"a/".repeat(50_000),
    ] {
        let result = store.article(name, None);
        assert!(matches!(result, Err(StoreError::NotFound { .. })), "{name:?}");
    }
    for query in ["secret", "\"secret plan\"", "hidden", "outside", "draft"] {
        assert_eq!(found(&store, query), Vec::<String>::new(), "{query}");
    }
    assert_eq!(store.complete_slug("patterns", "").values, ["context"]);
    assert_eq!(store.complete_slug("patterns", "dra").values, Vec::<String>::new());
    assert_eq!(store.complete_category("").values, ["concepts", "patterns"]);
    assert!(store.ids().iter().all(|id| id != "patterns/draft"));
}

#[test]
fn a_similar_name_is_suggested() {
    let home = home();
    let store = home.store();
    assert_eq!(
        error(store.article("context-enginering", None)),
        "no article `context-enginering`; perhaps one of: concepts/context, patterns/context"
    );
    assert_eq!(error(store.article("qqqq", None)), "no article `qqqq`");
}

#[test]
fn problems_have_a_file_and_a_line() {
    let home = home();
    home.write("concepts/broken.md", "---\ntitle: a: b\nlastUpdated: soon\n---\nText.\n");
    home.write("concepts/tools.txt", "walrus");
    home.write("concepts/tools.md", "# x");
    std::os::unix::fs::symlink("/etc/hosts", home.path("hosts.md")).unwrap();
    let store = home.store();
    let problems: Vec<String> = store.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert!(problems[0].starts_with("concepts/broken.md:2: "), "{problems:#?}");
    assert_eq!(problems[1], "concepts/broken.md:3: invalid date in `lastUpdated`: soon");
    assert_eq!(problems[2], "concepts/tools.txt: not served: concepts/tools.md has the same id");
    assert!(
        problems[3].starts_with("hosts.md: not served: the link leads outside"),
        "{problems:#?}"
    );
    assert_eq!(found(&store, "walrus"), Vec::<String>::new());
    assert_eq!(store.article("broken", None).unwrap().summary.title, "a: b");
}

#[test]
fn an_empty_folder_is_served_and_a_missing_one_is_an_error() {
    let home = Home::new(&[]);
    let store = home.store();
    assert_eq!(store.list(None, None).unwrap().total, 0);
    assert_eq!(found(&store, "anything"), Vec::<String>::new());
    assert_eq!(store.problems(), []);
    let missing = sabir_articles::Settings::new(home.path("nowhere"));
    let message = sabir_articles::Store::open(missing, |_| {}).err().unwrap().to_string();
    assert!(message.contains("nowhere"), "{message}");
    let file = home.path("file");
    std::fs::write(&file, "x").unwrap();
    assert!(sabir_articles::Store::open(sabir_articles::Settings::new(file), |_| {}).is_err());
}

#[test]
fn the_store_answers_during_indexing_and_reports_progress() {
    let home = Home::new(&[]);
    for n in 0..700 {
        home.write(&format!("c/a{n}.md"), &format!("# Article {n}\n\nSome text.\n"));
    }
    let progress = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = std::sync::Arc::clone(&progress);
    let store = sabir_articles::Store::open(home.settings(), move |indexing| {
        told.lock().unwrap().push(indexing)
    })
    .unwrap();
    // It answers with the files that are indexed so far.
    let early = store.list(None, None).unwrap();
    assert!(early.indexing.is_some() || early.total == 700);
    let unread = store.article("c/a699", None);
    assert!(
        matches!(unread, Ok(_) | Err(StoreError::NotFound { indexing: Some(_), .. }))
            || store.indexing().is_none()
    );
    assert!(store.wait_ready(crate::support::LONG));
    assert_eq!(store.list(None, None).unwrap().total, 700);
    assert_eq!(store.indexing(), None);
    let progress = progress.lock().unwrap();
    let last = progress.last().unwrap();
    assert_eq!((last.done, last.total), (700, 700));
    assert!(progress.len() > 3 && progress.iter().all(|step| step.done <= step.total));
}

#[test]
fn a_status_hides_nothing_unless_statuses_are_set() {
    let home = Home::new(&[
        ("adr/0001.md", "---\nstatus: accepted\n---\n# Use Rust\n"),
        ("adr/0002.md", "---\nstatus: [experimental, deprecated]\n---\n# Use more\n"),
        ("adr/0003.md", "---\ndraft: true\n---\n# Not yet\n"),
        ("adr/0004.md", "---\npublished: false\n---\n# Not yet\n"),
    ]);
    let settings = sabir_articles::Settings { statuses: None, ..home.settings() };
    let store = crate::support::ready(settings);
    assert_eq!(store.ids(), ["adr/0001", "adr/0002"]);
    let hidden = store.figures().hidden;
    assert_eq!(hidden.values().sum::<usize>(), 2);
    assert_eq!(hidden[&sabir_articles::Hidden::Draft], 1);
}

#[test]
fn every_file_that_is_not_served_is_counted() {
    let home =
        Home::new(&[("c/same.md", "# A\n"), ("c/same.html", "<h1>B</h1>"), ("c/b.md", "# B\n")]);
    std::os::unix::fs::symlink("/etc/hosts", home.path("hosts.md")).unwrap();
    std::os::unix::fs::symlink("nowhere.md", home.path("c/broken.md")).unwrap();
    let hidden = home.store().figures().hidden;
    let shown: Vec<String> =
        hidden.iter().map(|(reason, count)| format!("{count} by {reason}")).collect();
    assert_eq!(shown, ["1 by having the id of another", "2 by leading outside"]);
}

#[test]
fn other_formats_are_read() {
    let notebook = r##"{"cells": [{"cell_type": "markdown", "source": ["# Walrus notebook\n"]}]}"##;
    let home = Home::new(&[
        (
            "a.rst",
            ":orphan:\n\nSeals\n=====\n\n.. toctree::\n   x\n\nText.\n\nTusks\n-----\n\nMore.\n",
        ),
        ("b.adoc", "= Narwhals\n:toc:\n:icons: font\n\nText.\n\n== Horns\n\nMore.\n"),
        ("c.ipynb", notebook),
        ("d.markdown", "## Small\n\nText.\n"),
        ("e.txt", "Plain.\n"),
    ]);
    let store = home.store();
    let read = |id: &str| {
        let article = store.article(id, None).unwrap();
        let sections: Vec<String> =
            article.sections.into_iter().map(|section| section.id).collect();
        format!("{}: {}", article.summary.title, sections.join(" "))
    };
    assert_eq!(read("a"), "Seals: intro seals tusks");
    assert_eq!(read("b"), "Narwhals: narwhals horns");
    // Directives for a site generator are not descriptions.
    for id in ["a", "b"] {
        let description = store.summary(id).unwrap().unwrap().description;
        assert_eq!(description.as_deref(), Some("Text."), "{id}");
    }
    assert_eq!(read("c"), "Walrus notebook: walrus-notebook");
    // A note that begins with `##` has the title of its file.
    assert_eq!(read("d"), "D: small");
    assert_eq!(read("e"), "E: ");
}
