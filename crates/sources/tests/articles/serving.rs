//! A store as a source: its tools, resources and completions.

use std::sync::Arc;

use sabir_sources::articles::{Appearance, ArticleSource, NotFound};
use sabir_wire::Problem;
use serde_json::{Value, json};

use crate::shop::{ERAS, Shop, home, links, structured, text};
use crate::support::Home;

#[tokio::test]
async fn articles_are_listed_newest_first_with_links() {
    let home = home();
    let shop = Shop::of(&home);
    let reply = shop.call("list_articles", json!({})).await.unwrap();
    assert_eq!(
        text(&reply),
        "3 articles, newest first.\n\
         - Two eras (`concepts/eras`, 2025-05-01): Sessions, and none [protocol]\n\
         - Cursors (`concepts/pages`, 2025-04-01): One page.\n\
         - Paging (`patterns/pages`, 2025-03-01): Another page."
    );
    let uris =
        ["article:///concepts/eras", "article:///concepts/pages", "article:///patterns/pages"];
    assert_eq!(links(&reply), uris);
    assert_eq!(structured(&reply)["total"], 3);
    let reply = shop.call("list_articles", json!({"limit": 1.0})).await.unwrap();
    assert!(text(&reply).starts_with("The newest 1 of 3 articles.\n- Two eras"), "{reply:?}");
    let reply = shop.call("list_articles", json!({"category": "patterns"})).await.unwrap();
    assert_eq!(structured(&reply)["articles"][0]["id"], "patterns/pages");
    assert_eq!(structured(&reply)["total"], 1);
}

#[tokio::test]
async fn an_article_is_returned_whole_or_by_section() {
    let home = home();
    let shop = Shop::of(&home);
    let reply = shop.call("get_article", json!({"slug": "eras"})).await.unwrap();
    assert_eq!(
        text(&reply),
        "Two eras (`concepts/eras`)\nStatus: Live\nUpdated: 2025-05-01\nTags: protocol\n\n# Two eras\n\n\
         Old clients shake hands.\n\n## Bridges\n\nA server may speak both.\n"
    );
    assert_eq!(links(&reply), ["article:///concepts/eras"]);
    assert_eq!(structured(&reply)["frontmatter"]["tags"], json!(["protocol"]));
    let asked = json!({"slug": "concepts/eras", "section": "bridges"});
    let reply = shop.call("get_article", asked).await.unwrap();
    assert!(
        text(&reply).starts_with("Two eras (`concepts/eras`), section `bridges`\n\n"),
        "{reply:?}"
    );
    assert!(text(&reply).ends_with("\n\n## Bridges\n\nA server may speak both.\n"), "{reply:?}");
    assert_eq!(structured(&reply)["content"], "## Bridges\n\nA server may speak both.\n");
}

#[tokio::test]
async fn a_search_returns_snippets_and_on_request_the_content() {
    let home = home();
    let shop = Shop::of(&home);
    let reply = shop.call("search_articles", json!({"query": "shake hnads"})).await.unwrap();
    let said = text(&reply);
    assert!(
        said.starts_with("1 article matches \"shake hnads\". \"hnads\" was taken for"),
        "{said}"
    );
    let line = "\n1. Two eras (`concepts/eras`, section `two-eras`): Old clients shake hands.";
    assert!(said.contains(line), "{said}");
    assert_eq!(structured(&reply)["hits"][0].get("content"), None);
    assert_eq!(links(&reply), ["article:///concepts/eras"]);
    let asked = json!({"query": "\"shake hands\"", "include_content": true});
    let reply = shop.call("search_articles", asked).await.unwrap();
    assert_eq!(structured(&reply)["hits"][0]["content"].as_str(), ERAS.split("---\n").nth(2));
    assert!(text(&reply).contains("\n\n# Two eras\n\nOld clients"), "{reply:?}");
    let reply = shop.call("search_articles", json!({"query": "zygomorphic"})).await.unwrap();
    assert_eq!(text(&reply), "No article matches \"zygomorphic\".");
}

