//! Small crates with and without rings.

use super::*;

/// A crate as pairs of file and text, and the findings without their hints.
#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let paths: Vec<_> = files.iter().map(|(name, _)| format!("crates/x/src/{name}")).collect();
    let sources: Vec<_> =
        paths.iter().zip(files).map(|(path, (_, text))| Source::read(path, text)).collect();
    let found: Vec<_> = rings(&sources)
        .into_iter()
        .map(|f| {
            let file = f.path.trim_start_matches("crates/x/src/").to_owned();
            format!("{file}:{}: {}", f.line, f.what.trim_start_matches("modules in a ring: "))
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn two_modules_that_use_each_other_are_a_ring() {
    check(
        &[("a.rs", "\nuse crate::b::B;"), ("b.rs", "fn f() { crate::a::g() }")],
        &["a.rs:2: a -> b -> a"],
    );
}

#[test]
fn a_ring_of_three_is_found_once_with_its_other_places() {
    let sources = [
        Source::read("crates/x/src/a.rs", "use crate::b;"),
        Source::read("crates/x/src/b.rs", "use crate::{c, d};"),
        Source::read("crates/x/src/c.rs", "\n\nuse crate::a;"),
        Source::read("crates/x/src/d.rs", ""),
    ];
    let found = rings(&sources);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].what, "modules in a ring: a -> b -> c -> a");
    assert_eq!(
        found[0].hint,
        "cut one of the arrows; the others: crates/x/src/b.rs:1, crates/x/src/c.rs:3"
    );
}

#[test]
fn two_groups_of_rings_are_two_findings() {
    check(
        &[
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::a; use crate::c;"),
            ("c.rs", "use crate::d;"),
            ("d.rs", "use crate::c;"),
        ],
        &["a.rs:1: a -> b -> a", "c.rs:1: c -> d -> c"],
    );
}

#[test]
fn arrows_one_way_are_fine() {
    check(
        &[
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "use crate::b::B; use crate::c;"),
            ("b.rs", "use crate::c::C; use self::inner::X; mod inner {}"),
            ("c.rs", "use std::fmt; use other::crate_like; fn crate_() {}"),
        ],
        &[],
    );
}

#[test]
fn a_name_of_the_root_counts_as_the_module_it_comes_from() {
    let a = ("a.rs", "use crate::Bee;");
    let b = ("b.rs", "use crate::a::A;");
    let ring = &["a.rs:1: a -> b -> a"];
    check(&[("lib.rs", "mod a; mod b; pub use b::Bee;"), a, b], ring);
    check(&[("lib.rs", "pub use crate::b::{deep::Bee, Other};"), a, b], ring);
    check(&[("lib.rs", "pub(crate) use self::b::Wasp as Bee;"), a, b], ring);
    check(&[("main.rs", "use b::Bee;"), a, b], ring);
    check(&[("lib.rs", "use b::Bee::{self};"), a, b], ring);
    check(&[("lib.rs", "pub struct Bee;"), a, b], &[]);
    check(&[("lib.rs", "pub use b::Bumble;"), a, b], &[]);
    check(&[("lib.rs", "pub use other::Bee;"), a, b], &[]);
}

#[test]
fn a_folder_is_one_module_and_leaving_it_is_an_arrow() {
    check(
        &[("a/mod.rs", "mod x; mod y;"), ("a/x.rs", "use super::y;"), ("a/y.rs", "use super::x;")],
        &[],
    );
    let b = ("b.rs", "use crate::a;");
    check(&[("a/x.rs", "use super::super::b::B;"), b], &["a/x.rs:1: a -> b -> a"]);
    check(&[("a.rs", "use super::{b, c};"), b], &["a.rs:1: a -> b -> a"]);
    check(&[("a/x.rs", "use super::b::B;"), b], &[]);
}

#[test]
fn super_inside_an_inline_module_is_the_file_itself() {
    let b = ("b.rs", "use crate::a;");
    check(&[("a.rs", "mod inner { use super::b; }"), b], &[]);
    check(&[("a.rs", "mod inner { use super::super::b; }"), b], &["a.rs:1: a -> b -> a"]);
    check(&[("a.rs", "mod inner { fn f() {} } use super::b;"), b], &["a.rs:1: a -> b -> a"]);
}

#[test]
fn tests_comments_and_visibilities_are_not_arrows() {
    let b = ("b.rs", "use crate::a;");
    for a in [
        "#[cfg(test)] mod tests { use crate::b; }",
        "//! See [`crate::b`].\nlet x = \"crate::b\";",
        "pub(in crate::b) struct X;",
    ] {
        check(&[("a.rs", a), b], &[]);
    }
    check(&[("a/tests.rs", "use crate::b;"), b], &[]);
    check(&[("a.rs", "for x in crate::b::all() {}"), b], &["a.rs:1: a -> b -> a"]);
}

#[test]
fn every_binary_is_a_crate_of_its_own() {
    check(&[("bin/one.rs", "use crate::a;"), ("a.rs", "use crate::bin::x;")], &[]);
}

#[test]
fn two_crates_do_not_mix() {
    let sources = [
        Source::read("crates/x/src/a.rs", "use crate::b;"),
        Source::read("crates/y/src/b.rs", "use crate::a;"),
        Source::read("crates/x/src/b.rs", ""),
        Source::read("crates/y/src/a.rs", ""),
    ];
    assert_eq!(rings(&sources), []);
}
