use super::*;

fn entry(path: &str) -> Entry {
    let hidden = path.starts_with('!');
    let path = path.trim_start_matches('!');
    Entry {
        path: path.into(),
        stamp: Stamp { size: 1, mtime: 2 },
        hash: 3,
        updated: 4,
        hidden: hidden.then_some(Hidden::Draft),
        linked: false,
        unsure: false,
        language: Language::ENGLISH,
        names: Box::default(),
    }
}

fn listing(paths: &[&str]) -> Listing {
    Listing::new(paths.iter().map(|path| Arc::new(entry(path))).collect())
}

fn resolve(listing: &Listing, asked: &str) -> String {
    match listing.resolve(asked, None).0 {
        Resolved::One(entry) => entry.path.to_string(),
        Resolved::Many(ids) => ids.join(" or "),
        Resolved::Nothing => "-".to_owned(),
    }
}

#[test]
fn an_id_is_category_and_slug() {
    let deep = entry("concepts/deep/x.y.md");
    assert_eq!(
        (deep.id(), deep.category(), deep.slug(), deep.name()),
        ("concepts/deep/x.y", Some("concepts"), "deep/x.y", "x.y")
    );
    let flat = entry("x.md");
    assert_eq!((flat.id(), flat.category(), flat.slug()), ("x", None, "x"));
}

#[test]
fn an_article_is_found_by_the_last_parts_of_its_id() {
    let listing = listing(&[
        "concepts/a.md",
        "concepts/deep/b.md",
        "patterns/a.mdx",
        "patterns/c.md",
        "top.txt",
        "!concepts/draft.md",
        "v1.2.md",
    ]);
    for (asked, wanted) in [
        ("c", "patterns/c.md"),
        ("patterns/c", "patterns/c.md"),
        ("patterns/c.md", "patterns/c.md"),
        ("/patterns/c/", "patterns/c.md"),
        ("`patterns/c`", "patterns/c.md"),
        ("b", "concepts/deep/b.md"),
        ("deep/b", "concepts/deep/b.md"),
        ("concepts/deep/b", "concepts/deep/b.md"),
        ("a", "concepts/a or patterns/a"),
        ("concepts/a", "concepts/a.md"),
        ("C", "patterns/c.md"),
        ("Concepts/A", "concepts/a.md"),
        ("top", "top.txt"),
        ("v1.2", "v1.2.md"),
        ("eep/b", "-"),
        ("concepts/b", "-"),
        ("draft", "-"),
        ("concepts/draft", "-"),
        ("", "-"),
        ("/", "-"),
        ("..", "-"),
        ("../top", "top.txt"),
        ("concepts/../top", "-"),
        ("concepts", "-"),
    ] {
        assert_eq!(resolve(&listing, asked), wanted, "{asked:?}");
    }
}

#[test]
fn an_article_in_the_top_folder_has_no_category() {
    let listing = listing(&["x.md", "concepts/x.md"]);
    assert_eq!(resolve(&listing, "x"), "x.md");
    assert_eq!(resolve(&listing, "concepts/x"), "concepts/x.md");
}

#[test]
fn of_two_files_with_one_id_markdown_is_served_and_the_other_reported() {
    let listing = listing(&["a/x.txt", "a/x.md", "a/x.mdx"]);
    assert_eq!(listing.articles().len(), 1);
    assert_eq!(resolve(&listing, "x"), "a/x.md");
    assert!(listing.serves("a/x.md").is_some() && listing.serves("a/x.txt").is_none());
    let named: Vec<_> = listing.shadowed().iter().map(|problem| problem.file.as_str()).collect();
    assert_eq!(named, ["a/x.mdx", "a/x.txt"]);
    let hidden = Listing::new(vec![Arc::new(entry("!a/x.md")), Arc::new(entry("a/x.txt"))]);
    assert_eq!(resolve(&hidden, "x"), "a/x.txt");
}

