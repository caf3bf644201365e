//! No absolute path of a developer's machine, no note of unfinished work.
//!
//! The needles are concatenated from parts, or this file would be a finding.

use crate::finding::Finding;
use crate::tree::File;

/// Folders of developers' and build machines.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Example paths, allowed everywhere.
const EXAMPLE_PATHS: &[&str] =
    &[concat!("/ho", "me/you/"), concat!("/ho", "me/me/"), concat!("/ho", "me/user/")];

/// Notes of unfinished work.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// A test that does not run. Clippy finds the macros for missing code.
const IGNORED: &str = concat!("#[ign", "ore");

/// No absolute path of a build machine in any text file.
pub(crate) fn machine_paths(file: &File) -> Vec<Finding> {
    let places = MACHINE_PATHS.iter().flat_map(|path| file.text.match_indices(path));
    let foreign = places.filter(|(at, _)| {
        let here = &file.text[*at..];
        begins_a_path(&file.text[..*at])
            && !EXAMPLE_PATHS.iter().any(|example| here.starts_with(example))
    });
    foreign
        .map(|(at, path)| {
            let what = format!("absolute path of a machine: `{path}…`");
            let hint = "make it relative to the repository, or read it from the environment";
            Finding::wrong(&file.path, line_of(&file.text, at), what, hint)
        })
        .collect()
}

/// Does an absolute path begin after this text? In `docs/…`, `$HOME/…` or `host://…` it does not.
fn begins_a_path(before: &str) -> bool {
    match before.chars().next_back() {
        Some('/') => before.ends_with("://") || !before.ends_with(":/"),
        Some(last) => !last.is_alphanumeric() && !"._-~*})$%".contains(last),
        None => true,
    }
}

/// No note of unfinished work and no ignored test in any source file.
pub(crate) fn placeholders(file: &File) -> Vec<Finding> {
    if !file.is_source() {
        return Vec::new();
    }
    let needles = NOTES.iter().chain([&IGNORED]);
    let places = needles.flat_map(|needle| file.text.match_indices(needle));
    let whole = places.filter(|(at, needle)| {
        let (before, after) = (&file.text[..*at], &file.text[at + needle.len()..]);
        let joined = |c: char| c.is_alphanumeric() || c == '_';
        let word_before = before.ends_with(joined) && needle.starts_with(joined);
        let word_after = after.starts_with(joined) && needle.ends_with(joined);
        !word_before && !word_after
    });
    whole
        .map(|(at, needle)| {
            let what = format!("unfinished work: `{needle}`");
            let hint = "finish it, or describe in an issue what is missing";
            Finding::wrong(&file.path, line_of(&file.text, at), what, hint)
        })
        .collect()
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&File) -> Vec<Finding>;

    /// Which lines are found; `@` stands for a slash, so that this file stays clean.
    #[track_caller]
    fn check(rule: Rule, path: &str, text: &str, lines: &[usize]) {
        let text = text.replace('@', "/");
        let found = rule(&File { path: path.into(), text: text.clone() });
        let found: Vec<_> = found.iter().map(|f| f.line).collect();
        assert_eq!(found, lines, "{path}: {text}");
    }

    #[test]
    fn an_absolute_path_is_found_in_any_text() {
        for path in ["README.md", "a.rs", "a.json", "test"] {
            check(machine_paths, path, "ok\ncd @work@x", &[2]);
        }
        check(machine_paths, "a", "@root@.cargo", &[1]);
        check(machine_paths, "a", "\"@home@alice@x\" and (@work@y)", &[1, 1]);
        check(machine_paths, "a", "file:@@@work@x", &[1]);
        check(machine_paths, "a", "PATH=@usr@bin:@root@bin", &[1]);
    }

    #[test]
    fn a_longer_path_or_an_example_is_fine() {
        check(
            machine_paths,
            "a",
            "docs@work@x ..@root@x ${A}@home@b $HOME@work@ $(pwd)@work@x",
            &[],
        );
        check(machine_paths, "a", "https:@@work@x https:@@a.org@home@x", &[]);
        check(machine_paths, "a", "@home@you@notes @homework@ @workshop", &[]);
    }

    #[test]
    fn each_note_and_an_ignored_test_are_found() {
        for needle in NOTES.iter().chain([&IGNORED]) {
            check(placeholders, "crates/a/src/b.rs", &format!("a\n{needle}"), &[2]);
            check(placeholders, "crates/a/tests/b.rs", &format!("a({needle}"), &[1]);
        }
        check(placeholders, "a.py", &format!("# {}: later", NOTES[0]), &[1]);
        check(placeholders, "a.rs", &format!("{IGNORED} = \"slow\"]"), &[1]);
    }

    #[test]
    fn part_of_a_word_is_not_a_note_and_prose_may_mention_them() {
        check(placeholders, "a.sh", &format!("mktemp a.{}{}", NOTES[2], NOTES[2]), &[]);
        check(placeholders, "a.rs", &format!("MY_{} {}S", NOTES[0], NOTES[0]), &[]);
        check(placeholders, "a.rs", "todo(); ignore!", &[]);
        check(placeholders, "notes.md", NOTES[0], &[]);
    }
}
