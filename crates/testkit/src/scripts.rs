//! The transcripts that run at every level: against the engine without I/O, the pair in memory, and
//! a program over a pipe. One connection a file; the file's name is the rule.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sabir_engine::Settings;

use crate::house::House;
use crate::play::play_with;
use crate::player::Player;
use crate::program::Program;
use crate::settings::apply_setting;
use crate::transcript::Transcript;

/// A transcript that runs at every level.
#[derive(Clone, Debug)]
pub struct Script {
    /// The rule that it shows.
    pub name: String,
    /// The connection.
    pub transcript: Transcript,
    /// Whether it needs the offer of [`crate::StandIn`]; the others need nothing that is offered.
    pub needs_stand_in: bool,
}

/// All of them, by name.
///
/// # Panics
/// If one cannot be read.
pub fn all_scripts() -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts");
    let entries = fs::read_dir(&folder).expect("the folder of transcripts");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    let scripts: Vec<_> = paths.iter().map(|path| Script::read(path)).collect();
    assert!(!scripts.is_empty(), "no transcripts in {}", folder.display());
    scripts
}

impl Script {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut transcript = Transcript::parse(&text);
        let before = transcript.settings.len();
        transcript.settings.retain(|setting| setting != "stand-in");
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        assert!(!transcript.looks_inside(), "{name} can run at some levels only");
        Self {
            name: name.replace('_', " "),
            needs_stand_in: transcript.settings.len() < before,
            transcript,
        }
    }

    /// How the server is set up.
    ///
    /// # Panics
    /// If the script has a setting that does not exist.
    pub fn settings(&self) -> Settings {
        let mut settings = House::settings();
        for line in &self.transcript.settings {
            apply_setting(&mut settings, line)
                .unwrap_or_else(|bad| panic!("{}: no such setting: {}", self.name, bad.0));
        }
        settings
    }

    /// Starts a program that serves its standard streams with the settings of this script, as
    /// `PROGRAM serve FILE --stdio` with further arguments. The file is written to `folder`.
    ///
    /// # Panics
    /// If the file cannot be written, or the program does not exist.
    pub fn program(
        &self,
        path: impl AsRef<Path>,
        folder: impl AsRef<Path>,
        more: &[&str],
    ) -> Program {
        let file = folder.as_ref().join(format!("{}.toml", self.name.replace(' ', "_")));
        fs::write(&file, self.settings_file()).expect("a file of settings");
        let file = file.to_str().expect("a path that is text");
        Program::start(path, &[&["serve", file, "--stdio"], more].concat())
    }

    /// The same as the text of a `sabir.toml`.
    fn settings_file(&self) -> String {
        let server = "server.name = \"s\"\nserver.version = \"1\"\n";
        let own = self.transcript.settings.iter();
        // The settings of the script override the common ones.
        let says = |key: &str| self.transcript.settings.iter().any(|line| line.starts_with(key));
        let shared =
            server.lines().filter(|line| !says(line.split(' ').next().unwrap_or_default()));
        let lines: Vec<&str> = shared.chain(own.map(String::as_str)).collect();
        lines.join("\n") + "\n"
    }
}

/// Plays all scripts that `wanted` picks, each with a player of its own, and reports all failures
/// together.
///
/// # Panics
/// If one failed, or if none was picked.
pub fn play_scripts(wanted: impl Fn(&Script) -> bool, player: impl Fn(&Script) -> Box<dyn Player>) {
    let mut failed = Vec::new();
    let mut scripts = all_scripts();
    scripts.retain(wanted);
    assert!(!scripts.is_empty(), "no transcript was picked");
    for script in &scripts {
        let played = catch_unwind(AssertUnwindSafe(|| {
            play_with(player(script).as_mut(), &script.transcript);
        }));
        if played.is_err() {
            failed.push(&script.name);
        }
    }
    assert!(failed.is_empty(), "{} of {} failed: {failed:#?}", failed.len(), scripts.len());
}
