use std::sync::Arc;

use sabir_wire::types::{Prompt, Resource, ResourceTemplate, Tool};
use sabir_wire::{ByteString, CallTool, Caller, Raw, Request, Revision};
use serde_json::Value;

use super::MAX_VIEWS;
use crate::{Access, AddedSource, Catalog, List, Offer, Registry, Source};

/// Offers one of each kind, and a second tool, whose names begin alike.
struct FakeSource(&'static str);

impl Source for FakeSource {
    fn offer(&self) -> Offer {
        let tool = |name: String| Tool::new(name, "d", Raw::parse(r#"{"type":"object"}"#).unwrap());
        let name = self.0;
        Offer {
            tools: vec![tool(name.to_owned()), tool(format!("{name}_more"))],
            prompts: vec![Prompt { name: name.into(), ..Prompt::default() }],
            resources: vec![Resource { uri: format!("{name}://x"), ..Resource::default() }],
            templates: vec![ResourceTemplate {
                uri_template: format!("{name}://all/{{id}}"),
                ..ResourceTemplate::default()
            }],
            tool_aliases: vec![(format!("{name}_alias"), name.to_owned())],
            unlisted: vec![format!("{name}-hidden://")],
            ..Offer::default()
        }
    }
}

fn access(scopes: &[&str], tools: &[(&str, &[&str])]) -> Access {
    let boxed = |scopes: &[&str]| scopes.iter().map(|scope| (*scope).into()).collect();
    let tools = tools.iter().map(|(name, scopes)| ((*name).to_owned(), boxed(scopes)));
    Access { scopes: boxed(scopes), tools: tools.collect() }
}

/// A source for all callers, and one that needs `a`, and also `b` and `c` for one of its tools.
fn catalog() -> Arc<Catalog> {
    let registry = Registry::new(Raw::empty_object(), 100);
    let added = |name, access| AddedSource { source: Arc::new(FakeSource(name)), access };
    let sources = vec![
        added("free", Access::default()),
        added("safe", access(&["a"], &[("safe_more", &["c", "b", "a"])])),
    ];
    registry.add_all(sources).unwrap();
    registry.snapshot()
}

fn caller(scopes: &[&str]) -> Caller {
    Caller::new("i", "ann").with_scopes(scopes.iter().copied())
}

fn names(catalog: &Catalog, list: List) -> Vec<String> {
    let page = catalog.page(list, None, Revision::NEWEST).unwrap();
    let page: Value = serde_json::from_slice(&page).unwrap();
    let (items, key) = match list {
        List::Tools => (&page["tools"], "name"),
        List::Prompts => (&page["prompts"], "name"),
        List::Resources => (&page["resources"], "uri"),
        List::Templates => (&page["resourceTemplates"], "uriTemplate"),
        List::Skills => (&page["skills"], "uri"),
    };
    assert_eq!(page["cacheScope"], "private");
    items.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

fn call(name: &str) -> Request {
    Request::CallTool(CallTool { name: ByteString::from(name), ..CallTool::default() })
}

#[test]
fn what_a_caller_may_not_use_is_not_listed() {
    let whole = catalog();
    let seen = whole.seen_by(&caller(&["b", "x"]));
    assert_eq!(names(&seen, List::Tools), ["free", "free_more"]);
    assert_eq!(names(&seen, List::Prompts), ["free"]);
    assert_eq!(names(&seen, List::Resources), ["free://x"]);
    assert_eq!(names(&seen, List::Templates), ["free://all/{id}"]);
    assert!(seen.tool("safe").is_none() && seen.tool("safe_alias").is_none());
    assert!(seen.tool("free_alias").is_some());
    for uri in ["safe://x", "safe://all/7", "safe-hidden://y"] {
        assert!(seen.resource(uri).is_none(), "{uri}");
        assert!(whole.resource(uri).is_some(), "{uri}");
    }
    let seen = whole.seen_by(&caller(&["a"]));
    assert_eq!(names(&seen, List::Tools), ["free", "free_more", "safe"]);
    assert_eq!(names(&seen, List::Prompts), ["free", "safe"]);
    let seen = whole.seen_by(&caller(&["c", "b", "a"]));
    assert_eq!(names(&seen, List::Tools), ["free", "free_more", "safe", "safe_more"]);
    assert!(Arc::ptr_eq(&seen, &whole) && Arc::ptr_eq(&whole, &whole.seen_by(&Caller::local())));
}

#[test]
fn all_that_is_needed_is_named_at_once_and_always_alike() {
    let whole = catalog();
    for _ in 0..100 {
        let missing = whole.missing_scopes(&call("safe_more"), &caller(&["b"])).unwrap();
        assert_eq!(missing, ["a".into(), "b".into(), "c".into()]);
    }
    assert_eq!(whole.missing_scopes(&call("safe_alias"), &caller(&[])).unwrap(), ["a".into()]);
    for (request, scopes) in [
        (call("safe_more"), &["a", "b", "c"][..]),
        (call("safe"), &["a"]),
        (call("free"), &[]),
        (call("unknown"), &[]),
        (Request::Ping, &[]),
    ] {
        assert_eq!(whole.missing_scopes(&request, &caller(scopes)), None, "{request:?}");
    }
    let subscribe = |uri: &str| Request::Subscribe(uri.into());
    assert!(whole.missing_scopes(&subscribe("safe://x"), &caller(&[])).is_some());
    assert!(whole.missing_scopes(&subscribe("free://x"), &caller(&[])).is_none());
    assert_eq!(whole.missing_scopes(&call("safe_more"), &Caller::local()), None);
}

#[test]
fn callers_with_the_same_scopes_share_a_view() {
    let whole = catalog();
    let ann = whole.seen_by(&caller(&["a", "x"]));
    let bob = whole.seen_by(&Caller::new("i", "bob").with_scopes(["y", "a"]));
    assert!(Arc::ptr_eq(&ann, &bob));
    assert!(!Arc::ptr_eq(&ann, &whole.seen_by(&caller(&[]))));
}

#[test]
fn views_are_bounded() {
    let registry = Registry::new(Raw::empty_object(), 100);
    let scopes: Vec<Box<str>> = (0..=MAX_VIEWS).map(|nth| format!("s{nth}").into()).collect();
    let access = Access { scopes: scopes.clone(), ..Access::default() };
    registry.add_all(vec![AddedSource { source: Arc::new(FakeSource("s")), access }]).unwrap();
    let whole = registry.snapshot();
    for (nth, scope) in scopes.iter().enumerate() {
        whole.seen_by(&caller(&[scope]));
        let kept = whole.views.made.lock().unwrap().len();
        assert_eq!(kept, if nth < MAX_VIEWS { nth + 1 } else { 1 });
    }
}

#[test]
fn scopes_of_a_tool_that_does_not_exist_are_reported() {
    let registry = Registry::new(Raw::empty_object(), 100);
    let access = access(&[], &[("typo", &["a"])]);
    registry.add_all(vec![AddedSource { source: Arc::new(FakeSource("s")), access }]).unwrap();
    let status = registry.status();
    assert_eq!(status[0].problems, ["scopes of the tool `typo`: there is no such tool"]);
}
