//! The allowed dependencies of each crate, and the crates without cargo features.

use crate::finding::Finding;
use crate::package::{Dependency, Package, Use};

/// Each crate of `crates/` and the crates that it may depend on. An upper bound: a crate or an arrow
/// may be absent.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "sabir",
            "transports",
            "sources",
            "client",
            "cluster",
            "articles",
            "auth",
            "budget",
            "observe",
            "openapi",
            "outbound",
            "supervisor",
            "engine",
            "registry",
            "tasks",
            "wire",
        ],
    ),
    (
        "sabir",
        &[
            "budget",
            "client",
            "engine",
            "transports",
            "sources",
            "session",
            "registry",
            "supervisor",
            "tasks",
            "wire",
        ],
    ),
    ("auth", &["budget", "cluster", "engine", "outbound", "registry", "transports", "wire"]),
    (
        "transports",
        &["budget", "cluster", "engine", "outbound", "session", "registry", "tasks", "wire"],
    ),
    (
        "sources",
        &[
            "budget",
            "registry",
            "client",
            "cluster",
            "articles",
            "openapi",
            "outbound",
            "supervisor",
            "wire",
        ],
    ),
    ("observe", &["budget", "engine", "outbound", "transports", "session", "registry", "wire"]),
    ("engine", &["budget", "session", "registry", "tasks", "wire"]),
    ("client", &["budget", "outbound", "supervisor", "wire"]),
    ("session", &["wire"]),
    ("registry", &["wire"]),
    ("tasks", &["cluster", "wire"]),
    ("articles", &[]),
    ("budget", &[]),
    ("cluster", &[]),
    ("openapi", &[]),
    ("outbound", &[]),
    ("supervisor", &[]),
    ("wire", &[]),
    (TESTKIT, &["wire", "session", "registry", "engine", "transports", "client"]),
];

/// Tests of every crate may use it, shipped code may not.
const TESTKIT: &str = "testkit";

/// Every build of Sabir contains the same code of these crates.
const WITHOUT_FEATURES: &[&str] = &["wire", "session", "registry", "engine"];

/// The crates without I/O. Their `clippy.toml` forbids what `std` offers of it.
const PURE: &[&str] = &["wire", "session", "registry", "openapi"];

/// The crates that would bring I/O, a clock or random numbers into a pure crate. A name that ends
/// in `-` is a prefix.
const IMPURE: &[&str] = &[
    "async-",
    "chrono",
    "fastrand",
    "futures-timer",
    "getrandom",
    "hyper",
    "hyper-",
    "jiff",
    "mio",
    "nanoid",
    "rand",
    "rustix",
    "socket2",
    "time",
    "tokio",
    "tokio-",
    "uuid",
    "web-time",
];

/// Every dependency between our crates is in the table.
pub(crate) fn arrows(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        // Packages outside `crates/` may depend on all of them.
        let Some(folder) = package.folder() else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
            let what = format!("crate `{folder}` is not in the table of arrows");
            let hint = "add its row to ARROWS in xtask/src/rules/arrows.rs";
            findings.push(Finding::wrong(&package.manifest, 1, what, hint));
            continue;
        };
        for dependency in &package.dependencies {
            if let Some(target) = forbidden(dependency, allowed) {
                let line = package.line_of(&dependency.key, dependency.kind);
                let what = format!("`{folder}` must not depend on `{target}`");
                let hint = match allowed {
                    [] => format!("`{folder}` depends on no crate of the workspace"),
                    _ => format!("`{folder}` may depend on {}", allowed.join(", ")),
                };
                findings.push(Finding::wrong(&package.manifest, line, what, hint));
            }
        }
    }
    findings
}

/// The target of an arrow that is not allowed.
fn forbidden<'d>(dependency: &'d Dependency, allowed: &[&str]) -> Option<&'d str> {
    // A folder outside `crates/` is in no row of the table.
    let folder = dependency.folder.as_deref()?;
    let target = folder.strip_prefix("crates/").unwrap_or(folder);
    let for_tests = dependency.kind == Use::Dev && target == TESTKIT;
    (!for_tests && !allowed.contains(&target)).then_some(target)
}

/// The pure crates depend on no runtime, clock or random numbers; their tests may.
pub(crate) fn pure_dependencies(packages: &[Package]) -> Vec<Finding> {
    let is_impure = |name: &str| {
        IMPURE
            .iter()
            .any(|impure| name == *impure || impure.ends_with('-') && name.starts_with(impure))
    };
    let mut findings = Vec::new();
    for package in among(PURE, packages) {
        for dependency in &package.dependencies {
            if dependency.kind != Use::Dev && is_impure(&dependency.name) {
                let line = package.line_of(&dependency.key, dependency.kind);
                let what = format!("pure crate depends on `{}`", dependency.name);
                let hint =
                    format!("{} do no I/O: take bytes and time as arguments", PURE.join(", "));
                findings.push(Finding::wrong(&package.manifest, line, what, hint));
            }
        }
    }
    findings
}

