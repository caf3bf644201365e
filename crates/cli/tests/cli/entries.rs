//! The entries that `install` writes and finds, and what `import` makes of those of others.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::install::at_home;
use crate::{folder_with, seen};

/// A home folder with the file of Cursor, and the folder `notes` in it.
struct Home {
    folder: TempDir,
    cursor: PathBuf,
}

impl Home {
    fn new(cursor: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let home = Self { cursor: folder.path().join(".cursor/mcp.json"), folder };
        home.write(".cursor/mcp.json", cursor);
        home.write("notes/a.md", "# A\n");
        home
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, args: &[&str]) -> String {
        seen(&at_home(self.folder.path(), self.folder.path(), args))
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.cursor).unwrap()
    }

    fn servers(&self) -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(&self.read()).unwrap()["mcpServers"].take()
    }
}

#[test]
fn an_older_entry_of_ours_does_not_come_back_with_the_backup() {
    let home = Home::new(
        r#"{"mcpServers":{"notes":{"command":"/old/bin/sabir","args":["serve","/x"]},"a":{"command":"a"}}}"#,
    );
    let installed = home.run(&["install", "cursor", "notes", "--force"]);
    assert!(installed.starts_with("exit 0"), "{installed}");
    let removed = home.run(&["uninstall", "cursor", "notes"]);
    assert!(removed.contains("removed `notes`"), "{removed}");
    assert_eq!(home.servers(), serde_json::json!({ "a": { "command": "a" } }));
}

#[test]
fn an_entry_for_another_folder_is_not_replaced_without_being_asked() {
    let home = Home::new("{}");
    for folder in ["a/docs", "b/docs"] {
        home.write(&format!("{folder}/x.md"), "# X\n");
    }
    assert!(home.run(&["install", "cursor", "a/docs"]).contains("added `docs`"));
    let before = home.read();
    let refused = home.run(&["install", "cursor", "b/docs"]);
    assert!(refused.starts_with("exit 1"), "{refused}");
    assert!(refused.contains("`docs` already") && refused.contains("--name"), "{refused}");
    assert_eq!(home.read(), before);
    assert!(home.run(&["install", "cursor", "b/docs", "--force"]).contains("replaced `docs`"));
    assert!(home.read().contains("b/docs"));
    assert!(home.run(&["install", "cursor", "https://docs/mcp"]).contains("--force"));
    assert!(home.run(&["install", "cursor", "b/docs"]).contains("already"));
}

