//! Modules do not go in circles: a crate can be read from its leaves upwards.
//!
//! A module here is a file or folder directly inside a crate's `src`; what happens
//! inside a folder is its own business. Arrows are the paths that begin with `crate`
//! or climb out with `super`. A name that `lib.rs` re-exports counts as the module it
//! comes from. What `lib.rs` or `main.rs` itself defines is no module, nor is test code.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::finding::Finding;
use crate::lexer::Token;
use crate::paths::{Named, beginning_with, imports};
use crate::source::Source;

/// No ring of modules in any crate.
pub(crate) fn rings(sources: &[Source<'_>]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<File<'_, '_>>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        if let Some((folder, inner)) = source.path.split_once("/src/") {
            let file = File { module: module_path(inner), source };
            crates.entry(folder).or_default().push(file);
        }
    }
    crates.values().flat_map(|files| rings_of(&arrows(files))).collect()
}

/// One file of a crate, and its module path from the root of the crate.
struct File<'s, 't> {
    module: Vec<&'t str>,
    source: &'s Source<'t>,
}

/// `a/b.rs` and `a/b/mod.rs` are both the module `a::b`.
fn module_path(inner: &str) -> Vec<&str> {
    let mut path: Vec<_> = inner.trim_end_matches(".rs").split('/').collect();
    if matches!(path.last(), Some(&"mod" | &"lib" | &"main")) {
        path.pop();
    }
    path
}

/// Who uses whom, and one place where that is seen.
type Arrows<'t> = BTreeMap<&'t str, BTreeMap<&'t str, Place<'t>>>;

#[derive(Clone, Copy)]
struct Place<'t> {
    path: &'t str,
    line: usize,
}

fn arrows<'t>(files: &[File<'_, 't>]) -> Arrows<'t> {
    let modules: BTreeSet<&str> = files.iter().filter_map(|f| f.module.first().copied()).collect();
    let roots = files.iter().filter(|file| file.module.is_empty());
    let origins: BTreeMap<&str, &str> =
        roots.flat_map(|root| origins(&root.source.shipped, &modules)).collect();

    let mut arrows = Arrows::new();
    for file in files {
        // Each file in `bin` is a crate of its own.
        let Some(from) = file.module.first().copied().filter(|module| *module != "bin") else {
            continue;
        };
        for (name, line) in names_at_root(file) {
            let module = modules.get(name).or_else(|| origins.get(name)).copied();
            if let Some(to) = module.filter(|to| *to != from) {
                let place = Place { path: file.source.path, line };
                arrows.entry(from).or_default().entry(to).or_insert(place);
            }
        }
    }
    arrows
}

/// What the root of the crate calls by name, and the module that it comes from.
fn origins<'t>(root: &[Token<'t>], modules: &BTreeSet<&str>) -> Vec<(&'t str, &'t str)> {
    let paths = imports(root).into_iter().flat_map(|import| import.paths);
    let origin = |path: Named<'t>| {
        let mut segments = path.segments.as_slice();
        while let ["crate" | "self", rest @ ..] = segments {
            segments = rest;
        }
        let module = *segments.first().filter(|first| modules.contains(*first))?;
        let name = match segments {
            [.., parent, "self"] => parent,
            [.., name] => name,
            [] => return None,
        };
        Some((path.alias.unwrap_or(name), module))
    };
    paths.filter_map(origin).collect()
}

/// The first name below the root of the crate in each path of this file that goes there.
fn names_at_root<'t>(file: &File<'_, 't>) -> Vec<(&'t str, usize)> {
    let tokens = &file.source.shipped;
    let nesting = inline_modules(tokens);
    let mut found = Vec::new();
    for (at, path) in beginning_with(tokens, &["crate", "super", "self"]) {
        // `pub(in crate::a)` says who may see this, not what this uses.
        if at >= 3 && tokens[at - 1].is("in") && tokens[at - 2].is("(") && tokens[at - 3].is("pub")
        {
            continue;
        }
        let climbs = path.segments.iter().filter(|segment| **segment == "super").count();
        let depth = file.module.len() + nesting[at];
        let is_root = path.segments[0] == "crate" || climbs >= depth;
        let name = path.segments.iter().find(|s| !matches!(**s, "crate" | "super" | "self"));
        if let Some(name) = name.filter(|_| is_root) {
            found.push((*name, path.line));
        }
    }
    found
}

/// For each token, how many `mod name { … }` stand around it.
fn inline_modules(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut braces: Vec<bool> = Vec::new();
    let mut depth = 0;
    let mut depths = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        if token.is("{") {
            let opens_module = at >= 2 && tokens[at - 2].is("mod");
            braces.push(opens_module);
            depth += usize::from(opens_module);
        } else if token.is("}") {
            depth -= usize::from(braces.pop().unwrap_or(false));
        }
        depths.push(depth);
    }
    depths
}

/// One finding per knot of modules: the shortest ring through its first module.
fn rings_of(arrows: &Arrows<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for module in arrows.keys().copied() {
        if reported.contains(module) {
            continue;
        }
        let Some(ring) = way(arrows, module, module) else { continue };
        let in_knot =
            |m: &&str| way(arrows, module, m).is_some() && way(arrows, m, module).is_some();
        reported.extend(arrows.keys().copied().filter(in_knot));
        let places: Vec<_> = ring.windows(2).map(|pair| arrows[pair[0]][pair[1]]).collect();
        let others: Vec<_> =
            places[1..].iter().map(|place| format!("{}:{}", place.path, place.line)).collect();
        let what = format!("modules in a ring: {}", ring.join(" -> "));
        let hint = format!("cut one of the arrows; the others: {}", others.join(", "));
        findings.push(Finding::wrong(places[0].path, places[0].line, what, hint));
    }
    findings
}

/// The shortest way of at least one arrow, both ends included.
fn way<'t>(arrows: &Arrows<'t>, from: &'t str, to: &str) -> Option<Vec<&'t str>> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut ways = VecDeque::from([vec![from]]);
    while let Some(way) = ways.pop_front() {
        for next in arrows.get(way[way.len() - 1]).into_iter().flat_map(|targets| targets.keys()) {
            let further: Vec<_> = way.iter().copied().chain([*next]).collect();
            if *next == to {
                return Some(further);
            }
            if seen.insert(*next) {
                ways.push_back(further);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
