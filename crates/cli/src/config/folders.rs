//! Several folders of articles, as they are named on the command line. Each gets a name, which its
//! tools begin with.

use std::fs::File as OpenFile;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::articles::Articles;
use super::file::File;
use super::mistake::{Mistake, Mistakes, Text};
use super::settle::{Settings, settle};
use super::{FILE_NAME, plain};

/// The longest name of a folder. Clients accept names of tools up to 64 characters, and most of them
/// put the name of the server before.
const MAX_NAME: usize = 24;

/// The longest name of a server.
const MAX_SERVER_NAME: usize = 40;

/// The first pages of folders.
const FIRST_PAGES: [&str; 5] = ["README.md", "readme.md", "index.md", "_index.md", "Home.md"];

/// How much of a first page is read for its title.
const MAX_HEAD: u64 = 64 << 10;

/// Names of folders that say nothing about what is in them.
const VAGUE: [&str; 9] =
    ["src", "doc", "docs", "documentation", "content", "en", "pages", "book", "site"];

/// The settings for several folders of articles.
pub(super) fn settle_folders(paths: &[PathBuf], ignore_found: bool) -> Result<Settings, Mistakes> {
    let checked = paths.iter().map(|path| check(path, ignore_found));
    Mistakes::all(checked)?;
    let (mut names, mut used) = (Vec::new(), Vec::new());
    let mut file = File::default();
    for path in paths {
        let name = name(path);
        let unique = unique(&name, &used);
        file.articles.push(Articles::named(&path.to_string_lossy(), unique.clone()));
        used.push(unique);
        names.push(name);
    }
    let all = plain(&names.join("-"));
    file.server.name = Some(if all.len() > MAX_SERVER_NAME { "articles".to_owned() } else { all });
    settle(&file, &Text::new(Path::new(FILE_NAME), ""))
}

/// The name, or the first one with a number that is not used.
fn unique(name: &str, used: &[String]) -> String {
    let mut unique = name.to_owned();
    let mut number = 1;
    while used.contains(&unique) {
        number += 1;
        unique = format!("{name}_{number}");
    }
    unique
}

/// With several paths, each must be a folder of articles.
fn check(path: &Path, ignore_found: bool) -> Result<(), Mistake> {
    if !path.is_dir() {
        let what = "not a folder (expected folders of articles, or one file)";
        return Err(Mistake::of_file(path, what));
    }
    if path.to_str().is_none() {
        return Err(Mistake::of_file(path, "the path is not UTF-8"));
    }
    let found = path.join(FILE_NAME);
    if !ignore_found && found.exists() {
        let what = "one of several folders has a configuration (expected folders of articles)";
        let hint = "serve that folder alone, or ignore the file with --no-config";
        return Err(Mistake::of_file(&found, what).hint(hint));
    }
    std::fs::read_dir(path).map_err(|error| Mistake::unreadable(path, &error))?;
    Ok(())
}

/// A name for tools: the title of the first page, else the name of the folder, or of its parent if
/// that says nothing.
fn name(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let parts = whole.iter().rev().map(|part| part.to_string_lossy().into_owned());
    let of_folder = || {
        let mut telling = parts.clone().filter(|part| !VAGUE.contains(&part.as_str()));
        telling.next().or_else(|| parts.clone().next())
    };
    let words = title(path).and_then(|title| words(&title)).or_else(|| words(&of_folder()?));
    words.unwrap_or_else(|| "folder".to_owned())
}

/// Lower-case words of letters and digits, joined by `_`; `None` if there is none.
fn words(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut name = String::new();
    for word in lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if !name.is_empty() && name.len() + 1 + word.len() > MAX_NAME {
            break;
        }
        name = if name.is_empty() { word.to_owned() } else { format!("{name}_{word}") };
    }
    name.truncate(MAX_NAME);
    (!name.is_empty()).then_some(name)
}

/// The title of a folder's first page: that of its frontmatter, or its first heading.
fn title(folder: &Path) -> Option<String> {
    let text = FIRST_PAGES.iter().find_map(|page| {
        let mut text = String::new();
        let path = folder.join(page);
        // Neither a pipe, which would be waited for, nor a link, which may lead outside.
        std::fs::symlink_metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        let file = OpenFile::open(path).ok()?;
        file.take(MAX_HEAD).read_to_string(&mut text).ok().map(|_| text)
    })?;
    let frontmatter = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    let titled = frontmatter.and_then(|(keys, _)| {
        keys.lines().find_map(|line| line.strip_prefix("title:")).map(str::to_owned)
    });
    let heading = || text.lines().find_map(|line| line.strip_prefix("# ")).map(str::to_owned);
    titled.or_else(heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_folders_never_have_the_same_name() {
        for (names, expected) in [
            (["notes", "notes", "notes_2"], ["notes", "notes_2", "notes_2_2"]),
            (["notes_2", "notes", "notes"], ["notes_2", "notes", "notes_3"]),
        ] {
            let mut used = Vec::new();
            for name in names {
                used.push(unique(name, &used));
            }
            assert_eq!(used, expected);
        }
    }

    #[test]
    fn a_folder_is_named_by_its_title_or_by_a_folder_that_says_something() {
        let place = tempfile::tempdir().unwrap();
        let folder = |path: &str| {
            let folder = place.path().join(path);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let write = |path: &PathBuf, page: &str, text: &str| {
            std::fs::write(path.join(page), text).unwrap();
        };
        let book = folder("rust/src");
        assert_eq!(name(&book), "rust");
        assert_eq!(name(&folder("My Notes!")), "my_notes");
        assert_eq!(name(&folder("日本/docs/en")), name(&folder("日本")));
        write(&book, "README.md", "intro\n\n# The Rust Programming Language & more\n# Other\n");
        assert_eq!(name(&book), "the_rust_programming");
        let site = folder("site/content");
        write(&site, "_index.md", "---\nweight: 1\ntitle: \"Kubernetes\"\n---\n# Home\n");
        assert_eq!(name(&site), "kubernetes");
        write(&folder("long"), "index.md", &format!("# {}\n", "x".repeat(80)));
        assert_eq!(name(&folder("long")), "x".repeat(MAX_NAME));
    }
}
