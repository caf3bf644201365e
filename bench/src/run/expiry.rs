//! How long others wait while very many legacy sessions time out.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::{Lane, Run, Sample};
use crate::contest::{Contestant, Kind};
use crate::figures::Measure;
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Client, Until, post, shake_hands};
use crate::process::{CommandLine, Cores, Process};

const SESSIONS: usize = 100_000;

/// How many open them at once.
const OPENERS: usize = 8;

/// How long a session may be unused: longer than it takes to open all of them.
const IDLE: Duration = Duration::from_secs(30);

/// How long they may take to be gone after that.
const GONE: Duration = Duration::from_secs(3);

/// One client asks in sequence while all sessions of others time out, and the same for as long while
/// nothing does: of both the longest time that an answer took.
pub(super) fn pause(run: &mut Run<'_>) {
    let Some(ours) = run.ours().filter(|_| !run.pace.quick) else { return };
    let folder = match prepare() {
        Ok(folder) => folder,
        Err(error) => return run.miss("sabir serve", "sessions that time out", &error.to_string()),
    };
    let program = run.places.programs.join("sabir");
    let line = CommandLine::new(&program, &["serve", &folder.path().to_string_lossy(), "--http"]);
    let named = |name: &str, kind| Contestant { name: name.into(), kind, ..ours.clone() };
    let (cores, quiet_line) = (run.cores, line.clone());
    let lanes = vec![
        Lane::new(&named("no sessions", Kind::Floor), 1, move || longest(cores, &quiet_line, 0)),
        Lane::new(&named("sabir serve", Kind::Ours), 1, move || longest(cores, &line, SESSIONS)),
    ];
    run.case("expiry", "all sessions", SESSIONS as f64, lanes);
}

/// A `sabir.toml` that offers one tool, and lets sessions time out soon.
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
    let (_process, address) = Process::listen(cores, line)?;
    let begun = Instant::now();
    let last = open(address, sessions)?;
    let opened = begun.elapsed();
    if opened > IDLE {
        return Err(format!("it took {opened:?} to open {sessions} sessions"));
    }
    // From before the first times out until after the last.
    thread::sleep(IDLE - opened);
    let mut job = super::http::job(Era::Modern, Ask::List(1), 1);
    job.address = address;
    let measured = Client::open(&job)?.run(Until::Time(opened + GONE))?;
    if let Some(session) = last
        && is_known(address, &session).map_err(|error| error.to_string())?
    {
        return Err("a session outlived its time".into());
    }
    Ok(vec![(Measure::Ms, measured.latency(1.0) / 1e3)])
}

/// Opens sessions, and gives the name of one of the last.
fn open(address: SocketAddr, sessions: usize) -> Result<Option<String>, String> {
    let opener = move || -> Result<Option<String>, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let mut last = None;
        for _ in 0..sessions / OPENERS {
            last = shake_hands(&mut stream, address).map_err(failed)?;
        }
        Ok(last)
    };
    let openers: Vec<_> = (0..OPENERS).map(|_| thread::spawn(opener)).collect();
    let mut last = None;
    for opener in openers {
        last = opener.join().map_err(|_| "it could not be asked")??;
    }
    Ok(last)
}

fn is_known(address: SocketAddr, session: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    let headers = format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    stream.write_all(&post(address, &headers, ping))?;
    let mut answer = [0; 1024];
    let read = stream.read(&mut answer)?;
    Ok(!answer[..read].starts_with(b"HTTP/1.1 404"))
}
