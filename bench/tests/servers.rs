//! A few requests of the load generator to each server.

use std::path::Path;
use std::time::{Duration, Instant};

use sabir_bench::load::exchange::{Ask, Era};
use sabir_bench::load::http::{Client, Job, Until, Way};
use sabir_bench::load::pipe::Pipe;
use sabir_bench::process::{CommandLine, Cores, Process, Streams, unused_address};

const OURS: &str = env!("CARGO_BIN_EXE_echo-server");
const FLOOR: &str = env!("CARGO_BIN_EXE_floor");
const COUNTED: &str = env!("CARGO_BIN_EXE_echo-server-counted");

fn ask_http(program: &str, further: &[&str], era: Era, ask: Ask) -> Result<usize, String> {
    ask_over(Way::Http, program, further, era, ask)
}

fn ask_over(
    way: Way,
    program: &str,
    further: &[&str],
    era: Era,
    ask: Ask,
) -> Result<usize, String> {
    let address = unused_address().map_err(|error| error.to_string())?;
    let line = CommandLine::new(Path::new(program), &["http", &address.to_string()]).and(further);
    let mut process = Process::start(Cores::shared(), &line, Streams::Closed)?;
    process.wait_for(address)?;
    let job = Job { address, era, ask, connections: 3, time: Duration::ZERO, way };
    let measured = Client::open(&job)?.run(Until::Answers(7))?;
    assert!(process.resident() > 100_000, "{}", process.resident());
    Ok(measured.answers)
}

#[test]
fn all_servers_answer_over_http_in_both_eras() {
    for era in Era::ALL {
        for program in [FLOOR, OURS, COUNTED] {
            let asks =
                [Ask::Echo(50), Ask::Wait(50), Ask::Echo(10_000), Ask::List(21), Ask::List(0)];
            for ask in asks {
                assert_eq!(ask_http(program, &[], era, ask.clone()), Ok(7), "{program} {ask:?}");
            }
        }
    }
}

#[test]
fn sabir_answers_over_websocket_in_both_eras() {
    for era in Era::ALL {
        for ask in [Ask::Echo(50), Ask::Wait(50), Ask::Echo(100_000), Ask::List(21)] {
            assert_eq!(ask_over(Way::WebSocket, OURS, &[], era, ask.clone()), Ok(7), "{ask:?}");
        }
    }
    let why = ask_over(Way::WebSocket, FLOOR, &[], Era::Modern, Ask::Echo(50)).unwrap_err();
    assert!(why.starts_with("connection error"), "{why}");
}

#[test]
fn the_number_of_tools_can_be_chosen() {
    assert_eq!(ask_http(OURS, &["98"], Era::Modern, Ask::List(100)), Ok(7));
    assert_eq!(ask_http(OURS, &["0"], Era::Legacy, Ask::List(2)), Ok(7));
}

#[test]
fn the_number_of_threads_can_be_chosen() {
    assert_eq!(ask_http(OURS, &["--threads", "2"], Era::Legacy, Ask::Wait(50)), Ok(7));
    let address = unused_address().unwrap();
    let words = ["http", &address.to_string(), "--threads", "3"];
    let line = CommandLine::new(Path::new(OURS), &words);
    let mut process = Process::start(Cores::shared(), &line, Streams::Closed).unwrap();
    process.wait_for(address).unwrap();
    let tasks = format!("/proc/{}/task", process.child().id());
    let count = || std::fs::read_dir(&tasks).unwrap().count();
    // The address can be reached before all threads run.
    let end = Instant::now() + Duration::from_secs(10);
    while count() < 4 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(count(), 4, "the main thread and three workers");
}

#[test]
fn a_wrong_answer_ends_the_load() {
    let why = ask_http(OURS, &[], Era::Modern, Ask::List(20)).unwrap_err();
    assert!(why.starts_with("wrong result"), "{why}");
}

#[test]
fn all_servers_echo_over_a_pipe_in_both_eras() {
    for era in Era::ALL {
        for program in [FLOOR, OURS] {
            let line = CommandLine::new(Path::new(program), &["stdio"]);
            let mut process = Process::start(Cores::shared(), &line, Streams::Piped).unwrap();
            let _guard = process.guard(Duration::from_secs(30));
            let mut pipe = Pipe::open(process.child(), era).unwrap();
            // A server may limit the calls in flight, and those that wait are in flight together.
            for (ask, many) in [(Ask::Echo(50), 500), (Ask::Wait(50), 200)] {
                assert_eq!(pipe.sequential(era, &ask, 5).map(|all| all.answers), Ok(5));
                assert_eq!(
                    pipe.pipelined(era, &ask, many).map(|all| all.answers),
                    Ok(many as usize)
                );
            }
        }
    }
}

#[test]
fn the_counting_server_prints_its_count_on_sigterm() {
    let address = unused_address().unwrap();
    let line = CommandLine::new(Path::new(COUNTED), &["http", &address.to_string()]);
    let mut process = Process::start(Cores::shared(), &line, Streams::Stderr).unwrap();
    process.wait_for(address).unwrap();
    let said = process.end().unwrap();
    let count = said.trim().strip_prefix("allocations: ").and_then(|count| count.parse().ok());
    assert!(count.is_some_and(|count: usize| count > 100), "{said}");
}
