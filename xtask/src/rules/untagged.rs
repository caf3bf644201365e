//! No `untagged` types: serde tries one variant after another, and its error message does not say
//! what is wrong with any of them.

use crate::finding::Finding;
use crate::source::Source;
use crate::tokens::Token;

/// `#[serde(untagged)]` only under a line `// untagged: reason`.
pub(crate) fn untagged(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, token) in source.all.iter().enumerate() {
        if !token.is("untagged") {
            continue;
        }
        let Some(line) = serde_attribute(&source.all[..at]) else { continue };
        if !has_reason(source.text, line) {
            let hint = "read the tag first, or give the reason in a line `// untagged: …` above it";
            findings.push(Finding::wrong(source.path, line, "untagged type", hint));
        }
    }
    findings
}

/// The line of the attribute that is still open at the end of `before`, if it is serde's.
fn serde_attribute(before: &[Token]) -> Option<usize> {
    let open = before.windows(2).rposition(|pair| pair[0].is("#") && pair[1].is("["))?;
    let inside = &before[open + 2..];
    let closed = inside.iter().any(|token| token.is("]"));
    let serde = inside.iter().any(|token| token.is("serde"));
    (serde && !closed).then(|| before[open].line)
}

fn has_reason(text: &str, line: usize) -> bool {
    let above = line.checked_sub(2).and_then(|above| text.lines().nth(above)).unwrap_or_default();
    above.trim().strip_prefix("// untagged:").is_some_and(|reason| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, lines: &[usize]) {
        let found: Vec<_> = untagged(&Source::read("a.rs", text)).iter().map(|f| f.line).collect();
        assert_eq!(found, lines, "{text}");
    }

    #[test]
    fn without_a_reason_it_is_refused() {
        check("#[serde(untagged)]\nenum A {}", &[1]);
        check("#[derive(X)]\n#[serde(rename_all = \"camelCase\", untagged)]\nenum A {}", &[2]);
        check("\n#[cfg_attr(x, serde(untagged))]\nenum A {}", &[2]);
        check("#[serde(\n  untagged\n)]\nenum A {}", &[1]);
        check("enum A {\n #[serde(untagged)]\n Other(X) }", &[2]);
    }

    #[test]
    fn the_reason_is_on_the_line_above_and_not_empty() {
        check("// untagged: a number or a string\n#[serde(untagged)]\nenum Id {}", &[]);
        check("// untagged: \n#[serde(untagged)]\nenum Id {}", &[2]);
        check("// a number or a string\n#[serde(untagged)]\nenum Id {}", &[2]);
        check("// untagged: too far up\n#[derive(X)]\n#[serde(untagged)]\nenum Id {}", &[3]);
    }

    #[test]
    fn the_word_alone_is_ignored() {
        check("fn untagged() {}\n#[serde(tag = \"x\")]\nstruct A { untagged: u8 }", &[]);
        check("// #[serde(untagged)]\nlet a = \"#[serde(untagged)]\";", &[]);
    }
}
