//! The results of a run, as they are stored in `bench/figures.json`.

use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// The results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The date of the run.
    pub date: String,
    /// The command.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// Name and description of each server.
    pub servers: Vec<(String, String)>,
    /// Servers and cases that were not measured, with the reason.
    pub missing: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// The machine of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The model name of the processor.
    pub processor: String,
    /// The number of usable cores.
    pub cores: usize,
    /// Whether servers had a core of their own.
    pub split: bool,
    /// The release of the kernel.
    pub kernel: String,
}

/// One figure of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The table that it belongs to.
    pub group: String,
    /// The case, for example `modern echo 50 B`.
    pub case: String,
    /// The number that varies within the case: connections, bytes, tools or sessions.
    pub at: f64,
    /// The server.
    pub server: String,
    /// The quantity.
    pub measure: Measure,
    /// The values of all rounds.
    pub value: Spread,
    /// The ratio to the floor of the same round.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of_floor: Option<Spread>,
}

/// A measured quantity with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Answers per second.
    PerSecond,
    /// The median latency in microseconds.
    P50Us,
    /// The p99 latency in microseconds.
    P99Us,
    /// The CPU time of the server per request, in microseconds.
    CpuUs,
    /// Milliseconds.
    Ms,
    /// Bytes of memory.
    Bytes,
    /// The CPU time of the server per second of the load: how many cores it used.
    ServerCores,
    /// The CPU time of the load generator per second of the load.
    GeneratorCores,
}

impl Figures {
    /// Finds one figure.
    pub fn find(
        &self,
        group: &str,
        case: &str,
        at: f64,
        server: &str,
        measure: Measure,
    ) -> Option<&Figure> {
        self.figures.iter().find(|figure| {
            figure.group == group
                && figure.case == case
                && figure.at == at
                && figure.server == server
                && figure.measure == measure
        })
    }

    /// The sorted values of [`Figure::at`] in a case.
    pub fn places(&self, group: &str, case: &str) -> Vec<f64> {
        let of_case = |figure: &&Figure| figure.group == group && figure.case == case;
        let mut places: Vec<f64> =
            self.figures.iter().filter(of_case).map(|figure| figure.at).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// The cases of a group in the order of the run.
    pub fn cases(&self, group: &str) -> Vec<&str> {
        let mut cases = Vec::new();
        for figure in self.figures.iter().filter(|figure| figure.group == group) {
            if !cases.contains(&&*figure.case) {
                cases.push(&*figure.case);
            }
        }
        cases
    }
}
