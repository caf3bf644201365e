//! Folders of articles, through the real binary.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::{command, sabir, seen};

const ERAS: &str = "---\ntitle: Two eras\nstatus: Live\nlastUpdated: 2025-05-01\n---\n# Two \
                    eras\n\nOld clients shake hands.\n\n## Bridges\n\nA server may speak both.\n";

fn write(folder: &Path, path: &str, text: &str) {
    // Renamed into place, as many editors do.
    let (beside, path) = (folder.join("beside.tmp"), folder.join(path));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, path).unwrap();
}

fn folder(file: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    write(folder.path(), "sabir.toml", file);
    write(folder.path(), "content/concepts/eras.md", ERAS);
    write(folder.path(), "content/concepts/pages.md", "# Cursors\n\nA list in pages.\n");
    write(folder.path(), "content/patterns/pages.md", "# Paging\n\nResults in pages.\n");
    write(folder.path(), "content/patterns/hidden.md", "---\nstatus: Draft\n---\n# Hidden\n");
    folder
}

/// A client of a folder that has been read.
fn client(folder: TempDir) -> Client {
    client_with(folder, "list_articles")
}

fn client_with(folder: TempDir, list: &str) -> Client {
    let mut client = Client::start_in(folder);
    client.initialize();
    while client.call(list, json!({}))["structuredContent"].get("indexing").is_some() {}
    client
}

fn first_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[track_caller]
fn failure(client: &mut Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    first_text(&result).to_owned()
}

const FILE: &str = "[[articles]]\npath = \"content\"\nabout = \"protocols\"\nstructured = true\nstatuses = [\"Live\"]\n";

#[test]
fn articles_are_listed_read_and_searched() {
    let mut client = client(folder(FILE));
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["list_articles", "get_article", "search_articles"]);
    assert_eq!(
        tools[0]["inputSchema"]["properties"]["category"]["enum"],
        json!(["concepts", "patterns"])
    );
    assert!(tools[0]["description"].as_str().unwrap().contains("articles about protocols"));

    let list = client.call("list_articles", json!({"category": "concepts"}));
    assert!(first_text(&list).starts_with("2 articles, newest first."), "{list}");
    assert_eq!(list["structuredContent"]["total"], 2);

    let article = client.call("get_article", json!({"slug": "eras"}));
    assert!(first_text(&article).ends_with("A server may speak both.\n"), "{article}");
    assert_eq!(article["content"][1]["type"], "resource_link");
    assert_eq!(article["content"][1]["uri"], "article:///concepts/eras");
    let section = client.call("get_article", json!({"slug": "eras", "section": "bridges"}));
    assert_eq!(section["structuredContent"]["section"]["title"], "Bridges");
    assert!(!first_text(&section).contains("shake hands"), "{section}");

    let found = client.call("search_articles", json!({"query": "shake hands"}));
    assert_eq!(found["structuredContent"]["hits"][0]["id"], "concepts/eras");
    assert_eq!(found["structuredContent"]["hits"][0]["snippet"]["section"]["id"], "two-eras");
    assert_eq!(client.finish().1, 0);
}

#[test]
fn a_draft_is_hidden_everywhere() {
    let mut client = client(folder(FILE));
    assert!(
        failure(&mut client, "get_article", json!({"slug": "hidden"}))
            .starts_with("no article `hidden`")
    );
    let found = client.call("search_articles", json!({"query": "hidden"}));
    assert_eq!(found["structuredContent"]["total"], 0);
    let resources = client.ask("resources/list", json!({}))["result"].to_string();
    assert!(resources.contains("patterns/pages") && !resources.contains("hidden"), "{resources}");
    let read = client.ask("resources/read", json!({"uri": "article:///patterns/hidden"}));
    assert_eq!(read["error"]["code"], -32002);
    let reference = json!({"type": "ref/resource", "uri": "article:///{category}/{slug}"});
    let completion = client.ask(
        "completion/complete",
        json!({"ref": reference, "argument": {"name": "slug", "value": "h"}}),
    );
    assert_eq!(completion["result"]["completion"]["values"], json!([]));
}

