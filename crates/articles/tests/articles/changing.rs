use std::fs;
use std::io::Write;
use std::time::Instant;

use sabir_articles::Change;

use crate::support::{Home, change, found, listed, until};

const LIVE: &str = "---\ntitle: Walrus\nstatus: Live\n---\nText.\n";
const DRAFT: &str = "---\ntitle: Walrus\nstatus: Draft\n---\nText.\n";

#[tokio::test]
async fn new_changed_and_removed_files_are_announced() {
    let home = Home::new(&[("c/a.md", "# A\n\nalpha\n")]);
    let store = home.store();
    let mut changes = store.changes();
    home.write("c/b.md", "# B\n\nbeta\n");
    let told = change(&mut changes, |_| true).await;
    assert_eq!(*told, Change { added: vec!["c/b".into()], ..Change::default() });
    assert_eq!(found(&store, "beta"), ["c/b"]);
    home.write("c/b.md", "# B\n\ngamma\n");
    let told = change(&mut changes, |_| true).await;
    assert_eq!(*told, Change { updated: vec!["c/b".into()], ..Change::default() });
    assert_eq!(found(&store, "gamma"), ["c/b"]);
    assert_eq!(found(&store, "beta"), Vec::<String>::new());
    fs::remove_file(home.path("c/b.md")).unwrap();
    let told = change(&mut changes, |_| true).await;
    assert_eq!(*told, Change { removed: vec!["c/b".into()], ..Change::default() });
    assert_eq!(listed(&store), ["c/a"]);
}

#[tokio::test]
async fn a_change_is_seen_within_a_second() {
    let home = Home::new(&[("c/a.md", "# A\n")]);
    let store = home.store();
    let mut changes = store.changes();
    // The best of several, so that a busy machine does not fail the test.
    let mut best = f64::MAX;
    for n in 0..5 {
        let start = Instant::now();
        home.write("c/a.md", &format!("# A{n}\n"));
        change(&mut changes, |change| change.updated == ["c/a"]).await;
        best = best.min(start.elapsed().as_secs_f64());
    }
    assert!(best < 1.0, "{best}");
}

#[tokio::test]
async fn an_article_that_becomes_a_draft_is_removed_and_comes_back() {
    let home = Home::new(&[("c/walrus.md", LIVE)]);
    let store = home.store();
    let mut changes = store.changes();
    home.write("c/walrus.md", DRAFT);
    let told = change(&mut changes, |_| true).await;
    assert_eq!(told.removed, ["c/walrus"]);
    assert!(found(&store, "walrus").is_empty() && listed(&store).is_empty());
    assert!(store.article("walrus", None).is_err());
    assert!(store.complete_slug("c", "").values.is_empty());
    home.write("c/walrus.md", LIVE);
    let told = change(&mut changes, |_| true).await;
    assert_eq!(told.added, ["c/walrus"]);
    assert_eq!(found(&store, "walrus"), ["c/walrus"]);
}

#[tokio::test]
async fn a_half_written_file_never_breaks_the_old_state() {
    let home = Home::new(&[("c/walrus.md", "---\ntitle: Walrus\n---\nold text\n")]);
    let store = home.store();
    let mut changes = store.changes();
    // An editor that empties the file, and writes it in pieces.
    let mut file = fs::File::create(home.path("c/walrus.md")).unwrap();
    let mut seen = Vec::new();
    for piece in ["", "---\n", "title: Wal", "rus two\nstat", "us: Live\n"] {
        file.write_all(piece.as_bytes()).unwrap();
        file.flush().unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        seen.push(store.article("walrus", None).map(|article| article.content).unwrap_or_default());
    }
    assert!(seen.iter().all(|text| text == "old text\n"), "{seen:?}");
    assert_eq!(found(&store, "old"), ["c/walrus"]);
    file.write_all(b"---\nnew text\n").unwrap();
    drop(file);
    let told = change(&mut changes, |_| true).await;
    assert_eq!(told.updated, ["c/walrus"]);
    assert_eq!(store.article("walrus", None).unwrap().content, "new text\n");
}

#[tokio::test]
async fn a_file_that_stays_unfinished_is_served_in_the_end() {
    let home = Home::new(&[("c/walrus.md", LIVE)]);
    let store = home.store();
    let mut changes = store.changes();
    fs::write(home.path("c/walrus.md"), "---\ntitle: Open end\n\nSome text.\n").unwrap();
    change(&mut changes, |change| change.updated == ["c/walrus"]).await;
    assert_eq!(store.article("walrus", None).unwrap().summary.title, "Open end");
    assert_eq!(store.problems()[0].to_string(), "c/walrus.md:1: this `---` is never closed");
    home.write("c/walrus.md", LIVE);
    change(&mut changes, |change| change.updated == ["c/walrus"]).await;
    assert_eq!(store.problems(), []);
}

