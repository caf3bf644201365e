use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::{Home, change, found, listed, ready, until};

fn files(home: &Home) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(&home.cache(), &mut files);
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() { collect(&entry.path(), files) } else { files.push(entry.path()) }
    }
}

/// Articles that were written a while ago, so that their times are not ambiguous.
fn aged() -> Home {
    let home = Home::new(&[
        ("c/a.md", "# A\n\nalpha\n"),
        ("c/b.md", "---\ntitle: b: broken\n---\nbeta\n"),
        ("c/draft.md", "---\nstatus: Draft\n---\nsecret\n"),
    ]);
    ["c/a.md", "c/b.md", "c/draft.md"].iter().for_each(|path| age(&home, path));
    home
}

fn age(home: &Home, path: &str) {
    let file = fs::File::options().write(true).open(home.path(path)).expect("the file");
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("a new time");
}

#[test]
fn an_index_is_opened_and_not_built_again() {
    let home = aged();
    let store = home.store_on_disk();
    assert!(store.figures().on_disk);
    assert_eq!(store.figures().files_read, 3);
    store.close();
    let store = home.store_on_disk();
    assert_eq!(store.figures().files_read, 0);
    assert_eq!(found(&store, "alpha"), ["c/a"]);
    assert_eq!(store.article("b", None).unwrap().content, "beta\n");
    assert_eq!(found(&store, "secret"), Vec::<String>::new());
    assert_eq!(store.problems().len(), 1);
    assert_eq!(store.list(None, None).unwrap().total, 2);
}

#[test]
fn only_files_that_changed_meanwhile_are_read() {
    let home = aged();
    home.store_on_disk().close();
    home.write("c/a.md", "# A\n\ngamma\n");
    home.write("c/new.md", "# New\n");
    fs::remove_file(home.path("c/b.md")).unwrap();
    let store = home.store_on_disk();
    assert_eq!(store.figures().files_read, 2);
    assert_eq!(found(&store, "gamma"), ["c/a"]);
    assert_eq!(found(&store, "alpha"), Vec::<String>::new());
    assert_eq!(found(&store, "beta"), Vec::<String>::new());
    let mut ids = listed(&store);
    ids.sort();
    assert_eq!(ids, ["c/a", "c/new"]);
    assert_eq!(store.problems(), []);
}

#[test]
fn an_article_that_became_a_draft_meanwhile_is_never_served() {
    let home = aged();
    home.store_on_disk().close();
    home.write("c/a.md", "---\nstatus: Draft\n---\nalpha\n");
    let store = sabir_articles::Store::open(home.settings_on_disk(), |_| {}).unwrap();
    while !store.wait_ready(Duration::ZERO) {
        assert!(found(&store, "alpha").is_empty() && store.article("c/a", None).is_err());
    }
    assert!(found(&store, "alpha").is_empty() && store.article("c/a", None).is_err());
}

#[test]
fn a_file_of_the_same_size_and_time_is_read_again_if_it_was_new() {
    let home = Home::new(&[("c/a.md", "# A\n\nalpha\n")]);
    home.store_on_disk().close();
    let time = fs::metadata(home.path("c/a.md")).unwrap().modified().unwrap();
    home.write("c/a.md", "# A\n\ngamma\n");
    fs::File::options().write(true).open(home.path("c/a.md")).unwrap().set_modified(time).unwrap();
    let store = home.store_on_disk();
    // Unless the machine was so slow that the file was not new.
    assert!(found(&store, "gamma") == ["c/a"] || store.figures().files_read == 0);
}

#[test]
fn a_damaged_index_is_built_again() {
    let home = aged();
    home.store_on_disk().close();
    for file in files(&home) {
        if file.file_name().is_some_and(|name| name == "meta.json") {
            fs::write(file, "not json").unwrap();
        }
    }
    let store = home.store_on_disk();
    assert_eq!(store.figures().files_read, 3);
    assert_eq!(found(&store, "alpha"), ["c/a"]);
    store.close();
    for file in files(&home) {
        if file
            .extension()
            .is_some_and(|ending| ending == "store" || ending == "term" || ending == "fast")
        {
            fs::write(file, "x").unwrap();
        }
    }
    let store = home.store_on_disk();
    assert!(store.figures().on_disk);
    assert_eq!(found(&store, "alpha"), ["c/a"]);
    assert_eq!(store.article("b", None).unwrap().content, "beta\n");
    store.close();
    assert_eq!(home.store_on_disk().figures().files_read, 0);
}

