use sabir_articles::{Language, SearchOptions, Settings};

use crate::support::{Home, error, found, ready};

/// An article with one word in one field, and other words of the same length elsewhere.
fn with_word_in(place: &str) -> String {
    let or =
        |wanted: &str, filler: &str| if place == wanted { "walrus" } else { filler }.to_owned();
    format!(
        "---\ntitle: {} alpha\ntags: [{}]\ndescription: {} beta\nlastUpdated: 2025-01-01\n---\n## {} gamma\n\n{} delta\n",
        or("title", "one"),
        or("tags", "two"),
        or("description", "three"),
        or("headings", "four"),
        or("body", "five"),
    )
}

#[test]
fn title_counts_more_than_headings_than_tags_than_description_than_text() {
    let places = ["body", "title", "headings", "tags", "description"];
    let files: Vec<(String, String)> =
        places.iter().map(|place| (format!("c/in-{place}.md"), with_word_in(place))).collect();
    let home = Home::new(
        &files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>(),
    );
    let wanted = ["c/in-title", "c/in-headings", "c/in-tags", "c/in-description", "c/in-body"];
    assert_eq!(found(&home.store(), "walrus"), wanted);
}

#[test]
fn equal_articles_are_sorted_newest_first() {
    let text = |date: &str| format!("---\ntitle: Walrus\nlastUpdated: {date}\n---\nSame text.\n");
    let home = Home::new(&[
        ("c/old.md", &text("2023-05-01")),
        ("c/new.md", &text("2025-05-01")),
        ("c/mid.md", &text("May 1, 2024")),
    ]);
    assert_eq!(found(&home.store(), "walrus"), ["c/new", "c/mid", "c/old"]);
}

fn small() -> Home {
    Home::new(&[
        (
            "concepts/context-engineering.md",
            "---\ntitle: Context engineering\ntags: [prompting]\n---\n# Intro\n\nWhat the model sees.\n\n## Budgets\n\nEvery token costs money. Keep the context small, and measure its budget often.\n",
        ),
        (
            "concepts/tools.md",
            "# Designing tools\n\nTools for models need good names. A tool returns structuredContent.\n",
        ),
        (
            "patterns/retry.md",
            "# Retrying calls\n\nA failed call may be retried when the server is idempotent.\n",
        ),
        ("other/chinese.md", "# 上下文工程\n\n如何设计好的工具，让模型理解。\n"),
        ("other/german.md", "# Größe der Straße\n\nÜber die Öffnung.\n"),
        ("other/russian.md", "# Проектирование\n\nЁлка и инструменты.\n"),
        ("other/korean.md", "# 한국어 문서\n\n도구를 설계하는 방법.\n"),
    ])
}

#[test]
fn words_are_found_in_all_their_forms() {
    let home = small();
    let store = home.store();
    for (query, first) in [
        ("context engineering", "concepts/context-engineering"),
        ("design tool", "concepts/tools"),
        ("designed tools", "concepts/tools"),
        ("retries", "patterns/retry"),
        ("structured content", "concepts/tools"),
        ("structuredContent", "concepts/tools"),
        ("structuredcontent", "concepts/tools"),
        ("How do I keep the context small?", "concepts/context-engineering"),
        ("context-engineering", "concepts/context-engineering"),
        ("\"failed call\"", "patterns/retry"),
        ("\"good names\" tools", "concepts/tools"),
    ] {
        assert_eq!(found(&store, query).first().map(String::as_str), Some(first), "{query}");
    }
}

#[test]
fn other_scripts_are_folded_and_split() {
    let home = small();
    let store = home.store();
    for (query, only) in [
        ("grosse strasse", "other/german"),
        ("GRÖSSE", "other/german"),
        ("offnung", "other/german"),
        ("ёлка", "other/russian"),
        ("ЕЛКА", "other/russian"),
        ("проектирован", "other/russian"),
        ("上下文", "other/chinese"),
        ("工具", "other/chinese"),
        ("具", "other/chinese"),
        ("怎么设计工具", "other/chinese"),
        ("\"设计好的工具\"", "other/chinese"),
        ("도구", "other/korean"),
        ("설계", "other/korean"),
    ] {
        assert_eq!(found(&store, query), [only], "{query}");
    }
    assert_eq!(found(&store, "具工"), Vec::<String>::new());
}

