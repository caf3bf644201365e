//! The inner crates touch no clock, file, socket, thread or runtime: time and bytes
//! are arguments there, so a test can replay anything.

use crate::finding::Finding;
use crate::package::{Package, Use};
use crate::paths::beginning_with;
use crate::source::Source;

/// The crates that are pure.
const PURE: &[&str] = &["wire", "session", "registry"];

/// What of `std` reaches the outside world.
const OUTSIDE_WORLD: &[&str] = &["fs", "net", "thread"];

const HINT: &str = "wire, session and registry are pure: take it as an argument";

/// Shipped code of the pure crates names nothing of the outside world.
pub(crate) fn pure_code(source: &Source<'_>) -> Vec<Finding> {
    if !PURE.iter().any(|room| source.path.starts_with(&format!("crates/{room}/"))) {
        return Vec::new();
    }
    let code = &source.shipped;
    let wrong = |line, name: &str| Finding::wrong(source.path, line, format!("`{name}`"), HINT);
    let mut findings = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let next = |n: usize, text| code.get(at + n).is_some_and(|t| t.is(text));
        if token.is("SystemTime") {
            findings.push(wrong(token.line, "SystemTime"));
        } else if token.is("Instant") && next(1, "::") && next(2, "now") {
            findings.push(wrong(token.line, "Instant::now"));
        } else if token.is("tokio") || token.text.starts_with("tokio_") {
            findings.push(wrong(token.line, token.text));
        }
    }
    for (_, path) in beginning_with(code, &["std"]) {
        if path.segments.get(1).is_some_and(|module| OUTSIDE_WORLD.contains(module)) {
            findings.push(wrong(path.line, &format!("std::{}", path.segments[1])));
        }
    }
    findings
}

/// The pure crates do not depend on tokio; their tests may.
pub(crate) fn pure_manifest(packages: &[Package]) -> Vec<Finding> {
    let pure = packages.iter().filter(|p| p.room().is_some_and(|room| PURE.contains(&room)));
    pure.flat_map(|package| {
        let runtime = package.dependencies.iter().filter(|dependency| {
            let name = dependency.name.as_str();
            dependency.kind != Use::Dev && (name == "tokio" || name.starts_with("tokio-"))
        });
        runtime.map(|dependency| {
            let line = package.line_of(&dependency.key, dependency.kind);
            Finding::wrong(
                &package.manifest,
                line,
                format!("depends on `{}`", dependency.name),
                HINT,
            )
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::Dependency;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = pure_code(&Source::read(path, text));
        let found: Vec<_> = found.iter().map(|f| format!("{} {}", f.line, f.what)).collect();
        assert_eq!(found, expected, "{path}: {text}");
    }

    #[test]
    fn the_outside_world_is_refused_in_each_pure_crate() {
        for room in PURE {
            let path = format!("crates/{room}/src/a.rs");
            check(&path, "\nlet now = Instant::now();", &["2 `Instant::now`"]);
            check(&path, "use std::time::SystemTime;", &["1 `SystemTime`"]);
            check(&path, "tokio::spawn(f)", &["1 `tokio`"]);
            check(&path, "use tokio_util::codec;", &["1 `tokio_util`"]);
            check(&path, "std::fs::read(p)", &["1 `std::fs`"]);
            check(
                &path,
                "use std::{io,\n net::IpAddr, thread};",
                &["2 `std::net`", "2 `std::thread`"],
            );
        }
    }

    #[test]
    fn time_as_an_argument_is_fine_and_so_are_words_in_comments() {
        let path = "crates/session/src/a.rs";
        check(path, "use std::time::{Duration, Instant}; fn f(now: Instant) {}", &[]);
        check(path, "/// Not tokio, no std::fs.\nlet a = \"Instant::now\"; // SystemTime", &[]);
        check(path, "#[cfg(test)] mod tests { fn f() { Instant::now(); std::fs::read(p); } }", &[]);
        check("crates/session/tests/a.rs", "std::fs::read(p)", &[]);
    }

    #[test]
    fn the_rim_lives_in_the_world() {
        check("crates/transports/src/stdio.rs", "tokio::spawn(std::net::x)", &[]);
        check("crates/wired/src/a.rs", "tokio::spawn(f)", &[]);
    }

    #[test]
    fn the_manifest_brings_no_runtime_in() {
        let package = |room: &str, name: &str, kind| Package {
            manifest: format!("crates/{room}/Cargo.toml"),
            manifest_text: format!("[dependencies]\n\n{name}.workspace = true"),
            dependencies: vec![Dependency {
                name: name.into(),
                key: name.into(),
                kind,
                folder: None,
            }],
            ..Package::default()
        };
        for room in PURE {
            for name in ["tokio", "tokio-util"] {
                let found = pure_manifest(&[package(room, name, Use::Normal)]);
                assert_eq!((found.len(), found[0].line), (1, 3));
                assert_eq!(pure_manifest(&[package(room, name, Use::Dev)]), []);
            }
            assert_eq!(pure_manifest(&[package(room, "serde", Use::Normal)]), []);
        }
        assert_eq!(pure_manifest(&[package("engine", "tokio", Use::Normal)]), []);
    }
}