#[test]
fn an_update_keeps_the_other_keys_of_the_entry() {
    let home = Home::new("{}");
    let path = fs::canonicalize(home.folder.path()).unwrap().join("notes");
    let old = serde_json::json!({ "mcpServers": { "notes": {
        "command": "/old/bin/sabir", "args": ["serve", path, "--stdio"],
        "env": { "A": "b" }, "autoApprove": ["search"],
    } } });
    fs::write(&home.cursor, old.to_string()).unwrap();
    let here = fs::canonicalize(home.folder.path()).unwrap();
    let updated = seen(&at_home(&here, &here, &["install", "cursor", "notes"]));
    assert!(updated.contains("updated `notes`"), "{updated}");
    let entry = &home.servers()["notes"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_sabir"));
    assert_eq!((&entry["env"]["A"], &entry["autoApprove"][0]), (&"b".into(), &"search".into()));
}

#[test]
fn urls_and_the_local_scope_are_listed_and_removed() {
    let home = Home::new("{}");
    let here = fs::canonicalize(home.folder.path()).unwrap();
    home.run(&["install", "cursor", "https://wiki.example.com/mcp"]);
    let local = serde_json::json!({ "projects": { &*here.to_string_lossy(): { "mcpServers": {
        "notes": { "command": "/bin/sabir", "args": ["serve", "."] },
        "other": { "command": "other" },
    } } }, "kept": 1 });
    home.write(".claude.json", local.to_string());
    let list = home.run(&["install", "--list"]);
    assert!(list.contains("claude-code (local) notes: /bin/sabir serve ."), "{list}");
    assert!(
        list.contains("cursor (user) wiki-example-com: https://wiki.example.com/mcp"),
        "{list}"
    );
    assert!(!list.contains("other"), "{list}");
    let removed = seen(&at_home(&here, &here, &["uninstall", "claude-code", "notes"]));
    assert!(removed.contains("removed `notes`"), "{removed}");
    let left = fs::read_to_string(here.join(".claude.json")).unwrap();
    assert!(!left.contains("notes") && left.contains("other") && left.contains("kept"), "{left}");
}

#[test]
fn a_file_that_is_not_utf_8_is_skipped() {
    let home = Home::new(r#"{"mcpServers":{"a":{"command":"aa"}}}"#);
    home.write(".gemini/settings.json", b"{\"x\":\"\xff\"}");
    home.run(&["install", "cursor", "notes"]);
    for (args, expected) in [(&["install", "--list"][..], "notes: "), (&["import"], "\"aa\"")] {
        let said = home.run(args);
        assert!(said.starts_with("exit 0") && said.contains(expected), "{said}");
        assert!(said.contains("skipped ") && said.contains("settings.json"), "{said}");
    }
}

#[test]
fn a_link_whose_target_is_missing_stays_a_link() {
    let home = Home::new("{}");
    let target = home.folder.path().join("dotfiles/mcp.json");
    fs::remove_file(&home.cursor).unwrap();
    symlink("../dotfiles/mcp.json", &home.cursor).unwrap();
    let said = home.run(&["install", "cursor", "notes"]);
    assert!(said.contains("added `notes`"), "{said}");
    assert!(fs::symlink_metadata(&home.cursor).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("--stdio"));
}

#[test]
fn a_key_that_is_written_twice_is_refused() {
    let text = r#"{"mcpServers":{},"mcpServers":{"a":{"command":"a"}}}"#;
    let home = Home::new(text);
    let said = home.run(&["install", "cursor", "notes"]);
    assert!(said.starts_with("exit 1"), "{said}");
    assert!(said.contains("`mcpServers` or `notes` is written twice"), "{said}");
    assert_eq!(home.read(), text);
}

#[test]
fn arguments_that_clients_cannot_use_are_refused() {
    let home = Home::new("{}");
    for (args, expected) in [
        (&["https://h/mcp", "--token-env", "bad name"][..], "expected the name of a variable"),
        (&["notes", "--name", ""], "expected a name such as notes"),
        (&["https://user:hush@h/mcp"], "a password in the URL"),
        (&["ws://h/mcp"], "`ws://` is not supported"),
    ] {
        let said = home.run(&[&["install", "cursor"], args].concat());
        assert!(said.contains(expected) && !said.starts_with("exit 0"), "{said}");
        assert!(!said.contains("hush"), "{said}");
        assert_eq!(home.read(), "{}", "{args:?}");
    }
    let printed = home.run(&["install", "cursor", "http://[::1]:7331/mcp", "--print"]);
    assert!(printed.contains("\"1\": {"), "{printed}");
    let printed = home.run(&["install", "cursor", "HTTPS://wiki/mcp", "--print"]);
    assert!(printed.contains("\"wiki\": {") && printed.contains("HTTPS://wiki/mcp"), "{printed}");
    let printed = home.run(&["install", "cursor", "notes/../notes", "--print"]);
    assert!(printed.contains("/notes\"") && !printed.contains(".."), "{printed}");
    home.write("日本/a.md", "# A\n");
    let printed = home.run(&["install", "cursor", "日本", "--print"]);
    assert!(printed.contains("\"sabir\": {"), "{printed}");
}

#[test]
fn an_import_says_what_it_changes() {
    let home = Home::new(
        r#"{"mcpServers":{
            "n":{"command":"x","args":["--port",8080,true],"envFile":".env"},
            "":{"command":"y","env":{"K":"${input:api-key}"}}}}"#,
    );
    let output = at_home(home.folder.path(), home.folder.path(), &["import"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains(r#"run = ["x", "--port", "8080", "true"]"#), "{printed}");
    assert!(said.contains("`envFile` is not copied"), "{said}");
    assert!(said.contains("set API_KEY"), "{said}");
    let folder = folder_with(&printed);
    let checked = at_home(home.folder.path(), folder.path(), &["check"]);
    let checked = seen(&checked);
    assert!(!checked.contains("invalid name"), "{checked}");
}
