//! Cold start: the time from starting a process to its first answer on stdio.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use super::{Run, Sample, Series};
use crate::figures::Measure;
use crate::load::exchange::{Ask, Era};
use crate::load::pipe::Pipe;
use crate::process::{CommandLine, Cores, Process, Streams};
use crate::servers::{Kind, Server};

/// The longest time that a start may take.
const LIMIT: Duration = Duration::from_secs(30);

/// All servers, and `sabir serve` with ten tools.
pub(super) fn cold(run: &mut Run<'_>) {
    let starts = run.schedule.starts;
    let mut series = Vec::new();
    let cores = run.cores;
    for server in run.servers {
        let era = if server.stdio.contains(&Era::Modern) { Era::Modern } else { Era::Legacy };
        let line = server.command.and(&["stdio"]);
        series.push(Series::new(server, starts, move || first_answer(cores, &line, era)));
    }
    let folder = match ten_tools() {
        Ok(folder) => folder,
        Err(error) => return run.miss("sabir serve", "cold start", &error.to_string()),
    };
    let serve = ["serve", &folder.path().to_string_lossy(), "--stdio"];
    let line = CommandLine::new(&run.paths.programs.join("sabir"), &serve);
    let binary = Server {
        name: "sabir serve".into(),
        kind: Kind::Ours,
        about: String::new(),
        command: line.clone(),
        http: Vec::new(),
        stdio: Vec::new(),
        keeps_sessions: false,
    };
    if run.ours().is_some() {
        series.push(Series::new(&binary, starts, move || first_answer(cores, &line, Era::Modern)));
    }
    run.case("start", "cold start", 0.0, series);
}

/// The time to the list of tools, including the handshake of the legacy era.
pub(super) fn first_answer(cores: Cores, line: &CommandLine, era: Era) -> Result<Sample, String> {
    let start = Instant::now();
    let mut process = Process::start_bare(cores, line, Streams::Piped)?;
    let _guard = process.guard(LIMIT);
    let mut pipe = Pipe::open(process.child(), era).map_err(|error| error.to_string())?;
    pipe.sequential(era, &Ask::List(0), 1)?;
    Ok(vec![(Measure::Ms, start.elapsed().as_secs_f64() * 1e3)])
}

/// Creates a folder with a `sabir.toml` of ten command tools.
fn ten_tools() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let mut file = String::from("[server]\nname = \"ten\"\n");
    for n in 1..=10 {
        // Writing to a string cannot fail.
        let _ = write!(
            file,
            "\n[[command]]\nname = \"count_words_{n}\"\ndescription = \"Count the words of a text\"\n\
             run = [\"wc\", \"--words\"]\nstdin = \"{{text}}\"\n\
             input = {{ text = \"string\" }}\n"
        );
    }
    fs::write(folder.path().join("sabir.toml"), file)?;
    Ok(folder)
}
