//! The binary `sabir serve`: searches of the handbook, and a command tool that does nothing, compared
//! with starting that program directly.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Run, Sample, Series, http};
use crate::figures::Measure;
use crate::load::exchange::{Ask, Era};
use crate::process::{CommandLine, Cores};
use crate::servers::{Kind, Server};

/// Both over one connection.
pub(super) fn all(run: &mut Run<'_>) {
    let Some(ours) = run.ours() else { return };
    let folder = match prepare(&run.paths.root) {
        Ok(folder) => folder,
        Err(error) => return run.miss("sabir serve", "handbook and command", &error.to_string()),
    };
    let binary = Server { name: "sabir serve".into(), ..ours.clone() };
    let job = http::job(Era::Modern, search(), 1);
    let line = serve(run, &folder.path().join("handbook"));
    let one = http::series(run, &binary, &line, &job);
    run.case("products", "search_articles in examples/handbook", 1.0, one.into_iter().collect());

    let call = Ask::Call { tool: "nothing", arguments: "{}".into() };
    let job = http::job(Era::Modern, call, 1);
    let line = serve(run, &folder.path().join("command"));
    let (cores, time) = (run.cores, run.schedule.time);
    let bare = Server { name: "bare spawn".into(), kind: Kind::Floor, ..ours.clone() };
    let mut all = vec![Series::new(&bare, run.schedule.rounds, move || {
        spawn_bare(cores, time.as_secs_f64())
    })];
    all.extend(http::series(run, &binary, &line, &job));
    run.case("products", "/bin/true as a tool", 1.0, all);
}

/// How `sabir serve` is started for HTTP, up to the address.
pub(super) fn serve(run: &Run<'_>, path: &Path) -> CommandLine {
    let program = run.paths.programs.join("sabir");
    CommandLine::new(&program, &["serve", &path.to_string_lossy(), "--http"])
}

/// A search in the handbook.
pub(super) fn search() -> Ask {
    Ask::Call {
        tool: "search_articles",
        arguments: r#"{"query":"ask the user a question during a call"}"#.into(),
    }
}

/// Creates a copy of the handbook with an index of its own, and a `sabir.toml` with one command.
pub(super) fn prepare(root: &Path) -> io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    copy(&root.join("examples/handbook"), &folder.path().join("handbook"))?;
    let command = "[[command]]\nname = \"nothing\"\ndescription = \"Do nothing\"\n\
                   run = [\"/bin/true\"]\n";
    fs::create_dir(folder.path().join("command"))?;
    fs::write(folder.path().join("command/sabir.toml"), command)?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Starts the program and waits for it, as the command tool does.
fn spawn_bare(cores: Cores, seconds: f64) -> Result<Sample, String> {
    cores.on_server_core(|| spawn_for(seconds))
}

fn spawn_for(seconds: f64) -> Result<Sample, String> {
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        let begin = Instant::now();
        let mut command = Command::new("/bin/true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("/bin/true: {status}"));
        }
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    times.sort_unstable_by(f64::total_cmp);
    let share = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
    let (p50, p99) = (share(0.5).unwrap_or(f64::NAN), share(0.99).unwrap_or(f64::NAN));
    Ok(vec![(Measure::PerSecond, rate), (Measure::P50Us, p50), (Measure::P99Us, p99)])
}
