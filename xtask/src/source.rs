//! One Rust file, its test code separated from its shipped code.
//!
//! Test code is: a file under `tests/` or `benches/`, a file named `tests.rs`, a file whose `mod`
//! line is `#[cfg(test)]`, and in any other file each item under `#[cfg(test)]` or `#[test]`
//! (`#[tokio::test]` too). A rule that ignores tests reads [`Source::shipped`].

use std::collections::HashSet;
use std::ops::Range;

use crate::tokens::{Kind, Token, tokens};
use crate::tree::File;

/// A Rust file as its tokens.
pub(crate) struct Source<'t> {
    pub(crate) path: &'t str,
    pub(crate) text: &'t str,
    /// Every token.
    pub(crate) all: Vec<Token>,
    /// The tokens that are not test code.
    pub(crate) shipped: Vec<Token>,
    /// The ranges of the test items in `all`.
    pub(crate) test_items: Vec<Range<usize>>,
}

impl<'t> Source<'t> {
    /// Reads one file. A `#[cfg(test)] mod` line in another file is seen by [`read_all`] only.
    pub(crate) fn read(path: &'t str, text: &'t str) -> Self {
        let all = tokens(text);
        let test_items = test_items(&all);
        let mut source = Self { path, text, all, shipped: Vec::new(), test_items };
        if !is_test_path(path) {
            let in_tests = |at: usize| source.test_items.iter().any(|item| item.contains(&at));
            let tokens = source.all.iter().enumerate();
            source.shipped =
                tokens.filter(|(at, _)| !in_tests(*at)).map(|(_, t)| t.clone()).collect();
        }
        source
    }

    /// Is the whole file test code?
    pub(crate) fn is_test(&self) -> bool {
        self.shipped.is_empty() && !self.all.is_empty()
    }

    /// The file and the folder of each `#[cfg(test)] mod name;`.
    fn test_children(&self) -> impl Iterator<Item = [String; 2]> {
        let folder = match self.path.rsplit_once('/').unwrap_or(("", self.path)) {
            (parent, "lib.rs" | "main.rs" | "mod.rs") => parent,
            _ => self.path.trim_end_matches(".rs"),
        };
        let items = self.test_items.iter().map(|item| &self.all[item.clone()]);
        items.filter_map(move |item| match item {
            [.., keyword, name, end] if keyword.is("mod") && end.is(";") => {
                Some([format!("{folder}/{}.rs", name.text), format!("{folder}/{}/", name.text)])
            }
            _ => None,
        })
    }
}

/// Reads every Rust file of the tree.
pub(crate) fn read_all(files: &[File]) -> Vec<Source<'_>> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut sources: Vec<_> = rust.map(|file| Source::read(&file.path, &file.text)).collect();
    let children: Vec<_> = sources.iter().flat_map(Source::test_children).collect();
    let files: HashSet<&str> = children.iter().map(|[file, _]| file.as_str()).collect();
    for source in &mut sources {
        let in_folder = || children.iter().any(|[_, folder]| source.path.starts_with(folder));
        if files.contains(source.path) || in_folder() {
            source.shipped.clear();
        }
    }
    sources
}

/// Is this a test file by its path?
pub(crate) fn is_test_path(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    name == "tests.rs" || folders.split('/').any(|f| matches!(f, "tests" | "tests.d" | "benches"))
}

/// Finds the outermost items under a test attribute, attribute included.
fn test_items(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match attribute(tokens, at) {
            Some(Attribute { body, inner: true }) if is_test_attribute(&tokens[body.clone()]) => {
                items.push(at..tokens.len());
                break;
            }
            Some(Attribute { body, inner: false }) if is_test_attribute(&tokens[body.clone()]) => {
                let end = item_end(tokens, body.end + 1);
                items.push(at..end);
                at = end;
            }
            Some(Attribute { body, .. }) => at = body.end + 1,
            None => at += 1,
        }
    }
    items
}

struct Attribute {
    /// Between the brackets.
    body: Range<usize>,
    /// `#![…]` rather than `#[…]`.
    inner: bool,
}

fn attribute(tokens: &[Token], at: usize) -> Option<Attribute> {
    let is = |at: usize, mark| tokens.get(at).is_some_and(|t: &Token| t.is(mark));
    let inner = is(at + 1, "!");
    let open = at + 1 + usize::from(inner);
    (is(at, "#") && is(open, "["))
        .then(|| Attribute { body: open + 1..group_end(tokens, open) - 1, inner })
}

/// The index after the bracket that closes the one at `open`.
fn group_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            _ if token.kind != Kind::Mark => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth <= 1 => return at + 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len() + 1
}

/// `cfg(test)`, `cfg(all(test, …))`, `test`, `tokio::test`, `tokio::test(…)`.
fn is_test_attribute(body: &[Token]) -> bool {
    if body.first().is_some_and(|t| t.is("cfg")) {
        return body.len() > 3 && needs_test(&body[2..body.len() - 1]);
    }
    let path = body.iter().take_while(|t| t.kind == Kind::Word || t.is("::"));
    path.last().is_some_and(|t| t.is("test"))
}

/// Can this `cfg` predicate hold in test builds only?
fn needs_test(predicate: &[Token]) -> bool {
    match predicate {
        [word] => word.is("test"),
        [word, open, inner @ .., _] if open.is("(") => match word.text.as_str() {
            "all" => arguments(inner).into_iter().any(needs_test),
            "any" => arguments(inner).into_iter().all(needs_test),
            _ => false,
        },
        _ => false,
    }
}

fn arguments(tokens: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0usize;
    let parts = tokens.split(|token| {
        match token.text.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.is(",")
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// The end of the item whose attributes end before `at`: after its `;` or its block, or, for a
/// field, variant or match arm, before the next comma or closing bracket.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while let Some(next) = attribute(tokens, at) {
        at = next.body.end + 1;
    }
    let Some(first) = tokens[at.min(tokens.len())..].iter().position(|t| !is_visibility(t)) else {
        return tokens.len();
    };
    let head = &tokens[at + first..];
    let is_const_fn = head.iter().take(4).any(|t| t.is("fn"));
    // A block in one of these belongs to its value, or groups imports.
    let ends_at_semicolon = matches!(head[0].text.as_str(), "use" | "static" | "type" | "let")
        || head[0].is("const") && !is_const_fn;
    let is_item = head[0].kind == Kind::Word && ITEM_WORDS.contains(&head[0].text.as_str());
    while at < tokens.len() {
        at = match tokens[at].text.as_str() {
            _ if tokens[at].kind != Kind::Mark => at + 1,
            ";" => return at + 1,
            "}" | ")" | "]" => return at,
            "," if !is_item && !ends_at_semicolon => return at,
            "{" if !ends_at_semicolon => return group_end(tokens, at).min(tokens.len()),
            "{" | "(" | "[" => group_end(tokens, at),
            _ => at + 1,
        };
    }
    tokens.len()
}

fn is_visibility(token: &Token) -> bool {
    ["pub", "(", ")", "crate", "super", "self"].iter().any(|text| token.is(text))
}

/// The first words of items whose heads may contain a comma.
const ITEM_WORDS: &[&str] = &[
    "fn",
    "mod",
    "impl",
    "struct",
    "enum",
    "union",
    "trait",
    "unsafe",
    "async",
    "extern",
    "const",
    "macro_rules",
];

#[cfg(test)]
mod tests;
