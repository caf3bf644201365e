//! The goals of the project, and whether the measured figures reach them.

use crate::figures::{Figure, Figures, Measure};
use crate::load::exchange::Era;
use crate::text::{bytes, number};

const FLOOR: &str = "floor";
const OURS: &str = "sabir";
const BINARY: &str = "sabir serve";
const DIRECT: &str = "direct";
/// The name of Sabir's row where it is called over WebSocket.
pub const OVER_WEBSOCKET: &str = "sabir over WebSocket";

/// The numbers of connections that goals name.
const CONNECTIONS: [f64; 2] = [16.0, 64.0];

/// The calls that goals name: a label, and the case without its era.
const CALLS: [(&str, &str); 2] = [("at once", "echo 50 B"), ("waiting", "wait 50 B")];

/// One goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The goal with its limit.
    pub name: String,
    /// The measured values, each with a label. Empty if nothing was measured.
    pub measured: String,
    /// Whether the goal is reached.
    pub verdict: &'static str,
}

/// A limit for a figure.
#[derive(Clone, Copy)]
enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Limit {
    fn allows(self, value: f64) -> bool {
        match self {
            Self::AtLeast(limit) => value >= limit,
            Self::AtMost(limit) => value <= limit,
        }
    }
}

/// All goals.
pub fn all(figures: &Figures) -> Vec<Goal> {
    let mut goals = Vec::new();
    for ((label, call), least) in CALLS.into_iter().zip([0.85, 0.75]) {
        let name = format!("`tools/call` {label}: at least {least} of bare hyper");
        let values = calls(call, |case, at| part_of_floor(figures, "http", case, at));
        goals.push(goal(name, Limit::AtLeast(least), &values, number));
    }
    for (label, call) in CALLS {
        let name = format!("`tools/call` {label}: at least 3 times the best peer");
        let values = calls(call, |case, at| times_best_peer(figures, "http", case, at));
        goals.push(goal(name, Limit::AtLeast(3.0), &values, number));
    }
    let by_era = |way: &str, value: &dyn Fn(&str) -> Option<f64>| {
        Era::ALL.map(|era| (era.name().to_owned(), value(&format!("{} {way}", era.name()))))
    };
    let name = "WebSocket: a call costs at most 1.2 times the CPU time of the same call over HTTP";
    let values = CALLS.iter().flat_map(|(label, call)| {
        Era::ALL.map(|era| {
            let case = format!("{} {call}", era.name());
            let found = figures.find("ws", &case, 16.0, OVER_WEBSOCKET, Measure::CpuUs);
            (format!("{} {label}", era.name()), found.and_then(of_floor))
        })
    });
    let values: Vec<_> = values.collect();
    goals.push(goal(name.into(), Limit::AtMost(1.2), &values, number));
    let slower = |case: &str| part_of_floor(figures, "stdio", case, 0.0).map(|part| 1.0 / part);
    let name = "stdio, sequential: at most 1.15 times the time of the bare loop";
    goals.push(goal(name.into(), Limit::AtMost(1.15), &by_era("in sequence", &slower), number));
    let peer = |case: &str| times_best_peer(figures, "stdio", case, 0.0);
    let name = "stdio, pipelined: at least 10 times the best peer";
    goals.push(goal(name.into(), Limit::AtLeast(10.0), &by_era("pipelined", &peer), number));
    let start = [("the library", OURS), ("`sabir serve`", BINARY)].map(|(label, server)| {
        let found = figures.find("start", "cold start", 0.0, server, Measure::Ms);
        (label.to_owned(), found.and_then(of_floor))
    });
    let name = "cold start: at most 1.8 times the bare process";
    goals.push(goal(name.into(), Limit::AtMost(1.8), &start, number));
    let idle = figures.find("memory", "idle", 0.0, OURS, Measure::Bytes);
    let idle = [("resident".to_owned(), idle.map(|figure| figure.value.median))];
    goals.push(goal("idle: at most 10 MB".into(), Limit::AtMost(10e6), &idle, bytes));
    goals.push(all_cores(figures));
    let added = relayed("stdio, stdio", |case| {
        Some(p50(figures, case, BINARY)? - p50(figures, case, DIRECT)?)
    });
    let name = "relay over stdio: at most 60 us added per call (p50)";
    goals.push(goal(name.into(), Limit::AtMost(60.0), &added, number));
    let times = relayed("HTTP, HTTP", |case| {
        of_floor(figures.find("relay", case, 0.0, BINARY, Measure::P50Us)?)
    });
    let name = "relay over HTTP: at most 1.6 times a direct call (p50)";
    goals.push(goal(name.into(), Limit::AtMost(1.6), &times, number));
    let case = "modern, stdio, `tools/list` of cold upstreams";
    let cold = figures.find("relay", case, 0.0, BINARY, Measure::Ms);
    let cold = [("`sabir serve`".to_owned(), cold.map(|figure| figure.value.median))];
    let name = "`tools/list` of 10 cold upstreams: at most 20 ms after the start";
    goals.push(goal(name.into(), Limit::AtMost(20.0), &cold, number));
    goals
}

