//! Files that are left out: by the settings, and by `.gitignore` and `.ignore` in the folder.

use std::io::Read as _;
use std::sync::Arc;

use cap_std::fs::Dir;
use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The files with rules. The later one wins.
pub(crate) const FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The largest file with rules, in bytes. The rest of a larger one is not read.
const LARGEST: u64 = 1 << 20;

/// Folders of other people's files.
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
    rules: Arc<Gitignore>,
}

impl IgnoreFile {
    /// The rules in a folder, in the order in which they win.
    pub(crate) fn read(dir: &Dir, path: &str) -> impl Iterator<Item = Self> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        FILES.into_iter().filter_map(move |name| {
            let mut text = Vec::new();
            dir.open(name).ok()?.take(LARGEST).read_to_end(&mut text).ok()?;
            let mut rules = GitignoreBuilder::new("");
            for line in String::from_utf8_lossy(&text).lines() {
                // An invalid line is ignored, as git does.
                let _ = rules.add_line(None, line);
            }
            Some(Self { folder: folder.clone(), rules: Arc::new(rules.build().ok()?) })
        })
    }

    /// Whether the rules leave a path out; `None` if they say nothing.
    pub(crate) fn decides(&self, path: &str, is_folder: bool) -> Option<bool> {
        match self.rules.matched(path.strip_prefix(&self.folder)?, is_folder) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}
