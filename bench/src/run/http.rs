//! Load over HTTP.

use std::time::Duration;

use super::{Run, Sample, Schedule, Series};
use crate::figures::Measure;
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Client, Job, Until};
use crate::process::{CommandLine, Cores, Process};
use crate::servers::{Kind, Server};

/// How many connections ask at once where something else is compared.
const CONNECTIONS: usize = 16;

/// So many connections take a slow peer seconds to open: it has fewer rounds.
const MANY_CONNECTIONS: usize = 512;

/// Who answers one client so often in a second is near enough to us for a closer look.
const NEAR: f64 = 2000.0;

/// A server that is up, and what it is asked in each round.
struct HttpServer {
    process: Process,
    job: Job,
}

impl HttpServer {
    /// Starts a server, and says how often it answers one client in a second.
    fn start(cores: Cores, line: &CommandLine, job: &Job) -> Result<(Self, f64), String> {
        let (process, address) = Process::listen(cores, line)?;
        let job = Job { address, ..job.clone() };
        // The first requests of a process are not those of its life.
        let warm = Job { time: Duration::from_millis(100), connections: 1, ..job.clone() };
        let rate = Client::open(&warm)?.run(Until::Time(warm.time))?.rate();
        Ok((Self { process, job }, rate))
    }

    fn turn(&mut self) -> Result<Sample, String> {
        let mut client = Client::open(&self.job)?;
        let before = self.process.cpu_time();
        let measured = client.run(Until::Time(self.job.time))?;
        let spent = self.process.cpu_time().saturating_sub(before);
        Ok(vec![
            (Measure::PerSecond, measured.rate()),
            (Measure::P50Us, measured.latency(0.5)),
            (Measure::P99Us, measured.latency(0.99)),
            (Measure::CpuUs, spent.as_secs_f64() * 1e6 / measured.answers as f64),
        ])
    }
}

fn rounds(schedule: &Schedule, kind: Kind, rate: f64, connections: usize) -> usize {
    match kind {
        Kind::Floor | Kind::Ours => schedule.rounds,
        Kind::Peer if connections >= MANY_CONNECTIONS => schedule.peer_rounds.min(3),
        Kind::Peer if rate >= NEAR => schedule.peer_rounds.max(schedule.rounds / 2),
        Kind::Peer => schedule.peer_rounds,
    }
}

/// A lane for a server, which is started now.
pub(super) fn lane<'a>(
    run: &mut Run<'a>,
    server: &Server,
    line: &CommandLine,
    job: &Job,
) -> Option<Series<'a>> {
    lane_for(run, server, line, job, 1.0)
}

/// The same for a part of the usual time.
fn lane_for<'a>(
    run: &mut Run<'a>,
    server: &Server,
    line: &CommandLine,
    job: &Job,
    part: f64,
) -> Option<Series<'a>> {
    let job = Job { time: run.schedule.time.mul_f64(part), ..job.clone() };
    match HttpServer::start(run.cores, line, &job) {
        Ok((mut loaded, rate)) => {
            let rounds = rounds(&run.schedule, server.kind, rate, job.connections);
            Some(Series::new(server, rounds, move || loaded.turn()))
        }
        Err(why) => {
            run.miss(&server.name, &format!("start for {:?}", job.ask), &why);
            None
        }
    }
}

/// A job whose address and time are not known yet.
pub(super) fn job(era: Era, ask: Ask, connections: usize) -> Job {
    let address = ([127, 0, 0, 1], 0).into();
    Job { address, era, ask, connections, time: Duration::ZERO }
}

/// Everybody: small echoes over more and more connections, larger ones, and the list.
pub(super) fn by_connections(run: &mut Run<'_>, era: Era) {
    let cases = [
        ("echo 50 B", Ask::Echo(50), vec![1, CONNECTIONS, 64, MANY_CONNECTIONS]),
        ("echo 10 KB", Ask::Echo(10_000), vec![CONNECTIONS]),
        ("list of 21 tools", Ask::List(21), vec![CONNECTIONS]),
    ];
    for (name, ask, numbers) in cases {
        for connections in numbers {
            let mut series = Vec::new();
            for server in run.servers.iter().filter(|one| one.http.contains(&era)) {
                let job = job(era, ask.clone(), connections);
                series.extend(lane(run, server, &server.http_command(), &job));
            }
            let case = format!("{} {name}", era.name());
            run.case("http", &case, connections as f64, series);
        }
    }
}

/// The floor and we: what a call costs by the size of its arguments. What differs by decades needs
/// no long look: half the time will do, here and below.
pub(super) fn by_size(run: &mut Run<'_>) {
    for size in [50, 1_000, 10_000, 100_000] {
        let mut series = Vec::new();
        for server in run.servers.iter().filter(|one| one.kind != Kind::Peer) {
            let job = job(Era::Modern, Ask::Echo(size), CONNECTIONS);
            series.extend(lane_for(run, server, &server.http_command(), &job, 0.5));
        }
        run.case("size", "modern echo", size as f64, series);
    }
}

/// We alone: what a call and the list cost by the number of tools. All sizes have their turns in the
/// same rounds, and are compared with the smallest instead of the floor.
pub(super) fn by_tools(run: &mut Run<'_>) {
    const TOOLS: [usize; 3] = [21, 100, 1000];
    let Some(ours) = run.ours() else { return };
    for era in Era::ALL {
        for is_list in [false, true] {
            let mut series = Vec::new();
            for tools in TOOLS {
                let ask = if is_list { Ask::List(tools) } else { Ask::Echo(50) };
                // The number of further tools stands behind the address.
                let further = (tools - 1).to_string();
                let job = job(era, ask, CONNECTIONS);
                series.extend(with_tools(run, ours, &further, &job).map(|lane| Series {
                    server: format!("{} with {tools} tools", ours.name),
                    is_floor: tools == TOOLS[0],
                    ..lane
                }));
            }
            let what = if is_list { "list" } else { "echo 50 B" };
            run.case("tools", &format!("{} {what}", era.name()), CONNECTIONS as f64, series);
        }
    }
}

fn with_tools<'a>(
    run: &mut Run<'a>,
    ours: &Server,
    further: &str,
    job: &Job,
) -> Option<Series<'a>> {
    let address = crate::process::unused_address().ok()?;
    let line = ours.http_command().and(&[&address.to_string(), further]);
    let (rounds, job) =
        (run.schedule.rounds, Job { address, time: run.schedule.time / 2, ..job.clone() });
    let started = Process::start(run.cores, &line, crate::process::Streams::Closed);
    let started = started.and_then(|mut process| process.wait_for(address).map(|()| process));
    match started {
        Ok(process) => {
            let mut loaded = HttpServer { process, job };
            Some(Series::new(ours, rounds, move || loaded.turn()))
        }
        Err(why) => {
            run.miss(&ours.name, &format!("with {further} further tools"), &why);
            None
        }
    }
}