fn among<'p>(names: &[&str], packages: &'p [Package]) -> impl Iterator<Item = &'p Package> {
    packages.iter().filter(|p| p.folder().is_some_and(|folder| names.contains(&folder)))
}

/// The inner crates have no cargo features.
pub(crate) fn features(packages: &[Package]) -> Vec<Finding> {
    let inner = among(WITHOUT_FEATURES, packages);
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
    fn every_arrow_of_the_table_is_allowed() {
        for (folder, allowed) in ARROWS {
            let arrows: Vec<_> = allowed.iter().map(|target| (*target, Use::Normal)).collect();
            check(&format!("crates/{folder}"), &arrows, &[]);
        }
    }

    #[test]
    fn nothing_points_up_and_neighbours_do_not_know_each_other() {
        for (folder, target) in [
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
            ("testkit", "sources"),
            ("articles", "registry"),
            ("supervisor", "wire"),
            ("client", "registry"),
            ("engine", "cluster"),
        ] {
            let wrong = format!("`{folder}` must not depend on `{target}`");
            check(&format!("crates/{folder}"), &[(target, Use::Normal)], &[&wrong]);
            check(&format!("crates/{folder}"), &[(target, Use::Build)], &[&wrong]);
            check(&format!("crates/{folder}"), &[(target, Use::Dev)], &[&wrong]);
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
        fn below(folder: &str) -> Vec<&str> {
            let (_, direct) = ARROWS.iter().find(|(name, _)| *name == folder).unwrap();
            direct.iter().flat_map(|target| below(target).into_iter().chain([*target])).collect()
        }
        for (folder, _) in ARROWS {
            assert!(!below(folder).contains(folder)); // a ring would not terminate
        }
    }

    #[test]
    fn packages_outside_crates_are_free_and_no_crate_depends_on_them() {
        check("bench", &[("wire", Use::Normal), ("testkit", Use::Normal)], &[]);
        check("conformance", &[("sabir", Use::Normal)], &[]);
        let mut engine = package("crates/engine", &[("wire", Use::Dev)]);
        engine.dependencies[0].folder = Some("bench".into());
        assert_eq!(arrows(&[engine])[0].what, "`engine` must not depend on `bench`");
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        check("crates/unlisted", &[], &["crate `unlisted` is not in the table of arrows"]);
    }

    #[test]
    fn crates_of_others_are_not_in_the_table() {
        let mut wire = package("crates/wire", &[("x", Use::Normal)]);
        wire.dependencies[0].folder = None;
        assert_eq!(arrows(&[wire]), []);
    }

    #[test]
    fn inner_crates_have_no_features_and_outer_crates_may() {
        let with_features = |folder: &str| Package {
            features: vec!["default".into(), "ws".into()],
            manifest_text: "[package]\n\n[features]\nws = []\n".into(),
            ..package(folder, &[])
        };
        for folder in WITHOUT_FEATURES {
            let found = features(&[with_features(&format!("crates/{folder}"))]);
            assert_eq!((found.len(), found[0].line), (1, 3), "{folder}");
            assert_eq!(found[0].what, "cargo features in an inner crate: default, ws");
            assert_eq!(features(&[package(&format!("crates/{folder}"), &[])]), []);
        }
        assert_eq!(features(&[with_features("crates/cli"), with_features("bench")]), []);
    }
    #[test]
    fn a_pure_crate_brings_no_runtime_clock_or_random_numbers_in() {
        let package = |folder: &str, name: &str, kind| Package {
            manifest: format!("crates/{folder}/Cargo.toml"),
            manifest_text: format!("[dependencies]\n\n{name}.workspace = true"),
            dependencies: vec![Dependency {
                name: name.into(),
                key: name.into(),
                kind,
                folder: None,
            }],
            ..Package::default()
        };
        for folder in PURE {
            for name in ["tokio", "tokio-util", "getrandom"] {
                let found = pure_dependencies(&[package(folder, name, Use::Normal)]);
                assert_eq!((found.len(), found[0].line), (1, 3), "{folder}: {name}");
                assert_eq!(pure_dependencies(&[package(folder, name, Use::Dev)]), []);
            }
            for name in ["serde", "timeless", "random"] {
                assert_eq!(pure_dependencies(&[package(folder, name, Use::Normal)]), []);
            }
        }
        assert_eq!(pure_dependencies(&[package("engine", "tokio", Use::Normal)]), []);
    }
}
