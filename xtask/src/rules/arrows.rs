//! Who may depend on whom, and who may have cargo features.

use crate::finding::Finding;
use crate::package::{Dependency, Package, Use};

/// The rooms of the house and what each may depend on. An upper bound: an arrow
/// that nobody needs may be absent.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "sabir",
            "transports",
            "sources",
            "client",
            "articles",
            "supervisor",
            "engine",
            "registry",
            "wire",
        ],
    ),
    ("sabir", &["engine", "transports", "sources", "registry", "session", "wire"]),
    ("transports", &["engine", "session", "wire"]),
    ("sources", &["registry", "client", "articles", "supervisor", "wire"]),
    ("engine", &["session", "registry", "wire"]),
    ("client", &["wire", "supervisor"]),
    ("articles", &[]),
    ("supervisor", &[]),
    ("session", &["wire"]),
    ("registry", &["wire"]),
    ("wire", &[]),
    (TESTKIT, &["wire", "session", "registry", "engine", "transports"]),
];

/// The room that everybody's tests may use and nobody's code.
const TESTKIT: &str = "testkit";

/// The rooms that every build of Sabir shares: they are the same in each.
const WITHOUT_FEATURES: &[&str] = &["wire", "session", "registry", "engine"];

/// Every arrow between our crates is in the table.
pub(crate) fn arrows(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        // What stands outside the house may use whatever it likes.
        let Some(room) = package.room() else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
            let what = format!("crate `{room}` is not in the table of arrows");
            let hint = "add its row to ARROWS in xtask/src/rules/arrows.rs";
            findings.push(Finding::wrong(&package.manifest, 1, what, hint));
            continue;
        };
        for dependency in &package.dependencies {
            if let Some(target) = forbidden(dependency, allowed) {
                let line = package.line_of(&dependency.key, dependency.kind);
                let what = format!("`{room}` must not depend on `{target}`");
                let hint = match allowed {
                    [] => format!("`{room}` depends on no crate of ours"),
                    _ => format!("`{room}` may depend on {}", allowed.join(", ")),
                };
                findings.push(Finding::wrong(&package.manifest, line, what, hint));
            }
        }
    }
    findings
}

/// The target of an arrow that is not allowed.
fn forbidden<'d>(dependency: &'d Dependency, allowed: &[&str]) -> Option<&'d str> {
    // A path outside `crates/` is our own too, and no room at all.
    let folder = dependency.folder.as_deref()?;
    let room = folder.strip_prefix("crates/").unwrap_or(folder);
    let for_tests = dependency.kind == Use::Dev && room == TESTKIT;
    (!for_tests && !allowed.contains(&room)).then_some(room)
}

/// The inner crates have no cargo features.
pub(crate) fn features(packages: &[Package]) -> Vec<Finding> {
    let inner = packages.iter().filter(|p| p.room().is_some_and(|r| WITHOUT_FEATURES.contains(&r)));
    let with_features = inner.filter(|package| !package.features.is_empty());
    with_features
        .map(|package| {
            let mut lines = (1..).zip(package.manifest_text.lines());
            let line = lines.find(|(_, line)| line.trim() == "[features]").map_or(1, |(n, _)| n);
            let what = format!("cargo features in an inner crate: {}", package.features.join(", "));
            let hint =
                "make it a crate of its own or a setting; an optional dependency is a feature too";
            Finding::wrong(&package.manifest, line, what, hint)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, dependencies: &[(&str, Use)]) -> Package {
        let dependencies = dependencies.iter().map(|(folder, kind)| Dependency {
            name: format!("sabir-{folder}"),
            key: format!("sabir-{folder}"),
            kind: *kind,
            folder: Some(format!("crates/{folder}")),
        });
        Package {
            manifest: format!("{folder}/Cargo.toml"),
            dependencies: dependencies.collect(),
            ..Package::default()
        }
    }

    #[track_caller]
    fn check(folder: &str, dependencies: &[(&str, Use)], expected: &[&str]) {
        let found = arrows(&[package(folder, dependencies)]);
        let found: Vec<_> = found.into_iter().map(|f| f.what).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_arrow_of_the_table_may_be_drawn() {
        for (room, allowed) in ARROWS {
            let arrows: Vec<_> = allowed.iter().map(|target| (*target, Use::Normal)).collect();
            check(&format!("crates/{room}"), &arrows, &[]);
        }
    }

    #[test]
    fn nothing_points_up_and_neighbours_do_not_know_each_other() {
        for (room, target) in [
            ("wire", "session"),
            ("session", "registry"),
            ("registry", "session"),
            ("transports", "sources"),
            ("sources", "transports"),
            ("sources", "engine"),
            ("articles", "wire"),
            ("supervisor", "registry"),
            ("client", "session"),
            ("engine", "transports"),
            ("sabir", "cli"),
            ("sabir", "client"),
            ("testkit", "sources"),
        ] {
            let wrong = format!("`{room}` must not depend on `{target}`");
            check(&format!("crates/{room}"), &[(target, Use::Normal)], &[&wrong]);
            check(&format!("crates/{room}"), &[(target, Use::Build)], &[&wrong]);
            check(&format!("crates/{room}"), &[(target, Use::Dev)], &[&wrong]);
        }
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        check("crates/session", &[("testkit", Use::Dev)], &[]);
        check(
            "crates/session",
            &[("testkit", Use::Normal)],
            &["`session` must not depend on `testkit`"],
        );
    }

    #[test]
    fn the_table_has_no_ring() {
        fn below(room: &str) -> Vec<&str> {
            let (_, direct) = ARROWS.iter().find(|(name, _)| *name == room).unwrap();
            direct.iter().flat_map(|room| below(room).into_iter().chain([*room])).collect()
        }
        for (room, _) in ARROWS {
            assert!(!below(room).contains(room)); // a ring would not even end
        }
    }

    #[test]
    fn what_stands_outside_the_house_is_free_and_nobody_depends_on_it() {
        check("bench", &[("wire", Use::Normal), ("testkit", Use::Normal)], &[]);
        check("conformance", &[("sabir", Use::Normal)], &[]);
        let mut engine = package("crates/engine", &[("wire", Use::Dev)]);
        engine.dependencies[0].folder = Some("bench".into());
        assert_eq!(arrows(&[engine])[0].what, "`engine` must not depend on `bench`");
    }

    #[test]
    fn a_new_room_needs_a_row() {
        check("crates/cellar", &[], &["crate `cellar` is not in the table of arrows"]);
    }

    #[test]
    fn other_peoples_crates_are_no_arrows() {
        let mut wire = package("crates/wire", &[("x", Use::Normal)]);
        wire.dependencies[0].folder = None;
        assert_eq!(arrows(&[wire]), []);
    }

    #[test]
    fn inner_crates_have_no_features_and_the_rim_may() {
        let with_features = |folder: &str| Package {
            features: vec!["default".into(), "ws".into()],
            manifest_text: "[package]\n\n[features]\nws = []\n".into(),
            ..package(folder, &[])
        };
        for room in WITHOUT_FEATURES {
            let found = features(&[with_features(&format!("crates/{room}"))]);
            assert_eq!((found.len(), found[0].line), (1, 3), "{room}");
            assert_eq!(found[0].what, "cargo features in an inner crate: default, ws");
            assert_eq!(features(&[package(&format!("crates/{room}"), &[])]), []);
        }
        assert_eq!(features(&[with_features("crates/cli"), with_features("bench")]), []);
    }
}
