//! The files that may compare protocol revisions, and the one that writes their dates. All other code
//! handles the newest revision only and does not know which one the client uses.

use crate::finding::Finding;
use crate::source::Source;
use crate::tokens::{Kind, Token};

/// The files that may behave differently by revision. A name that ends in `/` is a folder.
const MAY_COMPARE: &[&str] = &[
    DATES_ARE_WRITTEN_IN,
    "crates/wire/src/render.rs",
    "crates/wire/src/render/",
    "crates/session/src/handshake.rs",
    "crates/session/src/rounds.rs",
    "crates/transports/src/http/session.rs",
];

/// The one file that writes the dates.
const DATES_ARE_WRITTEN_IN: &str = "crates/wire/src/revision.rs";

/// The revisions, as the specification writes them.
const DATES: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The dates of the protocol are written in one file.
pub(crate) fn dates(source: &Source<'_>) -> Vec<Finding> {
    if !is_checked(source.path) || source.path == DATES_ARE_WRITTEN_IN {
        return Vec::new();
    }
    let literals = source.shipped.iter().filter(|token| token.kind == Kind::Literal);
    let dated = literals.flat_map(|token| {
        let found = DATES.iter().flat_map(|date| token.text.match_indices(date));
        found.map(|(at, date)| (token.line + token.text[..at].matches('\n').count(), date))
    });
    dated
        .map(|(line, date)| {
            let what = format!("the protocol date {date} outside {DATES_ARE_WRITTEN_IN}");
            Finding::wrong(source.path, line, what, "use `Revision`")
        })
        .collect()
}

/// Revisions are compared in a few files.
pub(crate) fn comparisons(source: &Source<'_>) -> Vec<Finding> {
    if !is_checked(source.path) || MAY_COMPARE.iter().any(|place| covers(place, source.path)) {
        return Vec::new();
    }
    let code = &source.shipped;
    let compared = (0..code.len()).filter(|at| is_variant(code, *at) || is_compared(code, *at));
    compared
        .map(|at| {
            let what = format!("comparison with the revision `{}`", code[at].text);
            let hint = "ask `wire` what the revision supports; MAY_COMPARE in \
                        xtask/src/rules/revisions.rs lists the files that may compare";
            Finding::wrong(source.path, code[at].line, what, hint)
        })
        .collect()
}

/// `Revision::V…` in any spelling: after `Self::`, or bare after a glob import too.
fn is_variant(code: &[Token], at: usize) -> bool {
    let Some(rest) = code[at].text.strip_prefix('V') else { return false };
    let begins = |digits: usize| {
        rest.len() >= digits && rest.bytes().take(digits).all(|b| b.is_ascii_digit())
    };
    let dated = rest.starts_with("20") && begins(4);
    code[at].kind == Kind::Word && (dated || is_of_revision(code, at) && begins(1))
}

/// A constant such as `Revision::NEWEST` beside a comparison, or as the pattern of an arm.
fn is_compared(code: &[Token], at: usize) -> bool {
    let is_constant = code[at].text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    if !is_constant || !is_of_revision(code, at) || is_variant(code, at) {
        return false;
    }
    let mut head = at;
    while head >= 2 && code[head - 1].is("::") && code[head - 2].kind == Kind::Word {
        head -= 2;
    }
    let any = |token: &Token, marks: &[&str]| marks.iter().any(|mark| token.is(mark));
    let equals = |a: &Token, b: &Token| any(a, &["=", "!", "<", ">"]) && b.is("=");
    let before = match &code[..head] {
        // After `=>` and `->` it is a value.
        [.., a, b] => equals(a, b) || any(b, &["<", ">"]) && !any(a, &["=", "-"]),
        _ => false,
    };
    let after = match &code[at + 1..] {
        [a, b, ..] => equals(a, b) || any(a, &["<", ">"]) || a.is("=") && b.is(">"),
        _ => false,
    };
    before || after
}

fn is_of_revision(code: &[Token], at: usize) -> bool {
    matches!(&code[..at], [.., name, colons] if name.is("Revision") && colons.is("::"))
}

fn is_checked(path: &str) -> bool {
    path.starts_with("crates/") && !path.starts_with("crates/testkit/")
}

