use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;
use crate::ignored::Rules;

fn home() -> (TempDir, Folder) {
    let home = TempDir::new().unwrap();
    fs::create_dir_all(home.path().join("in/c")).unwrap();
    fs::write(home.path().join("in/c/a.md"), "---\ntitle: A\n---\nOld.\n").unwrap();
    fs::write(home.path().join("in/.gitignore"), "private\n").unwrap();
    let folder = Folder::open(&home.path().join("in"), Rules::new(&[], &[]).unwrap()).unwrap();
    (home, folder)
}

fn read(home: &TempDir, path: &str) -> String {
    fs::read_to_string(home.path().join("in").join(path)).unwrap()
}

/// Everything in the folder, hidden files as well.
fn names(home: &TempDir) -> Vec<String> {
    fn walk(dir: &std::path::Path, names: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => walk(&entry.path(), names),
                false => names.push(entry.file_name().into_string().unwrap()),
            }
        }
    }
    let mut names = Vec::new();
    walk(home.path(), &mut names);
    names.sort_unstable();
    names
}

#[test]
fn a_name_becomes_a_path_inside_the_folder() {
    let path = |name: &str| path_of(name, "md").map_err(|error| error.to_string());
    assert_eq!(path("c/a").unwrap(), "c/a.md");
    assert_eq!(path("article:///c/a b").unwrap(), "c/a b.md");
    assert_eq!(path("c/a.txt").unwrap(), "c/a.txt");
    assert_eq!(path("v1.2").unwrap(), "v1.2.md");
    for bad in
        ["", "..", "../a", "a/../b", "a//b", ".git/config", "a/.b", "a\\b", "a\nb", "a/./b", "/"]
    {
        assert!(path(bad).unwrap_err().starts_with("invalid name"), "{bad}");
    }
    for bad in ["a.html", "a.pdf", "a.ipynb"] {
        assert!(path(bad).unwrap_err().contains("expected a file of text"), "{bad}");
    }
    let long = |length: usize| path(&format!("{}.md", "a".repeat(length - 3)));
    assert!(long(LONGEST_NAME).is_ok() && long(LONGEST_NAME + 1).is_err());
    let deep = |parts: usize| path(&vec!["a"; parts].join("/"));
    assert!(deep(DEEPEST).is_ok() && deep(DEEPEST + 1).is_err());
}

#[test]
fn a_file_is_created_once_and_changed_with_its_etag_only() {
    let (home, folder) = home();
    let first = folder.create("c/new/b.md", "One").unwrap();
    assert_eq!(read(&home, "c/new/b.md"), "One\n");
    assert!(matches!(folder.create("c/new/b.md", "Two"), Err(WriteError::Exists(_))));
    let replace =
        |content, etag: Option<&str>| folder.edit("c/new/b.md", &Edit::Replace(content), etag);
    let (second, changed) = replace("Two\n", Some(&etag(first))).unwrap();
    assert!(changed && second != first);
    assert!(matches!(replace("Three", Some(&etag(first))), Err(WriteError::Stale(_))));
    assert_eq!(replace("Two", Some(&etag(second))).unwrap(), (second, false));
    assert_eq!(read(&home, "c/new/b.md"), "Two\n");
    assert!(matches!(replace(" \n", None), Err(WriteError::Empty)));
    let largest = "x".repeat(LARGEST_FILE as usize - 1);
    assert!(replace(&largest, None).is_ok());
    assert!(matches!(replace(&format!("{largest}x"), None), Err(WriteError::TooLarge { .. })));
    assert_eq!(names(&home), [".gitignore", "a.md", "b.md"]);
}

#[test]
fn the_frontmatter_stays_unless_the_content_has_one() {
    let (home, folder) = home();
    folder.edit("c/a.md", &Edit::Replace("New."), None).unwrap();
    assert_eq!(read(&home, "c/a.md"), "---\ntitle: A\n---\nNew.\n");
    folder.edit("c/a.md", &Edit::Append("- more"), None).unwrap();
    assert_eq!(read(&home, "c/a.md"), "---\ntitle: A\n---\nNew.\n- more\n");
    folder.edit("c/a.md", &Edit::Replace("---\ntitle: B\n---\nB.\n"), None).unwrap();
    assert_eq!(read(&home, "c/a.md"), "---\ntitle: B\n---\nB.\n");
}

#[test]
fn permissions_are_kept() {
    let (home, folder) = home();
    let path = home.path().join("in/c/a.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    folder.edit("c/a.md", &Edit::Append("x"), None).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_file_is_moved_to_a_free_place_only() {
    let (home, folder) = home();
    let hash = folder.rename("c/a.md", "d/e/b.md", None).unwrap();
    assert_eq!(read(&home, "d/e/b.md"), "---\ntitle: A\n---\nOld.\n");
    folder.create("c/a.md", "Other").unwrap();
    assert!(matches!(folder.rename("c/a.md", "d/e/b.md", None), Err(WriteError::Taken(_))));
    let stale = folder.rename("d/e/b.md", "x.md", Some(&etag(hash + 1)));
    assert!(matches!(stale, Err(WriteError::Stale(_))));
    folder.rename("d/e/b.md", "x.md", Some(&etag(hash))).unwrap();
    assert_eq!(names(&home), [".gitignore", "a.md", "x.md"]);
}

#[test]
fn nothing_is_written_through_a_link_or_where_it_is_not_served() {
    let (home, folder) = home();
    let at = |path: &str| home.path().join("in").join(path);
    fs::create_dir(home.path().join("outside")).unwrap();
    fs::write(home.path().join("outside/o.md"), "Outside").unwrap();
    symlink(home.path().join("outside"), at("out")).unwrap();
    symlink(home.path().join("outside/o.md"), at("o.md")).unwrap();
    symlink("c", at("inner")).unwrap();
    symlink("nowhere.md", at("broken.md")).unwrap();
    for path in ["out/new.md", "inner/new.md", "broken.md", "o.md", "private/new.md"] {
        for result in [folder.create(path, "New"), folder.rename("c/a.md", path, None)] {
            assert!(matches!(result, Err(WriteError::Name { .. })), "{path}: {result:?}");
        }
    }
    for path in ["o.md", "out/o.md", "inner/a.md"] {
        let edited = folder.edit(path, &Edit::Append("x"), None);
        assert!(matches!(edited, Err(WriteError::Name { .. })), "{edited:?}");
        assert!(matches!(folder.rename(path, "free.md", None), Err(WriteError::Name { .. })));
    }
    assert_eq!(fs::read_to_string(home.path().join("outside/o.md")).unwrap(), "Outside");
    assert_eq!(fs::read_dir(home.path().join("outside")).unwrap().count(), 1);
}

#[test]
fn appends_of_many_threads_are_all_kept() {
    let (home, folder) = home();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                for n in 0..25 {
                    let line = format!("line {thread} {n}");
                    folder.edit("c/a.md", &Edit::Append(&line), None).unwrap();
                }
            });
        }
    });
    let text = read(&home, "c/a.md");
    assert_eq!(text.lines().filter(|line| line.starts_with("line ")).count(), 100);
}
