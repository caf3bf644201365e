use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use sabir_wire::types::{Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool};

use super::*;
use crate::source::Offer;

/// A source whose offer can be changed.
#[derive(Default)]
struct FakeSource {
    offer: Mutex<Offer>,
    handle: OnceLock<SourceHandle>,
}

impl FakeSource {
    fn new(offer: Offer) -> Arc<Self> {
        Arc::new(Self { offer: Mutex::new(offer), handle: OnceLock::new() })
    }

    fn become_(&self, offer: Offer) -> Result<(), BadOffer> {
        *self.offer.lock().unwrap() = offer;
        self.handle.get().unwrap().changed()
    }
}

impl Source for FakeSource {
    fn offer(&self) -> Offer {
        self.offer.lock().unwrap().clone()
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        let _ = self.handle.set(handle);
        Box::pin(async { Ok(()) })
    }
}

fn tools(names: &[&str]) -> Offer {
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let tool = |name: &&str| Tool::new(*name, "does", schema.clone());
    Offer { tools: names.iter().map(tool).collect(), ..Offer::default() }
}

fn registry() -> (Arc<Registry>, Arc<Mutex<Vec<Topic>>>) {
    let registry = Registry::new(Raw::empty_object(), 100);
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    registry.on_change(move |change| match change {
        Announcement::Changed(topic) => ear.lock().unwrap().push(topic),
        Announcement::Notification(_) | Announcement::Everything => {}
    });
    (registry, told)
}

/// Adds a source and starts it.
fn add(registry: &Arc<Registry>, source: Arc<dyn Source>) -> Result<SourceId, BadOffer> {
    let id = registry.add(source)?;
    for mut starting in registry.start() {
        let polled = starting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(_)));
    }
    Ok(id)
}

