//! `sabir check`: reads a configuration and says what is wrong.

use std::path::Path;
use std::time::Duration;

use super::engine;
use crate::config;
use crate::report::{Failure, say};

pub(crate) fn run(path: Option<&Path>) -> Result<(), Failure> {
    let settings = config::read(path)?;
    for folder in &settings.folders {
        while !folder.wait_ready(Duration::from_secs(60)) {}
        for problem in folder.problems() {
            say(&format!("warning: {problem}"));
        }
    }
    let (engine, _) = engine(settings)?;
    let offered = engine.registry().snapshot();
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    };
    say(&format!(
        "`{}` offers {}, {} and {}",
        engine.settings().server.name,
        count(offered.tools().len(), "tool"),
        count(offered.prompts().len(), "prompt"),
        count(offered.resources().len() + offered.templates().len(), "resource"),
    ));
    Ok(())
}
