//! Counts the cost of one request. A server is run once with few requests and once with many; the
//! difference does not contain the cost of its start.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use super::{Cost, Costs};
use crate::load::exchange::{Ask, Era};
use crate::load::http::{Client, Job, Until, Way};
use crate::load::pipe::Pipe;
use crate::process::{CommandLine, Cores, Process, Streams, is_installed, unused_address};

/// The two numbers of requests.
const FEW: usize = 200;
const MANY: usize = 1200;

/// How long one run may take. Programs are about fifty times slower under valgrind.
const LIMIT: Duration = Duration::from_secs(120);

/// A path through the server.
struct Route {
    name: &'static str,
    over_http: bool,
    era: Era,
    ask: Ask,
}

fn routes() -> [Route; 6] {
    let route = |name, over_http, era, ask| Route { name, over_http, era, ask };
    [
        route("http-modern-echo-50", true, Era::Modern, Ask::Echo(50)),
        route("http-modern-wait-50", true, Era::Modern, Ask::Wait(50)),
        route("http-legacy-echo-50", true, Era::Legacy, Ask::Echo(50)),
        route("http-modern-echo-10k", true, Era::Modern, Ask::Echo(10_000)),
        route("http-legacy-list-21", true, Era::Legacy, Ask::List(21)),
        route("stdio-modern-echo-50", false, Era::Modern, Ask::Echo(50)),
    ]
}

/// Counts every path with the servers in the folder `programs`.
pub fn all(programs: &Path) -> Result<Costs, String> {
    if !is_installed("valgrind") {
        return Err("valgrind not found (install it, for example with apt-get)".into());
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
    let more = many.checked_sub(few).ok_or("the run with more requests cost less")?;
    Ok(more as f64 / (MANY - FEW) as f64)
}

fn instructions(programs: &Path, route: &Route, count: usize) -> Result<u64, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("callgrind.out");
    let out = format!("--callgrind-out-file={}", file.display());
    let server = CommandLine::new(&programs.join("echo-server"), &[]);
    let server = server.under(&["valgrind", "--tool=callgrind", "--quiet", &out]);
    serve(&server, route, count, Streams::Closed, Streams::Piped)?;
    let written = fs::read_to_string(file).map_err(|error| format!("valgrind: {error}"))?;
    instructions_of(&written).ok_or_else(|| "no sum in the output of valgrind".into())
}

fn allocations(programs: &Path, route: &Route, count: usize) -> Result<u64, String> {
    let server = CommandLine::new(&programs.join("echo-server-counted"), &[]);
    let said = serve(&server, route, count, Streams::Stderr, Streams::All)?;
    let number = said.lines().find_map(|line| line.strip_prefix("allocations: "));
    let number = number.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| format!("no count of allocations on standard error: {said}"))
}

/// Starts a server, sends `count` requests and ends it. Returns its standard error if it is piped.
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
        pipe.sequential(*era, ask, count as u64)?;
        drop(pipe);
        return process.end();
    }
    let address = unused_address().map_err(failed)?;
    let line = server.and(&["http", &address.to_string()]);
    let mut process = Process::start(Cores::shared(), &line, over_http)?;
    let _guard = process.guard(LIMIT);
    process.wait_for(address)?;
    let time = Duration::ZERO;
    let job = Job { address, era: *era, ask: ask.clone(), connections: 1, time, way: Way::Http };
    let mut client = Client::open(&job)?;
    client.run(Until::Answers(count))?;
    // The server ends while the connection is open, so that no run counts its closing.
    process.end()
}

/// The number of instructions in the output of callgrind.
fn instructions_of(written: &str) -> Option<u64> {
    let sum = |name| written.lines().find_map(|line| line.strip_prefix(name));
    let sum = sum("summary:").or_else(|| sum("totals:"))?;
    sum.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_found_in_the_output_of_callgrind() {
        let written = "# callgrind format\nversion: 1\nevents: Ir\nsummary: 1234567\n\nfn=(1) main\n3 9\n\ntotals: 1234568\n";
        assert_eq!(instructions_of(written), Some(1_234_567));
        assert_eq!(instructions_of("events: Ir\n\ntotals: 42 7\n"), Some(42));
        assert_eq!(instructions_of("events: Ir\n"), None);
        assert_eq!(instructions_of("summary: many\n"), None);
    }

    #[test]
    fn the_cost_of_the_start_is_not_counted() {
        assert_eq!(per_request(|count| Ok(1_000_000 + 7 * count as u64)), Ok(7.0));
        assert!(per_request(|count| Ok(10_000 - count as u64)).is_err());
    }
}
