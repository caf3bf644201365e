//! A store as a source: its tools, resources, completions and announcements.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;
use std::sync::mpsc;

use sabir_articles::{Settings, Store};
use sabir_registry::{
    Announcement, Catalog, CompleteCall, Outcome, Registry, ResourceCall, ToolCall,
};
use sabir_sources::articles::{Appearance, ArticleSource, NotFound};
use sabir_testkit::local_context;
use sabir_wire::types::{ContentKind, Reference, ResourceReply, ToolReply, Topic};
use sabir_wire::{Problem, Raw};
use serde_json::{Value, json};

use crate::support::{Home, LONG, ready};

const ERAS: &str = "---\ntitle: Two eras\ndescription: Sessions, and none\ntags: [protocol]\nstatus: \
                    Live\nlastUpdated: 2025-05-01\n---\n# Two eras\n\nOld clients shake \
                    hands.\n\n## Bridges\n\nA server may speak both.\n";
const DRAFT: &str = "---\ntitle: Secret bridges\nstatus: Draft\n---\n# Secret\n";

fn home() -> Home {
    Home::new(&[
        ("concepts/eras.md", ERAS),
        ("concepts/pages.md", "---\nlastUpdated: 2025-04-01\n---\n# Cursors\n\nOne page.\n"),
        ("patterns/pages.md", "---\nlastUpdated: 2025-03-01\n---\n# Paging\n\nAnother page.\n"),
        ("patterns/secret.md", DRAFT),
    ])
}

/// A registry that serves a store.
struct Shop {
    registry: Arc<Registry>,
}

impl Shop {
    fn of(home: &Home) -> Self {
        Self::with(home.store(), Appearance { structured: true, ..Appearance::default() })
    }

    fn with(store: Store, appearance: Appearance) -> Self {
        let server = Raw::of(&json!({"name": "t", "version": "1"})).unwrap();
        let registry = Registry::new(server, 100);
        registry.add(Arc::new(ArticleSource::new(Arc::new(store), appearance))).unwrap();
        // Changes are announced from now on; that the folder was read is not waited for.
        drop(registry.start());
        Self { registry }
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.registry.snapshot()
    }

    fn tool_names(&self) -> Vec<String> {
        self.catalog().tools().iter().map(|tool| tool.name.clone()).collect()
    }

    fn uris(&self) -> Vec<String> {
        self.catalog().resources().iter().map(|resource| resource.uri.clone()).collect()
    }

    fn templates(&self) -> Vec<String> {
        self.catalog().templates().iter().map(|template| template.uri_template.clone()).collect()
    }

    /// Calls a tool as the engine does, and checks the schemas.
    async fn call(&self, name: &str, arguments: Value) -> Result<ToolReply, Problem> {
        let entry = self.catalog().tool(name).unwrap().clone();
        let arguments = Raw::of(&arguments).unwrap();
        entry.input.check(&arguments).map_err(|reason| Problem::Arguments(reason.into()))?;
        let call = ToolCall { name: name.into(), arguments, context: local_context() };
        let Outcome::Done(reply) = entry.source().call_tool(call).await? else {
            panic!("articles ask nothing");
        };
        entry.output.as_ref().unwrap().check(reply.structured.as_ref().unwrap()).unwrap();
        Ok(reply)
    }

    async fn failure(&self, name: &str, arguments: Value) -> String {
        match self.call(name, arguments).await {
            Err(Problem::ToolFailed(reason)) => reason.into(),
            other => panic!("not a failed tool: {other:?}"),
        }
    }

    async fn read(&self, uri: &str) -> Result<ResourceReply, Problem> {
        let found = self.catalog().resource(uri).unwrap_or_else(|| panic!("{uri} is of no family"));
        let variables = found.variables.iter().cloned().collect();
        let template = found.template.clone();
        let call = ResourceCall { uri: uri.into(), template, variables, context: local_context() };
        match found.source().read_resource(call).await? {
            Outcome::Done(reply) => Ok(reply),
            other => panic!("articles ask nothing: {other:?}"),
        }
    }

    async fn complete(
        &self,
        template: &str,
        argument: &str,
        value: &str,
        given: &[(&str, &str)],
    ) -> Vec<String> {
        let reference = Reference::Resource { uri: template.into() };
        let catalog = self.catalog();
        let (source, known) = catalog.completer(&reference, argument).unwrap();
        assert!(known, "{template} has no {argument}");
        let given = given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let (argument, value) = (argument.into(), value.into());
        let call = CompleteCall { reference, argument, value, given, context: local_context() };
        match source.complete(call).await.unwrap() {
            Outcome::Done(completion) => completion.values,
            other => panic!("articles ask nothing: {other:?}"),
        }
    }
}

fn text(reply: &ToolReply) -> &str {
    match &reply.content[0].kind {
        ContentKind::Text(text) => text,
        other => panic!("not text: {other:?}"),
    }
}

fn links(reply: &ToolReply) -> Vec<&str> {
    let links = reply.content[1..].iter().map(|content| match &content.kind {
        ContentKind::Link(resource) => resource.uri.as_str(),
        other => panic!("not a link: {other:?}"),
    });
    links.collect()
}

fn structured(reply: &ToolReply) -> Value {
    reply.structured.as_ref().unwrap().read().unwrap()
}

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

