//! The queues of the process, the limits that were reached, and the numbers of its sources.

use std::collections::BTreeMap;

use sabir_budget::{Limit, computing, queued_calls};
use sabir_registry::{Figure, SourceStatus};

use super::exposition::{Family, Sample};

/// The metrics of the process.
pub(super) fn families() -> [Family; 3] {
    let queues = [("calls", queued_calls()), ("computing", computing())];
    let labelled = |queue: &str| vec![("queue", queue.to_owned())];
    let running = Family::gauge("sabir.queue.running", "", "What runs at once.");
    let waiting = Family::gauge("sabir.queue.waiting", "", "What waits for its turn.");
    let (running, waiting) =
        queues.into_iter().fold((running, waiting), |(running, waiting), (name, length)| {
            let (runs, waits) = (number(length.running as u64), number(length.waiting as u64));
            (running.with_labels(labelled(name), runs), waiting.with_labels(labelled(name), waits))
        });
    let reached = Family::counter("sabir.limits.reached", "", "How often a limit was reached.");
    let reached = Limit::ALL.into_iter().fold(reached, |family, limit| {
        let labels = vec![("limit", limit.name().to_owned())];
        family.with_labels(labels, number(limit.count()))
    });
    [running, waiting, reached]
}

/// The numbers of all sources. Sources of one name are counted together: a series must not appear
/// twice.
pub(super) fn figures(status: &[SourceStatus]) -> Vec<Family> {
    let mut all = BTreeMap::<&str, (Figure, BTreeMap<&str, u64>)>::new();
    for source in status {
        for figure in &source.figures {
            let (_, sources) = all.entry(figure.name).or_insert((*figure, BTreeMap::new()));
            *sources.entry(&source.name).or_default() += figure.value;
        }
    }
    let family = |(figure, sources): (Figure, BTreeMap<&str, u64>)| {
        let empty = match figure.is_counter {
            true => Family::counter(figure.name, "", figure.help),
            false => Family::gauge(figure.name, "", figure.help),
        };
        sources.into_iter().fold(empty, |family, (source, value)| {
            family.with_labels(vec![("source", source.to_owned())], number(value))
        })
    };
    all.into_values().map(family).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^52")]
fn number(value: u64) -> Sample {
    Sample::Number(value as f64)
}
