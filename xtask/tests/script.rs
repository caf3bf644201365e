//! The script `./test`, run in a copy with a fake cargo that only logs its arguments.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seconds that a process sleeps if nothing stops it.
const SLEEP: u64 = 60;

/// Held while a program is written and while a process is started. Otherwise a new process could
/// inherit the open file, and Linux does not run a program that is open for writing.
static WRITING_OR_STARTING: Mutex<()> = Mutex::new(());

fn start(command: &mut Command) -> Child {
    let _one_at_a_time = WRITING_OR_STARTING.lock().unwrap_or_else(|e| e.into_inner());
    command.spawn().unwrap()
}

/// A folder with `test`, `tests.d/lib.sh` and `fakes/`, which is first in PATH.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn new(name: &str) -> Self {
        // Two checkouts may share a target folder.
        let folder = format!("script-{}-{name}", std::process::id());
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(root.join("tests.d")).unwrap();
        fs::create_dir_all(root.join("fakes")).unwrap();
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let copy = Self { root: root.canonicalize().unwrap() };
        for file in ["test", "tests.d/lib.sh"] {
            copy.write_program(file, &fs::read_to_string(tree.join(file)).unwrap());
        }
        for program in ["cargo", "git", "cc"] {
            copy.fake(program, "");
        }
        // No test may install anything.
        for program in ["apt-get", "npm", "rustup"] {
            copy.fake(program, "exit 99");
        }
        copy
    }

    /// A program that logs its name and arguments, then runs `then`.
    fn fake(&self, program: &str, then: &str) {
        let body = format!("#!/bin/bash\necho \"{program} $*\" >>\"$LOG\"\n{then}\n");
        self.write_program(&format!("fakes/{program}"), &body);
    }

    fn step(&self, name: &str, body: &str) {
        let head = "#!/usr/bin/env bash\nset -euo pipefail\n. \"$(dirname \"$0\")/lib.sh\"\n";
        self.write_program(&format!("tests.d/{name}"), &format!("{head}{body}\n"));
    }

    fn write_program(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        let _one_at_a_time = WRITING_OR_STARTING.lock().unwrap_or_else(|e| e.into_inner());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.root.join("test"));
        command
            .args(args)
            .env_clear()
            .env("PATH", format!("{}/fakes:/usr/bin:/bin", self.root.display()))
            .env("LOG", self.root.join("log"))
            .env("CI", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Run::of(start(&mut self.command(args)).wait_with_output().unwrap())
    }

    /// The calls of the fakes, one line each.
    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.root.join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Run {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The step and result columns of the summary, and the last line.
    fn summary(&self) -> (Vec<(&str, &str)>, &str) {
        let (_, table) = self.out.rsplit_once("result   time\n").expect(&self.out);
        let (rows, last) = table.trim_end().rsplit_once("\n\n").expect(&self.out);
        let row = |line| {
            let (step, rest): (&str, &str) = str::split_once(line, ' ').unwrap();
            (step, rest.trim_start().split("  ").next().unwrap().trim())
        };
        (rows.lines().map(row).collect(), last)
    }
}

#[test]
fn every_step_runs_in_order_and_the_last_line_counts_them() {
    let copy = Copy::new("all");
    copy.step("20-second", "cargo second");
    copy.step("10-first", "cargo first");
    let run = copy.run(&[]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    // Builds for later steps run beside the others.
    let is_step = |line: &&String| !line.starts_with("cargo build --quiet --release");
    let log = copy.log();
    assert_eq!(
        log.iter().filter(is_step).collect::<Vec<_>>(),
        [
            "cargo fmt --version",
            "cargo clippy --version",
            "cargo --version",
            "cargo fmt --all --check --manifest-path ./Cargo.toml",
            "cargo fmt --all --check --manifest-path bench/peers/rust/Cargo.toml",
            "cargo fmt --all --check --manifest-path clients/rmcp/Cargo.toml",
            "cargo clippy --workspace --all-targets -- -D warnings",
            "cargo clippy --workspace -- -D warnings -D clippy::large_futures",
            "cargo check --package sabir-cli",
            "cargo test --workspace",
            "cargo doc --workspace --no-deps",
            "cargo first",
            "cargo second",
        ]
    );
    let (rows, last) = run.summary();
    let names: Vec<_> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["tools", "fmt", "clippy", "test", "doc", "first", "second"]);
    assert!(rows.iter().all(|(_, result)| *result == "ok"));
    assert_eq!(last, "7 passed, 0 failed");
    assert!(run.out.contains("\n==> first\n"));
}

