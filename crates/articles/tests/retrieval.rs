//! Runs the queries of a `queries.toml` on its folder of articles.
//!
//! An entry has a query and its expected hits: all of `top` within the first `within` hits, none of
//! `not`, `at_least` this many, or `nothing`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sabir_articles::{SearchOptions, Settings, Store};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queries {
    query: Vec<Query>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    text: String,
    #[serde(default)]
    top: Vec<String>,
    within: Option<usize>,
    #[serde(default)]
    not: Vec<String>,
    at_least: Option<usize>,
    #[serde(default)]
    nothing: bool,
}

/// Runs all queries and reports all failures together. Returns the number of queries.
fn check(folder: &Path, queries: &Path) -> usize {
    let text = std::fs::read_to_string(queries)
        .unwrap_or_else(|error| panic!("{}: {error}", queries.display()));
    let queries: Queries = toml::from_str(&text).expect("queries.toml is not as it should be");
    let statuses = Some(vec!["Live".to_owned(), "Experimental".to_owned()]);
    let store = Store::open(Settings { watch: false, statuses, ..Settings::new(folder) }, |_| {})
        .expect("the folder can be opened");
    assert!(store.wait_ready(Duration::from_secs(60)), "the folder was not read in time");
    let failures: Vec<String> =
        queries.query.iter().flat_map(|query| failures(&store, query)).collect();
    assert!(
        failures.is_empty(),
        "{} of {} queries fail:\n{}",
        failures.len(),
        queries.query.len(),
        failures.join("\n")
    );
    store.close();
    queries.query.len()
}

fn failures(store: &Store, query: &Query) -> Vec<String> {
    let found = store
        .search(&query.text, SearchOptions { limit: Some(100), ..SearchOptions::default() })
        .expect("every query of the list can be asked");
    let ids: Vec<&str> = found.hits.iter().map(|hit| hit.summary.id.as_str()).collect();
    let place = |wanted: &str| {
        ids.iter().position(|id| *id == wanted || id.ends_with(&format!("/{wanted}")))
    };
    let mut wrong = Vec::new();
    let within = query.within.unwrap_or(1);
    for wanted in &query.top {
        match place(wanted) {
            Some(place) if place < within => {}
            Some(place) => {
                wrong.push(format!("`{wanted}` is at place {}, not within {within}", place + 1))
            }
            None => wrong.push(format!("`{wanted}` is not found")),
        }
    }
    wrong.extend(
        query.not.iter().filter(|id| place(id).is_some()).map(|id| format!("`{id}` is found")),
    );
    if let Some(least) = query.at_least.filter(|least| ids.len() < *least) {
        wrong.push(format!("{} hits, not at least {least}", ids.len()));
    }
    if query.nothing && !ids.is_empty() {
        wrong.push(format!("{} hits, not none", ids.len()));
    }
    let first: Vec<String> = found
        .hits
        .iter()
        .take(5)
        .map(|hit| format!("{} {:.2}", hit.summary.id, hit.score))
        .collect();
    wrong
        .iter()
        .map(|wrong| {
            format!("  {:?}: {wrong}\n      of {}: {}", query.text, ids.len(), first.join(", "))
        })
        .collect()
}

fn under(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_queries_of_the_handbook_find_their_articles() {
    let handbook = under("../../examples/handbook");
    let count = check(&handbook.join("content"), &handbook.join("queries.toml"));
    assert!(count >= 40, "only {count} queries");
}
