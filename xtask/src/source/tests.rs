//! Separation of test code from shipped code.

use super::*;

/// What is left of a file when its test code is taken out.
#[track_caller]
fn check(text: &str, shipped: &str) {
    let source = Source::read("crates/a/src/b.rs", text);
    let words: Vec<_> = source.shipped.iter().map(|t| t.text.as_str()).collect();
    assert_eq!(words.join(" "), shipped, "{text}");
}

#[test]
fn a_test_module_is_taken_out_and_what_follows_stays() {
    check("a; #[cfg(test)] mod tests { use super::*; fn f() {} } b;", "a ; b ;");
    check("a; #[cfg(test)] mod tests; b;", "a ; b ;");
    check("a; #[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod tests; b;", "a ; b ;");
}

#[test]
fn a_test_function_is_taken_out_in_each_spelling() {
    check("#[test] fn f() { g() } b;", "b ;");
    check("#[tokio::test] async fn f() {} b;", "b ;");
    check("#[tokio::test(flavor = \"multi_thread\")] async fn f<A, B>(a: A, b: B) {} b;", "b ;");
    check("#[cfg(test)] pub(crate) const fn f(a: [u8; 2]) -> X { X { a } } b;", "b ;");
}

#[test]
fn only_a_predicate_that_needs_test_makes_test_code() {
    check("#[cfg(all(test, unix))] mod a {} b;", "b ;");
    check("#[cfg(any(test))] mod a {} b;", "b ;");
    check("#[cfg(any(all(test, unix), all(windows, test)))] mod a {} b;", "b ;");
    let shipped = |attribute: &str| {
        let text = format!("#[{attribute}] fn a() {{}}");
        Source::read("crates/a/src/b.rs", &text).shipped.len() == Source::read("", &text).all.len()
    };
    for attribute in
        ["cfg(not(test))", "cfg(any(test, unix))", "cfg(unix)", "cfg()", "test_case(1)", "inline"]
    {
        assert!(shipped(attribute), "{attribute}");
    }
}

#[test]
fn an_item_ends_where_the_compiler_says() {
    check("#[cfg(test)] use a::{b, c}; d;", "d ;");
    check("#[cfg(test)] const A: B = B { c: 1 }; d;", "d ;");
    check("#[cfg(test)] static A: [u8; 2] = [1, 2]; d;", "d ;");
    check("#[cfg(test)] struct A(u8, u8); d;", "d ;");
    check("#[cfg(test)] struct A { b: u8 } d;", "d ;");
    check("#[cfg(test)] impl A<B, C> for D { } d;", "d ;");
    check("#[cfg(test)] macro_rules! a { () => {} } d;", "d ;");
}

#[test]
fn a_field_a_variant_or_an_arm_ends_at_its_comma() {
    check("struct A { #[cfg(test)] b: u8, c: u8 }", "struct A { , c : u8 }");
    check("enum A { B, #[cfg(test)] C }", "enum A { B , }");
    check(
        "match a { #[cfg(test)] B(1, 2) => f(1, 2), C => d }",
        "match a { , C => d }".replace("=>", "= >").as_str(),
    );
}

#[test]
fn unfinished_text_is_read_without_a_panic() {
    let text = "#[cfg(all(test, unix))] #[x] pub(crate) mod a { fn f(b: [u8; 2]) } #![cfg(test)] d";
    for (end, _) in text.char_indices() {
        Source::read("a.rs", &text[..end]);
    }
}

#[test]
fn an_inner_attribute_makes_the_whole_file_test_code() {
    check("#![cfg(test)] use a; fn b() {}", "");
    check("#![allow(x)] a;", "# ! [ allow ( x ) ] a ;");
}

#[test]
fn a_file_is_test_code_by_its_place() {
    for path in [
        "crates/a/tests/x.rs",
        "crates/a/src/b/tests.rs",
        "crates/a/src/b/tests/c.rs",
        "a/benches/b.rs",
    ] {
        assert!(is_test_path(path), "{path}");
        assert!(Source::read(path, "fn a() {}").is_test(), "{path}");
    }
    for path in ["crates/testkit/src/lib.rs", "crates/a/src/latests.rs", "src/contests/a.rs"] {
        assert!(!is_test_path(path), "{path}");
        assert!(!Source::read(path, "fn a() {}").is_test(), "{path}");
    }
    assert!(!Source::read("crates/a/src/b.rs", "// nothing yet").is_test());
}

#[test]
fn a_file_is_test_code_by_the_line_that_declares_it() {
    let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
    let files = [
        file("crates/a/src/lib.rs", "mod b; #[cfg(test)] mod fakes; mod fakeshop;"),
        file("crates/a/src/fakes.rs", "fn f() {}"),
        file("crates/a/src/fakes/inner.rs", "fn f() {}"),
        file("crates/a/src/fakeshop.rs", "fn f() {}"),
        file("crates/a/src/b.rs", "#[cfg(test)] mod pair; fn f() {}"),
        file("crates/a/src/b/pair.rs", "fn f() {}"),
        file("crates/a/src/pair.rs", "fn f() {}"),
        file("crates/a/README.md", "fn"),
    ];
    let tests: Vec<_> =
        read_all(&files).into_iter().filter(Source::is_test).map(|s| s.path).collect();
    assert_eq!(
        tests,
        ["crates/a/src/fakes.rs", "crates/a/src/fakes/inner.rs", "crates/a/src/b/pair.rs"]
    );
}
