//! `hot-paths [--write] RECORD` counts the cost of the hot paths and compares it with the record, or
//! rewrites the record. `cargo xtask record` builds the programs and runs it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing figures is its job")]

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use sabir_bench::record;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["--write", file] => run(Path::new(file), true),
        [file] if !file.starts_with('-') => run(Path::new(file), false),
        _ => {
            eprintln!("usage: hot-paths [--write] RECORD");
            return ExitCode::from(2);
        }
    };
    let wrong = done.unwrap_or_else(|why| vec![why]);
    for why in &wrong {
        eprintln!("error: {why}");
    }
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Returns the errors of the comparison.
fn run(file: &Path, write: bool) -> Result<Vec<String>, String> {
    let named = |error: String| format!("{}: {error}", file.display());
    let recorded = match fs::read_to_string(file) {
        Ok(text) => record::parse(&text).map_err(named)?,
        Err(_) if write => record::Costs::new(),
        Err(error) => return Err(named(error.to_string())),
    };
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let programs = program.parent().ok_or("this program has no parent folder")?;
    let measured = record::count::all(programs)?;
    let (table, wrong) = record::compare(&recorded, &measured);
    print!("{table}");
    if !write {
        return Ok(wrong);
    }
    fs::write(file, record::write(&measured)).map_err(|error| named(error.to_string()))?;
    Ok(Vec::new())
}
