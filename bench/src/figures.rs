//! All that was measured, as it is kept in `bench/figures.json`.

use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// A run of the benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The day.
    pub date: String,
    /// What was typed.
    pub command: String,
    /// Where it ran.
    pub machine: Machine,
    /// Who was measured: the name, and what it is.
    pub servers: Vec<(String, String)>,
    /// Who was not, or not everywhere, and why.
    pub missing: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// What it ran on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// As the processor calls itself.
    pub processor: String,
    /// How many cores we could use.
    pub cores: usize,
    /// Whether servers had a core to themselves.
    pub split: bool,
    /// The kernel's release.
    pub kernel: String,
}

/// One figure of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Which table it belongs to.
    pub group: String,
    /// What was asked: `modern echo 50 B`.
    pub case: String,
    /// The number that changes within the case: connections, bytes, tools, sessions.
    pub at: f64,
    /// Who answered.
    pub server: String,
    /// What it is a figure of.
    pub measure: Measure,
    /// The figure, over all rounds.
    pub value: Spread,
    /// The same as a part of the floor's, round by round.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of_floor: Option<Spread>,
}

/// What is measured. The names of variants say the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Answers in a second.
    PerSecond,
    /// Half of the answers came within so many microseconds.
    P50Us,
    /// Of a hundred answers, ninety-nine came within so many microseconds.
    P99Us,
    /// Microseconds of the server's processor for one request.
    CpuUs,
    /// Milliseconds.
    Ms,
    /// Bytes of memory.
    Bytes,
}

impl Figures {
    /// The figure of one server.
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

    /// Every place of a case where something was measured, in order.
    pub fn places(&self, group: &str, case: &str) -> Vec<f64> {
        let of_case = |figure: &&Figure| figure.group == group && figure.case == case;
        let mut places: Vec<f64> =
            self.figures.iter().filter(of_case).map(|figure| figure.at).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// The cases of a group, in the order in which they were measured.
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
