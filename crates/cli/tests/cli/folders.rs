//! Folders as they really are, through the real binary: each test is one way in which folders of others
//! differ from ours.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::{command, sabir, seen};

/// The default length of an answer, in characters.
const BUDGET: usize = 24_000;

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    files.iter().for_each(|(path, text)| write(folder.path(), path, text));
    folder
}

/// A client of a folder that has been read.
fn served(folder: TempDir) -> Client {
    let mut client = Client::start_in(folder);
    client.initialize();
    while said(&mut client, "list_articles", json!({"limit": 1})).contains("still being read") {}
    client
}

/// The text of a result, which is all that it has.
#[track_caller]
fn said(client: &mut Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments);
    assert_eq!(result.get("structuredContent"), None, "{result}");
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Searches until an article is found, and the other one is not.
#[track_caller]
fn until_found(client: &mut Client, found: &str, gone: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut has = |word: &str| {
        !said(client, "search_articles", json!({ "query": word })).starts_with("No article")
    };
    while !has(found) || has(gone) {
        assert!(Instant::now() < deadline, "`{found}` in place of `{gone}`");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_adr_with_a_status_is_served() {
    let adr = "---\nstatus: accepted\n---\n# Use Rust\n\nWe use Rust.\n";
    let folder = folder(&[("adr/0001.md", adr), ("adr/0002.md", "---\ndraft: true\n---\n# No\n")]);
    let told = seen(&sabir(folder.path(), &["check"]));
    assert!(told.contains("1 article, 1 hidden (1 by `draft: true`)"), "{told}");
    let mut client = served(folder);
    let read = said(&mut client, "get_article", json!({"slug": "0001"}));
    assert!(read.starts_with("Use Rust (`adr/0001`)\nStatus: accepted\n"), "{read}");
}

/// A folder with two versions beside each other, and a `sabir.toml` that serves `current`.
fn versions() -> TempDir {
    folder(&[
        ("sabir.toml", "[[articles]]\npath = \"current\"\n"),
        ("v1/a.md", "# Walrus\n"),
        ("v2/a.md", "# Badger\n"),
    ])
}

#[test]
fn a_link_that_is_switched_is_noticed() {
    let folder = versions();
    let at = |name: &str| folder.path().join(name);
    // A copy may have the size and the time of the original, and another content.
    let time = fs::metadata(at("v1/a.md")).unwrap().modified().unwrap();
    let badger = fs::File::options().append(true).open(at("v2/a.md")).unwrap();
    badger.set_modified(time).unwrap();
    symlink("v1", at("current")).unwrap();
    symlink("v2", at("next")).unwrap();
    let (next, current) = (at("next"), at("current"));
    let mut client = served(folder);
    until_found(&mut client, "walrus", "badger");
    fs::rename(next, current).unwrap();
    until_found(&mut client, "badger", "walrus");
}

#[test]
fn a_folder_that_is_swapped_is_noticed() {
    let folder = versions();
    let at = |name: &str| folder.path().join(name);
    let [first, second, current, away] = ["v1", "v2", "current", "away"].map(at);
    fs::rename(first, &current).unwrap();
    let mut client = served(folder);
    until_found(&mut client, "walrus", "badger");
    fs::rename(&current, away).unwrap();
    fs::rename(second, &current).unwrap();
    until_found(&mut client, "badger", "walrus");
    fs::write(current.join("b.md"), "# Narwhal\n").unwrap();
    until_found(&mut client, "narwhal", "walrus");
}

#[test]
fn a_folder_that_is_deleted_and_made_again_is_noticed() {
    let folder = versions();
    let [first, current] = ["v1", "current"].map(|name| folder.path().join(name));
    fs::rename(first, &current).unwrap();
    let mut client = served(folder);
    until_found(&mut client, "walrus", "badger");
    fs::remove_dir_all(&current).unwrap();
    write(&current, "deep/b.md", "# Badger\n");
    until_found(&mut client, "badger", "walrus");
}

#[test]
fn a_note_that_begins_with_a_second_level_heading_is_named_by_its_file() {
    let folder = folder(&[("daily/my-day.md", "## Tasks\n\nFeed the walrus.\n")]);
    let mut client = served(folder);
    let list = said(&mut client, "list_articles", json!({}));
    assert!(list.contains("\n- My day (`daily/my-day`"), "{list}");
    let read = said(&mut client, "get_article", json!({"slug": "my-day", "section": "tasks"}));
    assert!(read.ends_with("## Tasks\n\nFeed the walrus.\n"), "{read}");
}

#[test]
fn its_own_uri_is_accepted() {
    let mut client = served(folder(&[("a b/c d.md", "# C\n\n## Why\n\nBecause.\n")]));
    let uri = "article:///a%20b/c%20d";
    let resource = client.ask("resources/read", json!({ "uri": uri }));
    assert_eq!(resource["result"]["contents"][0]["uri"], uri, "{resource}");
    let read = said(&mut client, "get_article", json!({ "slug": uri }));
    assert!(read.starts_with("C (`a b/c d`)"), "{read}");
    let read = said(&mut client, "get_article", json!({"slug": format!("{uri}#why")}));
    assert!(read.starts_with("C (`a b/c d`), section `why`"), "{read}");
}

#[test]
fn a_folder_is_read_by_its_index() {
    let mut client = served(folder(&[
        ("docs/one/index.md", "# One\n"),
        ("docs/two/_index.md", "# Two\n"),
        ("docs/three/README.md", "# Three\n"),
        ("docs/four/page.md", "# Four\n"),
    ]));
    for (slug, id) in [
        ("docs/one", "docs/one/index"),
        ("docs/one/", "docs/one/index"),
        ("/docs/two/", "docs/two/_index"),
        ("../three/", "docs/three/README"),
    ] {
        let read = said(&mut client, "get_article", json!({ "slug": slug }));
        assert!(read.contains(&format!("(`{id}`)")), "{slug}: {read}");
    }
    let none = said(&mut client, "get_article", json!({"slug": "docs/four"}));
    let expected = "`docs/four` is a folder with 1 article, not an article (list it with";
    assert!(none.starts_with(expected), "{none}");
}

#[test]
fn a_wrong_category_lists_all_categories() {
    let files: Vec<String> = (0..120).map(|n| format!("c{n:03}/deep/a.md")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "# A\n")).collect();
    let mut client = served(folder(&files));
    let wrong = [
        ("list_articles", json!({"category": "nope"})),
        ("search_articles", json!({"query": "a", "category": "nope"})),
    ];
    for (tool, arguments) in wrong {
        let told = said(&mut client, tool, arguments);
        assert!(told.starts_with("unknown category `nope` (expected one of: c000, "), "{told}");
        assert_eq!(told.matches(", c").count(), 119, "{told}");
    }
    let told = said(&mut client, "list_articles", json!({"category": "c007/nope"}));
    assert!(told.ends_with(", c119, c007/deep)"), "{told}");
    let found = said(&mut client, "search_articles", json!({"query": "a", "category": "c007/"}));
    assert!(found.starts_with("1 article matches"), "{found}");
}

/// A page of this many sections with 2,200 characters each.
fn page(sections: usize) -> String {
    let part = |n| {
        let word = format!("word{n} ");
        format!("## Part {n}\n\n{}\n\n", word.repeat(2200 / word.len()))
    };
    format!("# Long\n\n{}", (0..sections).map(part).collect::<String>())
}

#[test]
fn a_page_of_441_kb_is_read_in_parts() {
    let text = page(210);
    assert!(text.len() > 441_000, "{}", text.len());
    let mut client = served(folder(&[("c/long.md", &text), ("c/middle.md", &page(28))]));
    // Every answer fits, says how to go on, and together they are the page.
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let part = said(&mut client, "get_article", json!({"slug": "c/long", "offset": offset}));
        assert!(part.len() <= BUDGET, "{} at {offset}", part.len());
        assert_eq!(part.contains("\nSections:\n- `long` ("), offset == 0, "{part}");
        let (_, content) = part.split_once("\n\n").unwrap();
        let Some((content, rest)) = content.split_once("\n\n[Cut at ") else {
            whole.push_str(content);
            break;
        };
        whole.push_str(content);
        let (_, next) = rest.split_once("To go on: slug `c/long`, offset ").unwrap();
        offset = next.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    }
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&whole), words(&text));
    // A page of 59 KB: its outline, its beginning, and how to go on.
    let first = said(&mut client, "get_article", json!({"slug": "middle"}));
    assert!(first.len() <= BUDGET, "{}", first.len());
    for expected in ["\n  - `part-27` (", "\n## Part 0\n", "To go on: slug `c/middle`, offset "] {
        assert!(first.contains(expected), "{expected}: {first}");
    }
    for most in [300, 1000, 5000] {
        let few = said(&mut client, "get_article", json!({"slug": "middle", "max_chars": most}));
        assert!(few.len() <= most && few.contains("To go on"), "{most}: {} {few}", few.len());
    }
    // The whole content of hits fits, too.
    for limit in [1, 2] {
        let asked = json!({"query": "word3", "include_content": true, "limit": limit});
        let found = said(&mut client, "search_articles", asked);
        assert!(found.len() <= BUDGET, "{}", found.len());
        assert!(found.contains("To go on: `get_article`, slug `c/"), "{found}");
    }
}

