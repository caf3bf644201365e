//! The tables of `docs/performance.md`.

use crate::figures::{Figure, Figures, Measure};
use crate::goals;
use crate::load::exchange::Era;
use crate::text::{aligned, bytes, number, range, table};

/// The mark before the tables.
pub const BEGIN: &str = "<!-- measured: begin -->";
/// The mark after the tables.
pub const END: &str = "<!-- measured: end -->";

/// All tables, in Markdown.
pub fn markdown(figures: &Figures) -> String {
    let mut out = machine(figures);
    out += "\n### Goals\n\n";
    out += &goals(figures);
    if let Some((head, rows)) = goals::calls_table(figures) {
        out += "\n### Calls that answer at once, and calls that wait\n\n";
        out += &table(&head, &rows);
    }
    for era in Era::ALL {
        out += &format!("\n### HTTP, {} era\n\n", era.name());
        out += &throughput(figures, era);
        out += "\nLatency and processor time:\n\n";
        out += &latency(figures, era);
    }
    out += "\n### One core and all cores\n\n";
    out += "A bold number is the ratio to one core.\n\n";
    out += &cores(figures);
    out += "\n### By size and by number of tools\n\n";
    out += &cost(figures, "size", "bytes", bytes);
    out += "\nHere a bold number is the ratio to 21 tools:\n\n";
    out += &cost(figures, "tools", "connections", number);
    out += "\n### WebSocket\n\n";
    out += "A bold number is the ratio to the same call over HTTP.\n\n";
    out += &cost(figures, "ws", "connections", number);
    out += "\n### stdio\n\n";
    out += &stdio(figures);
    out += "\n### Cold start\n\n";
    out += &start(figures);
    out += "\n### Memory\n\n";
    out += &memory(figures);
    out += "\n### While sessions expire\n\n";
    out += &expiry(figures);
    out += "\n### The binary\n\n";
    out += &cost(figures, "products", "connections", number);
    out += "\n### The relay\n\n";
    out += "The way of the client, and the way to the upstream. A bold number is the ratio to the \
            same upstream without a relay.\n\n";
    out += &relay(figures);
    out += "\n### Servers\n\n";
    let rows: Vec<Vec<String>> =
        figures.servers.iter().map(|(name, about)| vec![code(name), about.clone()]).collect();
    out += &table(&words(&["server", "description"]), &rows).replace("---:", "---");
    if !figures.missing.is_empty() {
        out += "\nNot measured:\n\n";
        for line in &figures.missing {
            out += &format!("- {line}\n");
        }
    }
    out
}

/// The goals and the calls that they name, for a terminal. Goals without figures are left out.
pub fn summary(figures: &Figures) -> String {
    let mut out = String::new();
    if let Some((head, rows)) = goals::calls_table(figures) {
        out += &format!("\n{}", aligned(&head, &rows));
    }
    let rows: Vec<Vec<String>> = goals::all(figures)
        .into_iter()
        .filter(|goal| !goal.measured.is_empty())
        .map(|goal| vec![goal.name, goal.verdict.into(), goal.measured])
        .collect();
    if !rows.is_empty() {
        out += &format!("\n{}", aligned(&words(&["goal", "reached", "measured"]), &rows));
    }
    out
}

fn goals(figures: &Figures) -> String {
    let row = |goal: goals::Goal| vec![goal.name, goal.measured, goal.verdict.into()];
    let rows: Vec<Vec<String>> = goals::all(figures).into_iter().map(row).collect();
    table(&words(&["goal", "measured", "reached"]), &rows).replace("---:", "---")
}

fn machine(figures: &Figures) -> String {
    let machine = &figures.machine;
    let split = if machine.split {
        "servers on one core, the load generator on another"
    } else {
        "servers and the load generator on the same core"
    };
    format!(
        "{}, `{}`. {}, {} cores, Linux {}; {split}.\n",
        figures.date, figures.command, machine.processor, machine.cores, machine.kernel
    )
}

/// Answers per second, with the part of the floor and the range over all rounds.
fn throughput(figures: &Figures, era: Era) -> String {
    let columns = columns(figures, era);
    let mut head = words(&["answers per second"]);
    head.extend(columns.iter().map(|(case, at)| column(case, *at, era)));
    let cell = |server: &str, (case, at): &(String, f64)| {
        figures.find("http", case, *at, server, Measure::PerSecond).map_or_else(blank, |figure| {
            let rate = number(figure.value.median);
            match &figure.of_floor {
                Some(part) => format!("{rate}<br>**{}** ({})", number(part.median), range(part)),
                None => format!("{rate}<br>({})", range(&figure.value)),
            }
        })
    };
    let rows = rows(figures, |server| columns.iter().map(|place| cell(server, place)).collect());
    table(&head, &rows)
}

