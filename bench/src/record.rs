//! The instructions and allocations of a request on the hot paths. Unlike times they do not depend on
//! the load of the machine. `bench/record.toml` stores the last counts; growth by more than a tenth is
//! an error until that file is changed too.

pub mod count; // run a server and count

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

/// The cost of one request on one path.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Machine instructions.
    pub instructions: f64,
    /// Allocations and reallocations.
    pub allocations: f64,
}

/// The cost of every path, by name.
pub type Costs = BTreeMap<String, Cost>;

/// The allowed growth.
const ROOM: f64 = 1.10;

/// Parses a record file.
pub fn parse(text: &str) -> Result<Costs, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

/// Formats a record file.
pub fn write(costs: &Costs) -> String {
    let mut out = String::from(
        "# The cost of one request, counted by `cargo xtask record` and rewritten by\n\
         # `cargo xtask record --write`. A commit that increases a figure by more than a tenth\n\
         # changes this file too and explains why.\n",
    );
    for (name, cost) in costs {
        let Cost { instructions, allocations } = cost;
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "\n[{name}]\ninstructions = {instructions:.0}\nallocations = {allocations:.1}\n"
        );
    }
    out
}

/// Compares costs with the record. Returns a table and the errors.
pub fn compare(recorded: &Costs, measured: &Costs) -> (String, Vec<String>) {
    let (mut table, mut wrong) = (String::new(), Vec::new());
    let _ =
        writeln!(table, "{:<24} {:<13} {:>10} {:>10}", "path", "per request", "recorded", "now");
    for (name, now) in measured {
        let was = recorded.get(name);
        let figures = [
            ("instructions", was.map(|cost| cost.instructions), now.instructions),
            ("allocations", was.map(|cost| cost.allocations), now.allocations),
        ];
        for (what, was, now) in figures {
            let before = was.map_or_else(|| "-".to_owned(), |was| format!("{was:.1}"));
            let change =
                was.map_or_else(String::new, |was| format!("{:+.1} %", (now / was - 1.0) * 100.0));
            let _ = writeln!(table, "{name:<24} {what:<13} {before:>10} {now:>10.1}  {change}");
            match was {
                None => wrong.push(format!("{name}: not in bench/record.toml")),
                Some(was) if has_grown(was, now) => wrong.push(format!(
                    "{name}: {what} grew from {was:.1} to {now:.1} (limit: one tenth; reduce it, or run \
                     `cargo xtask record --write` and explain why in the commit)"
                )),
                Some(_) => {}
            }
        }
    }
    let gone = recorded.keys().filter(|name| !measured.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{name}: in bench/record.toml, but not measured")));
    wrong.dedup();
    (table, wrong)
}

/// Whether a figure has grown by more than a tenth. A tenth itself is allowed in spite of rounding.
fn has_grown(was: f64, now: f64) -> bool {
    now > was * ROOM + 1e-9 * was
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(name: &str, instructions: f64, allocations: f64) -> Costs {
        Costs::from([(name.to_owned(), Cost { instructions, allocations })])
    }

    #[test]
    fn growth_by_a_tenth_is_allowed_and_more_is_not() {
        let recorded = costs("echo", 10_000.0, 20.0);
        for (instructions, allocations, wrongs) in [
            (11_000.0, 22.0, 0),
            (11_001.0, 22.0, 1),
            (11_000.0, 22.1, 1),
            (11_001.0, 22.1, 2),
            (1.0, 0.0, 0),
        ] {
            let (_, wrong) = compare(&recorded, &costs("echo", instructions, allocations));
            assert_eq!(wrong.len(), wrongs, "{instructions} {allocations}: {wrong:?}");
        }
        let (_, wrong) = compare(&recorded, &costs("echo", 11_001.0, 0.0));
        assert!(wrong[0].contains("instructions grew from 10000.0 to 11001.0"), "{wrong:?}");
    }

    #[test]
    fn a_path_must_be_measured_and_recorded() {
        let (_, wrong) = compare(&costs("old", 1.0, 1.0), &costs("new", 1.0, 1.0));
        let expected =
            ["new: not in bench/record.toml", "old: in bench/record.toml, but not measured"];
        assert_eq!(wrong, expected);
    }

    #[test]
    fn growth_from_zero_is_an_error() {
        let (_, wrong) = compare(&costs("echo", 1.0, 0.0), &costs("echo", 1.0, 0.1));
        assert_eq!(wrong.len(), 1);
        let (_, wrong) = compare(&costs("echo", 1.0, 0.0), &costs("echo", 1.0, 0.0));
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn a_written_record_can_be_parsed() {
        let costs = costs("http-echo", 12_345.0, 6.5);
        assert_eq!(parse(&write(&costs)), Ok(costs));
        assert!(parse("[echo]\ninstructions = 1\n").is_err());
    }
}