#[test]
fn unfinished_words_are_completed_and_misspelt_ones_corrected() {
    let home = small();
    let store = home.store();
    for (query, first) in [
        ("eng", "concepts/context-engineering"),
        ("engineeri", "concepts/context-engineering"),
        ("context en", "concepts/context-engineering"),
        ("idem", "patterns/retry"),
        // One edit up to seven letters: substitution, deletion, insertion, transposition.
        ("budgot", "concepts/context-engineering"),
        ("budgt", "concepts/context-engineering"),
        ("buddget", "concepts/context-engineering"),
        ("bugdet", "concepts/context-engineering"),
        // Two edits above.
        ("enginering", "concepts/context-engineering"),
        ("engenering", "concepts/context-engineering"),
        ("idempotnet", "patterns/retry"),
        ("context enginering", "concepts/context-engineering"),
    ] {
        assert_eq!(found(&store, query).first().map(String::as_str), Some(first), "{query}");
    }
    // Two edits in a short word, three in a long one, and edits in numbers are not corrected.
    for query in ["bdugte", "emgenerinq", "idmpotnt1"] {
        assert_eq!(found(&store, query), Vec::<String>::new(), "{query}");
    }
    let corrected =
        store.search("failed idempotnet", SearchOptions::default()).unwrap().corrections;
    assert_eq!(corrected.len(), 1);
    assert_eq!(corrected[0].word, "idempotnet");
    assert_eq!(corrected[0].taken_for, ["idempotent"]);
}

#[test]
fn the_words_of_a_phrase_must_be_adjacent_and_in_order() {
    let home = small();
    let store = home.store();
    assert_eq!(found(&store, "\"call failed\""), Vec::<String>::new());
    assert_eq!(found(&store, "\"failed server\""), Vec::<String>::new());
    assert_eq!(found(&store, "\"the model sees\" walrus"), ["concepts/context-engineering"]);
    assert_eq!(found(&store, "\"model\""), found(&store, "model "));
    assert_eq!(found(&store, "\"modol\""), Vec::<String>::new());
}

#[test]
fn a_hit_shows_its_words_and_their_section() {
    let home = small();
    let store = home.store();
    let found = store.search("token budget", SearchOptions::default()).unwrap();
    let snippet = found.hits[0].snippet.as_ref().unwrap();
    assert_eq!(
        snippet.text,
        "Every token costs money. Keep the context small, and measure its budget often."
    );
    assert_eq!(snippet.words, ["token", "budget"]);
    assert_eq!(snippet.section.as_ref().unwrap().id, "budgets");
    assert_eq!(found.hits[0].content, None);
    let in_title = store.search("prompting", SearchOptions::default()).unwrap();
    assert_eq!(in_title.hits[0].snippet, None);
}

#[test]
fn hits_contain_the_text_on_request() {
    let home = small();
    let store = home.store();
    let options = SearchOptions { include_content: true, ..SearchOptions::default() };
    let hit = store.search("idempotent", options).unwrap().hits.remove(0);
    assert_eq!(hit.content.unwrap(), store.article("retry", None).unwrap().content);
    let json = serde_json::to_value(store.search("idempotent", SearchOptions::default()).unwrap())
        .unwrap();
    assert_eq!(json["hits"][0]["slug"], "retry");
    assert!(json["hits"][0].get("content").is_none() && json.get("indexing").is_none());
}

#[test]
fn nonsense_finds_nothing() {
    let home = small();
    let store = home.store();
    for query in ["qwxzkv", "zzzz", "xq", "8472639105", "blorf flanx quorm", "中国菜谱", "ябвгд"]
    {
        assert_eq!(found(&store, query), Vec::<String>::new(), "{query}");
    }
}