#[tokio::test]
async fn a_draft_is_visible_nowhere() {
    let home = home();
    let shop = Shop::of(&home);
    for slug in ["secret", "patterns/secret", "Secret"] {
        let failure = shop.failure("get_article", json!({"slug": slug})).await;
        assert!(failure.starts_with(&format!("no article `{slug}`")), "{failure}");
        assert!(!failure.contains("perhaps one of: patterns/secret"), "{failure}");
    }
    let reply = shop.call("search_articles", json!({"query": "secret"})).await.unwrap();
    assert_eq!(structured(&reply)["total"], 0);
    let reply = shop.call("list_articles", json!({})).await.unwrap();
    assert!(!text(&reply).to_lowercase().contains("secret"));
    assert!(!shop.uris().iter().any(|uri| uri.contains("secret")));
    let uri = "article:///patterns/secret";
    assert_eq!(shop.read(uri).await, Err(Problem::UnknownResource(uri.into())));
    let template = "article:///{category}/{slug}";
    let given = [("category", "patterns")];
    assert_eq!(shop.complete(template, "slug", "", &given).await, ["pages"]);
    assert_eq!(shop.complete(template, "slug", "se", &[]).await, Vec::<String>::new());
}

#[tokio::test]
async fn errors_tell_the_caller_how_to_correct_them() {
    let home = home();
    let shop = Shop::of(&home);
    let list = |limit: Value| shop.failure("list_articles", json!({ "limit": limit }));
    assert_eq!(list(json!(0)).await, "limit must be at least 1, not 0");
    assert_eq!(list(json!(-1)).await, "limit must be at least 1, not -1");
    assert_eq!(list(json!(-1e300)).await, format!("limit must be at least 1, not {}", i64::MIN));
    assert_eq!(list(json!(2.5)).await, "limit must be a whole number, not 2.5");
    for large in [json!(1_000_000_000), json!(1e300), json!(u64::MAX)] {
        let reply = shop.call("list_articles", json!({ "limit": large })).await.unwrap();
        assert_eq!(structured(&reply)["articles"].as_array().unwrap().len(), 3);
    }
    let refused = shop.call("list_articles", json!({"category": "nope"})).await;
    let Err(Problem::Arguments(reason)) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("/category") && reason.contains("concepts"), "{reason}");
    let search = |query: String| shop.failure("search_articles", json!({ "query": query }));
    for wordless in ["", " \t\n", "+-*/()\"", "\u{0}\u{1}\u{7f}"] {
        let told = search(wordless.into()).await;
        assert_eq!(told, "the query has no word to search for", "{wordless:?}");
    }
    let told = search("word ".repeat(20_480)).await;
    assert!(told.starts_with("the query is too long: 102400 bytes"), "{told}");
    let get = |arguments: Value| shop.failure("get_article", arguments);
    assert_eq!(
        get(json!({"slug": "pages"})).await,
        "`pages` is ambiguous (expected one of: concepts/pages, patterns/pages)"
    );
    assert_eq!(
        get(json!({"slug": "eras", "section": "nope"})).await,
        "`concepts/eras` has no section `nope` (expected one of: two-eras, bridges)"
    );
    for slug in ["", "/", "..", "../../etc/passwd", "concepts/nothing"] {
        let told = get(json!({ "slug": slug })).await;
        assert!(told.starts_with(&format!("no article `{slug}`")), "{told}");
    }
}

