//! Files of others: a sabir.toml that was found and not named, text that reaches the terminal, and
//! secrets that other programs must not read.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Lines};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use tempfile::TempDir;

use crate::{command, folder_with, sabir, seen};

const COMMAND: &str = "[[command]]\nname = \"hello\"\ndescription = \"Greet\"\nrun = [\"sh\", \"-c\", \"echo hello\"]\n";

/// Another user of this machine, by convention.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `sabir check` on a folder, on its file, and on its articles alone.
fn seen_of(folder: &Path, args: &[&str]) -> String {
    seen(&sabir(Path::new("/"), &[&["check"], args].concat()))
        .replace(folder.to_str().unwrap(), "FOLDER")
}

#[test]
fn a_found_file_that_others_can_write_is_not_used() {
    let folder = folder_with(COMMAND);
    let path = folder.path().to_str().unwrap();
    let file = format!("{path}/sabir.toml");
    let refused = |reason: &str| {
        format!(
            "exit 3\nstderr:\nerror: the configuration is not used: {reason}\n  --> \
             FOLDER/sabir.toml\n  hint: name the file to use it (FOLDER/sabir.toml), or serve the \
             articles alone with --no-config"
        )
    };
    let offers = "exit 0\nstderr:\ntools: hello\n`sabir` offers 1 tool, 0 prompts and 0 resources";
    assert_eq!(seen_of(folder.path(), &[path]), offers);

    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(seen_of(folder.path(), &[path]), refused("its folder is writable by all users"));
    // Without a path it is found, too.
    let here = seen(&sabir(folder.path(), &["check"]));
    assert!(here.contains("its folder is writable by all users"), "{here}");
    assert_eq!(seen_of(folder.path(), &[&file]), offers);
    let alone = seen_of(folder.path(), &["--no-config", path]);
    assert!(alone.starts_with("exit 0") && alone.contains("offers 3 tools"), "{alone}");

    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    assert_eq!(seen_of(folder.path(), &[path]), refused("it is writable by all users"));
    assert_eq!(
        seen_of(folder.path(), &["--no-config", &file]),
        "exit 3\nstderr:\nerror: --no-config requires a folder of articles\n  --> FOLDER/sabir.toml"
    );
}

#[test]
fn a_found_file_of_another_user_is_not_used() {
    if !is_root() {
        return; // only root can give a file away
    }
    let folder = folder_with(COMMAND);
    let path = folder.path().to_str().unwrap();
    for given in [path.to_owned(), format!("{path}/sabir.toml")] {
        chown(&given, Some(NOBODY), None).unwrap();
        let seen = seen_of(folder.path(), &[path]);
        assert!(seen.contains("belongs to another user (user id 65534)"), "{seen}");
        chown(&given, Some(0), None).unwrap();
    }
}