#[test]
fn invalid_input_gets_a_clear_error() {
    let mut client = client(folder(FILE));
    let mut told = |tool: &str, arguments: Value| failure(&mut client, tool, arguments);
    assert_eq!(told("list_articles", json!({"limit": 0})), "limit must be at least 1, not 0");
    assert_eq!(told("list_articles", json!({"limit": -1})), "limit must be at least 1, not -1");
    let unknown = told("list_articles", json!({"category": "nope"}));
    assert!(unknown.contains("concepts") && unknown.contains("nope"), "{unknown}");
    for query in ["", "AND OR", "+ - && || ! ( ) { } [ ] ^ \" ~ * ? : \\", "\u{1}\u{2}\u{1b}"] {
        let asked = json!({ "query": query });
        match query {
            // Ordinary words.
            "AND OR" => {}
            _ => assert_eq!(told("search_articles", asked), "the query has no word to search for"),
        }
    }
    let long = told("search_articles", json!({"query": "x ".repeat(51_200)}));
    assert!(long.starts_with("the query is too long: 102400 bytes"), "{long}");
    for slug in ["../sabir", "../../etc/passwd", "concepts/../../sabir.toml", ""] {
        let told = told("get_article", json!({ "slug": slug }));
        assert!(told.starts_with(&format!("no article `{slug}`")), "{told}");
    }
    assert_eq!(
        told("get_article", json!({"slug": "pages"})),
        "`pages` is ambiguous (expected one of: concepts/pages, patterns/pages)"
    );
    let list = client.call("list_articles", json!({"limit": 1_000_000_000}));
    assert_eq!(list["structuredContent"]["articles"].as_array().unwrap().len(), 3);
}

/// Waits for a notification, and removes it from the notes.
#[track_caller]
fn wait_for(client: &mut Client, method: &str, params: &Value) {
    loop {
        let at = client.notes.iter().position(|note| {
            note["method"] == method && (params.is_null() || note["params"] == *params)
        });
        if let Some(at) = at {
            client.notes.remove(at);
            return;
        }
        let next = client.receive();
        client.notes.push(next);
    }
}

#[test]
fn a_client_is_notified_of_changes_and_sees_them() {
    let mut client = client(folder(FILE));
    let uri = json!({"uri": "article:///concepts/eras"});
    client.ask("resources/subscribe", uri.clone());
    write(client.folder(), "content/concepts/eras.md", &ERAS.replace("hands", "paws"));
    // If indexing took long, all articles are announced as updated, maybe just now.
    loop {
        wait_for(&mut client, "notifications/resources/updated", &uri);
        let read = client.ask("resources/read", uri.clone());
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        if text.contains("shake paws") {
            break;
        }
    }

    write(client.folder(), "content/practices/new.md", "# New\n");
    wait_for(&mut client, "notifications/resources/list_changed", &Value::Null);
    wait_for(&mut client, "notifications/tools/list_changed", &Value::Null);
    let list = client.call("list_articles", json!({"category": "practices"}));
    assert_eq!(list["structuredContent"]["articles"][0]["id"], "practices/new");

    std::fs::remove_file(client.folder().join("content/concepts/eras.md")).unwrap();
    wait_for(&mut client, "notifications/resources/updated", &uri);
    assert_eq!(client.ask("resources/read", uri)["error"]["code"], -32002);
}

#[test]
fn statuses_names_and_errors_are_configurable() {
    let file = "[[articles]]\npath = \"content\"\nname = \"wiki\"\nstatuses = [\"draft\"]\nwatch = \
                false\ncache = \"none\"\nnot_found = -32602\nstructured = true\n";
    let mut client = client_with(folder(file), "wiki_list_articles");
    let list = client.call("wiki_list_articles", json!({}));
    assert!(list["structuredContent"].to_string().contains("article://wiki/patterns/hidden"));
    // Articles without a status are served; `Live` is not among the allowed ones.
    assert!(!list["structuredContent"].to_string().contains("concepts/eras"));
    let asked = json!({"name": "wiki_get_article", "arguments": {"slug": "eras"}});
    let answer = client.ask("tools/call", asked);
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"], json!({"slug": "eras"}));
}