#[test]
fn documentation_is_built_with_warnings_denied() {
    let copy = Copy::new("doc");
    copy.fake("cargo", "echo \"flags $RUSTDOCFLAGS\"");
    assert!(copy.run(&["doc"]).out.contains("flags  -D warnings\n"));
}

#[test]
fn the_first_failure_stops_the_run_and_is_reported() {
    let copy = Copy::new("failure");
    copy.fake("cargo", "[ \"$1 $2\" != 'clippy --workspace' ] || exit 7");
    let run = copy.run(&[]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("FAILED: step clippy (exit code 7) after "), "{}", run.err);
    assert!(run.err.contains("again: ./test clippy"));
    let (rows, last) = run.summary();
    assert_eq!(
        rows,
        [
            ("tools", "ok"),
            ("fmt", "ok"),
            ("clippy", "FAILED"),
            ("test", "not run"),
            ("doc", "not run"),
        ]
    );
    assert_eq!(last, "2 passed, 1 failed");
    assert!(!copy.log().iter().any(|line| line.starts_with("cargo test")));
}

#[test]
fn a_failure_in_the_middle_of_a_step_fails_the_step() {
    let copy = Copy::new("middle");
    copy.step("10-bad", "false\ncargo unreachable");
    let run = copy.run(&["bad"]);
    assert_eq!((run.code, run.summary().1), (Some(1), "0 passed, 1 failed"));
    copy.fake("cargo", "[ \"$1\" != clippy ]");
    copy.fake("rustup", "exit 3");
    let run = copy.run(&["tools"]);
    assert!(run.err.contains("FAILED: step tools (exit code 3)"), "{}", run.err);
    assert_eq!(copy.log().last().unwrap(), "rustup component add rustfmt clippy");
}

#[test]
fn only_the_named_steps_run() {
    let copy = Copy::new("named");
    copy.step("10-extra", "");
    let run = copy.run(&["fmt", "extra"]);
    let log = copy.log();
    assert!(!log.is_empty() && log.iter().all(|line| line.starts_with("cargo fmt ")), "{log:?}");
    assert_eq!(run.summary(), (vec![("fmt", "ok"), ("extra", "ok")], "2 passed, 0 failed"));
    assert_eq!(copy.run(&["--list"]).out, "tools\nfmt\nclippy\ntest\ndoc\nextra\n");
    assert!(copy.run(&["--help"]).out.starts_with("usage: ./test"));
}

