use serde_json::json;

use super::*;

fn description(paths: Value) -> Description {
    let text = json!({ "openapi": "3.0.0", "paths": paths });
    Description::parse("https://x.test/api", text.to_string().as_bytes()).unwrap()
}

#[test]
fn only_reading_is_offered_unless_said_otherwise() {
    let description = description(json!({
        "/a": { "get": { "operationId": "a", "tags": ["x"] }, "post": { "operationId": "b" } },
        "/b/c": { "get": { "operationId": "c" }, "delete": { "operationId": "d", "tags": ["y"] } },
    }));
    let offered = |choice: &Choice| -> Vec<String> {
        let catalog = Catalog::new(&description, choice);
        assert_eq!(catalog.listed.len() + catalog.left_out.len(), 4);
        catalog.listed.into_iter().map(|listed| listed.name).collect()
    };
    assert_eq!(offered(&Choice::default()), ["a", "c"]);
    let all = Choice { methods: Method::ALL.to_vec(), ..Choice::default() };
    assert_eq!(offered(&all), ["a", "b", "c", "d"]);
    let tags = Filter { tags: vec!["x".into(), "y".into()], ..Filter::default() };
    assert_eq!(offered(&Choice { include: tags, ..all.clone() }), ["a", "d"]);
    let paths = Filter { paths: vec!["/b/*".into()], ..Filter::default() };
    assert_eq!(offered(&Choice { exclude: paths, ..all.clone() }), ["a", "b"]);
    let ids =
        Filter { operations: vec!["c".into()], methods: vec![Method::Post], ..Filter::default() };
    assert_eq!(offered(&Choice { include: ids, ..all }), ["b", "c"]);
}

#[test]
fn many_operations_are_offered_by_three_tools() {
    let paths = |count: usize| {
        let paths = (0..count).map(|n| (format!("/{n}"), json!({ "get": {} })));
        description(paths.collect::<serde_json::Map<_, _>>().into())
    };
    let choice = Choice::default();
    let is_search = |count| matches!(Catalog::new(&paths(count), &choice).offered, Offered::Search);
    assert!(!is_search(choice.max_tools));
    assert!(is_search(choice.max_tools + 1));
}

#[test]
fn a_list_of_tools_has_a_budget_and_large_ones_pay_for_it() {
    let words = "word ".repeat(150);
    let mut paths = json!({ "/small": { "get": { "description": words } } });
    for n in 0..39 {
        let parameters: Vec<_> = (0..100)
            .map(|p| json!({ "name": format!("parameter{p}"), "in": "query", "description": words, "schema": { "type": "string" } }))
            .collect();
        paths[format!("/{n}")] = json!({ "get": { "parameters": parameters } });
    }
    let catalog = Catalog::new(&description(paths), &Choice::default());
    let Offered::Tools(tools) = &catalog.offered else { panic!("not tools") };
    let total: usize = tools.iter().map(|(_, operation)| size(operation)).sum();
    assert!(total <= MAX_LIST && total > MAX_LIST / 3, "{total}");
    assert_eq!(tools[0].1.description, words.trim());
    assert!(tools[1].1.shortened && tools[1].1.argument_names().count() == 100);
}

#[test]
fn shares_are_fair() {
    assert_eq!(fair_share(&[10, 20, 30], 60), usize::MAX);
    assert_eq!(fair_share(&[10, 20, 31], 60), 30);
    assert_eq!(fair_share(&[100, 100, 10], 110), 50);
    assert_eq!(fair_share(&[], 0), usize::MAX);
}
