//! A run of the benchmark. Each case has many short rounds, and every server has one turn per round,
//! so that a disturbance of the machine affects all servers, and each is compared with the floor of
//! the same round. The order is random in each round: the server that follows one that has emptied
//! the caches is not always the same.

mod cores; // one core and all cores
mod expiry; // latency while sessions expire
mod http; // load over HTTP
mod memory; // memory of sessions and streams
mod products; // `sabir serve`
mod relay; // `sabir serve` between a client and an upstream
mod start; // cold start
mod stdio; // load over standard input and output
mod websocket; // WebSocket compared with HTTP

use std::time::Duration;

use crate::figures::{Figure, Measure};
use crate::load::exchange::Era;
use crate::process::Cores;
use crate::servers::{Kind, Paths, Server};
use crate::spread::Spread;
use crate::text::{bytes, number, range};

/// How many rounds are measured, and how long they are.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Whether some cases are left out.
    pub quick: bool,
    /// Rounds of the floor and of Sabir.
    pub rounds: usize,
    /// Rounds of peers. There are many of them, and the differences between them are large.
    pub peer_rounds: usize,
    /// The duration of one turn.
    pub time: Duration,
    /// How often each server is started to measure its start.
    pub starts: usize,
}

impl Schedule {
    /// The schedule of a full run or of a quick one.
    pub const fn new(quick: bool) -> Self {
        // Many short turns: a disturbance of the machine affects consecutive turns alike.
        let time = Duration::from_millis(100);
        if quick {
            Self { quick, rounds: 30, peer_rounds: 5, time, starts: 10 }
        } else {
            Self { quick, rounds: 100, peer_rounds: 5, time, starts: 40 }
        }
    }

    fn rounds_of(&self, server: &Server) -> usize {
        if server.kind == Kind::Peer { self.peer_rounds } else { self.rounds }
    }
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// HTTP, by the number of connections.
    Http,
    /// HTTP with one core and with all cores.
    Cores,
    /// HTTP, by the size of arguments and by the number of tools.
    Growth,
    /// WebSocket compared with HTTP.
    WebSocket,
    /// Standard input and output.
    Stdio,
    /// Cold start.
    Start,
    /// Memory of sessions and streams.
    Memory,
    /// Latency while sessions expire.
    Expiry,
    /// The binary `sabir serve`.
    Products,
    /// The binary between a client and an upstream, and other gateways.
    Relay,
}

impl Part {
    /// All parts in the order of a run, with their names on the command line.
    pub const ALL: [(&'static str, Self); 10] = [
        ("http", Self::Http),
        ("cores", Self::Cores),
        ("growth", Self::Growth),
        ("ws", Self::WebSocket),
        ("stdio", Self::Stdio),
        ("start", Self::Start),
        ("memory", Self::Memory),
        ("expiry", Self::Expiry),
        ("products", Self::Products),
        ("relay", Self::Relay),
    ];
}

/// The measurements of one turn of one server.
type Sample = Vec<(Measure, f64)>;

/// The turns of one server in one case.
struct Series<'a> {
    server: String,
    is_floor: bool,
    /// The number of its turns.
    rounds: usize,
    turn: Box<dyn FnMut() -> Result<Sample, String> + 'a>,
}

impl<'a> Series<'a> {
    fn new(
        server: &Server,
        rounds: usize,
        turn: impl FnMut() -> Result<Sample, String> + 'a,
    ) -> Self {
        let is_floor = server.kind == Kind::Floor;
        Self { server: server.name.clone(), is_floor, rounds, turn: Box::new(turn) }
    }
}

/// A run of the benchmark.
pub struct Run<'a> {
    paths: &'a Paths,
    servers: &'a [Server],
    cores: Cores,
    schedule: Schedule,
    /// Decides the order in a round; has the same seed in every run.
    rng: fastrand::Rng,
    print: &'a mut dyn FnMut(&str),
    /// The results.
    pub figures: Vec<Figure>,
    /// Measurements that failed, with the reason.
    pub missing: Vec<String>,
}

