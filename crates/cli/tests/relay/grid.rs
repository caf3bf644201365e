//! The grid: every client revision, every upstream revision, both ways to an upstream, every row.
//! The test writes `docs/GRID.md`.

use std::fmt::Write as _;

use sabir_wire::Revision;

use super::rows::{ROWS, Setup};
use super::{Relay, at_url, fixture, http_fixture};

/// What one column shows of a row: a mark for each client.
struct Column {
    title: String,
    cells: Vec<String>,
    failures: Vec<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_crosses_in_every_direction() {
    let mut columns = Vec::new();
    for way in ["stdio", "HTTP"] {
        for far in Revision::ALL {
            columns.push(column(way, far).await);
        }
    }
    let failures: Vec<_> = columns.iter().flat_map(|column| &column.failures).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let old = std::fs::read_to_string(super::docs().join("GRID.md")).unwrap_or_default();
    let foreign = old.find(FOREIGN).map_or("", |at| &old[at..]);
    write_page(&page(&columns), foreign);
}

/// The title of the last part, which another test writes.
pub(crate) const FOREIGN: &str = "\n## Servers of others\n";

/// Writes both parts, if they differ from what is there.
pub(crate) fn write_page(grid: &str, foreign: &str) {
    let (path, page) = (super::docs().join("GRID.md"), format!("{grid}{foreign}"));
    if std::fs::read_to_string(&path).unwrap_or_default() != page {
        std::fs::write(&path, page).unwrap();
        panic!("docs/GRID.md was not up to date; it has been written");
    }
}

/// A WebSocket carries the same messages as a pipe, so one revision of each era is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_crosses_to_an_upstream_behind_a_websocket() {
    for far in [Revision::NEWEST, Revision::NEWEST_LEGACY] {
        let column = column("WebSocket", far).await;
        assert!(column.failures.is_empty(), "{:#?}", column.failures);
    }
}

async fn column(way: &str, far: Revision) -> Column {
    let http = (way != "stdio").then(|| http_fixture(&["http", far.date()]));
    let configuration = match &http {
        None => fixture("up", far),
        Some((_, url)) if way == "WebSocket" => at_url(&url.replacen("http", "ws", 1)),
        Some((_, url)) => at_url(url),
    };
    let relay = Relay::start(&configuration);
    let title = format!("{way} {}", far.date());
    let mut column = Column { title, cells: vec![String::new(); ROWS.len()], failures: Vec::new() };
    // After a cancellation, questions of the calls of others are refused for a while.
    let (others, last) = ROWS.split_at(ROWS.len() - 1);
    let passes = [(others, 0), (last, others.len())];
    let passes = passes.iter().flat_map(|pass| Revision::ALL.map(|near| (pass, near)));
    for ((rows, first), near) in passes {
        let (client, _) = relay.client(near).await;
        super::listed(&client, "up_echo").await;
        let (events, url) = (client.events(), relay.url.clone());
        let setup = Setup { client, events, url, near, far };
        for (row, cell) in rows.iter().zip(&mut column.cells[*first..]) {
            cell.push(match row.check(&setup).await {
                None => '–',
                Some(Ok(())) => '✓',
                Some(Err(reason)) => {
                    let title = &column.title;
                    let failure = format!("{} -> {title}, {}: {reason}", near.date(), row.name);
                    column.failures.push(failure);
                    '✗'
                }
            });
        }
    }
    column
}

fn page(columns: &[Column]) -> String {
    let dates = Revision::ALL.map(Revision::date).join(", ");
    let mut page = format!(
        "# The grid\n\nWritten by `cargo test -p sabir-cli --test relay grid`; do not edit.\n\n\
         The real binary relays between a client of each revision and an upstream of each revision, \
         which is a child process or behind a URL. A cell has five marks, for clients of {dates}: \
         `✓` it crosses, `–` one of the two revisions does not have it.\n"
    );
    for way in ["stdio", "HTTP"] {
        let columns: Vec<_> = columns.iter().filter(|one| one.title.starts_with(way)).collect();
        let titles: Vec<_> = columns.iter().map(|one| one.title.as_str()).collect();
        let _ = write!(page, "\n## Upstreams on {way}\n\n| what | {} |\n", titles.join(" | "));
        let _ = writeln!(page, "|---|{}", "---|".repeat(columns.len()));
        for (nth, row) in ROWS.iter().enumerate() {
            let cells: Vec<_> = columns.iter().map(|one| one.cells[nth].as_str()).collect();
            let _ = writeln!(page, "| {} | {} |", row.name, cells.join(" | "));
        }
    }
    page
}
