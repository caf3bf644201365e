//! The text of PDF files, by `pdftotext`: bounded in time, memory and output.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use sabir_articles::PdfReader;
use sabir_supervisor::Supervisor;
use tokio::runtime::Handle;

use crate::command::{Limit, Limits, Program, RunError, run};

/// The name of the program, which is part of poppler.
pub const PDFTOTEXT: &str = "pdftotext";

/// The limits of time, memory and text for one file.
const TIME: Duration = Duration::from_secs(30);
const MEMORY: u64 = 1 << 30;
const TEXT: usize = 8 << 20;

/// How `pdftotext` at this path is run.
pub fn pdftotext(path: PathBuf) -> Program {
    let limits =
        Limits { memory: Some(MEMORY), cpu_seconds: Some(TIME.as_secs()), ..Limits::default() };
    let cwd = Path::new("/").to_owned();
    Program { timeout: TIME, max_output: TEXT, limits, ..Program::new(path, cwd) }
}

/// Reads PDF files with this program, which gets them on its standard input. Must be called in a tokio
/// runtime, in which the program is waited for.
pub fn pdf_reader(program: Program, supervisor: Supervisor) -> PdfReader {
    let runtime = Handle::current();
    PdfReader::new(move |file| {
        let (program, supervisor) = (program.clone(), supervisor.clone());
        let (tell, told) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // The reader may be gone.
            let _ = tell.send(text(&program, &supervisor, file).await);
        });
        // The runtime drops its tasks when it ends.
        told.recv().unwrap_or_else(|_| Err("Sabir is stopping".to_owned()))
    })
}

async fn text(program: &Program, supervisor: &Supervisor, file: Vec<u8>) -> Result<String, String> {
    let args = ["-enc", "UTF-8", "-", "-"].map(Into::into).to_vec();
    let failed = |error: RunError| format!("{PDFTOTEXT}: {error}");
    let finish = run(supervisor, program, args, Some(file), None).await.map_err(failed)?;
    match finish.limit {
        Some(Limit::Time | Limit::Cpu) => {
            Err(format!("{PDFTOTEXT} took too long (limit {:?})", program.timeout))
        }
        Some(Limit::Output(_)) => {
            Err(format!("it has too much text (limit {} bytes)", program.max_output))
        }
        _ if !finish.success => {
            let reason = String::from_utf8_lossy(&finish.stderr);
            let reason = reason.lines().next().unwrap_or("no reason given").trim();
            Err(format!("{PDFTOTEXT} failed: {reason}"))
        }
        _ => Ok(String::from_utf8_lossy(&finish.stdout).into_owned()),
    }
}