fn latency(figures: &Figures, era: Era) -> String {
    let echo = format!("{} echo 50 B", era.name());
    let wanted = [
        ("p50 us, 1 connection", 1.0, Measure::P50Us),
        ("p99 us, 1 connection", 1.0, Measure::P99Us),
        ("p50 us, 64 connections", 64.0, Measure::P50Us),
        ("p99 us, 64 connections", 64.0, Measure::P99Us),
        ("CPU us/request, 16 connections", 16.0, Measure::CpuUs),
    ];
    let mut head = words(&["50 B"]);
    head.extend(wanted.iter().map(|(name, ..)| (*name).to_owned()));
    let rows = rows(figures, |server| {
        let cell = |(_, at, measure): &(&str, f64, Measure)| {
            figures.find("http", &echo, *at, server, *measure).map_or_else(blank, with_part)
        };
        wanted.iter().map(cell).collect()
    });
    table(&head, &rows)
}

/// A row for each figure of a group.
fn cost(figures: &Figures, group: &str, of: &str, place: impl Fn(f64) -> String) -> String {
    let mut rows = Vec::new();
    for figure in figures.figures.iter().filter(|figure| figure.group == group) {
        if figure.measure != Measure::PerSecond {
            continue;
        }
        let other = |measure| {
            figures
                .find(group, &figure.case, figure.at, &figure.server, measure)
                .map_or_else(blank, with_part)
        };
        rows.push(vec![
            figure.case.clone(),
            place(figure.at),
            code(&figure.server),
            with_part(figure),
            other(Measure::P50Us),
            other(Measure::P99Us),
            other(Measure::CpuUs),
        ]);
    }
    let head = ["what", of, "server", "answers per second", "p50 us", "p99 us", "CPU us/request"];
    table(&words(&head), &rows)
}

fn cores(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for figure in figures.figures.iter().filter(|figure| figure.group == "cores") {
        if figure.measure == Measure::PerSecond {
            let other = |measure| {
                figures
                    .find("cores", &figure.case, figure.at, &figure.server, measure)
                    .map_or_else(blank, |figure| number(figure.value.median))
            };
            rows.push(vec![
                figure.case.clone(),
                code(&figure.server),
                with_part(figure),
                other(Measure::ServerCores),
                other(Measure::GeneratorCores),
            ]);
        }
    }
    let head = [
        "64 connections",
        "server",
        "answers per second",
        "cores used by the server",
        "cores used by the load generator",
    ];
    table(&words(&head), &rows)
}

fn stdio(figures: &Figures) -> String {
    let cases = figures.cases("stdio");
    let mut head = words(&["50 B"]);
    for case in &cases {
        head.push(format!("{case}, answers per second"));
        head.push("CPU us/request".into());
    }
    let rows = rows(figures, |server| {
        let cell = |case: &str, measure| {
            figures.find("stdio", case, 0.0, server, measure).map_or_else(blank, with_part)
        };
        let pair = |case: &&str| [cell(case, Measure::PerSecond), cell(case, Measure::CpuUs)];
        cases.iter().flat_map(pair).collect()
    });
    table(&head, &rows)
}

fn start(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for figure in figures.figures.iter().filter(|figure| figure.group == "start") {
        let part = figure.of_floor.map_or_else(blank, |part| number(part.median));
        let median = number(figure.value.median);
        rows.push(vec![code(&figure.server), median, range(&figure.value), part]);
    }
    table(&words(&["server", "ms", "range", "times the floor"]), &rows)
}

fn memory(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for figure in figures.figures.iter().filter(|figure| figure.group == "memory") {
        let (what, each) = match figure.at {
            0.0 => (figure.case.clone(), blank()),
            count => {
                let what = figure.case.replacen("all", &number(count), 1);
                (format!("growth with {what}"), bytes(figure.value.median / count))
            }
        };
        rows.push(vec![what, code(&figure.server), bytes(figure.value.median), each]);
    }
    table(&words(&["memory", "server", "resident", "each"]), &rows)
}

