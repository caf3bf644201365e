//! The latency of other requests while very many legacy sessions expire.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::{Run, Sample, Series};
use crate::figures::Measure;
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Client, Until, http_post, open_sessions};
use crate::process::{CommandLine, Cores, Process};
use crate::servers::{Kind, Server};

const SESSIONS: usize = 100_000;

/// The idle time-out of a session: longer than it takes to open all of them.
const IDLE: Duration = Duration::from_secs(8);

/// How long requests are sent, from the time when the first session expires. All have expired by
/// then.
const WATCHED: Duration = Duration::from_secs(6);

/// Several rounds, because the machine itself pauses now and then.
const ROUNDS: usize = 3;

/// The longest latency of sequential requests while all sessions expire, and of as many requests to a
/// server without sessions.
pub(super) fn pause(run: &mut Run<'_>) {
    let Some(ours) = run.ours().filter(|_| !run.schedule.quick) else { return };
    let folder = match prepare() {
        Ok(folder) => folder,
        Err(error) => return run.miss("sabir serve", "sessions that expire", &error.to_string()),
    };
    let program = run.paths.programs.join("sabir");
    let line = CommandLine::new(&program, &["serve", &folder.path().to_string_lossy(), "--http"]);
    let named = |name: &str, kind| Server { name: name.into(), kind, ..ours.clone() };
    let (cores, quiet_line) = (run.cores, line.clone());
    let series = vec![
        Series::new(&named("no sessions", Kind::Floor), ROUNDS, move || {
            longest(cores, &quiet_line, 0)
        }),
        Series::new(&named("sabir serve", Kind::Ours), ROUNDS, move || {
            longest(cores, &line, SESSIONS)
        }),
    ];
    run.case("expiry", "all sessions", SESSIONS as f64, series);
}

/// Creates a `sabir.toml` with one tool and a short idle time-out.
fn prepare() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let file = format!(
        "[http]\nsession_idle = \"{}s\"\n\n[[command]]\nname = \"nothing\"\n\
         description = \"Do nothing\"\nrun = [\"/bin/true\"]\n",
        IDLE.as_secs()
    );
    fs::write(folder.path().join("sabir.toml"), file)?;
    Ok(folder)
}

fn longest(cores: Cores, line: &CommandLine, sessions: usize) -> Result<Sample, String> {
    let failed = |error: std::io::Error| error.to_string();
    let (_process, address) = Process::start_http(cores, line, &[])?;
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    let last = open_sessions(&mut stream, address, sessions).map_err(failed)?;
    let opened = begun.elapsed();
    if opened > WATCHED / 2 {
        return Err(format!(
            "opening {sessions} sessions took {opened:?} (limit {:?})",
            WATCHED / 2
        ));
    }
    thread::sleep(IDLE - opened);
    let mut job = super::http::job(Era::Modern, Ask::List(1), 1);
    job.address = address;
    let measured = Client::open(&job)?.run(Until::Time(WATCHED))?;
    if let Some(session) = last
        && is_known(address, &session).map_err(failed)?
    {
        return Err("a session did not expire in time".into());
    }
    Ok(vec![(Measure::Ms, measured.latency(1.0) / 1e3)])
}

fn is_known(address: SocketAddr, session: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    let headers = format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    stream.write_all(&http_post(address, &headers, ping))?;
    let mut answer = [0; 1024];
    let read = stream.read(&mut answer)?;
    Ok(!answer[..read].starts_with(b"HTTP/1.1 404"))
}