#[tokio::test]
async fn an_unknown_slug_may_be_a_protocol_error_with_the_slug() {
    let home = home();
    let not_found = NotFound::InvalidParams;
    let shop = Shop::with(
        home.store(),
        Appearance { not_found, structured: true, ..Appearance::default() },
    );
    let refused = shop.call("get_article", json!({"slug": "nope"})).await;
    let Err(Problem::Chosen(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.code, -32602);
    assert_eq!(error.data.unwrap().read::<Value>().unwrap(), json!({"slug": "nope"}));
    // An ambiguous slug is not an unknown slug.
    assert!(shop.failure("get_article", json!({"slug": "pages"})).await.contains("ambiguous"));
}

#[tokio::test]
async fn articles_are_resources_with_metadata() {
    let home = home();
    let shop = Shop::of(&home);
    let uris =
        ["article:///concepts/eras", "article:///concepts/pages", "article:///patterns/pages"];
    assert_eq!(shop.uris(), uris);
    let resource = shop.catalog().resources()[0].clone();
    assert_eq!(resource.name, "concepts/eras");
    assert_eq!(resource.title.as_deref(), Some("Two eras"));
    assert_eq!(resource.description.as_deref(), Some("Sessions, and none"));
    assert_eq!(resource.mime_type.as_deref(), Some("text/markdown"));
    assert!(resource.annotations.unwrap().last_modified.unwrap().ends_with('Z'));
    let reply = shop.read("article:///concepts/eras").await.unwrap();
    let body = reply.contents[0].body.as_text().unwrap();
    assert_eq!(resource.size, Some(body.len() as u64));
    assert_eq!(Some(body), ERAS.split("---\n").nth(2));
    // Files of this second may change in the next.
    assert_eq!(reply.cache.ttl_ms, 5000);
    for uri in ["article:///eras", "article:///concepts/Eras", "article:///concepts/nope"] {
        match shop.catalog().resource(uri) {
            None => {}
            Some(_) => {
                assert_eq!(shop.read(uri).await, Err(Problem::UnknownResource(uri.into())));
            }
        }
    }
    assert!(shop.catalog().capabilities().subscribe);
    assert!(shop.catalog().capabilities().resources_list_changed);
    assert!(shop.catalog().capabilities().completions);
}

#[tokio::test]
async fn an_old_file_may_be_cached_for_an_hour() {
    let home = home();
    let week = std::time::Duration::from_secs(7 * 24 * 3600);
    let file = std::fs::File::options().append(true).open(home.path("concepts/eras.md")).unwrap();
    file.set_modified(std::time::SystemTime::now() - week).unwrap();
    let shop = Shop::of(&home);
    let reply = shop.read("article:///concepts/eras").await.unwrap();
    assert_eq!(reply.cache.ttl_ms, 3_600_000);
}

#[tokio::test]
async fn categories_and_slugs_are_completed() {
    let home = home();
    let shop = Shop::of(&home);
    let template = "article:///{category}/{slug}";
    assert_eq!(shop.templates(), [template]);
    assert_eq!(shop.complete(template, "category", "p", &[]).await, ["patterns"]);
    assert_eq!(shop.complete(template, "slug", "", &[]).await, ["eras", "pages"]);
    let given = [("category", "concepts")];
    assert_eq!(shop.complete(template, "slug", "e", &given).await, ["eras"]);
}

#[tokio::test]
async fn flat_and_deep_folders_have_matching_templates() {
    let home = Home::new(&[("a b.md", "# A\n"), ("c/d/e.md", "# E\n")]);
    let shop = Shop::of(&home);
    assert_eq!(shop.templates(), ["article:///{category}/{+slug}", "article:///{slug}"]);
    assert_eq!(shop.uris(), ["article:///a%20b", "article:///c/d/e"]);
    for uri in shop.uris() {
        assert_eq!(shop.read(&uri).await.unwrap().contents[0].uri, uri);
    }
    assert_eq!(shop.complete("article:///{slug}", "slug", "", &[]).await, ["a b"]);
    let given = [("category", "c")];
    let template = "article:///{category}/{+slug}";
    assert_eq!(shop.complete(template, "slug", "d", &given).await, ["d/e"]);
}

#[tokio::test]
async fn a_folder_with_a_name_does_not_collide_with_others() {
    let home = home();
    let about = Some("bridges".to_owned());
    let appearance =
        Appearance { name: Some("wiki".into()), about, structured: true, ..Appearance::default() };
    let shop = Shop::with(home.store(), appearance);
    shop.registry
        .add(Arc::new(ArticleSource::new(Arc::new(home.store()), Appearance::default())))
        .unwrap();
    let names = shop.tool_names();
    assert_eq!(
        names[..4],
        ["wiki_list_articles", "wiki_get_article", "wiki_search_articles", "list_articles"]
    );
    let catalog = shop.catalog();
    assert!(catalog.tools()[0].description.as_ref().unwrap().contains("articles about bridges"));
    let reply = shop.call("wiki_get_article", json!({"slug": "eras"})).await.unwrap();
    assert_eq!(links(&reply), ["article://wiki/concepts/eras"]);
    assert_eq!(structured(&reply)["uri"], "article://wiki/concepts/eras");
    assert!(shop.read("article://wiki/concepts/eras").await.is_ok());
    assert!(shop.read("article:///concepts/eras").await.is_ok());
}

#[test]
fn schemas_are_plain_and_list_the_categories() {
    let home = home();
    let shop = Shop::of(&home);
    for tool in shop.catalog().tools() {
        for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
            let value: Value = schema.read().unwrap();
            assert_eq!(value["type"], "object", "{}", tool.name);
            for word in ["$ref", "anyOf", "oneOf", "allOf", "$defs"] {
                assert!(!schema.text().contains(word), "{} has {word}", tool.name);
            }
        }
        let annotations = tool.annotations.as_ref().unwrap();
        assert_eq!(annotations.read_only_hint, Some(true));
    }
    let input: Value = shop.catalog().tools()[0].input_schema.read().unwrap();
    assert_eq!(input["properties"]["category"]["enum"], json!(["concepts", "patterns"]));
}