#[test]
fn wrong_usage_runs_nothing_and_exits_2() {
    let copy = Copy::new("usage");
    for (args, reason) in [
        (["fmt", "nonsense"], "error: unknown step nonsense (expected tools fmt"),
        (["fmt", "--fast"], "error: unknown option --fast"),
    ] {
        let run = copy.run(&args);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
        assert!(run.err.starts_with(reason), "{}", run.err);
    }
    fs::write(copy.root.join("tests.d/10-plain"), "#!/bin/bash\n").unwrap();
    let run = copy.run(&["fmt"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("error: tests.d/10-plain is not executable"), "{}", run.err);
    fs::remove_file(copy.root.join("tests.d/10-plain")).unwrap();
    copy.step("10-fmt", "");
    assert!(copy.run(&[]).err.starts_with("error: two steps named fmt: tests.d/10-fmt"));
    assert_eq!(copy.log(), [] as [&str; 0]);
}

#[test]
fn without_cargo_the_error_says_how_to_install_it() {
    let copy = Copy::new("no-cargo");
    fs::remove_file(copy.root.join("fakes/cargo")).unwrap();
    let run = copy.run(&[]);
    if run.code == Some(0) {
        return; // there is a cargo in /usr/bin
    }
    assert!(run.err.contains("error: cargo not found (install Rust with rustup"), "{}", run.err);
    assert_eq!(run.summary().1, "0 passed, 1 failed");
}

#[test]
fn a_step_has_its_variables_no_input_and_runs_at_the_root() {
    let copy = Copy::new("variables");
    let elsewhere = copy.root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    copy.step(
        "10-show",
        "echo \"$PWD|$ROOT|$TARGET|$CARGO_TARGET_DIR|$VENV|$NODE22|\"; test -d \"$SCRATCH\"; cat",
    );
    // Our standard input stays open while the step runs; the step does not get it.
    let mut command = copy.command(&["show"]);
    command.current_dir(&elsewhere).env("CARGO_TARGET_DIR", "built").stdin(Stdio::piped());
    let mut child = start(&mut command);
    let held = child.stdin.take();
    let run = Run::of(child.wait_with_output().unwrap());
    drop(held);
    assert_eq!(run.code, Some(0));
    let shown = run.out.lines().find(|line| line.contains('|')).unwrap();
    let shown: Vec<_> = shown.split('|').collect();
    let (root, target) = (copy.root.to_str().unwrap(), elsewhere.join("built"));
    let target = target.to_str().unwrap();
    assert_eq!(shown[..5], [root, root, target, target, &format!("{target}/venv")]);
    assert!(shown[5].starts_with(&format!("{target}/node22/")));
}

#[test]
fn a_step_also_runs_alone() {
    let copy = Copy::new("alone");
    copy.step("10-show", "echo \"$ROOT|$TARGET|\"; test -d \"$SCRATCH\"");
    let mut alone = Command::new(copy.root.join("tests.d/10-show"));
    let alone = start(alone.env_clear().stdout(Stdio::piped())).wait_with_output().unwrap();
    let root = copy.root.display();
    assert_eq!(Run::of(alone).out, format!("{root}|{root}/target|\n"));
}

#[test]
fn a_signal_stops_the_step_and_its_processes_and_prints_the_summary() {
    let copy = Copy::new("signal");
    copy.step("10-slow", &format!("sleep {SLEEP} & echo ready; sleep {SLEEP}"));
    let started = Instant::now();
    let mut child = start(&mut copy.command(&["fmt", "slow"]));
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    while !seen.ends_with("ready\n") {
        assert_ne!(out.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    let mut kill = Command::new("kill");
    assert!(start(kill.arg(child.id().to_string())).wait().unwrap().success());
    // Ends when the step and its background process have closed the pipe.
    out.read_to_string(&mut seen).unwrap();
    assert!(started.elapsed() < Duration::from_secs(SLEEP));
    let run = Run { code: child.wait().unwrap().code(), out: seen, err: String::new() };
    assert_eq!(run.code, Some(143));
    assert_eq!(run.summary(), (vec![("fmt", "ok"), ("slow", "stopped")], "1 passed, 1 failed"));
}

#[test]
fn a_background_process_does_not_outlive_its_step() {
    let copy = Copy::new("left");
    copy.step("10-careless", &format!("sleep {SLEEP} &"));
    let started = Instant::now();
    // Waits for the end of the output, which the background process would hold open.
    assert_eq!(copy.run(&["careless"]).summary().1, "1 passed, 0 failed");
    assert!(started.elapsed() < Duration::from_secs(SLEEP));
}

#[test]
fn apt_installs_only_missing_packages_and_updates_once() {
    let copy = Copy::new("apt");
    copy.fake("id", "echo 0");
    copy.fake("dpkg-query", "[ \"${*: -1}\" = there ] && echo -n installed");
    copy.fake("apt-get", "");
    copy.step("10-one", "need_apt there one two");
    copy.step("20-two", "need_apt there; need_apt three");
    let run = copy.run(&["one", "two"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let asked: Vec<_> = copy
        .log()
        .iter()
        .filter(|line| line.starts_with("apt-get"))
        .map(|line| line.replace(" -o DPkg::Lock::Timeout=300", ""))
        .collect();
    assert_eq!(
        asked,
        [
            "apt-get update -qq",
            "apt-get install -qq -y --no-install-recommends one two",
            "apt-get install -qq -y --no-install-recommends three",
        ]
    );
    copy.fake("id", "echo 1000");
    let run = copy.run(&["one"]);
    assert!(
        run.err.contains("error: missing packages (as root: apt-get install one two)"),
        "{}",
        run.err
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn node_22_is_installed_once_into_the_target_folder() {
    let copy = Copy::new("node");
    copy.fake(
        "npm",
        "mkdir -p \"$NODE22\"; printf '#!/bin/bash\\necho v22.1.0\\n' >\"$NODE22/node\"; \
         chmod +x \"$NODE22/node\"",
    );
    copy.step("10-one", "need_node22; \"$NODE22/node\" --version");
    copy.step("20-two", "need_node22");
    let run = copy.run(&["one", "two"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("v22.1.0"));
    let [npm] = copy.log().try_into().unwrap();
    assert!(npm.contains(&format!("--prefix {}/target/node22 ", copy.root.display())), "{npm}");
    assert!(npm.ends_with("@22"), "{npm}");
    copy.fake("npm", "");
    fs::remove_dir_all(copy.root.join("target")).unwrap();
    assert!(copy.run(&["one"]).err.contains("is not version 22"));
}

#[test]
fn python_packages_go_into_one_environment() {
    let copy = Copy::new("pip");
    let inner = "#!/bin/bash\\necho \"venv $*\" >>\"$LOG\"\\n";
    copy.fake(
        "python3",
        &format!(
            "[ \"$2\" = venv ] || exit 0; mkdir -p \"$VENV/bin\"; \
             printf '{}' >\"$VENV/bin/python\"; chmod +x \"$VENV/bin/python\"",
            inner
        ),
    );
    copy.step("10-one", "need_pip a==1");
    copy.step("20-two", "need_pip -r reqs.txt");
    let run = copy.run(&["one", "two"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let log = copy.log();
    let made = log.iter().filter(|line| line.starts_with("python3 -m venv")).count();
    assert_eq!(made, 1, "{log:?}");
    let installs: Vec<_> =
        log.iter().filter(|line| line.starts_with("venv -m pip install")).collect();
    assert_eq!(installs.len(), 2, "{log:?}");
    assert!(installs[0].ends_with(" a==1") && installs[1].ends_with(" -r reqs.txt"), "{log:?}");
}

#[test]
fn a_cargo_tool_is_installed_once_per_version() {
    let copy = Copy::new("cargo-tool");
    copy.fake(
        "cargo",
        "mkdir -p \"$TARGET/tools\"; echo \"\\\"${*: -1}\" | tr @ ' ' | sed 's/$/ (/' >\"$TARGET/tools/.crates.toml\"",
    );
    copy.step("10-one", "need_cargo_tool cargo-x 1.2.3; echo \"$PATH\"");
    copy.step("20-two", "need_cargo_tool cargo-x 1.2.3");
    copy.step("30-newer", "need_cargo_tool cargo-x 1.2.30");
    let run = copy.run(&["one", "two", "newer"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let tools = format!("{}/target/tools", copy.root.display());
    assert!(run.out.contains(&format!("{tools}/bin:")), "{}", run.out);
    let log = copy.log();
    assert_eq!(log.len(), 2, "{log:?}");
    for (line, version) in log.iter().zip(["1.2.3", "1.2.30"]) {
        assert!(line.starts_with("cargo install ") && line.contains("--locked"), "{line}");
        assert!(line.contains(&format!("--root {tools} ")), "{line}");
        assert!(line.ends_with(&format!(" cargo-x@{version}")), "{line}");
    }
}

#[test]
fn a_step_requires_the_schemas() {
    let copy = Copy::new("schemas");
    copy.step("10-show", "echo \"required: $SABIR_REQUIRE_SCHEMA\"");
    assert!(copy.run(&["show"]).out.contains("required: 1\n"));
    copy.fake("cargo", "echo \"required: $SABIR_REQUIRE_SCHEMA\"");
    assert!(copy.run(&["test"]).out.contains("required: 1\n"));
}