#[test]
fn no_query_is_dangerous() {
    let home = small();
    let store = home.store();
    for query in ["", "   ", "AND&&||", "\"\"", "()[]{}^~*?:\\/!+-", "\0\u{1b}\u{7f}"] {
        let message = error(store.search(query, SearchOptions::default()));
        // "AND" is a word.
        assert!(
            message == "the query has no word to search for" || query.starts_with("AND"),
            "{query:?}: {message}"
        );
    }
    let long = "context ".repeat(12_500);
    assert_eq!(
        error(store.search(&long, SearchOptions::default())),
        "the query is too long: 100000 bytes (limit 4096)"
    );
    for query in [
        "title:context",
        "+context -tools",
        "context\0engineering",
        "con*",
        "/ctx.*/",
        "context~2",
        "\"context",
        "a OR b NOT c",
        "*",
        "?",
    ] {
        let _ = store.search(query, SearchOptions::default());
    }
    assert_eq!(found(&store, "+context -engineering ^2"), found(&store, "context engineering 2"));
    let many = (0..1000).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    assert!(store.search(&many[..4000], SearchOptions::default()).is_ok());
}

/// German and French by the folder, Spanish by the frontmatter, and English.
fn languages() -> Home {
    Home::new(&[
        ("de/haus.md", "# Das Haus\n\nDie alten Häuser stehen am Fluss. Die Wand ist alt.\n"),
        ("fr/guide.md", "# Guide\n\nLes développeurs écrivent des fonctions réutilisables.\n"),
        ("other/es.md", "---\nlang: es\n---\n# Ajustes\n\nCambie las configuraciones.\n"),
        ("docs/houses.md", "# Houses\n\nDesigning houses near a river, in the wind.\n"),
    ])
}

#[test]
fn every_language_has_its_own_forms() {
    let store = languages().store();
    for (query, id) in [
        ("Hauses", "de/haus"),
        ("häuser", "de/haus"),
        ("alte Hauser", "de/haus"),
        ("\"alte Häuser\"", "de/haus"),
        ("développeur", "fr/guide"),
        ("fonction reutilisable", "fr/guide"),
        ("configuración", "other/es"),
        ("design house", "docs/houses"),
        ("\"designed houses\"", "docs/houses"),
    ] {
        assert_eq!(found(&store, query).first().map(String::as_str), Some(id), "{query}");
    }
    let hits = store.search("Hauses ", SearchOptions::default()).unwrap().hits;
    let snippet = hits[0].snippet.as_ref().unwrap();
    assert!(snippet.words.contains(&"Häuser".to_owned()), "{snippet:?}");
}

#[test]
fn a_word_that_an_article_has_in_any_language_is_not_corrected() {
    let store = languages().store();
    // One letter away from "wind", which is English.
    for query in ["wand ", "wände ", "wänden "] {
        let found = store.search(query, SearchOptions::default()).unwrap();
        assert_eq!(found.corrections, [], "{query}");
        assert_eq!(found.hits[0].summary.id, "de/haus", "{query}");
    }
    let found = store.search("wynd ", SearchOptions::default()).unwrap();
    assert_eq!(found.corrections[0].taken_for, ["wand", "wind"]);
}

#[test]
fn the_setting_is_the_language_of_articles_that_name_none() {
    let home = Home::new(&[("a.md", "# Notiz\n\nFreundlichkeit hilft.\n")]);
    let settings = home.settings();
    assert!(found(&ready(settings.clone()), "freundlich ").is_empty());
    let language = Language::of_tag("de").unwrap();
    assert_eq!(found(&ready(Settings { language, ..settings }), "freundlich "), ["a"]);
}

#[test]
fn html_is_searched_and_its_sections_are_those_of_its_anchors() {
    let page = "<html><head><title>Site</title></head><body><nav>Menu</nav><h1>Walruses</h1>\
                <h2 id=teeth>Their tusks</h2><p>A walrus uses its tusks on the <b>ice</b>.</body>";
    let home = Home::new(&[("sea/walrus.html", page), ("a.md", "[x](sea/walrus.html#teeth)\n")]);
    let store = home.store();
    assert_eq!(found(&store, "tusk ice"), ["sea/walrus"]);
    assert_eq!(found(&store, "menu "), [] as [&str; 0]);
    let article = store.article("sea/walrus.html#teeth", None).unwrap();
    assert_eq!(article.summary.title, "Walruses");
    assert!(article.content.ends_with("its tusks on the **ice**.\n"), "{}", article.content);
}
