//! Load over standard input and output: sequential and pipelined.

use std::time::Duration;

use super::{Run, Sample, Series};
use crate::figures::Measure;
use crate::load::Measured;
use crate::load::exchange::{Ask, Era};
use crate::load::pipe::Pipe;
use crate::process::{CommandLine, Cores, Process, Streams};
use crate::servers::{Kind, Server};

/// How long a turn may take before its server is killed.
const LIMIT: Duration = Duration::from_secs(60);

/// How many seconds a turn should take, and its largest number of requests: ids have eight digits, and
/// all requests of a turn are in memory. Peers have fewer and longer turns, because servers with a
/// JIT become faster during a turn.
const TURN: f64 = 0.1;
const PEER_TURN: f64 = 0.4;
const MOST: f64 = 400_000.0;

/// A running server on a pipe, and the load of each round.
struct PipedServer {
    process: Process,
    pipe: Pipe,
    era: Era,
    pipelined: bool,
    count: u64,
}

impl PipedServer {
    fn start(
        cores: Cores,
        line: &CommandLine,
        kind: Kind,
        era: Era,
        pipelined: bool,
    ) -> Result<Self, String> {
        let mut process = Process::start(cores, line, Streams::Piped)?;
        let guard = process.guard(LIMIT);
        let pipe = Pipe::open(process.child(), era).map_err(|error| error.to_string())?;
        drop(guard);
        let mut piped = Self { process, pipe, era, pipelined, count: 100 };
        let turn = if kind == Kind::Peer { PEER_TURN } else { TURN };
        piped.ask()?;
        // The number of requests that fill a turn, measured with a tenth of it first.
        for share in [0.1, 1.0] {
            let rate = piped.ask()?.rate();
            piped.count = (rate * turn * share).clamp(50.0, MOST) as u64;
        }
        Ok(piped)
    }

    fn ask(&mut self) -> Result<Measured, String> {
        let _guard = self.process.guard(LIMIT);
        let ask = Ask::Echo(50);
        if self.pipelined {
            self.pipe.pipelined(self.era, &ask, self.count)
        } else {
            self.pipe.sequential(self.era, &ask, self.count)
        }
    }

    fn turn(&mut self) -> Result<Sample, String> {
        let before = self.process.cpu_time();
        let measured = self.ask()?;
        let spent = self.process.cpu_time().saturating_sub(before);
        let mut sample = vec![(Measure::PerSecond, measured.rate())];
        if !self.pipelined {
            sample.push((Measure::P50Us, measured.latency(0.5)));
            sample.push((Measure::P99Us, measured.latency(0.99)));
        }
        sample.push((Measure::CpuUs, spent.as_secs_f64() * 1e6 / measured.answers as f64));
        Ok(sample)
    }
}

/// Starts a server and returns its series.
pub(super) fn series<'a>(
    run: &mut Run<'a>,
    server: &Server,
    line: &CommandLine,
    era: Era,
    pipelined: bool,
) -> Option<Series<'a>> {
    match PipedServer::start(run.cores, line, server.kind, era, pipelined) {
        Ok(mut piped) => {
            let rounds = run.schedule.rounds_of(server);
            Some(Series::new(server, rounds, move || piped.turn()))
        }
        Err(why) => {
            run.miss(&server.name, "stdio", &why);
            None
        }
    }
}

/// All servers, sequential and pipelined.
pub(super) fn both_ways(run: &mut Run<'_>) {
    for era in Era::ALL {
        for pipelined in [false, true] {
            let mut all = Vec::new();
            for server in run.servers.iter().filter(|one| one.stdio.contains(&era)) {
                let line = server.command.and(&["stdio"]);
                all.extend(series(run, server, &line, era, pipelined));
            }
            let way = if pipelined { "pipelined" } else { "in sequence" };
            run.case("stdio", &format!("{} {way}", era.name()), 0.0, all);
        }
    }
}
