//! The paths that code names: `a::{b, c::d as e}` is `a::b` and `a::c::d`.
//!
//! The same reader serves imports and expressions, because a path in an expression
//! is an import tree without braces.

use crate::tokens::{Kind, Token};

/// One path, and the name that it is imported under.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named<'t> {
    /// The last one is `*` for a glob and `self` for the module itself.
    pub(crate) segments: Vec<&'t str>,
    /// The name after `as`.
    pub(crate) alias: Option<&'t str>,
    pub(crate) line: usize,
}

impl Named<'_> {
    pub(crate) fn is_glob(&self) -> bool {
        self.segments.last() == Some(&"*")
    }
}

/// One `use` statement.
pub(crate) struct Import<'t> {
    /// Any `pub`, `pub(crate)` included.
    pub(crate) public: bool,
    /// `pub` without a restriction.
    pub(crate) exported: bool,
    pub(crate) paths: Vec<Named<'t>>,
}

/// Every `use` statement, inside functions too.
pub(crate) fn imports<'t>(tokens: &'t [Token]) -> Vec<Import<'t>> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        // `use<'a>` is a bound, not a statement.
        if token.is("use") && !tokens.get(at + 1).is_some_and(|t| t.is("<")) {
            let exported = at > 0 && tokens[at - 1].is("pub");
            let public = exported || at > 0 && tokens[at - 1].is(")");
            found.push(Import { public, exported, paths: tree(tokens, at + 1) });
        }
    }
    found
}

/// Every path, in imports and elsewhere, that begins with one of `heads`.
/// Each comes with the index of its first token.
pub(crate) fn beginning_with<'t>(tokens: &'t [Token], heads: &[&str]) -> Vec<(usize, Named<'t>)> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_head = token.kind == Kind::Word && heads.contains(&token.text.as_str());
        let goes_on = tokens.get(at + 1).is_some_and(|t| t.is("::"));
        let before = |n: usize| at.checked_sub(n).map(|at| &tokens[at]);
        // `a::std::b` is not a path into `std`; `::std::b` is.
        let in_midst = before(1).is_some_and(|t| t.is("::"))
            && before(2).is_some_and(|t| t.kind == Kind::Word && !t.is("use"));
        if is_head && goes_on && !in_midst {
            found.extend(tree(tokens, at).into_iter().map(|path| (at, path)));
        }
    }
    found
}

fn tree<'t>(tokens: &'t [Token], mut at: usize) -> Vec<Named<'t>> {
    let mut found = Vec::new();
    if tokens.get(at).is_some_and(|t| t.is("::")) {
        at += 1;
    }
    branch(tokens, at, Vec::new(), &mut found);
    found
}

/// Reads what may follow a `::` and returns the index after it.
fn branch<'t>(
    tokens: &'t [Token],
    mut at: usize,
    mut segments: Vec<&'t str>,
    found: &mut Vec<Named<'t>>,
) -> usize {
    loop {
        let Some(token) = tokens.get(at) else { return at };
        let line = token.line;
        match token.text.as_str() {
            "{" => return group(tokens, at + 1, &segments, found),
            "*" => {
                segments.push("*");
                found.push(Named { segments, alias: None, line });
                return at + 1;
            }
            _ if token.kind == Kind::Word => segments.push(&token.text),
            // `a::<T>` ends the path before the arguments.
            _ => {
                if !segments.is_empty() {
                    found.push(Named { segments, alias: None, line });
                }
                return at;
            }
        }
        at += 1;
        if tokens.get(at).is_some_and(|t| t.is("::")) {
            at += 1;
            continue;
        }
        let renamed = tokens.get(at).is_some_and(|t| t.is("as"));
        let alias = renamed.then(|| tokens.get(at + 1).map(|t| t.text.as_str())).flatten();
        found.push(Named { segments, alias, line });
        return if renamed { at + 2 } else { at };
    }
}

fn group<'t>(
    tokens: &'t [Token],
    mut at: usize,
    segments: &[&'t str],
    found: &mut Vec<Named<'t>>,
) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "}" => return at + 1,
            "," => at += 1,
            // Always advances, even over a token that no import can contain.
            _ => at = branch(tokens, at, segments.to_vec(), found).max(at + 1),
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn show(path: &Named<'_>) -> String {
        let alias = path.alias.map(|alias| format!(" as {alias}")).unwrap_or_default();
        format!("{}{alias}", path.segments.join("::"))
    }

    #[track_caller]
    fn check_imports(text: &str, expected: &[&str]) {
        let found: Vec<_> =
            imports(&tokens(text)).iter().flat_map(|i| &i.paths).map(show).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn an_import_tree_is_expanded() {
        check_imports("use a::b;", &["a::b"]);
        check_imports(
            "use a::{b, c::{d, e as f}, self};",
            &["a::b", "a::c::d", "a::c::e as f", "a::self"],
        );
        check_imports("use {a::b, ::c::*};", &["a::b", "c::*"]);
        check_imports("use ::a::b as _; use c;", &["a::b as _", "c"]);
        check_imports("fn f() -> impl X + use<'a> {}", &[]);
        check_imports("use a::{b, = ;};", &["a::b", "a", "a"]);
    }

    #[test]
    fn visibility_is_read() {
        let tokens = tokens("pub use a; pub(crate) use b; use c; fn f() { use d; }");
        let found: Vec<_> = imports(&tokens).iter().map(|i| (i.public, i.exported)).collect();
        assert_eq!(found, [(true, true), (true, false), (false, false), (false, false)]);
    }

    #[track_caller]
    fn check_heads(text: &str, expected: &[&str]) {
        let found: Vec<_> =
            beginning_with(&tokens(text), &["std", "crate"]).iter().map(|(_, p)| show(p)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn paths_are_found_in_imports_and_in_expressions() {
        check_heads(
            "use std::{fs, io::Read}; crate::a::f(1)",
            &["std::fs", "std::io::Read", "crate::a::f"],
        );
        check_heads("let x = crate::a::X::<u8>::new();", &["crate::a::X"]);
        check_heads(
            "use ::std::fs; ::std::net::x; f(::crate::y)",
            &["std::fs", "std::net::x", "crate::y"],
        );
        check_heads("a::std::fs; std; std.fs; \"std::fs\"", &[]);
    }

    #[test]
    fn a_path_has_its_own_line() {
        let text = "use crate::{\n a,\n b::c,\n};";
        let lines: Vec<_> =
            beginning_with(&tokens(text), &["crate"]).iter().map(|(_, p)| p.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
