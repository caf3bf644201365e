//! `sabir explain`: describes a recording call by call.

use std::io::IsTerminal as _;
use std::path::Path;

use sabir_observe::{Recording, stories};

use crate::escape::escaped_lines;
use crate::report::{Failure, print_text};

pub(crate) fn run(path: &Path, call: Option<u64>) -> Result<(), Failure> {
    let failed = |error| Failure::new(format!("{}: {error}", path.display()));
    let recording = Recording::open(path).map_err(failed)?;
    let head = recording.head.clone();
    let told = stories(recording, call).map_err(failed)?;
    if let Some(call) = call.filter(|_| told.is_empty()) {
        return Err(Failure::new(format!("{}: no call {call}", path.display())));
    }
    let title =
        format!("`{}`, recorded by sabir {} at {}\n", head.server, head.sabir, head.started);
    let text = std::iter::once(title).chain(told).collect::<Vec<_>>().join("\n");
    // The texts of clients and servers may hold control characters.
    match std::io::stdout().is_terminal() {
        true => print_text(&escaped_lines(&text)),
        false => print_text(&text),
    }
    Ok(())
}
