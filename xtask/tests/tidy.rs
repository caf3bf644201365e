//! The output and the exit codes of `cargo xtask`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn xtask(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A small workspace on disk.
struct Tree {
    root: PathBuf,
}

impl Tree {
    /// `@` is replaced by a slash and `~` by nothing, so that the rules do not find this file.
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        // Two checkouts may share a target folder.
        let folder = format!("tidy-{}-{name}", std::process::id());
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace('@', "/").replace('~', "")).unwrap();
        }
        Self { root }
    }

    fn tidy(&self) -> Output {
        xtask(&["tidy", self.root.to_str().unwrap()])
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const WORKSPACE: (&str, &str) =
    ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
const WIRE: (&str, &str) =
    ("crates/wire/Cargo.toml", "[package]\nname = \"sabir-wire\"\nedition = \"2024\"\n");

#[test]
fn a_tree_without_findings_prints_nothing_and_exits_0() {
    let tree = Tree::new("in-order", &[WORKSPACE, WIRE, ("crates/wire/src/lib.rs", "//! Wire.\n")]);
    let output = tree.tidy();
    assert_eq!(text(&output.stdout), "");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("over 3 files"), "{}", text(&output.stderr));
}

#[test]
fn every_rule_has_a_finding_with_path_line_and_hint_and_exits_1() {
    let long = "x;\n".repeat(501);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "x;\n".repeat(149));
    let tree = Tree::new(
        "out-of-order",
        &[
            WORKSPACE,
            WIRE,
            (
                "crates/session/Cargo.toml",
                "[package]\nname = \"sabir-session\"\nedition = \"2024\"\n[features]\nx = []\n\
             [dependencies]\nsabir-registry = { path = \"../registry\" }\ntokio = \"1\"\n",
            ),
            (
                "crates/registry/Cargo.toml",
                "[package]\nname = \"sabir-registry\"\nedition = \"2024\"\n",
            ),
            ("crates/wire/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/wire/src/a.rs", "use crate::b;\npub use sabir_registry as registry;\n"),
            ("crates/wire/src/b.rs", "use crate::a;\n#[serde(untagged)]\nenum X {}\n"),
            ("crates/session/src/lib.rs", "#[macro_export]\nmacro_rules! a { () => {} }\n"),
            ("crates/registry/src/lib.rs", "pub use a::*;\nmacro_rules! b { () => {} }\n"),
            ("crates/registry/src/a.rs", "macro_rules! c { () => {} }\n// TO~DO\n"),
            ("crates/registry/src/long.rs", &long),
            ("crates/registry/src/tests_inside.rs", &tests),
            ("crates/registry/src/r.rs", "\"2025-06-18\";\nRevision::V2025_06_18;\n"),
            ("README.md", "cd @work@sabir\n"),
            ("package-lock.json", "{\"resolved\": \"http:@@mirror@a.tgz\"}\n"),
        ],
    );
    let output = tree.tidy();
    assert_eq!(output.status.code(), Some(1));
    let found: Vec<String> = text(&output.stdout)
        .lines()
        .map(|line| {
            let (finding, hint) = line.split_once(" (").unwrap();
            assert!(hint.ends_with(')') && hint.len() > 5, "{line}");
            finding.to_owned()
        })
        .collect();
    let expected = [
        "README.md:1: absolute path of a machine: `@work@…`",
        "crates/registry/src/a.rs:1: own macro `c`, one of 3",
        "crates/registry/src/a.rs:2: unfinished work: `TO~DO`",
        "crates/registry/src/lib.rs:1: glob re-export `pub use a::*`",
        "crates/registry/src/lib.rs:2: own macro `b`, one of 3",
        "crates/registry/src/long.rs:7: 6 lines repeat crates/registry/src/long.rs:1",
        "crates/registry/src/long.rs:501: 501 lines",
        "crates/registry/src/r.rs:1: the protocol date 2025-06-18 outside crates/wire/src/revision.rs",
        "crates/registry/src/r.rs:2: comparison with the revision `V2025_06_18`",
        "crates/registry/src/tests_inside.rs:2: 151 lines of tests inside the file",
        "crates/session/Cargo.toml:4: cargo features in an inner crate: x",
        "crates/session/Cargo.toml:7: `session` must not depend on `registry`",
        "crates/session/Cargo.toml:8: pure crate depends on `tokio`",
        "crates/session/src/lib.rs:1: exported macro",
        "crates/session/src/lib.rs:2: own macro `a`, one of 3",
        "crates/wire/src/a.rs:1: modules in a ring: a -> b -> a",
        "crates/wire/src/a.rs:2: re-export of another crate: `pub use sabir_registry`",
        "crates/wire/src/b.rs:2: untagged type",
        "package-lock.json:1: taken from `http:@@mirror@a.tgz`",
    ]
    .map(|line| line.replace('@', "/").replace('~', ""));
    assert_eq!(found, expected);
}

#[test]
fn a_note_is_printed_and_fails_nothing() {
    let long: String = (0..401).map(|n| format!("x({n});\n")).collect();
    let tree = Tree::new("noted", &[WORKSPACE, WIRE, ("crates/wire/src/lib.rs", &long)]);
    let output = tree.tidy();
    assert!(text(&output.stdout).starts_with("crates/wire/src/lib.rs:401: note: 401 lines ("));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_folder_without_a_workspace_is_an_error_in_one_line() {
    for (name, reason) in [("nowhere", "nowhere"), ("empty", "cargo metadata: ")] {
        let tree = Tree::new(name, if name == "empty" { &[("a.txt", "")] } else { &[] });
        let output = tree.tidy();
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(error.starts_with("error: ") && error.contains(reason), "{error}");
    }
}

#[test]
fn help_exits_0_and_wrong_usage_exits_2() {
    for args in [&["help"] as &[_], &["--help"], &["-h"], &["tidy", "--help"]] {
        let output = xtask(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(text(&output.stdout).starts_with("usage: cargo xtask"), "{args:?}");
    }
    for (args, reason) in [
        (&[] as &[_], "usage: "),
        (&["conform"], "error: unknown command `conform`\n\nusage: "),
        (&["tidy", "a", "b"], "error: `tidy` takes at most one folder\n\nusage: "),
        (&["tidy", "--fix"], "error: `tidy` takes at most one folder\n\nusage: "),
    ] {
        let output = xtask(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).starts_with(reason), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
}
