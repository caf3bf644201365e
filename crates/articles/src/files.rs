//! The images and other files that articles refer to, by name.
//!
//! Obsidian writes the name of a file wherever in the vault it is (`![[Image.jpg]]`), and site generators
//! write paths that begin below the folder of their files (`/img/x.png` for `static/img/x.png`).

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;

use crate::folder::Folder;
use crate::format::{Format, media_type};
use crate::links::join;

/// The limit of files that are known by name. Further ones are found by their whole path only.
const MOST_FILES: usize = 100_000;

/// The files of a folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Their names in lower case, and their paths.
    all: BTreeSet<(Box<str>, Box<str>)>,
}

impl Files {
    /// Replaces the files at and below `root` (empty: all). Returns `None` if there are none,
    /// neither before nor after.
    pub(crate) fn replace(&self, root: &str, paths: Vec<Box<str>>) -> Option<Self> {
        let inside = |path: &str| {
            let rest = path.strip_prefix(root);
            root.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut all = self.all.iter().filter(|(_, path)| inside(path));
        if paths.is_empty() && all.next().is_none() {
            return None;
        }
        let kept = self.all.iter().filter(|(_, path)| !inside(path)).cloned();
        let new = paths.into_iter().map(|path| (name_of(&path).to_lowercase().into(), path));
        Some(Self { all: kept.chain(new).take(MOST_FILES).collect() })
    }

    /// Whether there are files that are never articles.
    pub(crate) fn has_others(&self) -> bool {
        self.all.iter().any(|(_, path)| Format::of(path).is_none())
    }

    /// The file that a path on the page `from` leads to.
    pub(crate) fn at(&self, path: &str, from: &str, folder: &Folder) -> Option<String> {
        let near = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = join(if path.starts_with('/') { "" } else { near }, path);
        let beside = beside.filter(|path| folder.has_file(path));
        let found = || self.find(path, from).filter(|path| folder.has_file(path));
        beside.or_else(|| found().map(str::to_owned))
    }

    /// The file that a path leads to by its last parts: the nearest one.
    fn find(&self, written: &str, from: &str) -> Option<&str> {
        let near = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let joined = join(near, written);
        let asked = join("", written).or(joined.clone())?.to_lowercase();
        let name: Box<str> = name_of(&asked).into();
        let same = self.all.range((name.clone(), "".into())..).take_while(|(it, _)| *it == name);
        let ends = |path: &&str| {
            let rest = path.to_lowercase();
            let rest = rest.strip_suffix(&asked).map(str::to_owned);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let rank = |path: &&str| (joined.as_deref() != Some(*path), path.len());
        same.map(|(_, path)| &**path).filter(ends).min_by_key(rank)
    }
}

/// The path in a link to a file of a known kind.
pub(crate) fn path_in(written: &str) -> Option<String> {
    let text = written.trim();
    let text = text.strip_prefix('!').unwrap_or(text);
    let path = match text.strip_prefix("[[").and_then(|text| text.strip_suffix("]]")) {
        Some(inside) => inside.split('|').next()?.trim_end_matches('\\').trim().into(),
        None => percent_decode_str(text).decode_utf8().ok()?,
    };
    // `#` and `?` may be letters of a name.
    let path = match media_type(&path) {
        None => path.split(['#', '?']).next()?,
        Some(_) => &path,
    };
    media_type(path).filter(|_| !path.contains("://")).map(|_| path.to_owned())
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Files {
        let paths = paths.iter().map(|path| (*path).into()).collect();
        Files::default().replace("", paths).unwrap_or_default()
    }

    #[test]
    fn a_file_is_found_by_the_end_of_its_path() {
        let all = files(&["Attachments/Big Cat.JPG", "static/img/x.png", "a/x.png", "b/c/x.png"]);
        for (written, from, found) in [
            ("Big Cat.jpg", "Notes/Cats", Some("Attachments/Big Cat.JPG")),
            ("attachments/big cat.jpg", "Notes/Cats", Some("Attachments/Big Cat.JPG")),
            ("/img/x.png", "a/page", Some("static/img/x.png")),
            ("x.png", "b/c/page", Some("b/c/x.png")),
            ("x.png", "elsewhere/page", Some("a/x.png")),
            ("../c/x.png", "b/d/page", Some("b/c/x.png")),
            ("../e/x.png", "b/d/page", None),
            ("mg/x.png", "a/page", None),
            ("cat.jpg", "Notes/Cats", None),
            ("", "a/page", None),
        ] {
            assert_eq!(all.find(written, from), found, "{written} on {from}");
        }
    }

    #[test]
    fn the_files_below_a_path_are_replaced() {
        let all = files(&["a/x.png", "a/b/y.png", "ab/z.png"]);
        assert!(all.replace("c", Vec::new()).is_none());
        let all = all.replace("a", vec!["a/new.png".into()]).unwrap();
        let paths: Vec<&str> = all.all.iter().map(|(_, path)| &**path).collect();
        assert_eq!(paths, ["a/new.png", "ab/z.png"]);
        let all = all.replace("ab/z.png", Vec::new()).unwrap();
        assert_eq!(all.find("z.png", ""), None);
        assert!(all.has_others() && !files(&["a.pdf"]).has_others());
    }
}