#[tokio::test]
async fn folders_are_added_moved_and_removed_with_their_files() {
    let home = Home::new(&[("c/a.md", "# A\n")]);
    let store = home.store();
    let mut changes = store.changes();
    let beside = home.folder().parent().unwrap().join("moved");
    fs::create_dir_all(beside.join("deep")).unwrap();
    fs::write(beside.join("deep/x.md"), "# X\n\nwalrus\n").unwrap();
    fs::write(beside.join("y.md"), "# Y\n").unwrap();
    fs::rename(&beside, home.path("new")).unwrap();
    until(&mut changes, || listed(&store).len() == 3).await;
    assert_eq!(found(&store, "walrus"), ["new/deep/x"]);
    fs::rename(home.path("new"), home.path("renamed")).unwrap();
    until(&mut changes, || found(&store, "walrus") == ["renamed/deep/x"]).await;
    until(&mut changes, || listed(&store).len() == 3).await;
    fs::write(home.path("renamed/deep/z.md"), "# Z\n\nafter the move\n").unwrap();
    until(&mut changes, || found(&store, "after the move") == ["renamed/deep/z"]).await;
    fs::remove_dir_all(home.path("renamed")).unwrap();
    until(&mut changes, || listed(&store) == ["c/a"]).await;
}

#[tokio::test]
async fn a_folder_that_is_created_again_is_watched_again() {
    let home = Home::new(&[("c/d/a.md", "# A\n"), ("e/b.md", "# B\n")]);
    let store = home.store();
    let mut changes = store.changes();
    for _ in 0..3 {
        fs::remove_dir_all(home.path("c")).unwrap();
        until(&mut changes, || listed(&store) == ["e/b"]).await;
        home.write("c/d/a.md", "# A\n");
        until(&mut changes, || listed(&store).len() == 2).await;
        // No other folder changes.
        fs::write(home.path("c/d/later.md"), "# Later\n").unwrap();
        until(&mut changes, || listed(&store).len() == 3).await;
    }
}

#[tokio::test]
async fn folders_that_are_swapped_are_still_watched() {
    let home = Home::new(&[("c/deep/a.md", "# A\n\nalbatross\n"), ("d/b.md", "# B\n\nbadger\n")]);
    let store = home.store();
    let mut changes = store.changes();
    for (albatross, badger) in [("d/deep/a", "c/b"), ("c/deep/a", "d/b")] {
        for (from, to) in [("c", "between"), ("d", "c"), ("between", "d")] {
            fs::rename(home.path(from), home.path(to)).unwrap();
        }
        let is_at = |word, id: &str| found(&store, word) == [id];
        until(&mut changes, || is_at("albatross", albatross) && is_at("badger", badger)).await;
        for id in [albatross, badger] {
            let (folder, _) = id.rsplit_once('/').unwrap();
            fs::write(home.path(&format!("{folder}/new.md")), "# New\n").unwrap();
            until(&mut changes, || listed(&store).contains(&format!("{folder}/new"))).await;
            fs::remove_file(home.path(&format!("{folder}/new.md"))).unwrap();
            until(&mut changes, || listed(&store).len() == 2).await;
        }
    }
}

#[tokio::test]
async fn only_the_changed_file_is_read_again() {
    let files: Vec<(String, String)> =
        (0..50).map(|n| (format!("c/a{n}.md"), format!("# Article {n}\n"))).collect();
    let home = Home::new(
        &files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>(),
    );
    let store = home.store();
    let mut changes = store.changes();
    assert_eq!(store.figures().files_read, 50);
    home.write("c/a7.md", "# Article seven\n");
    change(&mut changes, |change| change.updated == ["c/a7"]).await;
    assert_eq!(store.figures().files_read, 51);
}

#[tokio::test]
async fn a_touched_file_is_not_a_change() {
    let home = Home::new(&[("c/a.md", "# A\n"), ("c/b.md", "# B\n")]);
    let store = home.store();
    let mut changes = store.changes();
    home.write("c/a.md", "# A\n");
    home.write("c/b.md", "# B, changed\n");
    let told = change(&mut changes, |_| true).await;
    assert_eq!(*told, Change { updated: vec!["c/b".into()], ..Change::default() });
    assert!(changes.try_recv().is_err());
}

#[tokio::test]
async fn a_linked_file_changes_with_its_target() {
    let home = Home::new(&[("c/a.md", "# A\n\nold\n")]);
    std::os::unix::fs::symlink("c/a.md", home.path("link.md")).unwrap();
    let store = home.store();
    let mut changes = store.changes();
    home.write("c/a.md", "# A\n\nwalrus\n");
    change(&mut changes, |_| true).await;
    let mut both = found(&store, "walrus");
    both.sort();
    assert_eq!(both, ["c/a", "link"]);
}

