//! `cargo xtask`: the chores of this repository that are not the product.
//!
//! `tidy`: the rules that no compiler checks. `cargo test` runs the same rules as a
//! test, so nobody has to remember the command. `soak`: the kill test, for longer than
//! `./test` has time. `bench` and `record`: how fast we are, and what a request costs.

mod bench; // side by side against the peers; the cost of the hot paths
mod finding; // what a rule says
mod package; // what cargo knows about each crate
mod paths; // `a::{b, c::d}` -> its paths
mod rules; // the table of rules
mod soak; // the kill test, many times
mod source; // one Rust file: what is shipped, what is test code
mod tidy; // run every rule, print the findings
mod tokens; // Rust text -> tokens
mod tree; // the files, read from disk: the only input

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  tidy [DIR]   check the rules of the house over every file of the tree
               (DIR: a workspace; default: this one)
  soak [N]     end the binary N times in every way, and count what is left
               (N: rounds, at most a million; default: 10000, half an hour)
  bench [--quick] [--only NAME,…] [--part PART]
               measure us against the peers; rewrites docs/performance.md, its plots
               and bench/figures.json (--only: some of the servers; --part: http, growth,
               stdio, start, memory, expiry or products; then nothing is rewritten)
  record [--write]
               count what a request costs on the hot paths, and compare it with
               bench/record.toml, or write that file
  help         print this text

exit codes: 0 in order, 1 something is wrong, 2 wrong usage
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tidy"] => tidy(&workspace()),
        ["tidy", dir] if !dir.starts_with('-') => tidy(Path::new(dir)),
        ["soak"] => told(soak::run(&workspace(), soak::ROUNDS)),
        ["soak", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["soak", written] => match soak::rounds(written) {
            Some(rounds) => told(soak::run(&workspace(), rounds)),
            None => usage("`soak` takes a number of rounds, from 1 to a million"),
        },
        ["soak", ..] => usage("`soak` takes at most one number"),
        ["bench" | "record", "--help" | "-h"] => say(&mut io::stdout(), HELP, 0),
        ["bench", options @ ..] if bench::are_options(options) => {
            told(bench::bench(&workspace(), options))
        }
        ["bench", ..] => usage("`bench` takes `--quick`, `--only NAME,…` and `--part PART`"),
        ["record"] => told(bench::record(&workspace(), &[])),
        ["record", "--write"] => told(bench::record(&workspace(), &["--write"])),
        ["record", ..] => usage("`record` takes `--write` or nothing"),
        ["help" | "--help" | "-h", ..] | ["tidy", "--help" | "-h"] => {
            say(&mut io::stdout(), HELP, 0)
        }
        [] => say(&mut io::stderr(), HELP, 2),
        ["tidy", ..] => usage("`tidy` takes at most one folder"),
        [other, ..] => usage(&format!("no command `{other}`")),
    }
}

fn tidy(root: &Path) -> ExitCode {
    match tidy::run(root, &mut io::stdout(), &mut io::stderr()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(reason) => say(&mut io::stderr(), &format!("error: {reason}\n"), 1),
    }
}

/// Whether it went well, as an exit code.
fn told(done: io::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(reason) => say(&mut io::stderr(), &format!("error: {reason}\n"), 1),
    }
}

fn usage(reason: &str) -> ExitCode {
    say(&mut io::stderr(), &format!("error: {reason}\n\n{HELP}"), 2)
}

/// A closed pipe is the reader's choice and changes no exit code.
fn say(to: &mut dyn Write, text: &str, code: u8) -> ExitCode {
    let _ = to.write_all(text.as_bytes());
    ExitCode::from(code)
}

/// The workspace that this package belongs to. Cargo says where the package is
/// when it runs us; the place of the build is right when it does not.
fn workspace() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map(Path::to_path_buf).unwrap_or(package)
}
