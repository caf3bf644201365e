//! No ring of modules: a crate can be read from its leaves upwards.
//!
//! A module here is a file or folder directly inside a crate's `src`; rings inside a folder are not
//! checked. Arrows are the paths that begin with `crate` or leave the module with `super`. A name
//! that `lib.rs` re-exports counts as the module it comes from. Items of `lib.rs` or `main.rs`
//! itself belong to no module, and test code is ignored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::finding::Finding;
use crate::paths::{Named, beginning_with, imports};
use crate::source::Source;
use crate::tokens::Token;

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
    module: Vec<&'s str>,
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

/// The modules that each module uses, and one place of each use.
type Arrows<'t> = BTreeMap<&'t str, BTreeMap<&'t str, Place<'t>>>;

#[derive(Clone, Copy)]
struct Place<'t> {
    path: &'t str,
    line: usize,
}

fn arrows<'s>(files: &[File<'s, '_>]) -> Arrows<'s> {
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

/// The names that the root of the crate imports, and the module of each.
fn origins<'t>(root: &'t [Token], modules: &BTreeSet<&str>) -> Vec<(&'t str, &'t str)> {
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
fn names_at_root<'s>(file: &File<'s, '_>) -> Vec<(&'s str, usize)> {
    let tokens: &'s [Token] = &file.source.shipped;
    let nesting = inline_modules(tokens);
    let mut found = Vec::new();
    for (at, path) in beginning_with(tokens, &["crate", "super", "self"]) {
        // `pub(in crate::a)` is a visibility, not a use.
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

/// For each token, the number of `mod name { … }` around it.
fn inline_modules(tokens: &[Token]) -> Vec<usize> {
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

/// One finding per connected group of rings: the shortest ring through its first module.
fn rings_of(arrows: &Arrows<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for module in arrows.keys().copied() {
        if reported.contains(module) {
            continue;
        }
        let Some(ring) = path(arrows, module, module) else { continue };
        let in_group =
            |m: &&str| path(arrows, module, m).is_some() && path(arrows, m, module).is_some();
        reported.extend(arrows.keys().copied().filter(in_group));
        let places: Vec<_> = ring.windows(2).map(|pair| arrows[pair[0]][pair[1]]).collect();
        let others: Vec<_> =
            places[1..].iter().map(|place| format!("{}:{}", place.path, place.line)).collect();
        let what = format!("modules in a ring: {}", ring.join(" -> "));
        let hint = format!("cut one of the arrows; the others: {}", others.join(", "));
        findings.push(Finding::wrong(places[0].path, places[0].line, what, hint));
    }
    findings
}

/// The shortest path of at least one arrow, both ends included.
fn path<'t>(arrows: &Arrows<'t>, from: &'t str, to: &str) -> Option<Vec<&'t str>> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut paths = VecDeque::from([vec![from]]);
    while let Some(path) = paths.pop_front() {
        for next in arrows.get(path[path.len() - 1]).into_iter().flat_map(|targets| targets.keys())
        {
            let further: Vec<_> = path.iter().copied().chain([*next]).collect();
            if *next == to {
                return Some(further);
            }
            if seen.insert(*next) {
                paths.push_back(further);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
