//! Load over HTTP.

use std::time::Duration;

use super::{Run, Sample, Schedule, Series};
use crate::figures::Measure;
use crate::load::Measured;
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Client, Job, Until, Way};
use crate::process::{CommandLine, Cores, Process, thread_cpu_time};
use crate::servers::{Kind, Server};

/// The number of connections where something else is compared.
const CONNECTIONS: usize = 16;

/// Slow peers need seconds to open this many connections, so peers have fewer rounds.
const MANY_CONNECTIONS: usize = 512;

/// Peers with at least this many answers per second over one connection have more rounds.
const FAST_PEER: f64 = 2000.0;

/// A running server and the load of each round.
pub(super) struct HttpServer {
    process: Process,
    job: Job,
}

/// The result of one load, with the CPU time that both sides used.
pub(super) struct Turn {
    measured: Measured,
    server: Duration,
    generator: Duration,
}

impl HttpServer {
    /// Starts a server and warms it up. Returns it with its rate over one connection. The arguments
    /// `further` follow the address.
    pub(super) fn start(
        cores: Cores,
        line: &CommandLine,
        further: &[&str],
        job: &Job,
    ) -> Result<(Self, f64), String> {
        let (process, address) = Process::start_http(cores, line, further)?;
        let job = Job { address, ..job.clone() };
        // The first requests of a process are slower than the rest.
        let warm = Job { time: Duration::from_millis(100), connections: 1, ..job.clone() };
        let rate = Client::open(&warm)?.run(Until::Time(warm.time))?.rate();
        Ok((Self { process, job }, rate))
    }

    /// Opens the connections of the load.
    pub(super) fn connect(&self) -> Result<Client, String> {
        Client::open(&self.job)
    }

    /// Runs the load once.
    pub(super) fn load(&self, mut client: Client) -> Result<Turn, String> {
        let before = (self.process.cpu_time(), thread_cpu_time());
        let measured = client.run(Until::Time(self.job.time))?;
        let generator = thread_cpu_time().saturating_sub(before.1);
        let server = self.process.cpu_time().saturating_sub(before.0);
        Ok(Turn { measured, server, generator })
    }

    fn turn(&self) -> Result<Sample, String> {
        Ok(self.load(self.connect()?)?.sample())
    }
}

impl Turn {
    pub(super) fn sample(&self) -> Sample {
        let measured = &self.measured;
        vec![
            (Measure::PerSecond, measured.rate()),
            (Measure::P50Us, measured.latency(0.5)),
            (Measure::P99Us, measured.latency(0.99)),
            (Measure::CpuUs, self.server.as_secs_f64() * 1e6 / measured.answers as f64),
        ]
    }

    /// The same, and how many cores each side used.
    pub(super) fn sample_with_cores(&self) -> Sample {
        let cores = |used: Duration| used.as_secs_f64() / self.measured.time.as_secs_f64();
        let mut sample = self.sample();
        sample.push((Measure::ServerCores, cores(self.server)));
        sample.push((Measure::GeneratorCores, cores(self.generator)));
        sample
    }
}

fn rounds(schedule: &Schedule, kind: Kind, rate: f64, connections: usize) -> usize {
    match kind {
        Kind::Floor | Kind::Ours => schedule.rounds,
        Kind::Peer if connections >= MANY_CONNECTIONS => schedule.peer_rounds.min(3),
        Kind::Peer if rate >= FAST_PEER => schedule.peer_rounds.max(schedule.rounds / 2),
        Kind::Peer => schedule.peer_rounds,
    }
}

/// Starts a server and returns its series.
pub(super) fn series<'a>(
    run: &mut Run<'a>,
    server: &Server,
    line: &CommandLine,
    job: &Job,
) -> Option<Series<'a>> {
    series_with(run, server, line, &[], job, 1.0)
}

/// The same, with arguments behind the address and a part of the usual time per round.
fn series_with<'a>(
    run: &mut Run<'a>,
    server: &Server,
    line: &CommandLine,
    further: &[&str],
    job: &Job,
    part: f64,
) -> Option<Series<'a>> {
    let job = Job { time: run.schedule.time.mul_f64(part), ..job.clone() };
    match HttpServer::start(run.cores, line, further, &job) {
        Ok((started, rate)) => {
            let rounds = rounds(&run.schedule, server.kind, rate, job.connections);
            Some(Series::new(server, rounds, move || started.turn()))
        }
        Err(why) => {
            run.miss(&server.name, &format!("start for {:?}", job.ask), &why);
            None
        }
    }
}

/// A job without its address and time.
pub(super) fn job(era: Era, ask: Ask, connections: usize) -> Job {
    let address = ([127, 0, 0, 1], 0).into();
    Job { address, era, ask, connections, time: Duration::ZERO, way: Way::Http }
}

/// All servers: small calls that answer at once and that wait, by the number of connections; large
/// calls; the list. A quick run has only the calls of the goals.
pub(super) fn by_connections(run: &mut Run<'_>, era: Era) {
    let goal = vec![CONNECTIONS, 64];
    let mut cases =
        vec![("echo 50 B", Ask::Echo(50), goal.clone()), ("wait 50 B", Ask::Wait(50), goal)];
    if !run.schedule.quick {
        cases[0].2 = vec![1, CONNECTIONS, 64, MANY_CONNECTIONS];
        cases.push(("echo 10 KB", Ask::Echo(10_000), vec![CONNECTIONS]));
        cases.push(("list of 21 tools", Ask::List(21), vec![CONNECTIONS]));
    }
    for (name, ask, numbers) in cases {
        for connections in numbers {
            let mut all = Vec::new();
            for server in run.servers.iter().filter(|one| one.http.contains(&era)) {
                let job = job(era, ask.clone(), connections);
                all.extend(series(run, server, &server.http_command(), &job));
            }
            let case = format!("{} {name}", era.name());
            run.case("http", &case, connections as f64, all);
        }
    }
}

/// The floor and Sabir: the cost of a call by the size of its arguments. Half the usual time is
/// enough here and below, because the differences are large.
pub(super) fn by_size(run: &mut Run<'_>) {
    for size in [50, 1_000, 10_000, 100_000] {
        let mut all = Vec::new();
        for server in run.servers.iter().filter(|one| one.kind != Kind::Peer) {
            let job = job(Era::Modern, Ask::Echo(size), CONNECTIONS);
            all.extend(series_with(run, server, &server.http_command(), &[], &job, 0.5));
        }
        run.case("size", "modern echo", size as f64, all);
    }
}

/// Sabir alone: the cost of a call and of the list by the number of tools. The smallest number takes
/// the place of the floor.
pub(super) fn by_tools(run: &mut Run<'_>) {
    const TOOLS: [usize; 3] = [21, 100, 1000];
    let Some(ours) = run.ours() else { return };
    for era in Era::ALL {
        for is_list in [false, true] {
            let mut all = Vec::new();
            for tools in TOOLS {
                let ask = if is_list { Ask::List(tools) } else { Ask::Echo(50) };
                // Besides `echo` and `wait`.
                let further = (tools - 2).to_string();
                let (line, job) = (ours.http_command(), job(era, ask, CONNECTIONS));
                let one = series_with(run, ours, &line, &[&further], &job, 0.5);
                all.extend(one.map(|series| Series {
                    server: format!("{} with {tools} tools", ours.name),
                    is_floor: tools == TOOLS[0],
                    ..series
                }));
            }
            let what = if is_list { "list" } else { "echo 50 B" };
            run.case("tools", &format!("{} {what}", era.name()), CONNECTIONS as f64, all);
        }
    }
}
