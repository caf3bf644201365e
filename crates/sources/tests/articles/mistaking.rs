//! Calls that are slightly wrong, as models make them: each is understood, or told what to do instead.

use sabir_sources::articles::Appearance;
use serde_json::json;

use crate::shop::{Shop, home, plain, said};
use crate::support::Home;

#[tokio::test]
async fn a_uri_of_another_folder_is_refused() {
    let home = home();
    let appearance = Appearance { name: Some("one".into()), writes: true, ..Appearance::default() };
    let shop = Shop::with(home.store(), appearance);
    let own = said(&shop, "one_get_article", json!({"slug": "article://one/concepts/eras"})).await;
    assert!(own.starts_with("Two eras"), "{own}");
    let other = json!({"slug": "article://two/concepts/eras", "content": "x"});
    for (tool, its) in
        [("one_get_article", "two_get_article"), ("one_append_to_article", "two_append_to_article")]
    {
        assert_eq!(
            said(&shop, tool, other.clone()).await,
            format!(
                "failed: `article://two/concepts/eras` belongs to another folder, `two` (use its `{its}`)"
            )
        );
    }
    let other = said(&shop, "one_get_article", json!({"slug": "article:///concepts/eras"})).await;
    assert!(other.contains("(the articles of this one begin with `article://one/`)"), "{other}");
}

#[tokio::test]
async fn a_section_without_its_article_is_not_an_unknown_article() {
    let home = home();
    let shop = plain(&home);
    let told = said(&shop, "get_article", json!({"slug": "#bridges"})).await;
    assert_eq!(
        told,
        "failed: `#bridges` is a section without its article (expected the id of the article as `slug`, \
         and `bridges` as `section`)"
    );
}

#[tokio::test]
async fn a_link_to_a_missing_section_says_so_and_gives_the_page() {
    let home = home();
    let shop = plain(&home);
    let read = said(&shop, "get_article", json!({"slug": "concepts/eras#tunnels"})).await;
    let first = "Two eras (`concepts/eras`): it has no section `tunnels`, so this is the article from its start\n";
    assert!(read.starts_with(first) && read.contains("## Bridges"), "{read}");
    let found = said(&shop, "get_article", json!({"slug": "concepts/eras#bridges"})).await;
    assert!(!found.contains("it has no section"), "{found}");
}

#[tokio::test]
async fn an_empty_text_counts_as_absent() {
    let home = Home::new(&[("a/b/c.md", "# C\n\nWalrus.\n\n## D\n\nTusks.\n")]);
    let shop = plain(&home);
    let all = said(&shop, "list_articles", json!({"category": ""})).await;
    assert!(all.starts_with("1 article.\n- C (`a/b/c`)"), "{all}");
    let whole = said(&shop, "get_article", json!({"slug": "c", "section": " "})).await;
    assert!(whole.starts_with("C (`a/b/c`)\n\n# C\n"), "{whole}");
    let found = said(&shop, "search_articles", json!({"query": "walrus", "category": ""})).await;
    assert!(found.starts_with("1 article matches"), "{found}");
}

#[tokio::test]
async fn a_path_is_a_category() {
    let home = home();
    let shop = plain(&home);
    let found = said(&shop, "search_articles", json!({"query": "page", "path": "patterns/"})).await;
    assert!(
        found.starts_with("1 article matches") && found.contains("`patterns/pages`"),
        "{found}"
    );
    let listed = said(&shop, "list_articles", json!({"path": "patterns"})).await;
    assert!(listed.starts_with("1 article.\n- Paging"), "{listed}");
    let told = said(&shop, "search_articles", json!({"query": "page", "path": "obs"})).await;
    assert_eq!(told, "failed: unknown category `obs` (expected one of: concepts, patterns)");
    let tools = shop.catalog();
    assert!(!tools.tools().iter().any(|tool| tool.input_schema.text().contains("\"path\"")));
}

#[tokio::test]
async fn a_folder_without_an_index_page_is_listed_instead() {
    let home = home();
    let shop = plain(&home);
    for slug in ["concepts", "./concepts/", "article:///concepts"] {
        assert_eq!(
            said(&shop, "get_article", json!({ "slug": slug })).await,
            "failed: `concepts` is a folder with 2 articles, not an article (list it with `list_articles`, \
             category `concepts`)"
        );
    }
}
