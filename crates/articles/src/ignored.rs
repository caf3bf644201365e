//! Files that are left out: by the settings, and by `.gitignore` and `.ignore` in the folder. Where the
//! folder is part of a git repository, also by those of the folders above it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::regular;

/// The files with rules. The later one wins.
pub(crate) const FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The largest file with rules, in bytes. The rest of a larger one is not read.
const LARGEST: u64 = 1 << 20;

/// Folders of dependencies, whose documents are not the author's.
const DEPENDENCIES: &str = "node_modules";

/// Which files are left out by the settings. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// `None`: all.
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Rules {
    /// Rules from globs that are relative to the folder.
    pub(crate) fn new(include: &[String], exclude: &[String]) -> Result<Self, globset::Error> {
        let include = if include.is_empty() { None } else { Some(globs(include)?) };
        Ok(Self { include, exclude: globs(exclude)? })
    }

    pub(crate) fn leaves_out(&self, path: &str, is_folder: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let included = self.include.as_ref().is_none_or(|globs| is_folder || globs.is_match(path));
        !included || self.exclude.is_match(path) || (is_folder && name == DEPENDENCIES)
    }
}

/// A glob matches a file, a folder of that name and everything in it.
fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_end_matches('/');
        globs.add(Glob::new(pattern)?);
        globs.add(Glob::new(&format!("{pattern}/**"))?);
    }
    globs.build()
}

/// The rules in one folder.
#[derive(Clone, Debug)]
pub(crate) struct IgnoreFile {
    /// The folder, with a `/` at the end, or empty.
    folder: String,
    /// Of rules from above the folder of articles: the path from there to it, with a `/` at the end.
    above: String,
    rules: Arc<Gitignore>,
}

impl IgnoreFile {
    /// The rules above a folder, up to the top of its git repository. There are none if they leave out
    /// the folder itself: its files were asked for by name.
    pub(crate) fn above(folder: &Path) -> Vec<Self> {
        let Some(top) = folder.ancestors().find(|parent| parent.join(".git").exists()) else {
            return Vec::new();
        };
        let mut parents: Vec<&Path> = folder.ancestors().skip(1).collect();
        parents.retain(|parent| parent.starts_with(top));
        let mut all: Vec<(&Path, Self)> = Vec::new();
        for parent in parents.into_iter().rev() {
            let path = folder.strip_prefix(parent).ok().and_then(Path::to_str);
            let dir = Dir::open_ambient_dir(parent, ambient_authority());
            let (Some(path), Ok(dir)) = (path, dir) else { continue };
            let above = format!("{path}/");
            let rules = Self::read(&dir, "").map(|file| Self { above: above.clone(), ..file });
            all.extend(rules.map(|file| (parent, file)));
        }
        let is_left_out = folder.ancestors().take_while(|at| *at != top).any(|at| {
            let decided = |(parent, file): &(&Path, Self)| {
                let path = at.strip_prefix(parent).ok()?.to_str()?;
                file.decides_on(path, true).filter(|_| !path.is_empty())
            };
            all.iter().rev().find_map(decided).unwrap_or(false)
        });
        if is_left_out { Vec::new() } else { all.into_iter().map(|(_, file)| file).collect() }
    }

    /// The rules in a folder, in the order in which they win.
    pub(crate) fn read(dir: &Dir, path: &str) -> impl Iterator<Item = Self> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        FILES.into_iter().filter_map(move |name| {
            let mut text = Vec::new();
            regular::open(dir, name).ok()?.take(LARGEST).read_to_end(&mut text).ok()?;
            let mut rules = GitignoreBuilder::new("");
            for line in String::from_utf8_lossy(&text).lines() {
                // An invalid line is ignored, as git does.
                let _ = rules.add_line(None, line);
            }
            let rules = Arc::new(rules.build().ok()?);
            Some(Self { folder: folder.clone(), above: String::new(), rules })
        })
    }

    /// Whether the rules leave a path out; `None` if they say nothing.
    pub(crate) fn decides(&self, path: &str, is_folder: bool) -> Option<bool> {
        let inside = path.strip_prefix(&self.folder)?;
        match self.above.as_str() {
            "" => self.decides_on(inside, is_folder),
            above => self.decides_on(&format!("{above}{inside}"), is_folder),
        }
    }

    /// The same for a path from the folder of the rules.
    fn decides_on(&self, path: &str, is_folder: bool) -> Option<bool> {
        match self.rules.matched(path, is_folder) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_rules_of_the_repository_hold_unless_they_leave_out_the_folder() {
        let home = tempfile::TempDir::new().unwrap();
        let folder = home.path().join("repo/docs/guide");
        fs::create_dir_all(&folder).unwrap();
        fs::write(home.path().join(".gitignore"), "*\n").unwrap();
        fs::write(home.path().join("repo/.gitignore"), "/docs/guide/build/\n*.tmp.md\n").unwrap();
        fs::write(home.path().join("repo/docs/.ignore"), "!keep.tmp.md\n/guide/api\n").unwrap();
        let left_out = |path: &str, is_folder: bool| {
            let rules = IgnoreFile::above(&folder);
            rules.iter().rev().find_map(|file| file.decides(path, is_folder)).unwrap_or(false)
        };
        // Without a repository, the rules above do not apply.
        assert!(!left_out("build", true));
        fs::create_dir(home.path().join("repo/.git")).unwrap();
        assert!(left_out("build", true) && left_out("x/a.tmp.md", false) && left_out("api", true));
        assert!(!left_out("a.md", false) && !left_out("x/keep.tmp.md", false));
        assert!(!left_out("x/build", true) && !left_out("x/api", true));
        for rule in ["docs/", "guide", "docs/guide/", "/docs/*"] {
            fs::write(home.path().join("repo/.gitignore"), format!("{rule}\n*.md\n")).unwrap();
            assert!(!left_out("a.md", false), "{rule}");
        }
        // A folder with a repository of its own has no rules above it.
        fs::write(home.path().join("repo/.gitignore"), "*.md\n").unwrap();
        assert!(left_out("a.md", false));
        fs::create_dir(folder.join(".git")).unwrap();
        assert!(!left_out("a.md", false));
    }
}
