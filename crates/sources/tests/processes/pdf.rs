//! PDF files, read by programs that take the place of `pdftotext`.

use std::process::Command;
use std::time::Duration;

use sabir_sources::articles::{pdf_reader, pdftotext};
use sabir_sources::command::{Limits, Program};
use tempfile::TempDir;

use super::{grace, supervisor};

/// A program that runs this script.
fn program(folder: &TempDir, script: &str) -> Program {
    let [text, path] = ["script", "pdftotext"].map(|name| folder.path().join(name));
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    // Copied by another process, so that no process started meanwhile has it open for writing.
    let copied = Command::new("install").arg("-m755").arg(&text).arg(&path).status().unwrap();
    assert!(copied.success());
    // The limits are applied by Sabir's own executable, which this is not.
    Program { limits: Limits::default(), grace: grace(0, 100), ..pdftotext(path) }
}

async fn read(program: Program) -> Result<String, String> {
    let reader = pdf_reader(program, supervisor());
    tokio::task::spawn_blocking(move || reader.read(b"%PDF text".to_vec())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_the_input_and_the_text_is_the_output() {
    let folder = TempDir::new().unwrap();
    let text = read(program(&folder, "echo \"$@\"; cat")).await;
    assert_eq!(text.unwrap(), "-enc UTF-8 - -\n%PDF text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_bounded_in_time_and_text_and_says_what_failed() {
    let folder = TempDir::new().unwrap();
    let mut slow = program(&folder, "exec sleep 600");
    slow.timeout = Duration::from_secs(2);
    let reason = read(slow).await.unwrap_err();
    // On a busy machine it may not even start in this time.
    let is_late =
        reason == "pdftotext took too long (limit 2s)" || reason.contains("did not start");
    assert!(is_late, "{reason}");
    let folder = TempDir::new().unwrap();
    let mut long = program(&folder, "exec yes");
    long.max_output = 1000;
    assert_eq!(read(long).await.unwrap_err(), "it has too much text (limit 1000 bytes)");
    let folder = TempDir::new().unwrap();
    let broken = program(&folder, "echo 'Syntax Error: no trailer' >&2; exit 1");
    assert_eq!(read(broken).await.unwrap_err(), "pdftotext failed: Syntax Error: no trailer");
}
