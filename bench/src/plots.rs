//! The plots of `docs/`.

mod canvas; // panels of lines and dots, as SVG

use std::collections::BTreeMap;

use plotters::style::RGBColor;

use self::canvas::{Axis, Line, Panel, Row, Shown, draw};
use crate::figures::{Figures, Measure};
use crate::load::exchange::Era;

const FLOOR: RGBColor = RGBColor(107, 114, 128);
const OURS: RGBColor = RGBColor(213, 94, 0);

/// Colors of peers, for readers with and without color blindness.
const PEERS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(184, 134, 11),
    RGBColor(136, 34, 85),
    RGBColor(51, 34, 136),
    RGBColor(153, 153, 51),
];

/// All plots of `docs/performance/` with their file names.
pub fn all(figures: &Figures) -> Result<Vec<(&'static str, String)>, String> {
    Ok(vec![
        ("throughput.svg", throughput(figures)?),
        ("latency.svg", latency(figures)?),
        ("sessions.svg", sessions(figures)?),
        ("tools.svg", tools(figures)?),
        ("size.svg", size(figures)?),
    ])
}

fn throughput(figures: &Figures) -> Result<String, String> {
    let mut panels = Vec::new();
    for era in Era::ALL {
        let case = format!("{} echo 50 B", era.name());
        let places = figures.places("http", &case);
        let lines: Vec<Line> = figures
            .servers
            .iter()
            .map(|(server, _)| {
                let point = |at: &f64| {
                    let found = figures.find("http", &case, *at, server, Measure::PerSecond)?;
                    Some((*at, found.value.median))
                };
                line(figures, server, places.iter().filter_map(point).collect())
            })
            .collect();
        let title = format!("{} era", era.name());
        panels.push(panel(&title, Axis::at("connections", &places), "answers per second", lines));
    }
    draw("tools/call of echo, 50 bytes: throughput on one core", &panels, 2)
}

fn latency(figures: &Figures) -> Result<String, String> {
    let mut panels = Vec::new();
    for era in Era::ALL {
        let case = format!("{} echo 50 B", era.name());
        for connections in [1.0, 64.0] {
            let mut rows = Vec::new();
            for (server, _) in &figures.servers {
                let of = |measure| {
                    let found = figures.find("http", &case, connections, server, measure);
                    found.map(|figure| figure.value.median)
                };
                if let Some(values) = of(Measure::P50Us).zip(of(Measure::P99Us)) {
                    let color = color(figures, server);
                    rows.push(Row { name: server.clone(), color, values });
                }
            }
            let values = rows.iter().flat_map(|row| [row.values.0, row.values.1]);
            let x = Axis::around("microseconds", values);
            let plural = if connections == 1.0 { "" } else { "s" };
            let title = format!("{} era, {connections} connection{plural}", era.name());
            panels.push(Panel { title, x, shown: Shown::Rows(rows) });
        }
    }
    draw("tools/call of echo, 50 bytes: latency, p50 (dot) to p99 (ring)", &panels, 2)
}

fn sessions(figures: &Figures) -> Result<String, String> {
    let case = "all sessions";
    let places = figures.places("memory", case);
    let lines = figures
        .servers
        .iter()
        .map(|(server, _)| {
            let point = |at: &f64| {
                let found = figures.find("memory", case, *at, server, Measure::Bytes)?;
                Some((*at, found.value.median / 1e6))
            };
            line(figures, server, places.iter().filter_map(point).collect())
        })
        .collect();
    let x = Axis::at("legacy sessions", &places);
    let panel = panel("growth of resident memory", x, "MB", lines);
    draw("Memory by sessions", &[panel], 1)
}

fn tools(figures: &Figures) -> Result<String, String> {
    let numbers = [21.0, 100.0, 1000.0];
    let mut panels = Vec::new();
    for (what, title) in [("echo 50 B", "tools/call of echo"), ("list", "tools/list, one page")] {
        let mut lines = Vec::new();
        for (era, color) in Era::ALL.into_iter().zip([OURS, PEERS[0]]) {
            let case = format!("{} {what}", era.name());
            let cost = |tools: &f64| {
                let name = figures.figures.iter().find(|figure| {
                    figure.group == "tools"
                        && figure.case == case
                        && figure.measure == Measure::CpuUs
                        && figure.server.ends_with(&format!(" with {tools} tools"))
                });
                name.map(|figure| (*tools, figure.value.median))
            };
            let points = numbers.iter().filter_map(cost).collect();
            lines.push(Line { name: era.name().into(), color, bold: true, points });
        }
        let x = Axis::at("tools offered", &numbers);
        panels.push(panel(title, x, "CPU microseconds per request", lines));
    }
    draw("Cost by number of tools", &panels, 2)
}