/// The values of a way through the relay in both eras.
fn relayed(way: &str, value: impl Fn(&str) -> Option<f64>) -> [(String, Option<f64>); 2] {
    Era::ALL.map(|era| (era.name().to_owned(), value(&format!("{}, {way}", era.name()))))
}

fn p50(figures: &Figures, case: &str, server: &str) -> Option<f64> {
    Some(figures.find("relay", case, 0.0, server, Measure::P50Us)?.value.median)
}

/// The calls of the goals compared with the floor and with the best peer: a head and rows. `None` if
/// none was measured.
pub fn calls_table(figures: &Figures) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let rate = |case: &str, at| part_of_floor(figures, "http", case, at).map(number);
    let cpu = |case: &str, at| {
        let found = figures.find("http", case, at, OURS, Measure::CpuUs);
        found.and_then(of_floor).map(number)
    };
    let peer = |case: &str, at| {
        let peer = best_peer(figures, "http", case, at)?;
        let times = times_best_peer(figures, "http", case, at)?;
        Some(format!("{} ({})", number(times), peer.server))
    };
    type Cell<'a> = &'a dyn Fn(&str, f64) -> Option<String>;
    let columns: [(&str, Cell<'_>); 3] =
        [("rate / floor", &rate), ("CPU time / floor", &cpu), ("rate / best peer", &peer)];
    let mut head = vec!["`tools/call`, 50 B".to_owned()];
    for (name, _) in columns {
        head.extend(CONNECTIONS.map(|at| format!("{name}, {at} conn.")));
    }
    let mut rows = Vec::new();
    for era in Era::ALL {
        for (label, call) in CALLS {
            let case = format!("{} {call}", era.name());
            let mut row = vec![format!("{}, {label}", era.name())];
            for (_, cell) in columns {
                row.extend(CONNECTIONS.map(|at| cell(&case, at).unwrap_or_default()));
            }
            if row.iter().skip(1).any(|cell| !cell.is_empty()) {
                rows.push(row);
            }
        }
    }
    (!rows.is_empty()).then_some((head, rows))
}

/// Both eras and all numbers of connections of a call.
fn calls(call: &str, value: impl Fn(&str, f64) -> Option<f64>) -> Vec<(String, Option<f64>)> {
    let mut values = Vec::new();
    for era in Era::ALL {
        for at in CONNECTIONS {
            let case = format!("{} {call}", era.name());
            values.push((format!("{} {at} conn.", era.name()), value(&case, at)));
        }
    }
    values
}

fn goal(
    name: String,
    limit: Limit,
    values: &[(String, Option<f64>)],
    format: impl Fn(f64) -> String,
) -> Goal {
    let known = values.iter().filter_map(|(label, value)| value.map(|value| (label, value)));
    let measured: Vec<String> =
        known.map(|(label, value)| format!("{label} {}", format(value))).collect();
    let verdict = if values.iter().flat_map(|(_, value)| value).any(|value| !limit.allows(*value)) {
        "no"
    } else if measured.len() < values.len() {
        "not measured"
    } else {
        "yes"
    };
    Goal { name, measured: measured.join(", "), verdict }
}

/// The ratio of all cores to one core. Where it is too small, the load generator may be the reason:
/// the cores that it used are not available to the server.
fn all_cores(figures: &Figures) -> Goal {
    let limit = Limit::AtLeast(1.6);
    let (mut measured, mut verdict) = (Vec::new(), "yes");
    for case in figures.cases("cores") {
        let of = |measure| {
            let all = |figure: &&Figure| {
                figure.group == "cores"
                    && figure.case == case
                    && figure.measure == measure
                    && figure.of_floor.is_some()
            };
            figures.figures.iter().find(all)
        };
        let ratio = of(Measure::PerSecond).and_then(of_floor);
        let generator = of(Measure::GeneratorCores).map(|figure| figure.value.median);
        let Some((ratio, generator)) = ratio.zip(generator) else { continue };
        let left = figures.machine.cores as f64 - generator;
        measured.push(format!(
            "{case} {} (the load generator left {} cores)",
            number(ratio),
            number(left)
        ));
        verdict = match verdict {
            _ if limit.allows(ratio) => verdict,
            "no" => "no",
            // The server used nearly all that was left.
            _ if ratio >= 0.85 * left => "limited by the load generator",
            _ => "no",
        };
    }
    let name = "all cores, 64 connections: at least 1.6 times one core".to_owned();
    let verdict = if measured.is_empty() { "not measured" } else { verdict };
    Goal { name, measured: measured.join(", "), verdict }
}

fn of_floor(figure: &Figure) -> Option<f64> {
    figure.of_floor.map(|part| part.median)
}

fn part_of_floor(figures: &Figures, group: &str, case: &str, at: f64) -> Option<f64> {
    figures.find(group, case, at, OURS, Measure::PerSecond).and_then(of_floor)
}

/// The peer with the highest rate.
fn best_peer<'a>(figures: &'a Figures, group: &str, case: &str, at: f64) -> Option<&'a Figure> {
    let peers = figures.servers.iter().filter(|(name, _)| name != FLOOR && name != OURS);
    let found =
        peers.filter_map(|(peer, _)| figures.find(group, case, at, peer, Measure::PerSecond));
    found.max_by(|a, b| a.value.median.total_cmp(&b.value.median))
}

