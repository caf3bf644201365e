//! Counts what a server does for one request: it is run for few requests and for many, and what
//! starting costs falls out of the difference.

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use std::{fs, io, thread};

use super::{Cost, Costs};
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Client, Job, Until};
use crate::load::pipe::Pipe;
use crate::process::{CommandLine, Cores, Process, Streams, is_installed, unused_address};

/// Few requests, and many.
const FEW: usize = 200;
const MANY: usize = 1200;

/// How long one run may take. Under valgrind all is some fifty times slower.
const LIMIT: Duration = Duration::from_secs(120);

/// A server stays awake for a client that asks without a pause, and what it does meanwhile belongs
/// to no request. On a pipe we pause; over HTTP it does not do so for one of many.
const PAUSE: Duration = Duration::from_millis(1);
const CROWD: usize = 4;

/// A path through the server.
struct Route {
    name: &'static str,
    over_http: bool,
    era: Era,
    ask: Ask,
}

fn routes() -> [Route; 5] {
    let route = |name, over_http, era, ask| Route { name, over_http, era, ask };
    [
        route("http-modern-echo-50", true, Era::Modern, Ask::Echo(50)),
        route("http-legacy-echo-50", true, Era::Legacy, Ask::Echo(50)),
        route("http-modern-echo-10k", true, Era::Modern, Ask::Echo(10_000)),
        route("http-legacy-list-21", true, Era::Legacy, Ask::List(21)),
        route("stdio-modern-echo-50", false, Era::Modern, Ask::Echo(50)),
    ]
}

/// Counts every path, with the servers that lie in `programs`.
pub fn all(programs: &Path) -> Result<Costs, String> {
    if !is_installed("valgrind") {
        return Err("there is no valgrind: install it, for example with apt-get".into());
    }
    let mut costs = Costs::new();
    for route in routes() {
        let failed = |why: String| format!("{}: {why}", route.name);
        let instructions = per_request(|count| instructions(programs, &route, count));
        let allocations = per_request(|count| allocations(programs, &route, count));
        let cost = Cost {
            instructions: instructions.map_err(failed)?,
            allocations: allocations.map_err(failed)?,
        };
        costs.insert(route.name.to_owned(), cost);
    }
    Ok(costs)
}

fn per_request(count: impl Fn(usize) -> Result<u64, String>) -> Result<f64, String> {
    let (few, many) = (count(FEW)?, count(MANY)?);
    let more = many.checked_sub(few).ok_or("more requests cost less")?;
    Ok(more as f64 / (MANY - FEW) as f64)
}

fn instructions(programs: &Path, route: &Route, count: usize) -> Result<u64, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("callgrind.out");
    let out = format!("--callgrind-out-file={}", file.display());
    let server = CommandLine::new(&programs.join("echo-server"), &[]);
    let server = server.under(&["valgrind", "--tool=callgrind", "--quiet", &out]);
    // What it says of us is not for here; what it counted is in its file.
    serve(&server, route, count, Streams::Closed, Streams::Piped)?;
    let written = fs::read_to_string(file).map_err(|error| format!("valgrind: {error}"))?;
    instructions_of(&written).ok_or_else(|| "valgrind wrote no sum".into())
}

fn allocations(programs: &Path, route: &Route, count: usize) -> Result<u64, String> {
    let server = CommandLine::new(&programs.join("echo-server-counted"), &[]);
    let said = serve(&server, route, count, Streams::Stderr, Streams::All)?;
    let number = said.lines().find_map(|line| line.strip_prefix("allocations: "));
    let number = number.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| format!("it did not say how many: {said}"))
}

/// Starts a server, asks it so often, ends it; what it said on standard error if that is ours.
fn serve(
    server: &CommandLine,
    route: &Route,
    count: usize,
    over_http: Streams,
    over_pipe: Streams,
) -> Result<String, String> {
    let failed = |error: io::Error| error.to_string();
    let Route { era, ask, .. } = route;
    if !route.over_http {
        let mut process = Process::start(Cores::shared(), &server.and(&["stdio"]), over_pipe)?;
        let _guard = process.guard(LIMIT);
        let mut pipe = Pipe::open(process.child(), *era).map_err(failed)?;
        for _ in 0..count {
            pipe.sequential(*era, ask, 1)?;
            thread::sleep(PAUSE);
        }
        drop(pipe);
        return process.end();
    }
    let address = unused_address().map_err(failed)?;
    let line = server.and(&["http", &address.to_string()]);
    let mut process = Process::start(Cores::shared(), &line, over_http)?;
    let _guard = process.guard(LIMIT);
    process.wait_for(address)?;
    let time = Duration::ZERO;
    let job = Job { address, era: *era, ask: ask.clone(), connections: 1, time };
    let others = (0..CROWD).map(|_| TcpStream::connect(address));
    let _others: Vec<TcpStream> = others.collect::<Result<_, _>>().map_err(failed)?;
    let mut client = Client::open(&job)?;
    client.run(Until::Answers(count))?;
    // Ended while it is idle: closing a connection costs something, at a moment of its choice.
    process.end()
}

/// The sum of all instructions, of a file that callgrind wrote.
fn instructions_of(written: &str) -> Option<u64> {
    let sum = |name| written.lines().find_map(|line| line.strip_prefix(name));
    let sum = sum("summary:").or_else(|| sum("totals:"))?;
    sum.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_found_in_what_callgrind_writes() {
        let written = "# callgrind format\nversion: 1\nevents: Ir\nsummary: 1234567\n\nfn=(1) main\n3 9\n\ntotals: 1234568\n";
        assert_eq!(instructions_of(written), Some(1_234_567));
        assert_eq!(instructions_of("events: Ir\n\ntotals: 42 7\n"), Some(42));
        assert_eq!(instructions_of("events: Ir\n"), None);
        assert_eq!(instructions_of("summary: many\n"), None);
    }

    #[test]
    fn starting_costs_nothing_per_request() {
        assert_eq!(per_request(|count| Ok(1_000_000 + 7 * count as u64)), Ok(7.0));
        assert!(per_request(|count| Ok(10_000 - count as u64)).is_err());
    }
}
