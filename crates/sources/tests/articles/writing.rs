//! The tools that change articles.

use sabir_sources::articles::Appearance;
use serde_json::json;

use crate::shop::{Shop, home, plain, said, structured};
use crate::support::Home;

fn writable(home: &Home) -> Shop {
    Shop::with(home.store(), Appearance { writes: true, ..Appearance::default() })
}

/// The etag that a result names.
fn etag(text: &str) -> &str {
    text.split_once("Etag: `").and_then(|(_, rest)| rest.split('`').next()).unwrap()
}

#[tokio::test]
async fn an_article_is_written_read_and_written_again() {
    let home = home();
    let shop = writable(&home);
    let arguments = json!({"slug": "ideas/walrus", "content": "# Walrus\n\nIt has tusks."});
    let first = said(&shop, "write_article", arguments.clone()).await;
    assert!(first.starts_with("Done: Write ideas/walrus.\nId: `ideas/walrus`\n"), "{first}");
    // It is served at once.
    let found = said(&shop, "search_articles", json!({"query": "tusks"})).await;
    assert!(found.contains("`ideas/walrus`"), "{found}");
    let again = said(&shop, "write_article", arguments).await;
    assert!(again.starts_with("failed: `ideas/walrus` exists already"), "{again}");

    let read = said(&shop, "get_article", json!({"slug": "walrus", "raw": true})).await;
    assert!(read.ends_with("\n\n# Walrus\n\nIt has tusks.\n"), "{read}");
    assert_eq!(etag(&read), etag(&first));
    let content = "# Walrus\n\nIt has whiskers.\n";
    let change = json!({"slug": "walrus", "content": content, "etag": etag(&read)});
    let second = said(&shop, "write_article", change.clone()).await;
    assert_ne!(etag(&second), etag(&first));
    assert_eq!(std::fs::read_to_string(home.path("ideas/walrus.md")).unwrap(), content);
    let stale = said(&shop, "write_article", change).await;
    assert!(stale.starts_with("failed: `ideas/walrus.md` has changed since"), "{stale}");
    let plain = said(&shop, "get_article", json!({"slug": "walrus"})).await;
    assert_eq!(etag(&plain), etag(&second));
}

#[tokio::test]
async fn a_raw_article_has_its_frontmatter_and_its_own_links() {
    let file = "---\ntitle: A\n---\nSee [b](./b.md).\n";
    let home = Home::new(&[("c/a.md", file), ("c/b.md", "# B\n")]);
    let shop = writable(&home);
    let read = said(&shop, "get_article", json!({"slug": "a", "raw": true})).await;
    assert!(read.ends_with(file), "{read}");
    let read = said(&shop, "get_article", json!({"slug": "a"})).await;
    assert!(read.ends_with("See [b](c/b).\n") && !read.contains("title:"), "{read}");
}

#[tokio::test]
async fn text_is_appended_and_an_article_moved() {
    let home = Home::new(&[
        ("c/log.md", "# Log\n\n- one"),
        ("c/other.md", "# Other\n\nSee the [log](log.md).\n"),
    ]);
    let shop = writable(&home);
    let appended =
        said(&shop, "append_to_article", json!({"slug": "log", "content": "- two"})).await;
    assert!(appended.starts_with("Done: Append to c/log."), "{appended}");
    assert_eq!(std::fs::read_to_string(home.path("c/log.md")).unwrap(), "# Log\n\n- one\n- two\n");

    let taken = said(&shop, "move_article", json!({"slug": "log", "to": "c/other"})).await;
    assert_eq!(taken, "failed: `c/other` exists already (expected a place where no article is)");
    let moved = said(&shop, "move_article", json!({"slug": "log", "to": "old/diary"})).await;
    assert!(moved.starts_with("Done: Move c/log.md to old/diary.md.\nId: `old/diary`"), "{moved}");
    assert!(moved.ends_with("Linked from (not changed): `c/other`"), "{moved}");
    let gone = said(&shop, "get_article", json!({"slug": "c/log"})).await;
    assert!(gone.starts_with("failed: no article `c/log`"), "{gone}");
    let read = said(&shop, "get_article", json!({"slug": "diary"})).await;
    assert!(read.ends_with("- two\n"), "{read}");
}

#[tokio::test]
async fn nothing_is_written_outside_the_folder_or_into_other_files() {
    let home = Home::new(&[("c/a.md", "# A\n"), ("c/page.html", "<h1>Page</h1>")]);
    let outside = home.path("../outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, home.path("out")).unwrap();
    let shop = writable(&home);
    for slug in ["../x", "out/x", "/../x", ".git/config", "a/../../x", "x.sh/../../y", "c/x.pdf"] {
        let failed = said(&shop, "write_article", json!({"slug": slug, "content": "x"})).await;
        assert!(failed.starts_with("failed: invalid name"), "{slug}: {failed}");
        let failed = said(&shop, "move_article", json!({"slug": "c/a", "to": slug})).await;
        assert!(failed.starts_with("failed: invalid name"), "{slug}: {failed}");
    }
    let failed = said(&shop, "append_to_article", json!({"slug": "page", "content": "x"})).await;
    assert!(failed.contains("expected a file of text"), "{failed}");
    assert_eq!(std::fs::read_dir(outside).unwrap().count(), 0);
    assert!(home.path("c/a.md").exists());
}

#[tokio::test]
async fn a_folder_is_not_written_to_unless_it_is_allowed() {
    let home = home();
    let shop = plain(&home);
    assert_eq!(shop.tool_names().len(), 3);
    let input = shop.catalog().tools()[1].input_schema.text().to_owned();
    assert!(!input.contains("\"raw\""), "{input}");
    let read = said(&shop, "get_article", json!({"slug": "eras"})).await;
    assert!(!read.contains("Etag"), "{read}");
    let writable = writable(&home);
    let names = writable.tool_names();
    assert_eq!(names[3..], ["write_article", "append_to_article", "move_article"]);
    for tool in &writable.catalog().tools()[3..] {
        assert_eq!(tool.annotations.as_ref().unwrap().read_only_hint, Some(false));
    }
}

#[tokio::test]
async fn a_change_is_structured_where_results_are() {
    let home = home();
    let appearance = Appearance { writes: true, structured: true, ..Appearance::default() };
    let shop = Shop::with(home.store(), appearance);
    let arguments = json!({"slug": "ideas/walrus", "content": "Tusks."});
    let reply = shop.call("write_article", arguments).await.unwrap();
    assert_eq!(structured(&reply)["uri"], "article:///ideas/walrus");
}
