//! Lock files name the official registries, not a mirror.

use crate::finding::Finding;
use crate::tree::File;

const CARGO: &[&str] =
    &["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];
const NPM: &[&str] = &["https://registry.npmjs.org/"];
const PYPI: &[&str] = &["https://pypi.org/", "https://files.pythonhosted.org/"];

/// Every package source in a lock file is an official registry.
pub(crate) fn registries(file: &File) -> Vec<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let (official, origin): (_, fn(&str) -> Vec<&str>) = match name {
        "Cargo.lock" => (CARGO, cargo_source),
        "package-lock.json" | "npm-shrinkwrap.json" => (NPM, npm_resolved),
        _ if name.starts_with("requirements") && name.ends_with(".txt") => (PYPI, pip_addresses),
        _ => return Vec::new(),
    };
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for place in origin(line) {
            if !official.iter().any(|registry| place.starts_with(registry)) {
                let what = format!("taken from `{place}`");
                let hint = format!("lock against {}", official[0]);
                findings.push(Finding::wrong(&file.path, number, what, hint));
            }
        }
    }
    findings
}

/// `source = "…"`. A crate of our own has none.
fn cargo_source(line: &str) -> Vec<&str> {
    line.strip_prefix("source = ").map(|source| source.trim_matches('"')).into_iter().collect()
}

/// `"resolved": "…"`. A folder of our own is a relative path.
fn npm_resolved(line: &str) -> Vec<&str> {
    let values = line.split("\"resolved\"").skip(1).filter_map(|rest| rest.split('"').nth(1));
    values.filter(|place| place.contains(':')).collect()
}

/// Every address outside a comment, and every folder that wheels are taken from.
fn pip_addresses(line: &str) -> Vec<&str> {
    let line = line.trim();
    let code = if line.starts_with('#') { "" } else { line.split(" #").next().unwrap_or(line) };
    let mut words = code.split([' ', '=', '\t']).filter(|word| !word.is_empty()).peekable();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let is_option = matches!(
            word,
            "-i" | "--index-url" | "--extra-index-url" | "-f" | "--find-links" | "--trusted-host"
        );
        if is_option {
            found.extend(words.next());
        } else if word.contains("://") {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = registries(&File { path: path.into(), text: text.into() });
        let found: Vec<_> = found.iter().map(|f| format!("{} {}", f.line, f.what)).collect();
        assert_eq!(found, expected, "{path}: {text}");
    }

    #[test]
    fn cargo_takes_from_crates_io() {
        let lock = |source: &str| format!("[[package]]\nname = \"a\"\nsource = \"{source}\"\n");
        for official in CARGO {
            check("Cargo.lock", &lock(official), &[]);
        }
        check("Cargo.lock", "[[package]]\nname = \"sabir-sources\"\n", &[]);
        check(
            "clients/rmcp/Cargo.lock",
            &lock("registry+https://mirror.example/index"),
            &["3 taken from `registry+https://mirror.example/index`"],
        );
        check(
            "Cargo.lock",
            &lock("git+https://github.com/a/b#c"),
            &["3 taken from `git+https://github.com/a/b#c`"],
        );
    }

    #[test]
    fn npm_takes_from_its_registry() {
        let lock = |place: &str| format!("{{\n \"resolved\": \"{place}\",\n}}");
        check("a/package-lock.json", &lock("https://registry.npmjs.org/a/-/a-1.tgz"), &[]);
        check("package-lock.json", &lock("../tools"), &[]);
        check("package-lock.json", "{\"version\": \"1\"}", &[]);
        for mirror in [
            "http://10.0.0.1:8080/a.tgz",
            "http://registry.npmjs.org/a",
            "https://registry.npmjs.org.example/a",
            "git+ssh://git@github.com/a/b.git",
            "file:../a.tgz",
        ] {
            check("package-lock.json", &lock(mirror), &[&format!("2 taken from `{mirror}`")]);
        }
        check(
            "package-lock.json",
            "{\"resolved\":\"https://x/a\"},{\"resolved\":\"https://y/b\"}",
            &["1 taken from `https://x/a`", "1 taken from `https://y/b`"],
        );
    }

    #[test]
    fn pip_takes_from_pypi() {
        check(
            "requirements.txt",
            "mcp==2.3.0 --hash=sha256:ab\n# see https://x.org\na # http://y",
            &[],
        );
        check("requirements-dev.txt", "-i https://pypi.org/simple\n", &[]);
        check("requirements.txt", "a @ https://files.pythonhosted.org/a.whl", &[]);
        check(
            "requirements.txt",
            "\n--index-url=http://mirror/simple",
            &["2 taken from `http://mirror/simple`"],
        );
        check(
            "requirements.txt",
            "--extra-index-url https://a.org/simple\na @ https://b.org/a.whl",
            &["1 taken from `https://a.org/simple`", "2 taken from `https://b.org/a.whl`"],
        );
        check(
            "requirements.txt",
            "--find-links wheels\n--trusted-host a.org",
            &["1 taken from `wheels`", "2 taken from `a.org`"],
        );
    }

    #[test]
    fn other_files_may_name_any_address() {
        check("package.json", "\"resolved\": \"http://x\"", &[]);
        check("notes.txt", "-i http://x", &[]);
    }
}