#[test]
fn lists_are_sorted_by_date_and_then_by_id() {
    let dated = |path: &str, updated| Arc::new(Entry { updated, ..entry(path) });
    let listing = Listing::new(vec![
        dated("b/1.md", 10),
        dated("a/2.md", 30),
        dated("a/1.md", 10),
        dated("top.md", 20),
    ]);
    let ids = |category| {
        listing.newest(category).unwrap().into_iter().map(|entry| entry.id()).collect::<Vec<_>>()
    };
    assert_eq!(ids(None), ["a/2", "top", "a/1", "b/1"]);
    assert_eq!(ids(Some("a")), ["a/2", "a/1"]);
    assert!(listing.newest(Some("none")).is_none());
}

#[test]
fn categories_are_counted_once_each() {
    let listing = listing(&["a/x.md", "a-b/x.md", "a/y.md", "top.md", "!c/x.md", "a/deep/z.md"]);
    let counts: Vec<_> = listing.categories().collect();
    assert_eq!(counts, [("a", 3), ("a-b", 1)]);
}

#[test]
fn completions_start_with_the_prefix_or_else_contain_it() {
    let listing = listing(&[
        "concepts/context.md",
        "concepts/tool-design.md",
        "patterns/context.md",
        "patterns/deep/chain.md",
        "!patterns/contraband.md",
        "top.md",
    ]);
    let slugs = |category, prefix| listing.complete_slug(category, prefix).values;
    assert_eq!(slugs("concepts", ""), ["context", "tool-design"]);
    assert_eq!(slugs("patterns", "c"), ["context"]);
    assert_eq!(slugs("patterns", "chain"), ["deep/chain"]);
    assert_eq!(slugs("concepts", "Design"), ["tool-design"]);
    assert_eq!(slugs("nowhere", ""), Vec::<String>::new());
    let categories = |prefix| listing.complete_category(prefix).values;
    assert_eq!(categories(""), ["concepts", "patterns"]);
    assert_eq!(categories("pat"), ["patterns"]);
    assert_eq!(categories("CEPT"), ["concepts"]);
}

#[test]
fn completions_are_limited_and_have_a_total() {
    let paths: Vec<String> = (0..=MOST_COMPLETIONS).map(|n| format!("c/x{n:04}.md")).collect();
    let listing = listing(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let found = listing.complete_slug("c", "x");
    assert_eq!((found.values.len(), found.total), (MOST_COMPLETIONS, MOST_COMPLETIONS + 1));
    assert_eq!(listing.complete_slug("c", "x009").total, 10);
}

#[test]
fn changes_make_a_new_listing_and_leave_the_old() {
    let old = listing(&["a/x.md", "a/y.md"]);
    let new = old.with(vec![
        ("a/x.md".into(), None),
        ("a/y.md".into(), Some(Entry { hash: 9, ..entry("a/y.md") })),
        ("b/z.md".into(), Some(entry("b/z.md"))),
    ]);
    assert_eq!(old.articles().len(), 2);
    let ids: Vec<_> = new.articles().iter().map(|entry| entry.id()).collect();
    assert_eq!(ids, ["a/y", "b/z"]);
    assert_eq!(new.file("a/y.md").unwrap().hash, 9);
}

#[test]
fn files_under_a_path_are_the_file_or_the_folder() {
    let listing = listing(&["a/x.md", "a/b/y.md", "ab/z.md", "a.md", "!a/d.md"]);
    let under =
        |path: &str| listing.under(path).map(|entry| entry.path.to_string()).collect::<Vec<_>>();
    assert_eq!(under("a"), ["a/b/y.md", "a/d.md", "a/x.md"]);
    assert_eq!(under("a.md"), ["a.md"]);
    assert_eq!(under("").len(), 5);
    assert_eq!(under("none"), Vec::<String>::new());
}

#[test]
fn a_record_is_decoded_as_it_was_encoded() {
    let wanted = Entry {
        stamp: Stamp { size: 5, mtime: -7 },
        hash: u64::MAX,
        updated: -1,
        linked: true,
        ..entry("!ä b/x.md")
    };
    assert_eq!(Entry::from_record(&wanted.record()), Some(wanted));
    for broken in ["", "a.md", "a.md\tx\t1\t2\t3\t11", "a.md\t1\t1\t2\t3\t", "a.md\t1\t1\t2\t3"] {
        assert_eq!(Entry::from_record(broken), None, "{broken:?}");
    }
}
