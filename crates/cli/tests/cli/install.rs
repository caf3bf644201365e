//! `sabir install`, `uninstall`, `import` and `doctor`, on files of each client.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use crate::{command, folder_with, seen};

/// Runs `sabir` with a home folder of its own, and none of the clients in PATH.
pub(crate) fn at_home(home: &Path, folder: &Path, args: &[&str]) -> Output {
    command(folder, args)
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CLAUDE_CONFIG_DIR")
        .env_remove("CODEX_HOME")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A client, its file in the home folder, and what is in it.
const FILES: &[(&str, &str, &str)] = &[
    ("claude-code", ".claude.json", "{\n  \"numStartups\": 3,\n  \"projects\": {\"/p\": {}}\n}"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", ""),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\":{\"a\":{\"url\":\"http://x\"}}}"),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "// mine\n{\n\t\"servers\": {\n\t\t\"a\": {\"type\": \"stdio\", \"command\": \"x\",}, // b\n\t},\n}\n",
    ),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "\u{feff}{\r\n  \"mcpServers\": {}\r\n}\r\n"),
    ("codex", ".codex/config.toml", "# mine\r\nmodel = \"x\"  # odd\r\n\r\n[tui]\r\na = 1"),
    ("gemini", ".gemini/settings.json", "{\n     \"z\": 1.0,\n\n  \"mcpServers\": { }\n}\n\n"),
    ("zed", ".config/zed/settings.json", "// Zed\n{\n  \"theme\": \"One\", // dark\n}\n"),
    ("goose", ".config/goose/config.yaml", "extensions: {}\nGOOSE_MODEL: x"),
    ("opencode", ".config/opencode/opencode.json", "{ /* nothing */ }"),
];

#[test]
fn a_file_is_byte_for_byte_as_it_was_after_install_and_uninstall() {
    for (client, path, text) in FILES {
        let home = TempDir::new().unwrap();
        let served = folder_with("[server]\nname = \"my notes\"\n");
        let file = home.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        // Half of them are symbolic links, as managers of dotfiles make them.
        let is_link = client.len() % 2 == 0;
        let real = if is_link { home.path().join("dotfile") } else { file.clone() };
        fs::write(&real, text).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        if is_link {
            std::os::unix::fs::symlink(&real, &file).unwrap();
        }
        let installed = seen(&at_home(home.path(), served.path(), &["install", client, "."]));
        assert!(installed.contains("added `my-notes` to "), "{client}: {installed}");
        let written = fs::read_to_string(&file).unwrap();
        assert!(written.contains("--stdio"), "{written}");
        assert!(
            written.contains(served.path().file_name().unwrap().to_str().unwrap()),
            "{written}"
        );
        let again = seen(&at_home(home.path(), served.path(), &["install", client]));
        assert!(again.contains("already"), "{again}");
        let list = seen(&at_home(home.path(), served.path(), &["install", "--list"]));
        assert!(list.contains(&format!("{client} (user) my-notes: ")), "{list}");
        let removed = seen(&at_home(home.path(), served.path(), &["uninstall", client]));
        assert!(removed.starts_with("exit 0"), "{client}: {removed}");
        assert_eq!(fs::read_to_string(&file).unwrap(), *text, "{client}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::symlink_metadata(&file).unwrap().is_symlink(), is_link);
        let left = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert!(left <= if client == &"claude-code" { 2 } else { 1 }, "{client}: {left} files");
    }
}

#[test]
fn other_changes_in_between_stay() {
    let home = TempDir::new().unwrap();
    let served = folder_with("[server]\nname = \"n\"\n");
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n").unwrap();
    at_home(home.path(), served.path(), &["install", "cursor"]);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"a\"", "\"renamed\"")).unwrap();
    at_home(home.path(), served.path(), &["uninstall", "cursor", "n"]);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, "{\n  \"mcpServers\": {\n    \"renamed\": {}\n  }\n}\n");
}