/// The parts of the floor are divided where they are known, because they belong to the same rounds.
fn times_best_peer(figures: &Figures, group: &str, case: &str, at: f64) -> Option<f64> {
    let peer = best_peer(figures, group, case, at)?;
    let ours = figures.find(group, case, at, OURS, Measure::PerSecond)?;
    let parts = of_floor(ours).zip(of_floor(peer));
    let (ours, peer) = parts.unwrap_or((ours.value.median, peer.value.median));
    Some(ours / peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Machine;
    use crate::spread::Spread;

    fn figures(figures: Vec<Figure>) -> Figures {
        let names = [FLOOR, OURS, "slow", "fast"];
        Figures {
            date: String::new(),
            command: String::new(),
            machine: Machine { processor: "P".into(), cores: 2, split: true, kernel: "6".into() },
            servers: names.map(|name| (name.to_owned(), String::new())).to_vec(),
            missing: Vec::new(),
            figures,
        }
    }

    fn figure(
        (group, case, at): (&str, &str, f64),
        server: &str,
        measure: Measure,
        value: f64,
        part: Option<f64>,
    ) -> Figure {
        let spread = |median: f64| Spread { median, min: median, max: median };
        Figure {
            group: group.into(),
            case: case.into(),
            at,
            server: server.into(),
            measure,
            value: spread(value),
            of_floor: part.map(spread),
        }
    }

    fn calls_at(part: f64) -> Vec<Figure> {
        let mut all = Vec::new();
        for era in Era::ALL {
            for at in CONNECTIONS {
                let place = format!("{} wait 50 B", era.name());
                let place = ("http", &*place, at);
                let of = |server, rate, part| {
                    figure(place, server, Measure::PerSecond, rate, Some(part))
                };
                all.push(of(OURS, part * 1000.0, part));
                all.push(of("slow", 100.0, 0.1));
                all.push(of("fast", 200.0, 0.2));
            }
        }
        all
    }

    fn verdict(figures: &Figures, name: &str) -> &'static str {
        all(figures).into_iter().find(|goal| goal.name.contains(name)).unwrap().verdict
    }

    #[test]
    fn a_goal_is_reached_where_all_values_are_within_the_limit() {
        let floor = "waiting: at least 0.75 of bare hyper";
        assert_eq!(verdict(&figures(calls_at(0.75)), floor), "yes");
        assert_eq!(verdict(&figures(calls_at(0.74)), floor), "no");
        let mut one_lower = calls_at(0.9);
        one_lower[0] =
            figure(("http", "modern wait 50 B", 16.0), OURS, Measure::PerSecond, 700.0, Some(0.7));
        assert_eq!(verdict(&figures(one_lower), floor), "no");
        let partly = calls_at(0.9).into_iter().skip(3).collect();
        assert_eq!(verdict(&figures(partly), floor), "not measured");
    }

    #[test]
    fn the_fastest_peer_counts() {
        let peer = "waiting: at least 3 times the best peer";
        assert_eq!(verdict(&figures(calls_at(0.61)), peer), "yes");
        assert_eq!(verdict(&figures(calls_at(0.59)), peer), "no");
        let (_, rows) = calls_table(&figures(calls_at(0.8))).unwrap();
        let expected = ["modern, waiting", "0.80", "0.80", "", "", "4.00 (fast)", "4.00 (fast)"];
        assert_eq!(rows[0], expected);
        assert_eq!(rows.len(), 2, "cases that were not measured have no row");
    }

    #[test]
    fn the_load_generator_may_limit_all_cores() {
        let name = "all cores";
        let with = |ratio: f64, generator: f64| {
            let of = |measure, value, part| {
                figure(("cores", "echo", 64.0), "all", measure, value, Some(part))
            };
            figures(vec![
                of(Measure::PerSecond, 1.0, ratio),
                of(Measure::GeneratorCores, generator, 1.0),
            ])
        };
        assert_eq!(verdict(&with(1.7, 0.2), name), "yes");
        assert_eq!(verdict(&with(1.2, 0.7), name), "limited by the load generator");
        assert_eq!(verdict(&with(1.2, 0.2), name), "no");
        assert_eq!(verdict(&figures(Vec::new()), name), "not measured");
    }

    #[test]
    fn a_websocket_is_compared_with_http() {
        let with = |ratio: f64| {
            let cases = CALLS
                .iter()
                .flat_map(|(_, call)| Era::ALL.map(|era| format!("{} {call}", era.name())));
            let of = |case: String| {
                figure(("ws", &case, 16.0), OVER_WEBSOCKET, Measure::CpuUs, 9.0, Some(ratio))
            };
            figures(cases.map(of).collect())
        };
        assert_eq!(verdict(&with(1.2), "WebSocket"), "yes");
        assert_eq!(verdict(&with(1.21), "WebSocket"), "no");
    }

    #[test]
    fn times_and_memory_have_an_upper_limit() {
        let start = ("start", "cold start", 0.0);
        let mut all = vec![
            figure(start, OURS, Measure::Ms, 3.0, Some(1.5)),
            figure(start, BINARY, Measure::Ms, 3.0, Some(1.9)),
        ];
        assert_eq!(verdict(&figures(all.clone()), "cold start"), "no");
        all[1] = figure(start, BINARY, Measure::Ms, 3.0, Some(1.8));
        all.push(figure(("memory", "idle", 0.0), OURS, Measure::Bytes, 5.8e6, None));
        assert_eq!(verdict(&figures(all.clone()), "cold start"), "yes");
        assert_eq!(verdict(&figures(all), "idle"), "yes");
    }
}