fn names(registry: &Registry) -> Vec<String> {
    registry.snapshot().tools().iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn an_empty_registry_declares_tools_and_nothing_else() {
    let (registry, _) = registry();
    let only_tools = ServerCapabilities { tools: true, ..Default::default() };
    assert_eq!(*registry.snapshot().capabilities(), only_tools);
    registry.allow_changes();
    let changing = only_tools.clone().with_list_changed(true);
    assert_eq!(*registry.snapshot().capabilities(), changing);
}

#[test]
fn capabilities_are_those_of_the_offers() {
    let (registry, _) = registry();
    let prompt = Prompt { name: "p".into(), ..Prompt::default() };
    let offer = Offer { prompts: vec![prompt], completes: true, logs: true, ..Offer::default() };
    let id = add(&registry, FakeSource::new(offer)).unwrap();
    let declared = registry.snapshot().capabilities().clone();
    assert!(declared.prompts && declared.completions && declared.logging);
    assert!(!declared.tools && !declared.resources && !declared.subscribe);
    assert!(registry.remove(id).is_some() && registry.remove(id).is_none());
    assert!(!registry.snapshot().capabilities().prompts);
}

#[test]
fn a_source_whose_offer_is_not_known_may_offer_anything() {
    let (registry, _) = registry();
    let source = FakeSource::new(Offer { is_unknown: true, ..Offer::default() });
    add(&registry, source.clone()).unwrap();
    let declared = registry.snapshot().capabilities().clone();
    let all = ServerCapabilities {
        tools: true,
        prompts: true,
        resources: true,
        completions: true,
        logging: true,
        subscribe: true,
        ..Default::default()
    };
    assert_eq!(declared, all.with_list_changed(true));
    source.become_(tools(&["a"])).unwrap();
    assert!(!registry.snapshot().capabilities().prompts);
}

#[test]
fn a_call_keeps_the_catalog_it_started_with() {
    let (registry, told) = registry();
    add(&registry, FakeSource::new(tools(&["a"]))).unwrap();
    let before = registry.snapshot();
    let id = registry.provider_of_tool("a").unwrap();
    assert!(registry.remove(id).is_some());
    assert!(before.tool("a").is_some() && registry.snapshot().tool("a").is_none());
    assert_eq!(*told.lock().unwrap(), [Topic::Tools, Topic::Tools]);
}

#[test]
fn a_taken_name_is_refused_and_changes_nothing() {
    let (registry, told) = registry();
    add(&registry, FakeSource::new(tools(&["a"]))).unwrap();
    let error = add(&registry, FakeSource::new(tools(&["b", "a"]))).unwrap_err();
    assert_eq!(error.to_string(), "there is a tool `a` already (from tool a)");
    assert_eq!(names(&registry), ["a"]);
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[test]
fn sources_that_come_together_are_all_taken_or_none() {
    let (registry, told) = registry();
    let sources = |names: &[&[&str]]| {
        names
            .iter()
            .map(|names| FakeSource::new(tools(names)) as Arc<dyn Source>)
            .collect::<Vec<_>>()
    };
    let ids = registry.add_all(sources(&[&["b"], &["a", "c"]])).unwrap();
    assert_eq!((names(&registry), ids.len()), (vec!["b".into(), "a".into(), "c".into()], 2));
    assert_eq!(told.lock().unwrap().len(), 1, "clients are told once");
    for (bad, nth) in [(&[&["x"][..], &["y", "a"]][..], 1), (&[&["x"], &["y"], &["x"]], 2)] {
        assert_eq!(registry.add_all(sources(bad)).unwrap_err().0, nth);
    }
    assert_eq!(registry.add_all(sources(&[&["not good"], &["x"]])).unwrap_err().0, 0);
    assert_eq!(names(&registry), ["b", "a", "c"]);
    assert!(registry.remove(ids[1]).is_some() && registry.remove(ids[0]).is_some());
    assert!(names(&registry).is_empty());
}

#[test]
fn a_name_that_others_lost_to_each_other_is_no_mistake_of_a_new_source() {
    let (registry, _) = registry();
    let source = FakeSource::new(tools(&["b"]));
    add(&registry, FakeSource::new(tools(&["a"]))).unwrap();
    add(&registry, source.clone()).unwrap();
    source.become_(Offer { tolerant: true, ..tools(&["a", "b"]) }).unwrap();
    add(&registry, FakeSource::new(tools(&["c"]))).unwrap();
    assert_eq!(names(&registry), ["a", "b", "c"]);
}

#[test]
fn a_collision_on_refresh_is_reported() {
    let (registry, _) = registry();
    let source = FakeSource::new(tools(&["b"]));
    add(&registry, FakeSource::new(tools(&["a"]))).unwrap();
    add(&registry, source.clone()).unwrap();
    let error = source.become_(tools(&["a", "c"])).unwrap_err();
    assert_eq!(error.to_string(), "there is a tool `a` already (from tool a)");
    assert_eq!(names(&registry), ["a", "b"], "a strict offer stays as it was");
    source.become_(Offer { tolerant: true, ..tools(&["a", "c"]) }).unwrap();
    assert_eq!(names(&registry), ["a", "c"]);
    let status = registry.status();
    assert_eq!(status[1].problems, ["left out: there is a tool `a` already (from tool a)"]);
    assert_eq!((&*status[0].name, &status[0].state), ("tool a", &SourceState::Ready));
}

#[test]
fn a_bad_tool_of_a_tolerant_offer_is_left_out_and_reported() {
    let (registry, _) = registry();
    let offer = Offer { tolerant: true, ..tools(&["a", "not good", "b"]) };
    add(&registry, FakeSource::new(offer)).unwrap();
    assert_eq!(names(&registry), ["a", "b"]);
    let problems = registry.status().remove(0).problems;
    assert!(problems[0].starts_with("left out: tool `not good`: "), "{problems:?}");
}

#[test]
fn an_offer_may_be_asked_for_while_another_source_changes() {
    /// Its offer changes another source of the same registry.
    struct Meddler(Arc<FakeSource>);
    impl Source for Meddler {
        fn offer(&self) -> Offer {
            if self.0.handle.get().is_some() {
                self.0.become_(tools(&["changed"])).unwrap();
            }
            tools(&["meddler"])
        }
    }
    let (registry, _) = registry();
    let source = FakeSource::new(tools(&["a"]));
    add(&registry, source.clone()).unwrap();
    add(&registry, Arc::new(Meddler(source))).unwrap();
    assert_eq!(names(&registry), ["changed", "meddler"]);
}

/// Offers resources, and writes down which of them are watched.
#[derive(Default)]
struct WatchedSource {
    told: Mutex<Vec<String>>,
    uris: Mutex<Vec<&'static str>>,
    handle: OnceLock<SourceHandle>,
}

impl WatchedSource {
    fn new(uris: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { uris: Mutex::new(uris.into()), ..Self::default() })
    }

    fn become_(&self, uris: &[&'static str]) {
        *self.uris.lock().unwrap() = uris.into();
        self.handle.get().unwrap().changed().unwrap();
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

impl Source for WatchedSource {
    fn offer(&self) -> Offer {
        let resource = |uri: &&'static str| Resource {
            uri: (*uri).into(),
            name: (*uri).into(),
            ..Resource::default()
        };
        let resources = self.uris.lock().unwrap().iter().map(resource).collect();
        Offer { resources, updates: true, ..Offer::default() }
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        let _ = self.handle.set(handle);
        Box::pin(async { Ok(()) })
    }

    fn watch(&self, uri: &str) {
        self.told.lock().unwrap().push(format!("watch {uri}"));
    }

    fn unwatch(&self, uri: &str) {
        self.told.lock().unwrap().push(format!("unwatch {uri}"));
    }
}

#[test]
fn watchers_of_a_resource_follow_it_to_the_source_that_provides_it() {
    let (registry, _) = registry();
    let old = WatchedSource::new(&["a:b"]);
    let id = add(&registry, old.clone()).unwrap();
    registry.watch("a:b");
    registry.watch("a:later");
    assert_eq!(old.told(), ["watch a:b"]);

    let new = WatchedSource::new(&["a:b"]);
    registry.exchange(&[id], vec![new.clone() as Arc<dyn Source>]).unwrap();
    assert_eq!((old.told(), new.told()), (vec!["unwatch a:b".into()], vec!["watch a:b".into()]));

    let id = add(&registry, WatchedSource::new(&["a:other"])).unwrap();
    assert!(registry.remove(id).is_some());
    new.become_(&["a:later", "a:b"]);
    assert_eq!(new.told(), ["watch a:later"], "it was unknown until now");
    new.become_(&["a:later"]);
    assert_eq!(new.told(), ["unwatch a:b"]);
    registry.unwatch("a:b");
    assert_eq!(new.told(), Vec::<String>::new());
    registry.unwatch("a:later");
    assert_eq!(new.told(), ["unwatch a:later"]);
}

#[test]
fn a_source_learns_of_the_first_and_the_last_who_watch() {
    let (registry, _) = registry();
    let source = WatchedSource::new(&["a:b"]);
    add(&registry, source.clone()).unwrap();
    for _ in 0..2 {
        registry.watch("a:b");
    }
    registry.watch("unknown:");
    registry.unwatch("a:b");
    assert_eq!(source.told(), ["watch a:b"]);
    for _ in 0..2 {
        registry.unwatch("a:b");
    }
    registry.unwatch("unknown:");
    assert_eq!(source.told(), ["unwatch a:b"]);
}

#[test]
fn a_source_may_change_its_offer_and_a_bad_one_leaves_the_old() {
    let (registry, told) = registry();
    let source = FakeSource::new(tools(&["a", "b"]));
    add(&registry, source.clone()).unwrap();
    add(&registry, FakeSource::new(tools(&["z"]))).unwrap();
    source.become_(tools(&["b", "c"])).unwrap();
    assert_eq!(names(&registry), ["b", "c", "z"]);
    assert!(source.become_(tools(&["not good"])).is_err());
    assert_eq!(names(&registry), ["b", "c", "z"]);
    source.become_(tools(&["b", "c"])).unwrap();
    assert_eq!(told.lock().unwrap().len(), 3, "an unchanged offer is not announced");
    source.handle.get().unwrap().updated("a:b");
    assert_eq!(told.lock().unwrap().last(), Some(&Topic::Resource("a:b".into())));
}

#[test]
fn a_resource_is_found_by_itself_or_by_its_family() {
    let (registry, _) = registry();
    let listed = Resource { uri: "t://x/1".into(), name: "one".into(), ..Resource::default() };
    let family = ResourceTemplate {
        uri_template: "t://x/{id}".into(),
        name: "all".into(),
        ..ResourceTemplate::default()
    };
    let offer = Offer { resources: vec![listed], templates: vec![family], ..Offer::default() };
    add(&registry, FakeSource::new(offer)).unwrap();
    let catalog = registry.snapshot();
    assert!(catalog.resource("t://x/1").unwrap().template.is_none());
    assert_eq!(catalog.resource("t://x/2").unwrap().variables, [("id".to_owned(), "2".to_owned())]);
    assert!(catalog.resource("t://y/2").is_none());
}

#[test]
fn a_bad_schema_or_template_is_refused_by_name() {
    let (registry, _) = registry();
    let mut offer = tools(&["t"]);
    offer.tools[0].input_schema = Raw::parse(r#"{"type":"object","$schema":"x:y"}"#).unwrap();
    let error = add(&registry, FakeSource::new(offer)).unwrap_err().to_string();
    assert_eq!(
        error,
        "tool `t`, input schema: unsupported dialect `x:y` (expected 2020-12 or draft-07)"
    );
    let family = ResourceTemplate { uri_template: "t://{".into(), ..ResourceTemplate::default() };
    let offer = Offer { templates: vec![family], ..Offer::default() };
    assert!(matches!(add(&registry, FakeSource::new(offer)), Err(BadOffer::Template { .. })));
}

#[test]
fn a_tolerant_offer_that_collides_when_it_is_added_is_refused() {
    let (registry, _) = registry();
    add(&registry, FakeSource::new(tools(&["a"]))).unwrap();
    let error = registry.add(FakeSource::new(Offer { tolerant: true, ..tools(&["b", "a"]) }));
    assert_eq!(error.unwrap_err().to_string(), "there is a tool `a` already (from tool a)");
}

fn with_alias(names: &[&str], alias: (&str, &str)) -> Offer {
    let tool_aliases = vec![(alias.0.to_owned(), alias.1.to_owned())];
    Offer { tool_aliases, ..tools(names) }
}

#[test]
fn a_further_name_calls_a_tool_while_it_is_unambiguous() {
    let (registry, _) = registry();
    let called = |name: &str| {
        let catalog = registry.snapshot();
        catalog.tool(name).map(|entry| entry.tool.name.clone())
    };
    add(&registry, FakeSource::new(with_alias(&["a_read"], ("read", "a_read")))).unwrap();
    assert_eq!(called("read").as_deref(), Some("a_read"));
    assert_eq!(names(&registry), ["a_read"], "it is not listed");
    let second = add(&registry, FakeSource::new(with_alias(&["b_read"], ("read", "b_read"))));
    assert_eq!(called("read"), None, "two tools have it");
    registry.remove(second.unwrap());
    add(&registry, FakeSource::new(tools(&["read"]))).unwrap();
    assert_eq!(called("read").as_deref(), Some("read"), "a listed name goes before");
}

#[test]
fn the_longest_beginning_of_an_unlisted_uri_decides() {
    let (registry, _) = registry();
    let source = |unlisted: &[&str]| {
        let unlisted = unlisted.iter().map(|beginning| (*beginning).to_owned()).collect();
        FakeSource::new(Offer { unlisted, ..Offer::default() })
    };
    let (one, other) = (source(&["", "ui://one/"]), source(&["", "ui://other/"]));
    let (one, other) = (one as Arc<dyn Source>, other as Arc<dyn Source>);
    let found = |uri: &str| registry.snapshot().resource(uri).map(|found| found.source().clone());
    registry.add(one.clone()).unwrap();
    assert!(Arc::ptr_eq(&found("file:///x").unwrap(), &one));
    registry.add(other.clone()).unwrap();
    assert!(Arc::ptr_eq(&found("ui://one/x").unwrap(), &one));
    assert!(Arc::ptr_eq(&found("ui://other/x").unwrap(), &other));
    assert!(found("file:///x").is_none(), "both would read it");
}

#[test]
fn sources_are_exchanged_in_one_step_or_not_at_all() {
    let (registry, told) = registry();
    let first = add(&registry, FakeSource::new(tools(&["a", "b"]))).unwrap();
    let second = add(&registry, FakeSource::new(tools(&["c"]))).unwrap();
    let names = || {
        let catalog = registry.snapshot();
        catalog.tools().iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    told.lock().unwrap().clear();
    // The new source has a name of a source that stays.
    let new: Arc<dyn Source> = FakeSource::new(tools(&["a", "c"]));
    let Err((nth, bad)) = registry.exchange(&[first], vec![new.clone()]) else { panic!("taken") };
    assert_eq!((nth, bad.to_string().contains("`c`")), (0, true), "{bad}");
    assert_eq!(names(), ["a", "b", "c"]);
    assert!(told.lock().unwrap().is_empty());
    // The names of removed sources are free.
    let (ids, gone) = registry.exchange(&[first, second], vec![new]).unwrap();
    assert_eq!((ids.len(), gone.len()), (1, 2));
    assert_eq!(names(), ["a", "c"]);
    assert_eq!(*told.lock().unwrap(), [Topic::Tools]);
    assert!(registry.remove(first).is_none());
}

#[test]
fn the_instructions_of_sources_are_joined_up_to_a_limit() {
    let (registry, _) = registry();
    assert_eq!(registry.snapshot().instructions(), None);
    for n in 0..10 {
        let offer = Offer { instructions: Some(format!("use {n}")), ..tools(&[&format!("t{n}")]) };
        add(&registry, FakeSource::new(offer)).unwrap();
    }
    let catalog = registry.snapshot();
    let told: Vec<_> = catalog.instructions().unwrap().split("\n\n").collect();
    assert_eq!((told[0], told.len()), ("use 0", 8));
}

#[test]
fn a_tool_that_a_caller_does_not_see_is_explained() {
    let registry = Registry::new(Raw::empty_object(), 2);
    let access =
        Access { tools: [("secret".to_owned(), vec!["admin".into()])].into(), ..Access::default() };
    let offer = Offer {
        tool_aliases: vec![("read".into(), "f_read".into())],
        tolerant: true,
        ..tools(&["f_read", "secret", "third", "bad name"])
    };
    registry.add_all(vec![AddedSource { source: FakeSource::new(offer), access }]).unwrap();
    let told = |name: &str, caller: &sabir_wire::Caller| {
        let sight = registry.explain_tool(name, caller);
        (sight.is_listed, sight.reasons.join("; "))
    };
    let (ann, admin) = (sabir_wire::Caller::new("t", "ann"), ["admin"]);
    let admin = ann.clone().with_scopes(admin);
    let not_ready = "tool f_read is not ready yet";
    let offered = format!("tool f_read offers it; {not_ready}");
    assert_eq!(told("f_read", &ann), (true, offered));
    let (is_listed, reasons) = told("secret", &ann);
    assert!(!is_listed && reasons.contains("ann@t lacks the scopes `admin`"), "{reasons}");
    assert!(told("secret", &admin).0);
    assert!(told("third", &admin).1.contains("it is on page 2 of the list"));
    assert!(!told("third", &ann).1.contains("page"), "unseen tools do not count for pages");
    let (is_listed, reasons) = told("read", &ann);
    assert!(!is_listed && reasons.contains("it is listed as `f_read`"), "{reasons}");
    let (_, reasons) = told("bad name", &ann);
    assert!(reasons.starts_with("tool f_read: tool `bad name`: a name is made of"), "{reasons}");
    let (_, reasons) = told("f_rea", &ann);
    let expected = "no source offers a tool of that name; tool f_read is not ready yet; tools with \
                    similar names: `f_read`";
    assert_eq!(reasons, expected);
}
