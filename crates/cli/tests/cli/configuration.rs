//! Reading a sabir.toml: every mistake is named with its place and what to do.

use tempfile::TempDir;

use crate::{folder_with, sabir, seen};

#[track_caller]
fn check(file: &str, expected: &str) {
    let folder = folder_with(file);
    assert_eq!(seen(&sabir(folder.path(), &["check"])), expected.trim());
}

#[test]
fn an_empty_file_offers_nothing() {
    check("", "exit 0\nstderr:\n`sabir` offers 0 tools, 0 prompts and 0 resources");
}

#[test]
fn a_syntax_error_is_named_with_its_line() {
    let folder = folder_with("[server]\nname = \n");
    let seen = seen(&sabir(folder.path(), &["check"]));
    assert!(seen.starts_with("exit 3\nstderr:\nerror: "), "{seen}");
    assert!(seen.contains("\n  --> sabir.toml:2"), "{seen}");
}

#[test]
fn an_unknown_field_is_refused() {
    check(
        "[server]\nname = \"x\"\nnmae = \"y\"\n",
        "exit 3\nstderr:\nerror: unknown field `nmae`, expected one of `name`, `version`, `title`, \
         `description`, `website`, `instructions`\n  --> sabir.toml:3",
    );
}

#[test]
fn a_wrong_choice_is_told_the_right_ones() {
    check(
        "[dialect]\nunknown_tool = -32000\n",
        "exit 3\nstderr:\nerror: -32000 is not one of the choices here\n  --> sabir.toml:2\n  \
         hint: write -32602 or -32601 or \"result\"",
    );
    check(
        "\n[dialect]\nrequire_ready = \"some\"\n",
        "exit 3\nstderr:\nerror: \"some\" is not one of the choices here\n  --> sabir.toml:3\n  \
         hint: write \"none\" or \"tools\" or \"all\"",
    );
}

#[test]
fn an_unknown_revision_is_told_the_known_ones() {
    check(
        "[dialect]\nrevision = \"2025-11-26\"\n",
        "exit 3\nstderr:\nerror: there is no revision `2025-11-26`\n  --> sabir.toml:2\n  hint: the \
         revisions are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28",
    );
}

#[test]
fn durations_sizes_and_numbers_are_checked() {
    check(
        "[limits]\ngrace = \"soon\"\n",
        "exit 3\nstderr:\nerror: `soon` is no duration\n  --> sabir.toml:2\n  hint: write it like \
         \"250ms\", \"5s\", \"2m\" or \"1h\"",
    );
    check(
        "[limits]\nmessage_size = \"16mb\"\n",
        "exit 3\nstderr:\nerror: `16mb` is no size\n  --> sabir.toml:2\n  hint: write it like \
         \"64KB\" or \"16MB\"",
    );
    check(
        "[limits]\ncalls = 0\n",
        "exit 3\nstderr:\nerror: 0 would let nothing pass\n  --> sabir.toml:2\n  hint: write 1 or more",
    );
}

#[test]
fn a_missing_seal_key_is_named() {
    check(
        "[seal]\nkey_env = \"SABIR_NO_SUCH_KEY\"\n",
        "exit 3\nstderr:\nerror: the environment has no `SABIR_NO_SUCH_KEY`\n  --> sabir.toml:2\n  \
         hint: make one with `openssl rand -base64 32`",
    );
}

#[test]
fn a_missing_file_is_named() {
    let folder = TempDir::new().unwrap();
    let output = sabir(folder.path(), &["check", "other.toml"]);
    assert_eq!(
        seen(&output),
        "exit 3\nstderr:\nerror: the configuration cannot be read: No such file or directory (os \
         error 2)\n  --> other.toml\n  hint: `sabir init` writes one"
    );
}

#[test]
fn init_writes_a_file_that_check_reads_and_never_overwrites() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        seen(&sabir(folder.path(), &["init"])),
        "exit 0\nstderr:\nwrote sabir.toml; `sabir check` reads it, `sabir serve` serves it"
    );
    assert!(seen(&sabir(folder.path(), &["check"])).starts_with("exit 0"));
    assert_eq!(
        seen(&sabir(folder.path(), &["init"])),
        "exit 1\nstderr:\nerror: there is a sabir.toml already; it was left as it is"
    );
}

#[test]
fn every_key_that_init_shows_is_read() {
    let folder = TempDir::new().unwrap();
    sabir(folder.path(), &["init"]);
    let file = std::fs::read_to_string(folder.path().join("sabir.toml")).unwrap();
    // Uncommented, the file must still be read: no shown key is misspelt.
    let key_env = "SABIR_SEAL_KEY";
    let uncommented: String = file
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_toml(rest)).unwrap_or(line))
        .filter(|line| !line.contains(key_env) && !line.contains("SABIR_TOKEN"))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert!(uncommented.contains("\nabort_grace ="), "{uncommented}");
    std::fs::write(folder.path().join("sabir.toml"), &uncommented).unwrap();
    let seen = seen(&sabir(folder.path(), &["check"]));
    assert!(seen.starts_with("exit 0"), "{seen}\n{uncommented}");
}

fn is_toml(line: &str) -> bool {
    line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
}

#[test]
fn wrong_usage_is_two() {
    let folder = TempDir::new().unwrap();
    assert_eq!(sabir(folder.path(), &["srve"]).status.code(), Some(2));
}