#[tokio::test]
async fn a_file_that_becomes_a_link_to_the_outside_is_not_served() {
    let home = Home::new(&[("c/a.md", "# A\n")]);
    let outside = home.folder().parent().unwrap().join("outside.md");
    fs::write(&outside, "# Outside walrus\n").unwrap();
    let store = home.store();
    let mut changes = store.changes();
    fs::remove_file(home.path("c/a.md")).unwrap();
    std::os::unix::fs::symlink(&outside, home.path("c/a.md")).unwrap();
    change(&mut changes, |change| change.removed == ["c/a"]).await;
    assert_eq!(found(&store, "walrus"), Vec::<String>::new());
    assert!(store.article("a", None).is_err());
    assert_eq!(store.problems().len(), 1);
}

#[tokio::test]
async fn a_folder_that_is_not_watched_does_not_change() {
    let home = Home::new(&[("c/a.md", "# A\n")]);
    let settings = sabir_articles::Settings { watch: false, ..home.settings() };
    let quiet = crate::support::ready(settings);
    let watching = home.store();
    let mut changes = watching.changes();
    home.write("c/b.md", "# B\n");
    change(&mut changes, |change| change.added == ["c/b"]).await;
    assert_eq!(listed(&quiet), ["c/a"]);
}

/// A store over a path that the test replaces.
fn store_at(path: &std::path::Path) -> sabir_articles::Store {
    crate::support::ready(sabir_articles::Settings::new(path))
}

#[tokio::test]
async fn a_link_that_is_switched_is_noticed() {
    let home = tempfile::TempDir::new().unwrap();
    for (version, word) in [("v1", "walrus"), ("v2", "narwhal")] {
        fs::create_dir(home.path().join(version)).unwrap();
        fs::write(home.path().join(version).join("a.md"), format!("# {word}\n")).unwrap();
    }
    let link = home.path().join("current");
    std::os::unix::fs::symlink(home.path().join("v1"), &link).unwrap();
    let store = store_at(&link);
    let mut changes = store.changes();
    assert_eq!(found(&store, "walrus"), ["a"]);
    let beside = home.path().join("beside");
    std::os::unix::fs::symlink(home.path().join("v2"), &beside).unwrap();
    fs::rename(beside, &link).unwrap();
    until(&mut changes, || found(&store, "narwhal") == ["a"]).await;
    // The new folder is watched.
    fs::write(home.path().join("v2/b.md"), "# seal\n").unwrap();
    until(&mut changes, || found(&store, "seal") == ["b"]).await;
}

#[tokio::test]
async fn a_folder_that_is_swapped_or_made_again_is_noticed() {
    let home = tempfile::TempDir::new().unwrap();
    let [root, away, other] = ["root", "away", "other"].map(|name| home.path().join(name));
    for (folder, word) in [(&root, "walrus"), (&other, "narwhal")] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("a.md"), format!("# {word}\n")).unwrap();
    }
    let store = store_at(&root);
    let mut changes = store.changes();
    fs::rename(&root, &away).unwrap();
    fs::rename(&other, &root).unwrap();
    until(&mut changes, || found(&store, "narwhal") == ["a"]).await;
    fs::remove_dir_all(&root).unwrap();
    until(&mut changes, || store.ids().is_empty()).await;
    fs::create_dir(&root).unwrap();
    fs::write(root.join("c.md"), "# seal\n").unwrap();
    until(&mut changes, || found(&store, "seal") == ["c"]).await;
}

#[tokio::test]
async fn ignore_rules_are_respected_and_their_changes_are_noticed() {
    let home = Home::new(&[
        (".gitignore", "/build\n*.tmp.md\n"),
        ("docs/.ignore", "!keep.tmp.md\n"),
        ("a.md", "# a\n"),
        ("build/b.md", "# b\n"),
        ("x.tmp.md", "# x\n"),
        ("docs/keep.tmp.md", "# kept\n"),
        ("docs/node_modules/pkg/README.md", "# not ours\n"),
        ("drafts/d.md", "# d\n"),
    ]);
    let settings = sabir_articles::Settings { exclude: vec!["drafts".into()], ..home.settings() };
    let store = crate::support::ready(settings);
    assert_eq!(store.ids(), ["a", "docs/keep.tmp"]);
    assert_eq!(store.figures().ignored, 4);
    let mut changes = store.changes();
    fs::write(home.path("build/c.md"), "# c\n").unwrap();
    fs::write(home.path("e.md"), "# e\n").unwrap();
    until(&mut changes, || store.ids().contains(&"e".to_owned())).await;
    assert_eq!(store.ids(), ["a", "docs/keep.tmp", "e"]);
    fs::write(home.path(".gitignore"), "*.tmp.md\n").unwrap();
    until(&mut changes, || store.ids().contains(&"build/b".to_owned())).await;
}