impl Shop {
    /// The topics that are announced from now on.
    fn announced(&self) -> mpsc::Receiver<Topic> {
        let (tell, told) = mpsc::channel();
        self.registry.on_change(move |change| {
            if let Announcement::Changed(topic) = change {
                drop(tell.send(topic));
            }
        });
        told
    }
}

/// Waits until all of these topics have been announced. Returns the others announced until then.
fn wait_for(told: &mpsc::Receiver<Topic>, mut wanted: Vec<Topic>) -> Vec<Topic> {
    let mut others = Vec::new();
    while !wanted.is_empty() {
        let topic = told.recv_timeout(LONG).unwrap_or_else(|_| panic!("not told: {wanted:?}"));
        match wanted.iter().position(|one| *one == topic) {
            Some(at) => drop(wanted.remove(at)),
            None => others.push(topic),
        }
    }
    others
}

#[test]
fn changes_are_announced_and_offered() {
    let home = home();
    let shop = Shop::of(&home);
    let told = shop.announced();
    let resource = |id: &str| Topic::Resource(format!("article:///{id}").into());

    home.write("concepts/eras.md", &ERAS.replace("Two eras", "Three eras"));
    wait_for(&told, vec![Topic::Resources, resource("concepts/eras")]);
    assert_eq!(shop.catalog().resources()[0].title.as_deref(), Some("Three eras"));

    home.write("practices/new.md", "# New\n");
    wait_for(&told, vec![Topic::Tools, Topic::Resources, resource("practices/new")]);
    let input: Value = shop.catalog().tools()[0].input_schema.read().unwrap();
    let categories = json!(["concepts", "patterns", "practices"]);
    assert_eq!(input["properties"]["category"]["enum"], categories);
    assert_eq!(shop.uris().len(), 4);

    std::fs::remove_file(home.path("practices/new.md")).unwrap();
    wait_for(&told, vec![Topic::Tools, Topic::Resources, resource("practices/new")]);
    assert_eq!(shop.uris().len(), 3);

    // An article that becomes a draft is removed.
    home.write("patterns/pages.md", DRAFT);
    wait_for(&told, vec![Topic::Resources, resource("patterns/pages")]);
    assert_eq!(shop.uris(), ["article:///concepts/eras", "article:///concepts/pages"]);
}

#[test]
fn unchanged_articles_are_not_announced() {
    let home = home();
    let shop = Shop::of(&home);
    let told = shop.announced();
    home.write("concepts/eras.md", &ERAS.replace("hands", "paws"));
    let eras = Topic::Resource("article:///concepts/eras".into());
    assert_eq!(wait_for(&told, vec![Topic::Resources, eras]), []);
}

#[test]
fn an_offer_made_during_indexing_is_updated_afterwards() {
    let home = home();
    let store = Store::open(Settings::new(home.folder()), |_| {}).unwrap();
    let shop = Shop::with(store, Appearance::default());
    let told = shop.announced();
    while shop.uris().len() < 3 {
        told.recv_timeout(LONG).expect("the list was not put right");
    }
}

#[test]
fn ten_thousand_articles_are_listed_and_one_more_is_not() {
    let home = Home::new(&[]);
    std::fs::create_dir(home.path("c")).unwrap();
    for number in 0..10_000 {
        std::fs::write(home.path(&format!("c/{number}.md")), "# One\n").unwrap();
    }
    let shop = Shop::with(ready(home.settings()), Appearance::default());
    assert_eq!(shop.uris().len(), 10_000);
    let told = shop.announced();
    home.write("c/more.md", "# More\n");
    let more = Topic::Resource("article:///c/more".into());
    wait_for(&told, vec![Topic::Resources, more.clone()]);
    assert_eq!(shop.uris().len(), 0);
    assert_eq!(shop.templates(), ["article:///{category}/{slug}"]);
    std::fs::remove_file(home.path("c/more.md")).unwrap();
    wait_for(&told, vec![Topic::Resources, more]);
    assert_eq!(shop.uris().len(), 10_000);
}

/// A shop as it is by default: text only.
fn plain(home: &Home) -> Shop {
    Shop::with(home.store(), Appearance::default())
}

async fn said(shop: &Shop, name: &str, arguments: Value) -> String {
    let entry = shop.catalog().tool(name).unwrap().clone();
    let arguments = Raw::of(&arguments).unwrap();
    entry.input.check(&arguments).unwrap();
    let call = ToolCall { name: name.into(), arguments, context: local_context() };
    match entry.source().call_tool(call).await {
        Ok(Outcome::Done(reply)) => {
            assert!(reply.structured.is_none() && reply.content.len() == 1, "{reply:?}");
            text(&reply).to_owned()
        }
        Err(Problem::ToolFailed(reason)) => format!("failed: {reason}"),
        other => panic!("{other:?}"),
    }
}

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
    assert!(none.starts_with("No article matches"), "{none}");
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
async fn an_image_of_the_folder_is_a_resource() {
    let home =
        Home::new(&[("c/a.md", "![x](x.png)\n"), ("c/x.png", "not really"), ("c/x.exe", "no")]);
    let shop = plain(&home);
    assert!(shop.read("article:///c/x.png").await.is_ok());
    assert!(shop.read("article:///c/x.exe").await.is_err());
}