fn covers(place: &str, path: &str) -> bool {
    place == path || place.ends_with('/') && path.starts_with(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&Source<'_>) -> Vec<Finding>;

    #[track_caller]
    fn check(rule: Rule, path: &str, text: &str, lines: &[usize]) {
        let found: Vec<_> = rule(&Source::read(path, text)).iter().map(|f| f.line).collect();
        assert_eq!(found, lines, "{path}: {text}");
    }

    const INSIDE: &str = "crates/engine/src/router.rs";

    #[test]
    fn each_date_is_refused_in_code() {
        for date in DATES {
            check(dates, INSIDE, &format!("a;\nlet a = \"{date}\";"), &[2]);
        }
        check(dates, INSIDE, "let a = r#\"\n x\n 2025-06-18 \"#;", &[3]);
        check(dates, INSIDE, "include_str!(\"schema/2026-07-28.json\")", &[1]);
        check(dates, "crates/wire/src/render.rs", "\"2025-06-18\"", &[1]);
    }

    #[test]
    fn dates_in_comments_tests_and_other_folders_are_fine() {
        check(dates, DATES_ARE_WRITTEN_IN, "\"2025-06-18\"", &[]);
        check(dates, INSIDE, "/// Since 2025-06-18.\n// 2025-06-18\nfn a() {}", &[]);
        check(dates, INSIDE, "#[cfg(test)] mod tests { const A: &str = \"2025-06-18\"; }", &[]);
        check(dates, "crates/engine/src/router/tests.rs", "\"2025-06-18\"", &[]);
        check(dates, "crates/engine/tests/a.rs", "\"2025-06-18\"", &[]);
        check(dates, "crates/testkit/src/lib.rs", "\"2025-06-18\"", &[]);
        check(dates, "conformance/src/main.rs", "\"2025-06-18\"", &[]);
        check(dates, INSIDE, "\"2025-06-19\"", &[]);
    }

    #[test]
    fn a_comparison_is_refused_in_each_spelling() {
        for code in [
            "if revision >= Revision::V2025_06_18 {}",
            "matches!(r, Revision::V2024_11_05)",
            "match r { wire::Revision::V2025_03_26 => 1, _ => 2 }",
            "match self { Self::V2025_03_26 => 1 }",
            "use Revision::*; r == V2025_03_26",
            "use Revision::{V2025_03_26};",
            "Revision::V1",
            "if r == Revision::NEWEST {}",
            "if r != wire::Revision::NEWEST {}",
            "r < Revision::NEWEST",
            "r >= Revision::NEWEST",
            "Revision::NEWEST_LEGACY <= r",
            "Revision::NEWEST_LEGACY > r",
            "match r { Revision::NEWEST => 1, _ => 2 }",
        ] {
            check(comparisons, INSIDE, code, &[1]);
        }
    }

    #[test]
    fn the_listed_files_and_tests_may_compare() {
        let code = "if r < Revision::V2025_06_18 {}";
        for path in MAY_COMPARE {
            let file = path.strip_suffix('/').map_or((*path).into(), |p| format!("{p}/tools.rs"));
            check(comparisons, &file, code, &[]);
        }
        check(comparisons, "crates/session/src/phase.rs", code, &[1]);
        check(comparisons, "crates/wire/src/renderish.rs", code, &[1]);
        check(comparisons, "crates/testkit/src/lib.rs", code, &[]);
        check(comparisons, "crates/session/tests/a.rs", code, &[]);
        check(comparisons, "bench/src/main.rs", code, &[]);
        check(comparisons, INSIDE, &format!("#[test] fn f() {{ {code} }}"), &[]);
    }

    #[test]
    fn a_constant_may_be_passed_on() {
        check(comparisons, INSIDE, "let a = Revision::NEWEST; f(Revision::NEWEST, b)", &[]);
        check(comparisons, INSIDE, "match a { x => wire::Revision::NEWEST, y => z }", &[]);
        check(comparisons, INSIDE, "a == Revision::parse(b)", &[]);
    }

    #[test]
    fn other_names_are_not_revisions() {
        check(
            comparisons,
            INSIDE,
            "Revision::VALUES; Revision::LATEST; Ip::V4; V20; Value::V2",
            &[],
        );
        check(comparisons, INSIDE, "// Revision::V2025_06_18\n\"Revision::V2025_06_18\"", &[]);
    }
}
