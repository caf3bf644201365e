use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A folder with these files, beside one that must never be reached.
fn folder(files: &[&str]) -> (TempDir, Folder) {
    let home = TempDir::new().unwrap();
    let root = home.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::create_dir(home.path().join("outside")).unwrap();
    fs::write(home.path().join("outside/secret.md"), "secret").unwrap();
    for file in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    let folder = Folder::open(&root, Rules::new(&[], &[]).unwrap()).unwrap();
    (home, folder)
}

fn look(folder: &Folder, under: &str) -> Scan {
    folder.scan(under)
}

fn found(scan: &Scan) -> Vec<&str> {
    let mut paths: Vec<_> = scan.found.iter().map(|found| &*found.path).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn flat_and_deep_files_are_found_and_others_are_not() {
    let (_home, folder) =
        folder(&["a.md", "c/b.mdx", "c/d/e.txt", "c/x.exe", "c/README", "c/y.md~", "Z.MD"]);
    let scan = look(&folder, "");
    assert_eq!(found(&scan), ["Z.MD", "a.md", "c/b.mdx", "c/d/e.txt"]);
    assert_eq!(scan.problems, []);
}

#[test]
fn hidden_files_and_folders_are_ignored() {
    let (_home, folder) = folder(&["a.md", ".hidden.md", ".git/b.md", "c/.d/e.md"]);
    assert_eq!(found(&look(&folder, "")), ["a.md"]);
    for path in [".hidden.md", ".git/b.md", ".git", "c/.d/e.md", "c/.d"] {
        assert_eq!(found(&look(&folder, path)), Vec::<&str>::new(), "{path}");
    }
}

#[test]
fn a_part_of_the_folder_is_scanned_alone() {
    let (_home, folder) = folder(&["a.md", "c/b.md", "c/d/e.md", "cc/f.md"]);
    assert_eq!(found(&look(&folder, "c")), ["c/b.md", "c/d/e.md"]);
    assert_eq!(found(&look(&folder, "c/d/e.md")), ["c/d/e.md"]);
    assert_eq!(found(&look(&folder, "gone")), Vec::<&str>::new());
    assert_eq!(found(&look(&folder, "gone/x.md")), Vec::<&str>::new());
}

#[test]
fn no_path_leads_outside() {
    let (home, folder) = folder(&["a.md", "c/b.md"]);
    let outside = home.path().join("outside/secret.md");
    for path in [
        "../outside/secret.md",
        "c/../../outside/secret.md",
        "..",
        "/etc/hosts",
        outside.to_str().unwrap(),
    ] {
        assert_eq!(found(&look(&folder, path)), Vec::<&str>::new(), "{path}");
        assert!(matches!(folder.read(path, LARGEST_FILE), Err(ReadError::Io(_))), "{path}");
    }
}

#[test]
fn links_to_the_outside_are_reported_and_not_followed() {
    let (home, folder) = folder(&["a.md"]);
    let root = home.path().join("root");
    symlink("../outside/secret.md", root.join("relative.md")).unwrap();
    symlink(home.path().join("outside/secret.md"), root.join("absolute.md")).unwrap();
    symlink("../outside", root.join("folder")).unwrap();
    symlink("nowhere.md", root.join("broken.md")).unwrap();
    let scan = look(&folder, "");
    assert_eq!(found(&scan), ["a.md"]);
    let mut named: Vec<_> = scan.problems.iter().map(|problem| problem.file.as_str()).collect();
    named.sort_unstable();
    assert_eq!(named, ["absolute.md", "broken.md", "folder", "relative.md"]);
    for path in ["relative.md", "absolute.md", "folder/secret.md", "folder"] {
        assert_eq!(found(&look(&folder, path)), Vec::<&str>::new(), "{path}");
        assert!(matches!(folder.read(path, LARGEST_FILE), Err(ReadError::Io(_))), "{path}");
    }
}

#[test]
fn links_inside_are_followed_once() {
    let (home, folder) = folder(&["a.md", "c/b.md", ".hidden/h.md", ".h.md"]);
    let root = home.path().join("root");
    symlink("a.md", root.join("link.md")).unwrap();
    symlink("c", root.join("d")).unwrap();
    symlink("..", root.join("c/up")).unwrap();
    symlink("../d", root.join("c/again")).unwrap();
    symlink(".hidden", root.join("seen")).unwrap();
    symlink(".h.md", root.join("seen.md")).unwrap();
    let scan = look(&folder, "");
    assert_eq!(found(&scan), ["a.md", "c/b.md", "d/b.md", "link.md"]);
    assert!(scan.found.iter().filter(|found| found.linked).count() == 2);
    assert_eq!(scan.problems.len(), 2, "{:?}", scan.problems);
    assert_eq!(found(&look(&folder, "d/b.md")), ["d/b.md"]);
    assert!(look(&folder, "d/b.md").found[0].linked);
    assert_eq!(found(&look(&folder, "seen/h.md")), Vec::<&str>::new());
}

#[test]
fn folders_are_read_up_to_a_depth() {
    let deep = |folders: usize| format!("{}x.md", "d/".repeat(folders));
    let (_home, folder) = folder(&[&deep(DEEPEST), &deep(DEEPEST + 1)]);
    let scan = look(&folder, "");
    assert_eq!(found(&scan), [deep(DEEPEST)]);
    assert_eq!(scan.problems.len(), 1);
}

#[test]
fn a_file_is_read_up_to_a_size() {
    let (home, folder) = folder(&["a.md"]);
    let path = home.path().join("root/a.md");
    let size =
        |bytes: u64| fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    size(LARGEST_FILE);
    assert_eq!(folder.read("a.md", LARGEST_FILE).unwrap().0.len() as u64, LARGEST_FILE);
    size(LARGEST_FILE + 1);
    assert!(
        matches!(folder.read("a.md", LARGEST_FILE), Err(ReadError::TooLarge(n)) if n == LARGEST_FILE + 1)
    );
}

/// Opening a pipe would wait for its writer, for ever.
#[test]
fn only_files_are_opened() {
    let (home, folder) = folder(&["a.md"]);
    for name in ["b.md", "c.png", ".gitignore", "d.pdf"] {
        let path = home.path().join("root").join(name);
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    assert_eq!(found(&look(&folder, "")), ["a.md"]);
    for name in ["b.md", "c.png"] {
        let Err(ReadError::Io(error)) = folder.read_file(name) else { panic!("{name} was read") };
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
    }
}

#[test]
fn a_stamp_changes_with_the_file() {
    let (home, folder) = folder(&["a.md"]);
    let (_, before) = folder.read("a.md", LARGEST_FILE).unwrap();
    assert_eq!(look(&folder, "").found[0].stamp, before);
    fs::write(home.path().join("root/a.md"), "longer than before").unwrap();
    assert_ne!(look(&folder, "a.md").found[0].stamp, before);
}

#[test]
fn unusable_file_names_are_reported() {
    let (_home, folder) = folder(&["a\nb.md", "c\\d.md", "é ü.md"]);
    let scan = look(&folder, "");
    assert_eq!(found(&scan), ["é ü.md"]);
    assert_eq!(scan.problems.len(), 2);
}

#[test]
fn a_path_is_made_relative_to_the_folder() {
    let (home, folder) = folder(&["c/b.md"]);
    let root = home.path().join("root").canonicalize().unwrap();
    assert_eq!(folder.relative(&root.join("c/b.md")).as_deref(), Some("c/b.md"));
    assert_eq!(folder.relative(&root).as_deref(), Some(""));
    assert_eq!(folder.relative(&root.join(".git/x.md")), None);
    assert_eq!(folder.relative(home.path()), None);
}