impl<'a> Run<'a> {
    /// Creates a run without results. `print` is called with each line of figures.
    pub fn new(
        paths: &'a Paths,
        servers: &'a [Server],
        cores: Cores,
        schedule: Schedule,
        print: &'a mut dyn FnMut(&str),
    ) -> Self {
        let rng = fastrand::Rng::with_seed(1);
        let (figures, missing) = (Vec::new(), Vec::new());
        Self { paths, servers, cores, schedule, rng, print, figures, missing }
    }

    /// Measures one part.
    pub fn part(&mut self, part: Part) {
        match part {
            Part::Http => {
                for era in Era::ALL {
                    http::by_connections(self, era);
                }
            }
            Part::Cores => cores::all(self),
            Part::Growth => {
                http::by_size(self);
                http::by_tools(self);
            }
            Part::WebSocket => websocket::beside_http(self),
            Part::Stdio => stdio::both_ways(self),
            Part::Start => start::cold(self),
            Part::Memory => memory::all(self),
            Part::Expiry => expiry::pause(self),
            Part::Products => products::all(self),
            Part::Relay => relay::all(self),
        }
    }

    fn ours(&self) -> Option<&'a Server> {
        self.servers.iter().find(|one| one.kind == Kind::Ours)
    }

    /// Runs all rounds of a case. A series that fails has no further turn and no figures.
    fn case(&mut self, group: &str, case: &str, at: f64, mut series: Vec<Series<'_>>) {
        let mut samples: Vec<Result<Vec<Sample>, String>> =
            series.iter().map(|_| Ok(Vec::new())).collect();
        let rounds = series.iter().map(|one| one.rounds).max().unwrap_or_default();
        let mut order: Vec<usize> = (0..series.len()).collect();
        for round in 0..rounds {
            self.rng.shuffle(&mut order);
            for at in &order {
                let (one, samples) = (&mut series[*at], &mut samples[*at]);
                let Ok(before) = samples else { continue };
                if round < one.rounds {
                    match (one.turn)() {
                        Ok(sample) => before.push(sample),
                        Err(why) => *samples = Err(why),
                    }
                }
            }
        }
        let title = if at == 0.0 { case.to_owned() } else { format!("{case}, {at}") };
        (self.print)(&format!("\n{group}: {title}"));
        let floor = series.iter().position(|one| one.is_floor);
        let floor = floor.and_then(|at| samples[at].as_ref().ok()).cloned().unwrap_or_default();
        for (one, samples) in series.iter().zip(samples) {
            match samples {
                Ok(samples) => {
                    let reference: &[Sample] = if one.is_floor { &[] } else { &floor };
                    let new = figures(group, case, at, &one.server, &samples, reference);
                    (self.print)(&line(&one.server, &new));
                    self.figures.extend(new);
                }
                Err(why) => self.miss(&one.server, &title, &why),
            }
        }
    }

    fn miss(&mut self, server: &str, case: &str, why: &str) {
        let why: String = why.chars().take(200).collect();
        (self.print)(&format!("  {server:<22} failed: {why}"));
        self.missing.push(format!("{server}, {case}: {why}"));
    }
}

/// The figures of one server over all rounds.
fn figures(
    group: &str,
    case: &str,
    at: f64,
    server: &str,
    samples: &[Sample],
    floor: &[Sample],
) -> Vec<Figure> {
    let measures: Vec<Measure> =
        samples.first().into_iter().flatten().map(|(measure, _)| *measure).collect();
    let of = |sample: &Sample, wanted| {
        sample.iter().find(|(measure, _)| *measure == wanted).map_or(f64::NAN, |(_, value)| *value)
    };
    let mut figures = Vec::new();
    for measure in measures {
        let values: Vec<f64> = samples.iter().map(|sample| of(sample, measure)).collect();
        let pairs = samples.iter().zip(floor);
        let ratios: Vec<f64> =
            pairs.map(|(own, floor)| of(own, measure) / of(floor, measure)).collect();
        if let Some(value) = Spread::of(&values) {
            figures.push(Figure {
                group: group.to_owned(),
                case: case.to_owned(),
                at,
                server: server.to_owned(),
                measure,
                value,
                of_floor: Spread::of(&ratios),
            });
        }
    }
    figures
}