#[test]
fn several_entries_leave_the_file_as_it_was_too() {
    for (client, path, text) in FILES {
        for order in [["one", "two"], ["two", "one"]] {
            let home = TempDir::new().unwrap();
            let served = folder_with("[server]\nname = \"n\"\n");
            let file = home.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            for name in ["one", "two"] {
                let added =
                    at_home(home.path(), served.path(), &["install", client, "--name", name]);
                assert!(added.status.success(), "{client}: {}", seen(&added));
            }
            for name in order {
                let removed = at_home(home.path(), served.path(), &["uninstall", client, name]);
                assert!(removed.status.success(), "{client}: {}", seen(&removed));
            }
            assert_eq!(fs::read_to_string(&file).unwrap(), *text, "{client}, {order:?}");
            let backup = format!("{}.before-sabir", file.display());
            assert!(!Path::new(&backup).exists(), "{client}");
        }
    }
}

/// A client whose own command rewrites the whole file in its own format.
#[test]
fn what_the_clients_own_command_changed_is_undone() {
    let home = TempDir::new().unwrap();
    let served = folder_with("[server]\nname = \"n\"\n");
    let file = home.path().join(".codex/config.toml");
    let text = "# mine\nmodel    = \"x\"\n";
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    let script = "#!/bin/sh\nfile=$HOME/.codex/config.toml\n\
        case $2 in add) printf 'model = \"x\"\\n[mcp_servers.%s]\\ncommand = \"sabir\"\\n' \"$3\" ;;\n\
        *) printf 'model = \"x\"\\n[mcp_servers]\\n' ;; esac >\"$file\"\n";
    let codex = home.path().join("codex");
    fs::write(&codex, script).unwrap();
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |args: &[&str]| {
        let mut command = command(served.path(), args);
        let path = format!("{}:/usr/bin:/bin", home.path().display());
        command.env("HOME", home.path()).env("PATH", path).env_remove("CODEX_HOME");
        seen(&command.output().unwrap())
    };
    assert!(run(&["install", "codex"]).starts_with("exit 0"));
    assert!(fs::read_to_string(&file).unwrap().contains("[mcp_servers.n]"));
    assert!(run(&["uninstall", "codex"]).starts_with("exit 0"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    // Another change in between stays.
    run(&["install", "codex"]);
    fs::write(&codex, script.replace("[mcp_servers]", "other = 1")).unwrap();
    run(&["uninstall", "codex"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "model = \"x\"\nother = 1\n");
}

#[test]
fn a_missing_file_is_made_and_removed() {
    let home = TempDir::new().unwrap();
    let served = folder_with("[server]\nname = \"n\"\n");
    for (client, path, _) in FILES {
        at_home(home.path(), served.path(), &["install", client]);
        assert!(home.path().join(path).exists(), "{client}");
        at_home(home.path(), served.path(), &["uninstall", client]);
        assert!(!home.path().join(path).exists(), "{client}");
    }
    let scoped = ["install", "cursor", "--scope", "project"];
    assert!(seen(&at_home(home.path(), served.path(), &scoped)).starts_with("exit 0"));
    assert!(served.path().join(".cursor/mcp.json").exists());
}

#[test]
fn what_cannot_be_done_is_explained_and_changes_nothing() {
    let home = TempDir::new().unwrap();
    let served = folder_with("[server]\nname = \"n\"\n");
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let run = |args: &[&str]| seen(&at_home(home.path(), served.path(), args));
    let check = |text: &str, args: &[&str], expected: &str| {
        fs::write(&file, text).unwrap();
        let seen = run(args);
        assert!(seen.starts_with("exit 1") && seen.contains(expected), "{seen}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    };
    check("{ \"mcpServers\": [", &["install", "cursor"], "invalid JSON");
    check("{\"mcpServers\":{\"n\":{\"command\":\"x\"}}}", &["install", "cursor"], "--force");
    check("{}", &["uninstall", "cursor"], "there are no servers");
    let other = "{\"mcpServers\":{\"web\":{\"url\":\"http://x\"}}}";
    check(other, &["uninstall", "cursor"], "no server runs Sabir (name the one to remove: web)");
    check(other, &["uninstall", "cursor", "wbe"], "unknown server `wbe` (expected one of web)");
    check("{}", &["uninstall", "cursor", "zz"], "unknown server `zz`");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let refused = run(&["install", "cursor"]);
    assert!(refused.contains("is read-only\n  hint: make it writable"), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    assert!(run(&["install", "goose", "--scope", "project"]).contains("use --scope user"));
    assert!(run(&["install", "claude-desktop", "http://h/mcp"]).contains("Connectors"));
    assert!(run(&["install", "cursor", "nowhere"]).starts_with("exit 3"));
    assert!(run(&["install", "nobody"]).starts_with("exit 2"));
}

#[test]
fn a_url_is_added_with_its_token_by_reference() {
    let home = TempDir::new().unwrap();
    for (client, expected) in [
        ("claude-code", "Bearer ${T}"),
        ("cursor", "Bearer ${env:T}"),
        ("vscode", "Bearer ${env:T}"),
        ("windsurf", "Bearer ${env:T}"),
        ("codex", "bearer_token_env_var = \"T\""),
        ("gemini", "Bearer ${T}"),
        ("goose", "Bearer ${T}"),
        ("opencode", "Bearer {env:T}"),
    ] {
        let args =
            ["install", client, "https://wiki.example.com/mcp", "--token-env", "T", "--print"];
        let printed = seen(&at_home(home.path(), home.path(), &args));
        assert!(printed.contains(expected) && printed.contains("wiki-example-com"), "{printed}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn servers_of_clients_are_imported_without_their_secrets() {
    let home = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let file = home.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        ".cursor/mcp.json",
        r#"{"mcpServers":{"off":{"command":"x","disabled":true},"git hub":{"command":"npx","args":["-y","x"],"env":{"GITHUB_TOKEN":"hush","HOST":"h"}},
            "web":{"url":"https://w/mcp","headers":{"Authorization":"Bearer hush","X-Team":"${env:TEAM}"}}}}"#,
    );
    write(
        ".codex/config.toml",
        "[mcp_servers.web]\nurl = \"https://c/mcp\"\nbearer_token_env_var = \"C\"\n",
    );
    write(
        ".config/goose/config.yaml",
        "extensions:\n  g:\n    type: stdio\n    cmd: gg\n    args: [a]\n    env_keys: [K]\n",
    );
    write(".gemini/settings.json", "{ broken");
    let here = fs::canonicalize(home.path()).unwrap();
    write(
        ".claude.json",
        &format!(
            r#"{{"projects":{{"{}":{{"mcpServers":{{"db":{{"command":"pg","args":["pg://a:hush@h/d"]}}}}}},
                "/elsewhere":{{"mcpServers":{{"no":{{"command":"no"}}}}}}}}}}"#,
            here.display()
        ),
    );
    let output = at_home(home.path(), &here, &["import"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains("hush"), "{printed}");
    let file: toml::Table = toml::from_str(&printed).unwrap();
    let upstreams = serde_json::to_value(&file["upstream"]).unwrap();
    assert_eq!(
        upstreams,
        serde_json::json!([
            {"name": "db", "run": ["pg", "pg://a:${DB_PASSWORD}@h/d"]},
            {"name": "git-hub", "run": ["npx", "-y", "x"],
             "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "HOST": "h"}},
            {"name": "web", "url": "https://w/mcp",
             "headers": {"Authorization": "Bearer ${WEB_AUTHORIZATION}", "X-Team": "${TEAM}"}},
            {"name": "web-2", "url": "https://c/mcp", "headers": {"Authorization": "Bearer ${C}"}},
            {"name": "g", "run": ["gg", "a"], "env": {"K": "${K}"}},
        ])
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("imported `git-hub`") && said.contains("set GITHUB_TOKEN: "), "{said}");
    assert!(
        said.contains("skipped `off`") && said.contains("settings.json: invalid JSON"),
        "{said}"
    );
    let alone = seen(&at_home(home.path(), &here, &["import", "gemini"]));
    assert!(alone.starts_with("exit 1"), "{alone}");
}

#[test]
fn the_doctor_finds_what_is_broken_and_says_how_to_fix_it() {
    let home = TempDir::new().unwrap();
    let run = || seen(&at_home(home.path(), home.path(), &["doctor"]));
    fs::create_dir_all(home.path().join(".cursor")).unwrap();
    let file = home.path().join(".cursor/mcp.json");
    fs::write(
        &file,
        r#"{"mcpServers":{"a":{"command":"sabir-no-such"},"b":{"command":"sh"},
        "c":{"command":"/gone/sabir","args":["serve","/x","--stdio"]}}}"#,
    )
    .unwrap();
    let said = run();
    for text in [
        "cursor (user) `a`: there is no program sabir-no-such\n  fix: install sabir-no-such",
        "cursor (user) `c`: there is no program /gone/sabir\n  fix: install it again",
        "checked 3 servers",
    ] {
        assert!(said.starts_with("exit 1") && said.contains(text), "{said}");
    }
    assert!(!said.contains("`b`"), "{said}");
    let locks = home.path().join(".claude/ide");
    fs::create_dir_all(&locks).unwrap();
    let lock = locks.join("1.lock");
    // No process has this number.
    fs::write(&lock, r#"{"pid":2147483647}"#).unwrap();
    fs::write(locks.join("2.lock"), format!(r#"{{"pid":{}}}"#, std::process::id())).unwrap();
    fs::write(&file, r#"{"mcpServers":{"w":{"url":"http://127.0.0.1:9/mcp"}}}"#).unwrap();
    let said = run();
    assert!(
        said.contains("cursor (user) `w`: nothing listens at http://127.0.0.1:9/mcp"),
        "{said}"
    );
    assert!(said.contains(&format!("fix: remove it: rm {}", lock.display())), "{said}");
    assert!(!said.contains("2.lock"), "{said}");
    fs::write(&file, "{ oh").unwrap();
    assert!(run().contains("mcp.json: invalid JSON"), "{}", run());
    let sabir = env!("CARGO_BIN_EXE_sabir");
    fs::write(home.path().join("sabir.toml"), "[server]\nnmae = 1\n").unwrap();
    let entry = format!(
        r#"{{"mcpServers":{{"c":{{"command":"{sabir}","args":["serve",".","--stdio"]}}}}}}"#
    );
    fs::write(&file, entry).unwrap();
    assert!(
        run().contains(
            "`c`: [server]: unknown key `nmae`\n  fix: see all of it with: sabir check ."
        ),
        "{}",
        run()
    );
}

#[test]
fn completions_and_the_manual_are_printed() {
    let home = TempDir::new().unwrap();
    let fish = seen(&at_home(home.path(), home.path(), &["completions", "fish"]));
    assert!(fish.contains("uninstall") && !fish.contains("CLIENTS"), "{fish}");
    for shell in ["bash", "zsh", "fish"] {
        let printed = seen(&at_home(home.path(), home.path(), &["completions", shell]));
        assert!(printed.contains("claude-desktop") && printed.contains("uninstall"), "{printed}");
    }
    let manual = seen(&at_home(home.path(), home.path(), &["man"]));
    assert!(manual.contains(".TH sabir 1"), "{manual}");
    assert!(!manual.contains("sabir\\-serve(1)"), "{manual}");
    for text in ["allow\\-public", "token\\-env", ".SS \"sabir cluster status\""] {
        assert!(manual.contains(text), "no {text}: {manual}");
    }
}

#[test]
fn the_help_fits_the_terminal() {
    let home = TempDir::new().unwrap();
    for args in [&["--help"][..], &["serve", "--help"], &["install", "--help"]] {
        let output = command(home.path(), args).env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let long: Vec<_> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty() && help.contains("--help"), "{long:#?}");
    }
}

#[test]
fn bash_completes_the_tools_of_a_target() {
    let folder = folder_with(
        "[[command]]\nname = \"first\"\nrun = [\"true\"]\n[[command]]\nname = \"second\"\nrun = [\"true\"]\n",
    );
    let script = r#"
        eval "$("$1" completions bash)"
        COMP_LINE="$1 call . $2" COMP_POINT=4096 COMP_WORDS=("$1" call . "$2") COMP_CWORD=3
        _sabir_tools "$1" "$2" .
        echo "${COMPREPLY[@]}"
        COMP_LINE="sabir install claude-d" COMP_WORDS=(sabir install claude-d) COMP_CWORD=2
        COMPREPLY=()
        _sabir_tools sabir claude-d install
        echo "${COMPREPLY[@]}""#;
    for (begun, expected) in [("", "first second"), ("s", "second"), ("z", "")] {
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", script, "bash", env!("CARGO_BIN_EXE_sabir"), begun]);
        let output = bash.current_dir(folder.path()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, format!("{expected}\nclaude-desktop\n"), "{begun}");
    }
}
