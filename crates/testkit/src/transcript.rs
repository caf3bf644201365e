//! The text of a connection, taken apart.
//!
//! ```text
//! @ dialect.null_id = "answer"        how the server is set up
//! > {"jsonrpc":"2.0", …}              the client says, byte by byte; `> ^D` is the end of input
//! < {"jsonrpc":"2.0", …}              we say, compared as JSON; "…" stands for any value
//! ! start 1                           we ask of the driver: start, abort, ready, close
//! ~ 1 progress 50 100 half            a running call says how far it is (`-`: no total)
//! ~ 1 log info - {"a":1}              a running call writes to the log (`-`: no logger)
//! = 1 {"content":[]}                  a call ends; also `error CODE TEXT`, `asks {…}`,
//!                                     `fails TEXT`, `panics`
//! * tools                             something changed: tools, prompts, resources or a URI
//! + 30s                               time passes
//! ```
//!
//! A call is known by the name that its `! start` gives it, by custom the id of its request.
//!
//! There are three abbreviations: `@modern` is the `_meta` of a modern request whose client has no
//! capabilities, `@able` of one that has all (both may be followed by `+{…}` with more), and
//! `@server` the `_meta` of a modern result.

use std::time::Duration;

use sabir_session::CallNotification;
use sabir_wire::types::{Level, Topic};
use sabir_wire::{Raw, Revision};
use serde_json::Value;

use crate::player::Ending;

/// A connection, as a list of steps.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// Lines of settings, each valid TOML.
    pub settings: Vec<String>,
    /// The steps in order, each with its line.
    pub steps: Vec<(usize, Step)>,
    /// The text, line by line, for reports.
    pub lines: Vec<String>,
}

/// One step of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The client sends.
    Say(Vec<u8>),
    /// The client closes its input.
    EndInput,
    /// We send.
    Hear(Value),
    /// A call begins, and is given a name.
    Start(String),
    /// A call is cancelled.
    Abort(String),
    /// A handshake is complete.
    Ready,
    /// The connection is over.
    Close,
    /// A running call reports something.
    Notify(String, CallNotification),
    /// A call ends.
    Finish(String, Ending),
    /// Something changed.
    Change(Topic),
    /// Time passes.
    Pass(Duration),
}

impl Transcript {
    /// Reads a script.
    ///
    /// # Panics
    /// If the script is wrong: it is a part of a test.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(|line| expand(line.trim())).collect();
        let mut settings = Vec::new();
        let mut steps = Vec::new();
        for (nth, line) in lines.iter().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(setting) = line.strip_prefix("@ ") {
                settings.push(setting.to_owned());
                continue;
            }
            match read_step(line) {
                Ok(step) => steps.push((nth, step)),
                Err(reason) => panic!("line {} of the script: {reason}\n    {line}", nth + 1),
            }
        }
        Self { settings, steps, lines }
    }

    /// Whether the script looks inside the server, which only some players can.
    pub fn looks_inside(&self) -> bool {
        let outside = |step: &Step| {
            let said = matches!(step, Step::Say(_) | Step::EndInput | Step::Hear(_));
            // Players that cannot see whether a client is ready skip this step.
            said || matches!(step, Step::Ready | Step::Close)
        };
        !self.steps.iter().all(|(_, step)| outside(step))
    }
}

/// Replaces the abbreviations.
fn expand(line: &str) -> String {
    let modern = |capabilities: &str| {
        let key = |name: &str| format!("\"io.modelcontextprotocol/{name}\"");
        let version = Revision::NEWEST.date();
        let (spoken, can) = (key("protocolVersion"), key("clientCapabilities"));
        format!("{{{spoken}:\"{version}\",{can}:{capabilities}")
    };
    let all = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;
    let server = r#"{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}"#;
    let mut line = line.replace("@server", server);
    for (word, capabilities) in [("@modern", "{}"), ("@able", all)] {
        if line.contains(word) {
            let open = modern(capabilities);
            line = line.replace(&format!("{word}+{{"), &format!("{open},"));
            line = line.replace(word, &format!("{open}}}"));
        }
    }
    line
}

fn read_step(line: &str) -> Result<Step, String> {
    let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    Ok(match mark {
        ">" if rest == "^D" => Step::EndInput,
        ">" => Step::Say(rest.as_bytes().to_vec()),
        "<" => Step::Hear(serde_json::from_str(rest).map_err(|error| error.to_string())?),
        "!" => read_event(rest)?,
        "~" => {
            let (call, note) = word(rest);
            Step::Notify(call.to_owned(), read_note(note)?)
        }
        "=" => {
            let (call, ending) = word(rest);
            Step::Finish(call.to_owned(), read_ending(ending)?)
        }
        "*" => Step::Change(match rest {
            "tools" => Topic::Tools,
            "prompts" => Topic::Prompts,
            "resources" => Topic::Resources,
            uri => Topic::Resource(uri.into()),
        }),
        "+" => Step::Pass(read_time(rest)?),
        _ => return Err("a step begins with one of > < ! ~ = * +".into()),
    })
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

fn read_event(text: &str) -> Result<Step, String> {
    Ok(match word(text) {
        ("start", call) if !call.is_empty() => Step::Start(call.to_owned()),
        ("abort", call) if !call.is_empty() => Step::Abort(call.to_owned()),
        ("ready", "") => Step::Ready,
        ("close", "") => Step::Close,
        _ => return Err("after `!`: start CALL, abort CALL, ready or close".into()),
    })
}

fn read_note(text: &str) -> Result<CallNotification, String> {
    let number = |text: &str| text.parse::<f64>().map_err(|error| format!("{text}: {error}"));
    let optional = |text: &str| (text != "-" && !text.is_empty()).then(|| text.to_owned());
    let (kind, rest) = word(text);
    let (first, rest) = word(rest);
    let (second, rest) = word(rest);
    match kind {
        "progress" => Ok(CallNotification::Progress {
            progress: number(first)?,
            total: optional(second).map(|total| number(&total)).transpose()?,
            message: optional(rest),
        }),
        "log" => Ok(CallNotification::Log {
            level: serde_json::from_value::<Level>(first.into()).map_err(|e| e.to_string())?,
            logger: optional(second),
            data: read_raw(rest)?,
        }),
        "other" => Ok(CallNotification::Other {
            method: first.into(),
            params: optional(rest).map(|params| read_raw(&params)).transpose()?,
        }),
        _ => Err("after `~ CALL`: progress, log or other".into()),
    }
}

fn read_ending(text: &str) -> Result<Ending, String> {
    if text.starts_with('{') {
        return read_raw(text).map(Ending::Result);
    }
    match word(text) {
        ("error", rest) => {
            let (code, message) = word(rest);
            let code = code.parse().map_err(|error| format!("{code}: {error}"))?;
            Ok(Ending::Error { code, message: message.to_owned() })
        }
        ("asks", rest) => read_raw(rest).map(Ending::Asks),
        ("fails", rest) => Ok(Ending::Fails(rest.to_owned())),
        ("panics", "") => Ok(Ending::Panics),
        _ => Err("after `= CALL`: a result, error CODE TEXT, asks {…}, fails TEXT, panics".into()),
    }
}

fn read_raw(text: &str) -> Result<Raw, String> {
    Raw::parse(text.to_owned()).map_err(|error| error.to_string())
}

fn read_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|error| format!("{text}: {error}"))?;
    Ok(match &text[digits.len()..] {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(60 * number),
        unit => return Err(format!("no unit of time: {unit}")),
    })
}
