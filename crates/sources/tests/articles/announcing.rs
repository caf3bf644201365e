//! Changes of the folder are announced to clients.

use std::sync::mpsc;

use sabir_articles::{Settings, Store};
use sabir_registry::Announcement;
use sabir_sources::articles::Appearance;
use sabir_wire::types::Topic;
use serde_json::{Value, json};

use crate::shop::{DRAFT, ERAS, Shop, home};
use crate::support::{Home, LONG, ready};

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