/// A line of the output during a run.
fn line(server: &str, figures: &[Figure]) -> String {
    let mut line = format!("  {server:<22}");
    for figure in figures {
        let value = &figure.value;
        line += &match figure.measure {
            Measure::PerSecond => format!(" {:>9}/s ({})", number(value.median), range(value)),
            Measure::P50Us => format!("  p50 {:>6} us", number(value.median)),
            Measure::P99Us => format!("  p99 {:>6} us", number(value.median)),
            Measure::CpuUs => format!("  CPU {:>6} us/request", number(value.median)),
            Measure::Ms => format!(" {:>7} ms ({})", number(value.median), range(value)),
            Measure::Bytes => format!(" {:>9}", bytes(value.median)),
            Measure::ServerCores => format!("  server {} cores", number(value.median)),
            Measure::GeneratorCores => format!("  generator {} cores", number(value.median)),
        };
        if let (Measure::PerSecond | Measure::Ms, Some(ratio)) = (figure.measure, &figure.of_floor)
        {
            line += &format!("  {} x the first", number(ratio.median));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let sample = |rate: f64| vec![(Measure::PerSecond, rate)];
        // The machine was half as fast in the second round.
        let own = [sample(90.0), sample(45.0), sample(91.0)];
        let floor = [sample(100.0), sample(50.0), sample(100.0)];
        let figures = figures("http", "echo", 16.0, "sabir", &own, &floor);
        let [figure] = figures.as_slice() else { panic!("{figures:?}") };
        assert_eq!(figure.value, Spread { median: 90.0, min: 45.0, max: 91.0 });
        assert_eq!(figure.of_floor, Some(Spread { median: 0.9, min: 0.9, max: 0.91 }));
    }

    #[test]
    fn every_server_is_first_in_some_round() {
        let paths = Paths { root: "a".into(), programs: "b".into(), peers: "c".into() };
        let mut print = |_: &str| {};
        let mut run = Run::new(&paths, &[], Cores::shared(), Schedule::new(true), &mut print);
        let turns = RefCell::new(Vec::new());
        let one = |server: usize| Series {
            server: server.to_string(),
            is_floor: server == 0,
            rounds: 20,
            turn: Box::new({
                let turns = &turns;
                move || {
                    turns.borrow_mut().push(server);
                    Ok(vec![(Measure::PerSecond, 10.0)])
                }
            }),
        };
        run.case("http", "echo", 16.0, (0..4).map(one).collect());
        let mut first = [0; 4];
        for round in turns.borrow().chunks(4) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            first[round[0]] += 1;
        }
        assert!(first.iter().all(|times| *times > 0), "{first:?}");
    }

    #[test]
    fn a_series_that_fails_has_no_figures_and_is_reported() {
        let paths = Paths { root: "a".into(), programs: "b".into(), peers: "c".into() };
        let mut printed = String::new();
        let mut print = |text: &str| printed += text;
        let mut run = Run::new(&paths, &[], Cores::shared(), Schedule::new(true), &mut print);
        let (mut turns, mut broken) = (0, 0);
        let series = vec![
            Series {
                server: "floor".into(),
                is_floor: true,
                rounds: 3,
                turn: Box::new(|| {
                    turns += 1;
                    Ok(vec![(Measure::PerSecond, 10.0)])
                }),
            },
            Series {
                server: "peer".into(),
                is_floor: false,
                rounds: 3,
                turn: Box::new(|| {
                    broken += 1;
                    if broken < 2 {
                        Ok(vec![(Measure::PerSecond, 5.0)])
                    } else {
                        Err("lost".into())
                    }
                }),
            },
        ];
        run.case("http", "echo", 16.0, series);
        assert_eq!(run.missing, ["peer, echo, 16: lost"]);
        let servers: Vec<&str> = run.figures.iter().map(|figure| &*figure.server).collect();
        assert_eq!(servers, ["floor"]);
        assert_eq!((turns, broken), (3, 2));
    }
}
