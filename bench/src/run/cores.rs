//! Throughput with one core and with all cores. The load generator runs on the same machine: with one
//! core for the server it has a core of its own, with all cores it shares them and waits for answers
//! instead of polling. The cores that each side used are measured too, because a small call costs the
//! generator nearly as much as the server.

use super::http::{self, HttpServer};
use super::{Run, Series};
use crate::load::exchange::{Ask, Era};
use crate::load::http::Job;
use crate::process::CommandLine;
use crate::servers::{Kind, Server};

const CONNECTIONS: usize = 64;

/// Small calls of the library's server, and searches of `sabir serve`.
pub(super) fn all(run: &mut Run<'_>) {
    let Some(ours) = run.ours() else { return };
    let Some(count) = run.cores.count_if_split() else {
        return run.miss("sabir", "all cores", "there is only one core");
    };
    let threads = count.to_string();
    let line = ours.http_command();
    for (name, ask) in [("echo 50 B", Ask::Echo(50)), ("wait 50 B", Ask::Wait(50))] {
        case(run, ours, &line, &["--threads", &threads], name, ask);
    }
    match super::products::prepare(&run.paths.root) {
        Ok(folder) => {
            let line = super::products::serve(run, &folder.path().join("handbook"));
            let binary = Server { name: "sabir serve".into(), ..ours.clone() };
            case(run, &binary, &line, &[], "search_articles", super::products::search());
        }
        Err(error) => run.miss("sabir serve", "all cores", &error.to_string()),
    }
}

/// One server with one core, which takes the place of the floor, and with all cores. The arguments
/// `for_all` follow the address where all cores are used.
fn case(
    run: &mut Run<'_>,
    server: &Server,
    line: &CommandLine,
    for_all: &[&str],
    name: &str,
    ask: Ask,
) {
    let mut all = Vec::new();
    for is_all in [false, true] {
        let cores = if is_all { run.cores.undivided() } else { run.cores };
        let further = if is_all { for_all } else { &[] };
        let job = http::job(Era::Modern, ask.clone(), CONNECTIONS);
        let job = Job { time: run.schedule.time * 2, ..job };
        let label = format!("{}, {}", server.name, if is_all { "all cores" } else { "one core" });
        let kind = if is_all { Kind::Ours } else { Kind::Floor };
        let labelled = Server { name: label, kind, ..server.clone() };
        match HttpServer::start(cores, line, further, &job) {
            Ok((started, _)) => {
                let turn = move || {
                    cores.pin_generator();
                    let client = started.connect()?;
                    let client = if is_all { client.sleeping() } else { client };
                    Ok(started.load(client)?.sample_with_cores())
                };
                all.push(Series::new(&labelled, run.schedule.rounds / 2, turn));
            }
            Err(why) => run.miss(&labelled.name, name, &why),
        }
    }
    run.case("cores", name, CONNECTIONS as f64, all);
    run.cores.pin_generator();
}