#[test]
fn a_folder_without_a_configuration_is_served_under_its_name() {
    let folder = folder(FILE);
    assert_eq!(
        seen(&sabir(folder.path(), &["check", "content"])),
        "exit 0\nstderr:\narticles content: 4 articles, 0 hidden\ntools: list_articles, get_article, \
         search_articles\nresources: article:///concepts/eras, article:///concepts/pages, \
         article:///patterns/hidden, article:///patterns/pages\n`content` offers 3 tools, 0 prompts and 5 \
         resources"
    );
    // With a configuration, the name comes from there.
    let told = seen(&sabir(folder.path(), &["check", "."]));
    assert!(told.ends_with("\n`sabir` offers 3 tools, 0 prompts and 4 resources"), "{told}");
    let output = command(folder.path(), &["serve", "content", "--stdio"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(seen(&output), "exit 0");
}

#[test]
fn a_folder_of_markdown_is_served_without_a_path() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), "docs/a.md", "# A\n");
    let told = seen(&sabir(folder.path(), &["check"]));
    assert!(told.contains("resources: article:///docs/a\n"), "{told}");
    let deep = TempDir::new().unwrap();
    write(deep.path(), "en/docs/guide/a.md", "# A\n");
    let told = seen(&sabir(deep.path(), &["check"]));
    assert!(told.contains("resources: article:///en/docs/guide/a\n"), "{told}");
    let empty = TempDir::new().unwrap();
    write(empty.path(), ".hidden/a.md", "# A\n");
    let told = seen(&sabir(empty.path(), &["check"]));
    assert!(!told.contains("list_articles"), "{told}");
}

#[test]
fn check_reports_the_problems_of_articles() {
    let folder = folder(FILE);
    write(
        folder.path(),
        "content/concepts/broken.md",
        "---\ntitle: \"open\nlastUpdated: soon\n---\n# B\n",
    );
    write(
        folder.path(),
        "content/concepts/late.md",
        "---\ntitle: L\nlastUpdated: soon\n---\n# L\n",
    );
    let told = seen(&sabir(folder.path(), &["check"]));
    assert!(told.starts_with("exit 0\nstderr:\nwarning: content/concepts/broken.md:"), "{told}");
    assert!(
        told.contains(
            "\nwarning: content/concepts/late.md:3: invalid date in `lastUpdated`: soon\n"
        ),
        "{told}"
    );
    assert!(told.ends_with("`sabir` offers 3 tools, 0 prompts and 6 resources"), "{told}");
}