/// Damages each kind of file in each of these ways.
#[test]
fn every_damage_leads_to_a_new_index() {
    let home = aged();
    home.store_on_disk().close();
    let kinds = ["json", "store", "term", "fast", "fieldnorm", "idx", "pos"];
    for kind in kinds {
        for damage in [truncated, shortened, flipped, emptied] {
            let mut damaged = 0;
            for file in files(&home) {
                if file.extension().is_some_and(|ending| ending == kind) {
                    let bytes = fs::read(&file).unwrap();
                    fs::write(&file, damage(bytes)).unwrap();
                    damaged += 1;
                }
            }
            assert!(damaged > 0, "{kind}");
            let store = home.store_on_disk();
            assert!(store.figures().on_disk, "{kind}");
            assert_eq!(found(&store, "alpha"), ["c/a"], "{kind}");
            assert_eq!(store.article("b", None).unwrap().content, "beta\n", "{kind}");
            store.close();
        }
    }
}

fn truncated(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 2);
    bytes
}

fn shortened(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.pop();
    bytes
}

fn flipped(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[0] ^= 0x55;
    bytes
}

fn emptied(_: Vec<u8>) -> Vec<u8> {
    Vec::new()
}

#[tokio::test]
async fn an_index_that_is_damaged_while_it_is_served_is_built_again() {
    let home = aged();
    let store = home.store_on_disk();
    let mut changes = store.changes();
    for file in files(&home) {
        if file.extension().is_some_and(|ending| ending == "store") {
            fs::File::options().write(true).open(file).unwrap().set_len(0).unwrap();
        }
    }
    // The process lives, and the first error starts a new index; the others are of the old one.
    for _ in 0..100 {
        let _ = store.article("c/a", None);
    }
    until(&mut changes, || store.article("c/a", None).is_ok()).await;
    assert_eq!(found(&store, "alpha"), ["c/a"]);
    assert!(store.figures().on_disk);
}

#[test]
fn other_statuses_have_another_index() {
    let home = aged();
    home.store_on_disk().close();
    let settings = sabir_articles::Settings {
        statuses: Some(vec!["Draft".into()]),
        ..home.settings_on_disk()
    };
    let store = ready(settings);
    assert_eq!(found(&store, "secret"), ["c/draft"]);
    store.close();
    assert_eq!(found(&home.store_on_disk(), "secret"), Vec::<String>::new());
}

#[test]
fn a_cache_that_cannot_be_written_is_a_problem_and_not_required() {
    let home = aged();
    fs::write(home.cache(), "a file, not a folder").unwrap();
    let store = home.store_on_disk();
    assert!(!store.figures().on_disk);
    assert_eq!(found(&store, "alpha"), ["c/a"]);
    assert!(
        store.problems().iter().any(|problem| problem.message.contains("cannot use the cache")),
        "{:?}",
        store.problems()
    );
}

#[tokio::test]
async fn changes_are_saved_in_the_index_on_the_disk() {
    let home = aged();
    let store = home.store_on_disk();
    let mut changes = store.changes();
    home.write("c/a.md", "# A\n\nwalrus\n");
    change(&mut changes, |change| change.updated == ["c/a"]).await;
    store.close();
    let store = home.store_on_disk();
    assert!(store.figures().files_read <= 1);
    assert_eq!(found(&store, "walrus"), ["c/a"]);
}

#[tokio::test]
async fn a_second_process_reads_the_index_and_takes_over() {
    let home = aged();
    let first = home.store_on_disk();
    let second = home.store_on_disk();
    assert_eq!(second.figures().files_read, 0);
    assert_eq!(found(&second, "alpha"), ["c/a"]);
    let mut changes = second.changes();
    home.write("c/a.md", "# A\n\nwalrus\n");
    change(&mut changes, |change| change.updated == ["c/a"]).await;
    assert_eq!(found(&second, "walrus"), ["c/a"]);
    assert_eq!(second.figures().files_read, 0);
    first.close();
    home.write("c/b.md", "# B\n\nnarwhal\n");
    until(&mut changes, || found(&second, "narwhal") == ["c/b"]).await;
    assert!(second.figures().files_read > 0);
}

#[tokio::test]
async fn a_deleted_cache_is_built_again() {
    let home = aged();
    let store = home.store_on_disk();
    let mut changes = store.changes();
    fs::remove_dir_all(home.cache()).unwrap();
    home.write("c/a.md", "# A\n\nwalrus\n");
    until(&mut changes, || found(&store, "walrus") == ["c/a"]).await;
    assert!(store.wait_ready(crate::support::LONG));
    assert_eq!(store.article("b", None).unwrap().content, "beta\n");
    home.write("c/a.md", "# A\n\nnarwhal\n");
    until(&mut changes, || found(&store, "narwhal") == ["c/a"]).await;
}
