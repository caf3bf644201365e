//! Resident memory: idle, with many legacy sessions, and with many open streams.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Run, Sample, Series};
use crate::figures::Measure;
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Client, Until, initialize};
use crate::process::{Cores, Process};
use crate::servers::{Kind, Server};

/// How long a read may take.
const PATIENCE: Duration = Duration::from_secs(30);

const STREAMS: usize = 1_000;

/// All three. Memory is measured once, because it does not vary from round to round.
pub(super) fn all(run: &mut Run<'_>) {
    let cores = run.cores;
    let mut series = Vec::new();
    for server in run.servers.iter().filter(|one| !one.http.is_empty()) {
        series.push(Series::new(server, 1, move || idle(cores, server)));
    }
    run.case("memory", "idle", 0.0, series);
    for sessions in [1_000, 10_000, 100_000] {
        let mut series = Vec::new();
        for server in run.servers.iter().filter(|one| one.keeps_sessions) {
            // A thousand sessions of Sabir are too small to measure.
            let is_wanted = (server.kind == Kind::Ours) == (sessions > 1_000);
            if is_wanted && !(run.schedule.quick && sessions > 10_000) {
                let turn = move || with_sessions(cores, server, sessions);
                series.push(Series::new(server, 1, turn));
            }
        }
        if !series.is_empty() {
            run.case("memory", "all sessions", sessions as f64, series);
        }
    }
    if let Some(ours) = run.ours() {
        let lane = Series::new(ours, 1, move || with_streams(cores, ours));
        run.case("memory", "all open streams", STREAMS as f64, vec![lane]);
    }
}

/// Starts a server and sends some requests, so that everything it allocates once is there.
fn warm(cores: Cores, server: &Server) -> Result<(Process, SocketAddr), String> {
    let (process, address) = Process::start_http(cores, &server.http_command(), &[])?;
    // Modern requests create no sessions.
    let era = if server.http.contains(&Era::Modern) { Era::Modern } else { Era::Legacy };
    let mut job = super::http::job(era, Ask::Echo(50), 4);
    job.address = address;
    Client::open(&job)?.run(Until::Answers(1_000))?;
    Ok((process, address))
}

fn idle(cores: Cores, server: &Server) -> Result<Sample, String> {
    let (process, _) = warm(cores, server)?;
    Ok(vec![(Measure::Bytes, process.resident() as f64)])
}

/// The growth of memory. The first tenth of the sessions fills free space of the allocator, so the
/// growth with the others is scaled to all.
fn with_sessions(cores: Cores, server: &Server, count: usize) -> Result<Sample, String> {
    let (process, address) = warm(cores, server)?;
    let mut stream = connect(address)?;
    let (mut before, tenth) = (0.0, count / 10);
    for nth in 0..count {
        if nth == tenth {
            before = process.resident() as f64;
        }
        let named = initialize(&mut stream, address).map_err(|error| error.to_string())?;
        named.ok_or("the server assigns no session id")?;
    }
    let growth = (process.resident() as f64 - before).max(0.0);
    Ok(vec![(Measure::Bytes, growth * count as f64 / (count - tenth) as f64)])
}

/// The growth of memory, including the sessions and connections of the streams.
fn with_streams(cores: Cores, server: &Server) -> Result<Sample, String> {
    let (process, address) = warm(cores, server)?;
    let before = process.resident() as f64;
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let failed = |error: std::io::Error| error.to_string();
        let mut stream = connect(address)?;
        let session = initialize(&mut stream, address).map_err(failed)?;
        let session = session.ok_or("the server assigns no session id")?;
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             MCP-Protocol-Version: {}\r\nMcp-Session-Id: {session}\r\n\r\n",
            Era::Legacy.revision()
        );
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut head = [0; 1024];
        let read = stream.read(&mut head).map_err(failed)?;
        if !head[..read].starts_with(b"HTTP/1.1 200") {
            let head = String::from_utf8_lossy(&head[..read]);
            return Err(format!(
                "the server opened no stream: {}",
                head.lines().next().unwrap_or_default()
            ));
        }
        open.push(stream);
    }
    Ok(vec![(Measure::Bytes, (process.resident() as f64 - before).max(0.0))])
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let connect = || {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    };
    connect().map_err(|error: std::io::Error| error.to_string())
}
