//! The load generator as a command: `load http|ws ADDRESS ERA ASK CONNECTIONS SECONDS`. ERA is
//! `modern` or `legacy`; ASK is `echo:BYTES`, `wait:BYTES` or `list:TOOLS`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing figures is its job")]

use std::process::ExitCode;
use std::time::Duration;

use sabir_bench::load::exchange::{Ask, Era};
use sabir_bench::load::http::{self, Job, Way};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(job) = read(&args) else {
        eprintln!(
            "usage: load http|ws ADDRESS modern|legacy echo:BYTES|wait:BYTES|list:TOOLS \
             CONNECTIONS SECONDS"
        );
        return ExitCode::from(2);
    };
    match http::run(&job) {
        Ok(measured) => {
            let (p50, p99) = (measured.latency(0.5), measured.latency(0.99));
            println!("{:9.0}/s  p50 {p50:7.1} us  p99 {p99:7.1} us", measured.rate());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn read(args: &[String]) -> Option<Job> {
    let [kind, address, era, ask, connections, seconds] = args else { return None };
    let (what, number) = ask.split_once(':')?;
    Some(Job {
        address: address.parse().ok()?,
        way: match kind.as_str() {
            "http" => Way::Http,
            "ws" => Way::WebSocket,
            _ => return None,
        },
        era: Era::ALL.into_iter().find(|known| known.name() == era)?,
        ask: match what {
            "echo" => Ask::Echo(number.parse().ok()?),
            "wait" => Ask::Wait(number.parse().ok()?),
            "list" => Ask::List(number.parse().ok()?),
            _ => return None,
        },
        connections: connections.parse().ok()?,
        time: Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
    })
}
