//! Our own macros: few, and none exported. A definition should be code that a reader can follow.

use crate::finding::Finding;
use crate::source::Source;

/// In the whole workspace, tests included.
const AT_MOST: usize = 2;

/// At most two `macro_rules!`. If there are more, each is a finding.
pub(crate) fn own_macros(sources: &[Source<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in sources {
        for words in source.all.windows(3) {
            if words[0].is("macro_rules") && words[1].is("!") {
                found.push((source.path, words[0].line, words[2].text.as_str()));
            }
        }
    }
    if found.len() <= AT_MOST {
        return Vec::new();
    }
    let hint = format!("at most {AT_MOST} in the workspace: write a function");
    let each = found.iter().map(|(path, line, name)| {
        let what = format!("own macro `{name}`, one of {}", found.len());
        Finding::wrong(path, *line, what, &hint)
    });
    each.collect()
}

/// No `#[macro_export]`.
pub(crate) fn exported_macros(source: &Source<'_>) -> Vec<Finding> {
    let exports = source.all.iter().filter(|token| token.is("macro_export"));
    let hint = "use a macro only in its own crate";
    exports.map(|token| Finding::wrong(source.path, token.line, "exported macro", hint)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACRO: &str = "\nmacro_rules! shout { () => {} }";

    #[test]
    fn two_macros_are_allowed_and_three_are_not() {
        let sources = ["a.rs", "tests/b.rs", "c.rs"].map(|path| Source::read(path, MACRO));
        assert_eq!(own_macros(&sources[..AT_MOST]), []);
        let found = own_macros(&sources);
        let places: Vec<_> = found.iter().map(|f| (f.path.as_str(), f.line)).collect();
        assert_eq!(places, [("a.rs", 2), ("tests/b.rs", 2), ("c.rs", 2)]);
        assert_eq!(found[0].what, "own macro `shout`, one of 3");
    }

    #[test]
    fn using_or_mentioning_a_macro_is_fine() {
        let text = "println!(); // macro_rules! x\nlet a = \"macro_rules! y {}\"; matches!(a, b)";
        let sources = [1, 2, 3].map(|_| Source::read("a.rs", text));
        assert_eq!(own_macros(&sources), []);
    }

    #[test]
    fn no_macro_is_exported() {
        let check = |text| exported_macros(&Source::read("a.rs", text)).len();
        assert_eq!(check("#[macro_export]\nmacro_rules! a { () => {} }"), 1);
        assert_eq!(check("#[macro_export(local_inner_macros)]"), 1);
        assert_eq!(check(MACRO), 0);
        assert_eq!(check("// #[macro_export]"), 0);
    }
}
