//! Results as text, the default: short, and with everything that the next call needs.

use sabir_sources::articles::Appearance;
use sabir_wire::types::ResourceBody;
use serde_json::json;

use crate::shop::{Shop, home, plain, said, structured};
use crate::support::Home;

#[tokio::test]
async fn a_result_is_text_only_by_default_and_short() {
    let filler = "Walruses rest on the ice and look at the sea for most of the day. ".repeat(20);
    let files: Vec<(String, String)> = (0..12)
        .map(|n| {
            (
                format!("sea/walrus-{n}.md"),
                format!("# Walrus {n}\n\n{filler}\n\n## Tusks\n\n{filler}"),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let home = Home::new(&files);
    let shop = plain(&home);
    assert!(shop.catalog().tool("search_articles").unwrap().output.is_none());
    let found = said(&shop, "search_articles", json!({"query": "walrus on the ice"})).await;
    assert!(found.len() < 4000, "{} bytes: {found}", found.len());
    assert!(found.contains("10. "), "{found}");
    let more = said(&shop, "search_articles", json!({"query": "walrus", "offset": 10})).await;
    assert!(more.contains("\n11. ") && !more.contains("\n10. "), "{more}");
    let one =
        said(&shop, "search_articles", json!({"query": "walrus", "limit": 1, "category": "sea"}))
            .await;
    assert_eq!(one.matches("\n1. ").count(), 1, "{one}");
    let none = said(&shop, "search_articles", json!({"query": "walrus", "category": "land"})).await;
    assert_eq!(none, "failed: unknown category `land` (expected one of: sea)");
}

#[tokio::test]
async fn a_section_costs_little_more_than_its_text() {
    let section = "A walrus has two tusks. ".repeat(12);
    let body = format!("# Walrus\n\n{}\n\n## Tusks\n\n{section}\n", "x ".repeat(30_000));
    let home = Home::new(&[("sea/walrus.md", &body)]);
    let shop = plain(&home);
    let read = said(&shop, "get_article", json!({"slug": "walrus", "section": "tusks"})).await;
    assert!(read.len() < section.len() + 200, "{read}");
}

#[tokio::test]
async fn a_page_of_441_kb_is_read_in_parts() {
    let mut page = String::from("# Long\n\n");
    for n in 0..200 {
        page.push_str(&format!("## Part {n}\n\n{}\n\n", "word ".repeat(440)));
    }
    assert!(page.len() > 441_000);
    let home = Home::new(&[("c/long.md", &page)]);
    let shop = plain(&home);
    let first = said(&shop, "get_article", json!({"slug": "long"})).await;
    assert!(first.len() < 30_000, "{}", first.len());
    assert!(first.contains("- `long`") && first.contains("## Part 0\n"), "{first}");
    let (_, rest) = first.split_once("offset ").unwrap();
    let next: usize = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    let mut whole = 0;
    let mut offset = next;
    // Every part says how to go on, and they are complete.
    while let Some((_, rest)) = {
        let part = said(&shop, "get_article", json!({"slug": "long", "offset": offset})).await;
        whole += 1;
        part.split_once("offset ").map(|(_, rest)| ((), rest.to_owned()))
    } {
        offset = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    }
    assert!((15..25).contains(&whole), "{whole}");
    let few = said(&shop, "get_article", json!({"slug": "long", "max_chars": 500})).await;
    assert!(few.len() < 5000, "{}", few.len());
}

#[tokio::test]
async fn links_are_followed_as_they_are_written() {
    let home = Home::new(&[
        (
            "docs/start.md",
            "# Start\n\nSee [next](../guide/next.md#why) and [[Note]].\n\n[ref]: ./other/\n",
        ),
        ("docs/other/_index.md", "# Other\n"),
        ("guide/next.md", "---\naliases: [/old/next/]\n---\n# Next\n\n## Why\n\nBecause.\n"),
        ("guide/Note.md", "A note, back to [start](/en/docs/start.html).\n"),
    ]);
    let shop = plain(&home);
    let start = said(&shop, "get_article", json!({"slug": "start"})).await;
    assert!(start.contains("[next](guide/next#why)"), "{start}");
    assert!(start.contains("[ref]: docs/other/_index"), "{start}");
    for (slug, title) in [
        ("guide/next#why", "Next (`guide/next`), section `why`"),
        ("../guide/next.md", "Next (`guide/next`)"),
        ("article:///guide/next", "Next (`guide/next`)"),
        ("/old/next/", "Next (`guide/next`)"),
        ("[[Note]]", "Note (`guide/Note`)"),
        ("docs/other/", "Other (`docs/other/_index`)"),
        ("/en/docs/start.html", "Start (`docs/start`)"),
    ] {
        let read = said(&shop, "get_article", json!({ "slug": slug })).await;
        assert!(read.starts_with(title), "{slug}: {read}");
    }
    let links = said(&shop, "get_article", json!({"slug": "docs/start", "links": true})).await;
    assert!(
        links.contains("\nLinks to: `guide/Note`, `guide/next`\nLinked from: `guide/Note`\n"),
        "{links}"
    );
}

#[tokio::test]
async fn a_wrong_category_lists_all_categories() {
    let files: Vec<String> = (0..120).map(|n| format!("c{n:03}/deep/a.md")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "# A\n")).collect();
    let home = Home::new(&files);
    let shop = plain(&home);
    let failed = said(&shop, "list_articles", json!({"category": "nope"})).await;
    assert!(failed.contains("c000") && failed.contains("c119"), "{failed}");
    let inside = said(&shop, "list_articles", json!({"category": "c007/deep"})).await;
    assert!(inside.starts_with("1 article."), "{inside}");
    let all = said(&shop, "list_articles", json!({"limit": 1000})).await;
    assert!(all.len() < 30_000 && all.starts_with("120 articles"), "{all}");
}

#[tokio::test]
async fn search_and_fetch_are_offered_where_configured() {
    let home = home();
    let appearance = Appearance { search_and_fetch: true, ..Appearance::default() };
    let shop = Shop::with(home.store(), appearance);
    let reply = shop.call("search", json!({"query": "shake hands"})).await.unwrap();
    let id = structured(&reply)["results"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(id, "concepts/eras");
    let reply = shop.call("fetch", json!({ "id": id })).await.unwrap();
    assert!(structured(&reply)["text"].as_str().unwrap().contains("shake hands"));
}

#[tokio::test]
async fn the_outline_of_a_title_with_many_sections_shows_the_first_of_them() {
    let parts: String =
        (0..200).map(|n| format!("## Part {n}\n\n{}\n\n", "x ".repeat(500))).collect();
    let home = Home::new(&[("a.md", &format!("# Long\n\n{parts}"))]);
    let text = said(&plain(&home), "get_article", json!({"slug": "a"})).await;
    assert!(
        text.contains("  - `part-0` (1")
            && text.contains(
                "- … (201 sections in all: `search_articles` names the one that matches)"
            ),
        "{text}"
    );
    for most in [300, 500, 1000, 5000] {
        let asked = json!({"slug": "a", "max_chars": most});
        let few = said(&plain(&home), "get_article", asked).await;
        assert!(few.len() <= most && few.contains("To go on"), "{most}: {} {few}", few.len());
    }
    let asked = json!({"slug": "a", "section": "part-x"});
    let told = said(&plain(&home), "get_article", asked).await;
    let more = ", part-48, … 201 in all: a search in the articles names the one that matches)";
    assert!(told.ends_with(more), "{told}");
}

#[tokio::test]
async fn an_image_of_the_folder_is_a_resource() {
    let home =
        Home::new(&[("c/a.md", "![x](x.png)\n"), ("c/x.png", "not really"), ("c/x.exe", "no")]);
    let shop = plain(&home);
    assert!(shop.read("article:///c/x.png").await.is_ok());
    assert!(shop.read("article:///c/x.exe").await.is_err());
}

#[tokio::test]
async fn a_file_of_text_is_read_as_text() {
    let home = Home::new(&[("a.md", "x\n"), ("a.svg", "<svg/>"), ("a.csv", "ü"), ("a.png", "x")]);
    std::fs::write(home.path("b.csv"), b"\xff").unwrap();
    let shop = plain(&home);
    for (uri, is_text) in [("a.svg", true), ("a.csv", true), ("a.png", false), ("b.csv", false)] {
        let reply = shop.read(&format!("article:///{uri}")).await.unwrap();
        assert_eq!(matches!(reply.contents[0].body, ResourceBody::Text(_)), is_text, "{uri}");
    }
}

#[tokio::test]
async fn an_outline_has_the_titles_that_the_ids_do_not_tell() {
    let text = "x ".repeat(3000);
    let page = format!("# Long\n\n## Why it matters {{#s1}}\n\n{text}\n\n## How, then?\n\nx\n");
    let home = Home::new(&[("a.md", &page)]);
    let read = said(&plain(&home), "get_article", json!({"slug": "a"})).await;
    assert!(read.contains("  - `s1` Why it matters (60"), "{read}");
    assert!(read.contains("  - `how-then` (1"), "{read}");
}

#[tokio::test]
async fn a_page_without_sections_is_read_on_by_its_offset() {
    let home = Home::new(&[
        ("a.md", &"word ".repeat(200)),
        ("b.md", &format!("# B\n\n{}", "x ".repeat(400))),
    ]);
    let shop = plain(&home);
    let cut = said(&shop, "get_article", json!({"slug": "a", "max_chars": 300})).await;
    assert!(cut.contains("To go on: slug `a`, offset") && !cut.contains("one section"), "{cut}");
    let cut = said(&shop, "get_article", json!({"slug": "b", "max_chars": 300})).await;
    assert!(cut.ends_with("; or ask for one section.]"), "{cut}");
    let none = said(&shop, "get_article", json!({"slug": "a", "offset": 5000})).await;
    let end = "[It ends at about 1000 characters: there is nothing at offset 5000.]";
    assert!(none.ends_with(&format!("\n\n{end}")), "{none}");
}