#[test]
fn a_found_file_cannot_open_the_server_to_others() {
    for (text, key, line) in [
        ("[listen]\nhttp = \"0.0.0.0:7331\"\n", "a public address", 2),
        ("[listen]\nws = \"0.0.0.0:7332\"\n", "a public address", 2),
        ("[listen]\nhttp = \"7331\"\nws = \"[::]:7332\"\n", "a public address", 3),
        ("[http]\nallow_public = true\n", "allow_public", 2),
        ("[http]\norigins = [\"*\"]\n", "origins", 2),
        ("[http]\nhosts = [\"evil.example\"]\n", "hosts", 2),
        ("[http]\nbehind_proxy = true\n", "behind_proxy", 2),
        ("[http]\ntrusted_proxies = [\"10.0.0.1\"]\n", "trusted_proxies", 2),
    ] {
        let folder = folder_with(text);
        assert_eq!(
            seen(&sabir(folder.path(), &["check"])),
            format!(
                "exit 3\nstderr:\nerror: `{key}` is accepted only in a file that is named\n  --> \
                 sabir.toml:{line}\n  hint: name the file (sabir.toml), or use the options of \
                 `sabir serve`"
            )
        );
        let named = seen(&sabir(folder.path(), &["check", "sabir.toml"]));
        assert!(named.starts_with("exit 0"), "{named}");
    }
    for text in [
        "[listen]\nhttp = \"[::1]:7331\"\nws = \"localhost:7332\"\n",
        "[http]\nallow_public = false\norigins = []\n",
    ] {
        let seen = seen(&sabir(folder_with(text).path(), &["check"]));
        assert!(seen.starts_with("exit 0"), "{seen}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_sandbox_is_checked_when_the_file_is_read() {
    for (sandbox, expected) in [
        ("{ metadata = true }", "command `hello`: sandbox: `metadata` requires `read` or `write`"),
        ("{ sockets = 1 }", "invalid `sockets` (expected a list of paths, or true)"),
        ("{ sockets = [1] }", "invalid `sockets` (expected a list of paths, or true)"),
        ("{ sockets = [\"no/such\"] }", "command `hello`: sandbox: file or folder not found: "),
        ("{ read = [\"none\"] }", "command `hello`: sandbox: file or folder not found: "),
    ] {
        let folder = folder_with(&format!("{COMMAND}sandbox = {sandbox}\n"));
        let seen = seen(&sabir(folder.path(), &["check"]));
        assert!(seen.starts_with("exit 3") && seen.contains(expected), "{sandbox}: {seen}");
    }
    // This kernel may not support the sandbox; then nothing is served.
    for (sandbox, lacking) in [
        ("{}", "the sandbox requires Landlock 6 (Linux 6.12 or newer)"),
        ("{ sockets = true, network = false, read = [\".\"] }", "requires Landlock 6"),
        ("{ sockets = [\".\"] }", "named `sockets` require Landlock 9 (Linux 7.1 or newer)"),
    ] {
        let folder = folder_with(&format!("{COMMAND}sandbox = {sandbox}\n"));
        let seen = seen(&sabir(folder.path(), &["check"]));
        let is_refused = seen.starts_with("exit 3") && seen.contains(lacking);
        assert!(is_refused || seen.starts_with("exit 0"), "{sandbox}: {seen}");
    }
}

/// The first lines that `serve` writes to standard error.
fn said(child: &mut Child, count: usize) -> Vec<String> {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.take(count).collect()
}

#[test]
fn serve_names_the_file_that_it_found_and_its_programs() {
    let more: String = (0..18)
        .map(|n| format!("[[command]]\nname = \"c{n}\"\nrun = [\"/bin/echo\", \"{n}\"]\n"))
        .collect();
    let folder = folder_with(&format!("{COMMAND}{more}"));
    let path = folder.path().to_str().unwrap();
    let args = ["serve", path, "--http", "127.0.0.1:0", "--console", "never"];
    let mut child = command(Path::new("/"), &args).stderr(Stdio::piped()).spawn().unwrap();
    let lines = said(&mut child, 20);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lines[0].starts_with("serving `sabir` on http://127.0.0.1:"), "{lines:?}");
    assert_eq!(lines[2], format!("using {path}/sabir.toml"));
    assert_eq!(lines[3], "  runs sh");
    assert_eq!(lines[4], "  runs /bin/echo");
    assert_eq!(lines[19], "  and 3 more programs");

    // WebSocket clients connect by themselves too: the file in the current folder is named.
    let args = ["serve", "--ws", "127.0.0.1:0", "--stdio"];
    let on_websocket = seen(&sabir(folder.path(), &args));
    assert!(on_websocket.contains("\nusing sabir.toml\n  runs sh\n"), "{on_websocket}");
    let on_stdio = seen(&sabir(folder.path(), &["serve", "--stdio"]));
    assert!(!on_stdio.contains("using"), "{on_stdio}");

    // The same on stdio; but not for a file that was named.
    let on_stdio = seen(&sabir(Path::new("/"), &["serve", path, "--stdio"]));
    assert!(on_stdio.contains(&format!("using {path}/sabir.toml")), "{on_stdio}");
    let named = seen(&sabir(Path::new("/"), &["serve", &format!("{path}/sabir.toml"), "--stdio"]));
    assert_eq!(named, "exit 0");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let folder = folder_with("[server]\n\"na\\u001b[31mme\\n\" = 1\n");
    let seen_ = seen(&sabir(folder.path(), &["check"]));
    assert!(seen_.contains("\\u{1b}[31m") && !seen_.contains('\u{1b}'), "{seen_:?}");

    let articles = folder_with("[[articles]]\npath = \".\"\n");
    fs::write(articles.path().join("a\u{1b}]0;title\u{7}.md"), "---\ndate: \u{1b}[2J\n---\n# A\n")
        .unwrap();
    for args in [&["check"][..], &["serve", "--stdio"]] {
        let output = sabir(articles.path(), args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("title") && !text.contains("]0;title\u{7}"), "{args:?}: {text:?}");
        // The log has colours of its own, which begin with ESC [ and a digit.
        assert!(!text.contains("\u{1b}]") && !text.contains("\u{1b}[2J"), "{args:?}: {text:?}");
    }
}

#[test]
fn a_token_can_be_read_from_a_file() {
    let folder = folder_with("");
    let refused = |args: &[&str]| {
        let args = [&["serve", "--http", "127.0.0.1:0"], args].concat();
        seen(&sabir(folder.path(), &args))
    };
    fs::write(folder.path().join("token"), "not one word\n").unwrap();
    assert_eq!(
        refused(&["--token-file", "token"]),
        "exit 1\nstderr:\nerror: invalid token in token (expected printable ASCII characters \
         without spaces)"
    );
    fs::write(folder.path().join("token"), "x".repeat(4097)).unwrap();
    assert_eq!(
        refused(&["--token-file", "token"]),
        "exit 1\nstderr:\nerror: cannot read the token in token: the file is too large (limit 4096 \
         bytes)"
    );
    let missing = refused(&["--token-file", "none"]);
    assert!(missing.contains("cannot read the token in none: "), "{missing}");
    assert!(refused(&["--token-file", "a", "--token", "b"]).starts_with("exit 2"));
}

/// A server with secrets, or without. It runs as a user without privileges: root can read everything.
#[cfg(target_os = "linux")]
struct Unprivileged {
    folder: TempDir,
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    user: u32,
}

#[cfg(target_os = "linux")]
impl Unprivileged {
    fn start(file: &str, env: Option<(&str, &str)>) -> Self {
        let folder = folder_with(file);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("a.md"), "# A\n").unwrap();
        let user = if is_root() { NOBODY } else { rustix::process::geteuid().as_raw() };
        let path = folder.path().join("sabir.toml");
        let args = ["serve", path.to_str().unwrap(), "--http", "127.0.0.1:0"];
        let mut serve = command(Path::new("/"), &args);
        serve.envs(env).env("MARK", "mark").stdin(Stdio::null());
        let mut child = serve.uid(user).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut server = Self { folder, child, lines, user };
        server.says("serving");
        server
    }

    #[track_caller]
    fn says(&mut self, what: &str) {
        assert!(self.lines.any(|line| line.unwrap().starts_with(what)), "never said: {what}");
    }

    /// Whether another program of its user can read its environment.
    fn is_readable(&self) -> bool {
        let environ = format!("/proc/{}/environ", self.child.id());
        let mut cat = std::process::Command::new("/bin/cat");
        let read = cat.arg(&environ).uid(self.user).output().unwrap();
        String::from_utf8_lossy(&read.stdout).contains("MARK=mark")
    }
}