#[test]
fn a_list_of_a_thousand_articles_fits_and_says_how_to_go_on() {
    let line = "Walruses rest on the ice and look at the sea. ".repeat(5);
    let files: Vec<(String, String)> = (0..1100)
        .map(|n| (format!("sea/walrus-{n:04}.md"), format!("# Walrus {n}\n\n{line}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut client = served(folder(&files));
    let (mut seen, mut offset) = (0, Some(0));
    while let Some(at) = offset {
        let list = said(&mut client, "list_articles", json!({"limit": 1000, "offset": at}));
        assert!(list.len() <= BUDGET, "{}", list.len());
        let shown = list.matches("\n- ").count();
        // The numbers in the answer are right.
        let numbers = match at {
            0 => format!("The newest {shown} of 1100 articles."),
            at => format!("Articles {} to {} of 1100, newest first.", at + 1, at + shown),
        };
        assert!(list.starts_with(&numbers), "{list}");
        assert!(shown > 20 || at + shown == 1100, "{list}");
        seen += shown;
        let more = list.split_once("\nMore: offset=").map(|(_, rest)| rest.trim_end_matches('.'));
        offset = more.map(|next| next.parse::<usize>().unwrap());
        assert_eq!(offset.is_some(), seen < 1100);
    }
    assert_eq!(seen, 1100);
    let found = said(&mut client, "search_articles", json!({"query": "walrus", "limit": 100}));
    assert!(found.len() <= BUDGET && found.contains("\nMore: offset="), "{found}");
}

#[test]
fn folders_are_listed_as_a_tree() {
    let files = ["docs/a/x.md", "docs/a/y.md", "docs/b/deep/z.md", "docs-old/w.md", "v.md"];
    let mut client = served(folder(&files.map(|path| (path, "# A\n"))));
    let list = said(&mut client, "list_articles", json!({"limit": 1}));
    let tree = "\nFolders, for `category`:\n- docs (3)\n  - docs/a (2)\n  - docs/b (1)\n    - \
                docs/b/deep (1)\n- docs-old (1)\nMore: offset=1.";
    assert!(list.ends_with(tree), "{list}");
    let list = said(&mut client, "list_articles", json!({"category": "docs/b", "limit": 1}));
    assert!(list.starts_with("1 article.\n- A (`docs/b/deep/z`"), "{list}");
}

#[test]
fn serve_says_what_is_served_and_what_is_not() {
    let place = folder(&[
        ("notes/a.md", "# A\n"),
        ("notes/b.md", "---\ndraft: true\n---\n# B\n"),
        ("notes/c.txt", "\0\0"),
        ("notes/node_modules/d.md", "# D\n"),
    ]);
    let args = ["serve", "notes", "--http", "127.0.0.1:0", "--log", "debug"];
    let mut child = command(place.path(), &args).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = channel();
    let output = BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let mut said = String::new();
    while !said.contains("\narticles notes: ")
        && let Ok(line) = lines.recv_timeout(Duration::from_secs(30))
    {
        said.push_str(&format!("{line}\n"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let summary = "\narticles notes: 1 article, 2 hidden (1 by `draft: true`, 1 by being binary), 1 \
                   ignored\n";
    assert!(said.ends_with(summary), "{said}");
    // The files are named at `debug`.
    for (file, reason) in [("b.md", "draft: true"), ("c.txt", "being binary"), ("node_modules", "")]
    {
        let named = |line: &str| line.contains(file) && line.contains(reason);
        assert!(said.lines().any(named), "{file}: {said}");
    }
}

#[test]
fn node_modules_is_not_served() {
    let folder = folder(&[
        ("README.md", "# Walrus\n"),
        ("docs/guide.md", "# Guide\n"),
        ("node_modules/left-pad/README.md", "# Badger\n"),
        ("packages/a/node_modules/b/README.md", "# Badger\n"),
    ]);
    let told = seen(&sabir(folder.path(), &["check"]));
    assert!(told.contains("2 articles, 0 hidden, 2 ignored"), "{told}");
    let mut client = served(folder);
    until_found(&mut client, "walrus", "badger");
    let read = said(&mut client, "get_article", json!({"slug": "left-pad/README"}));
    assert!(read.starts_with("no article"), "{read}");
}

#[test]
fn the_rules_of_the_repository_around_a_folder_are_respected() {
    let folder = folder(&[
        (".gitignore", "/docs/build/\n*.tmp.md\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("docs/a.md", "# A\n"),
        ("docs/b.tmp.md", "# B\n"),
        ("docs/build/c.md", "# C\n"),
    ]);
    let told = seen(&sabir(folder.path(), &["check", "docs"]));
    assert!(told.contains("articles docs: 1 article, 0 hidden, 2 ignored"), "{told}");
}

#[test]
fn an_image_is_named_by_its_uri_and_read() {
    let mut client = served(folder(&[
        ("c/a.md", "# A\n\n![x](img/x%20y.png) ![gone](gone.png) [data](../data.csv)\n"),
        ("c/img/x y.png", "not really"),
        ("data.csv", "a,b\n"),
    ]));
    let read = said(&mut client, "get_article", json!({"slug": "a"}));
    let text = "![x](article:///c/img/x%20y.png) ![gone](gone.png) [data](article:///data.csv)";
    assert!(read.contains(text), "{read}");
    for (uri, form, content) in [
        ("article:///c/img/x%20y.png", "blob", "bm90IHJlYWxseQ=="),
        ("article:///data.csv", "text", "a,b\n"),
    ] {
        let contents = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(contents["result"]["contents"][0][form], content, "{contents}");
        let told = said(&mut client, "get_article", json!({ "slug": uri }));
        assert!(told.ends_with(&format!("read the resource `{uri}`")), "{told}");
    }
}

#[test]
fn links_of_the_site_lead_back() {
    let mut client = served(folder(&[
        ("sabir.toml", "[[articles]]\npath = \".\"\nsite = \"https://docs.example.org\"\n"),
        ("guide/start.md", "# Start\n\nSee [it](https://docs.example.org/guide/next/#why).\n"),
        ("guide/next.md", "# Next\n\n## Why\n\nBecause.\n"),
    ]));
    let start = said(&mut client, "get_article", json!({"slug": "start", "links": true}));
    assert!(start.contains("\nLinks to: `guide/next`\n"), "{start}");
    assert!(start.contains("[it](guide/next#why)"), "{start}");
    let url = "https://docs.example.org/guide/next/";
    let next = said(&mut client, "get_article", json!({"slug": url, "links": true}));
    assert!(next.contains("\nLinked from: `guide/start`\n"), "{next}");
}

#[test]
fn categories_are_described_by_their_titles() {
    let mut client = served(folder(&[
        ("README.md", "# Zoo\n\nAll animals.\n"),
        ("sea/_index.md", "---\ntitle: Animals of the sea\n---\n"),
        ("land/README.md", "# Land\n"),
        ("air/gull.md", "# Gull\n"),
    ]));
    let expected = "Zoo: All animals. Categories: air, land, sea (Animals of the sea)";
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
        let told = tools[0]["description"].as_str().unwrap();
        if told.ends_with(expected) {
            break;
        }
        // The list may be a moment older than the article.
        assert!(Instant::now() < deadline, "{told}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn search_and_fetch_are_offered_to_chatgpt() {
    let mut client = served(folder(&[
        ("sabir.toml", "[[articles]]\npath = \".\"\nappearance = \"chatgpt\"\n"),
        ("sea/walrus.md", "# Walrus\n\nTwo tusks.\n"),
    ]));
    let found = client.call("search", json!({"query": "tusks"}));
    let hit = json!({"id": "sea/walrus", "title": "Walrus", "url": "article:///sea/walrus"});
    assert_eq!(found["structuredContent"], json!({ "results": [hit] }));
    // The text is the same JSON.
    let text = found["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), found["structuredContent"]);
    let read = client.call("fetch", json!({"id": "sea/walrus"}));
    assert_eq!(read["structuredContent"]["text"], "# Walrus\n\nTwo tusks.\n");
    assert_eq!(read["structuredContent"]["url"], "article:///sea/walrus");
}