fn size(figures: &Figures) -> Result<String, String> {
    let case = "modern echo";
    let places = figures.places("size", case);
    let mut panels = Vec::new();
    let measures = [
        (Measure::CpuUs, "processor time", "CPU microseconds per request"),
        (Measure::PerSecond, "throughput", "answers per second"),
    ];
    for (measure, title, label) in measures {
        let servers = figures.servers.iter().map(|(server, _)| {
            let point = |at: &f64| {
                let found = figures.find("size", case, *at, server, measure)?;
                Some((*at, found.value.median))
            };
            line(figures, server, places.iter().filter_map(point).collect())
        });
        let lines = servers.filter(|line| !line.points.is_empty()).collect();
        panels.push(panel(title, Axis::at("bytes of text", &places), label, lines));
    }
    draw("Cost by size of arguments: tools/call of echo, 16 connections", &panels, 2)
}

/// The growth of an index of articles, from the output of `articles_scale`: a name and a value per
/// line.
pub fn articles(outputs: &[String]) -> Result<String, String> {
    let mut runs: Vec<BTreeMap<&str, f64>> = outputs.iter().map(|text| pairs(text)).collect();
    if let Some(at) = runs.iter().position(|run| !run.contains_key("articles")) {
        return Err(format!("file {} has no line `articles NUMBER`", at + 1));
    }
    runs.sort_by(|a, b| a["articles"].total_cmp(&b["articles"]));
    let places: Vec<f64> = runs.iter().map(|run| run["articles"]).collect();
    let line = |name: &str, key: &str, color| {
        let points = runs.iter().filter_map(|run| Some((run["articles"], *run.get(key)?)));
        Line { name: name.into(), color, bold: false, points: points.collect() }
    };
    let place = |title, label, lines| panel(title, Axis::at("articles", &places), label, lines);
    let panels = [
        place(
            "time to index, and to open again",
            "seconds",
            vec![
                line("index", "first_index_s", OURS),
                line("first answers", "first_answers_s", PEERS[2]),
                line("open again", "reopen_s", PEERS[0]),
            ],
        ),
        place(
            "search, and one article",
            "milliseconds",
            vec![
                line("search p99", "search_p99_ms", PEERS[0]),
                line("search p50", "search_p50_ms", OURS),
                line("article p50", "get_p50_ms", PEERS[2]),
            ],
        ),
        place(
            "memory",
            "MB",
            vec![
                line("indexing", "memory_indexed_most_mb", PEERS[0]),
                line("when opened", "memory_reopened_own_mb", OURS),
                line("after searches", "memory_asked_own_mb", PEERS[2]),
            ],
        ),
        place("the index on disk", "MB", vec![line("index", "index_mb", OURS)]),
    ];
    draw("An index of articles as it grows", &panels, 2)
}

fn pairs(text: &str) -> BTreeMap<&str, f64> {
    let pair = |line| {
        let (name, value) = str::split_once(line, char::is_whitespace)?;
        Some((name, value.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

fn panel(title: &str, x: Axis, label: &str, lines: Vec<Line>) -> Panel {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let y = Axis::around(label, values);
    Panel { title: title.into(), x, shown: Shown::Lines(y, lines) }
}

fn line(figures: &Figures, server: &str, points: Vec<(f64, f64)>) -> Line {
    let color = color(figures, server);
    Line { name: server.to_owned(), color, bold: color == OURS, points }
}

/// The floor is the first server, Sabir the second.
fn color(figures: &Figures, server: &str) -> RGBColor {
    let at = figures.servers.iter().position(|(name, _)| name == server);
    match at.unwrap_or_default() {
        0 => FLOOR,
        1 => OURS,
        at => PEERS[(at - 2) % PEERS.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_outputs_does_not_matter() {
        let of = |articles: u32, p50: f64| {
            format!(
                "articles {articles}\nsearch_p50_ms   {p50}\nnonsense\nsearch_p99_ms {}\n",
                p50 * 3.0
            )
        };
        let drawing = articles(&[of(10_000, 0.6), of(1_000, 0.5)]).unwrap();
        assert!(drawing.starts_with("<svg") && drawing.contains("search p99"), "{drawing}");
        assert_eq!(articles(&[of(1_000, 0.5), of(10_000, 0.6)]), Ok(drawing));
        assert!(articles(&["search_p50_ms 3\n".to_owned()]).unwrap_err().starts_with("file 1"));
    }
}