fn relay(figures: &Figures) -> String {
    let measures = [Measure::P50Us, Measure::P99Us, Measure::CpuUs, Measure::Ms, Measure::Bytes];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for figure in figures.figures.iter().filter(|figure| figure.group == "relay") {
        let row = vec![figure.case.clone(), code(&figure.server)];
        if rows.last().is_some_and(|last| last[..2] == row[..]) {
            continue;
        }
        let cell = |measure: &Measure| {
            let found = figures.find("relay", &figure.case, 0.0, &figure.server, *measure);
            found.map_or_else(blank, |figure| match measure {
                Measure::Bytes => bytes(figure.value.median),
                _ => with_part(figure),
            })
        };
        rows.push(row.into_iter().chain(measures.iter().map(cell)).collect());
    }
    let head = ["way", "gateway", "p50 us", "p99 us", "its CPU us/request", "ms", "peak memory"];
    table(&words(&head), &rows)
}

fn expiry(figures: &Figures) -> String {
    let mut rows = Vec::new();
    for figure in figures.figures.iter().filter(|figure| figure.group == "expiry") {
        let what = figure.case.replacen("all", &number(figure.at), 1);
        let median = number(figure.value.median);
        rows.push(vec![what, code(&figure.server), median, range(&figure.value)]);
    }
    table(&words(&["expiring", "server", "longest latency, ms", "range"]), &rows)
}

/// The median, with its part of the floor.
fn with_part(figure: &Figure) -> String {
    let median = number(figure.value.median);
    match &figure.of_floor {
        Some(part) => format!("{median} (**{}**)", number(part.median)),
        None => median,
    }
}

/// The cases of an era over HTTP, with their numbers of connections.
fn columns(figures: &Figures, era: Era) -> Vec<(String, f64)> {
    let mut columns = Vec::new();
    for case in figures.cases("http") {
        if case.starts_with(era.name()) {
            let places = figures.places("http", case);
            columns.extend(places.into_iter().map(|at| (case.to_owned(), at)));
        }
    }
    columns
}

fn column(case: &str, at: f64, era: Era) -> String {
    let what = case.strip_prefix(era.name()).unwrap_or(case).trim();
    format!("{what}, {at} conn.")
}

/// A row for every server that was measured.
fn rows(figures: &Figures, cells: impl Fn(&str) -> Vec<String>) -> Vec<Vec<String>> {
    let row = |(server, _): &(String, String)| {
        let cells = cells(server);
        let is_there = cells.iter().any(|cell| !cell.is_empty());
        is_there.then(|| std::iter::once(code(server)).chain(cells).collect())
    };
    figures.servers.iter().filter_map(row).collect()
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

fn blank() -> String {
    String::new()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Machine;
    use crate::spread::Spread;

    fn figure(server: &str, at: f64, median: f64, part: Option<f64>) -> Figure {
        let spread = |median: f64| Spread { median, min: median * 0.9, max: median * 1.1 };
        Figure {
            group: "http".into(),
            case: "modern echo 50 B".into(),
            at,
            server: server.into(),
            measure: Measure::PerSecond,
            value: spread(median),
            of_floor: part.map(spread),
        }
    }

    #[test]
    fn a_server_has_a_row_only_where_it_was_measured() {
        let machine = Machine { processor: "P".into(), cores: 2, split: true, kernel: "6".into() };
        let server = |name: &str| (name.to_owned(), "about".to_owned());
        let figures = Figures {
            date: "2030-01-01".into(),
            command: "cargo xtask bench".into(),
            machine,
            servers: vec![server("floor"), server("sabir"), server("late")],
            missing: vec!["late: not installed".into()],
            figures: vec![
                figure("floor", 16.0, 140_000.0, None),
                figure("sabir", 16.0, 133_000.0, Some(0.95)),
            ],
        };
        let expected = "\
| answers per second | echo 50 B, 16 conn. |
|---|---:|
| `floor` | 140,000<br>(126,000–154,000) |
| `sabir` | 133,000<br>**0.95** (0.85–1.04) |
";
        let all = markdown(&figures);
        assert!(all.contains(expected), "{all}");
        assert!(all.contains("- late: not installed"), "{all}");
        assert_eq!(throughput(&figures, Era::Legacy).lines().count(), 2);
        let goal = "| `tools/call` at once: at least 0.85 of bare hyper | modern 16 conn. 0.95 | not measured |";
        assert!(all.contains(goal), "{all}");
        assert!(summary(&figures).contains("modern, at once"), "{}", summary(&figures));
    }
}