#[test]
fn mistakes_in_the_file_are_reported_with_their_places() {
    for (file, expected) in [
        ("[[articles]]\npath = \"nope\"\n", "hint: paths are relative to the folder of this file"),
        (
            "[[articles]]\nabout = \"x\"\n",
            "error: [[articles]]: `path` is missing\n  --> sabir.toml:1",
        ),
        (
            "[[articles]]\npath = \"content\"\nnot_found = -1\n",
            "error: invalid value -1 of `not_found` (expected \"result\" or -32602)\n  --> sabir.toml:3",
        ),
        (
            "[[articles]]\npath = \"content\"\n[[articles]]\npath = \"content\"\n",
            "error: there is a tool `list_articles` already (from articles content)\n  --> sabir.toml:4\n  hint: give one \
             of \
             the folders a `name`",
        ),
    ] {
        let folder = folder(file);
        let told = seen(&sabir(folder.path(), &["check"]));
        assert!(told.starts_with("exit 3\nstderr:\nerror: "), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn the_handbook_has_no_problems() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let told = seen(&sabir(&examples, &["check", "handbook"]));
    assert!(told.ends_with("\n`handbook` offers 3 tools, 0 prompts and 28 resources"), "{told}");
    assert!(!told.contains("warning"), "{told}");
}

#[test]
fn several_folders_are_served_by_their_titles() {
    let place = TempDir::new().unwrap();
    write(place.path(), "rust/src/README.md", "# The Rust Book\n\nA book.\n");
    write(place.path(), "rust/src/ownership.md", "# Ownership\n\nBorrow it.\n");
    write(place.path(), "notes/todo.md", "# To do\n\nBorrow a ladder.\n");
    let output = sabir(place.path(), &["check", "rust/src", "notes"]);
    let expected = "exit 0\nstderr:\narticles rust/src: 2 articles, 0 hidden\n\
        articles notes: 1 article, 0 hidden\n\
        tools: the_rust_book_list_articles, the_rust_book_get_article, \
        the_rust_book_search_articles, notes_list_articles, notes_get_article, notes_search_articles\n\
        resources: article://the_rust_book/README, article://the_rust_book/ownership, \
        article://notes/todo\n\
        `the_rust_book-notes` offers 6 tools, 0 prompts and 5 resources";
    assert_eq!(seen(&output), expected);
    // The same folder twice, and a folder with its own configuration.
    let output = sabir(place.path(), &["check", "notes", "./notes"]);
    assert!(seen(&output).contains("notes_2_get_article"), "{}", seen(&output));
    write(place.path(), "rust/src/sabir.toml", "");
    let output = sabir(place.path(), &["check", "rust/src", "notes", "notes/todo.md", "nowhere"]);
    let seen_all = seen(&output);
    assert!(seen_all.starts_with("exit 3"), "{seen_all}");
    for mistake in [
        "one of several folders has a configuration (expected folders of articles)\n  --> \
         rust/src/sabir.toml",
        "not a folder (expected folders of articles, or one file)\n  --> notes/todo.md",
        "not a folder (expected folders of articles, or one file)\n  --> nowhere",
    ] {
        assert!(seen_all.contains(mistake), "{seen_all}");
    }
    let output = sabir(place.path(), &["check", "--no-config", "rust/src", "notes"]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
}

#[test]
fn instructions_say_what_is_there_and_how_to_find_it() {
    let mut client = Client::start_in(folder(FILE));
    let told = client.initialize()["instructions"].as_str().unwrap().to_owned();
    assert!(told.starts_with("Articles about protocols.\n"), "{told}");
    for expected in ["Categories: concepts, patterns", "`search_articles`", "`get_article`"] {
        assert!(told.contains(expected), "{told}");
    }
    let own = format!("[server]\ninstructions = \"Ask me.\"\n{FILE}");
    let mut client = Client::start_in(folder(&own));
    assert_eq!(client.initialize()["instructions"], "Ask me.");
    let none = format!("[server]\ninstructions = \"\"\n{FILE}");
    let mut client = Client::start_in(folder(&none));
    assert_eq!(client.initialize().get("instructions"), None);
}

#[test]
fn the_text_of_pdf_files_is_read_by_a_program_with_limits() {
    let home = TempDir::new().unwrap();
    write(home.path(), "papers/scan.pdf", "%PDF-1.4");
    let check = |path: &str| {
        let output = command(home.path(), &["check", "papers"]).env("PATH", path).output().unwrap();
        seen(&output)
    };
    let missing = check("/nonexistent");
    let reason = "papers: 1 PDF file is not served: `pdftotext` is not installed";
    assert!(missing.contains(reason), "{missing}");
    assert!(missing.contains("0 articles, 1 hidden (1 by missing `pdftotext`)"), "{missing}");

    // A program in its place, which says its limit and its input.
    write(home.path(), "script", "#!/bin/sh\necho \"limit $(ulimit -v)\"\nprintf '\\f'\ncat\n");
    std::fs::create_dir(home.path().join("bin")).unwrap();
    let mut install = std::process::Command::new("install");
    let install = install.args(["-m755", "script", "bin/pdftotext"]).current_dir(home.path());
    assert!(install.status().unwrap().success());
    let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
    let found = check(&path);
    assert!(found.contains("articles papers: 1 article, 0 hidden"), "{found}");
    let read = |section: &str| {
        let section = format!("section={section}");
        let args = ["call", "papers", "get_article", "slug=scan", &section];
        seen(&command(home.path(), &args).env("PATH", &path).output().unwrap())
    };
    let limit = read("page-1");
    assert!(limit.contains("limit 1048576"), "{limit}");
    let text = read("page-2");
    assert!(text.contains("%PDF-1.4"), "{text}");
}

/// Runs git with a name and an address.
fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = std::process::Command::new("git");
    let who = [("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.org")];
    let output = git.current_dir(folder).args(args).envs(who).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn changes_are_committed_where_the_folder_is_a_repository() {
    if std::process::Command::new("git").arg("--version").output().is_err() {
        // `./test` needs git anyway; `cargo test` alone must not.
        return;
    }
    let file = "[[articles]]\npath = \"content\"\nwrite = true\ncommit = true\nstructured = true\n";
    let folder = folder(file);
    let path = folder.path().to_owned();
    let check = seen(&sabir(&path, &["check"]));
    assert!(check.contains("content: the folder is in no git repository"), "{check}");

    git(&path, &["init", "-q"]);
    git(&path, &["config", "user.name", "Sabir"]);
    git(&path, &["config", "user.email", "sabir@example.org"]);
    git(&path, &["add", "content/concepts"]);
    git(&path, &["commit", "-q", "-m", "first", "--author", "A <a@example.org>"]);
    write(&path, "content/patterns/pages.md", "# Paging\n\nChanged by hand.\n");
    let mut client = client(folder);
    let written = client.call("write_article", json!({"slug": "ideas/new", "content": "# New"}));
    let written = &written["structuredContent"];
    assert_eq!(
        written["commit"].as_str().unwrap(),
        git(&path, &["rev-parse", "--short", "HEAD"]).trim()
    );
    let shown = |what: &str| git(&path, &["log", "-1", "--name-status", "--no-renames", what]);
    assert!(
        shown("--format=%s").contains("Write ideas/new\n\nA\tcontent/ideas/new.md"),
        "{written}"
    );

    let moved = client.call("move_article", json!({"slug": "eras", "to": "ideas/eras"}));
    assert_eq!(moved["structuredContent"]["id"], "ideas/eras");
    let log = shown("--format=%s");
    assert!(log.starts_with("Move concepts/eras.md to ideas/eras.md\n"), "{log}");
    assert!(
        log.contains("D\tcontent/concepts/eras.md") && log.contains("A\tcontent/ideas/eras.md")
    );
    // One that was never committed, and is moved.
    let moved = client.call("move_article", json!({"slug": "patterns/pages", "to": "ideas/p*ges"}));
    assert!(moved["structuredContent"]["commit"].is_string(), "{moved}");
    assert_eq!(git(&path, &["status", "--short", "content/ideas"]), "");

    // A commit that fails does not undo the change.
    std::fs::create_dir_all(path.join(".git/hooks")).unwrap();
    write(&path, "hook", "#!/bin/sh\necho 'not today' >&2\nexit 1\n");
    let mut install = std::process::Command::new("install");
    assert!(
        install
            .args(["-m755", "hook", ".git/hooks/pre-commit"])
            .current_dir(&path)
            .status()
            .unwrap()
            .success()
    );
    let kept = client.call("append_to_article", json!({"slug": "ideas/new", "content": "More."}));
    assert_eq!(kept["structuredContent"]["notCommitted"], "git: not today", "{kept}");
    let text = std::fs::read_to_string(path.join("content/ideas/new.md")).unwrap();
    assert_eq!(text, "# New\nMore.\n");
}

#[test]
fn mistakes_in_the_settings_of_writing_and_language_are_named() {
    for (line, mistake) in [
        ("commit = true", "`commit = true` commits what the tools write (expected `write = true`)"),
        ("language = \"klingon\"", "unknown language `klingon` (expected one of: en, ar, da,"),
    ] {
        let folder = folder(&format!("[[articles]]\npath = \"content\"\n{line}\n"));
        let checked = seen(&sabir(folder.path(), &["check"]));
        assert!(checked.starts_with("exit 3") && checked.contains(mistake), "{checked}");
    }
}