#[cfg(target_os = "linux")]
impl Drop for Unprivileged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(target_os = "linux")]
const UPSTREAM: &str = "[[upstream]]\nname = \"u\"\nurl = \"http://127.0.0.1:1/mcp\"\n";

#[test]
#[cfg(target_os = "linux")]
fn other_programs_of_the_user_cannot_read_the_secrets_of_a_running_server() {
    let request = "[[request]]\nname = \"r\"\ndescription = \"R\"\nurl = \"http://127.0.0.1:1/\"\n";
    let header = format!("{UPSTREAM}headers = {{ Authorization = \"Bearer ${{S}}\" }}\n");
    let auth = format!("{UPSTREAM}auth = {{ header = \"x-key\", env = \"S\" }}\n");
    let api = format!("{request}auth = [{{ type = \"bearer\", env = \"S\" }}]\n");
    let env = format!("{COMMAND}env = {{ S = true }}\n");
    let embeddings = "[[articles]]\npath = \".\"\n[articles.embeddings]\nmodel = \"m\"\n\
                      url = \"http://127.0.0.1:1/v1\"\nkey_env = \"S\"\n";
    for (file, variable) in [
        ("", "SABIR_TOKEN"),
        ("", "SABIR_CONSOLE_TOKEN"),
        ("", "OTEL_EXPORTER_OTLP_HEADERS"),
        (&header, "S"),
        (&auth, "S"),
        (&api, "S"),
        (&env, "S"),
        (embeddings, "S"),
    ] {
        let server = Unprivileged::start(file, Some((variable, "a=open-sesame")));
        assert!(!server.is_readable(), "{variable}: {file}");
    }
    for file in ["", COMMAND, UPSTREAM] {
        assert!(Unprivileged::start(file, Some(("S", "open-sesame"))).is_readable(), "{file}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn secrets_that_a_reload_adds_are_protected() {
    let mut server = Unprivileged::start(COMMAND, Some(("S", "open-sesame")));
    assert!(server.is_readable());
    let changed = format!("{COMMAND}{UPSTREAM}headers = {{ x-key = \"${{S}}\" }}\n");
    fs::write(server.folder.path().join("sabir.toml"), changed).unwrap();
    server.says("reloaded the configuration");
    assert!(!server.is_readable());
}
