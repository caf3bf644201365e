//! What a program gave, as the result of its tool.
//!
//! Success is what the program wrote to standard output, in the form that its author promised.
//! Failure is for the model to read: the last of standard error, then why it counts as a failure,
//! then the last of what was written to standard output.

use sabir_wire::Raw;
use sabir_wire::types::{Content, ResourceContents, ToolReply};
use serde_json::Value;

use super::capture::Stream;
use super::program::Program;
use super::run::{Finish, Limit};
use sabir_supervisor::Exit;

/// What a command gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Text.
    Text,
    /// Text, and every line is told while the program runs.
    Lines,
    /// A JSON value, for programs as well; the schema that it fits, if that is known.
    Json(Option<Value>),
    /// Bytes of this type: a picture, a sound, or a document.
    Bytes(MimeType),
}

/// `image/png`, `audio/wav`, `application/pdf`, …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MimeType(String);

/// Not a type of content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no type of content")]
pub struct BadMimeType(pub String);

impl MimeType {
    /// The type, as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for MimeType {
    type Error = BadMimeType;

    /// Two names around a slash, and perhaps parameters, such as `text/csv; charset=utf-8`.
    fn try_from(written: &str) -> Result<Self, BadMimeType> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
        };
        let essence = written.split(';').next().unwrap_or_default().trim_end();
        match essence.split_once('/') {
            Some((kind, subtype))
                if is_name(kind) && is_name(subtype) && written.chars().all(is_visible) =>
            {
                Ok(Self(written.to_owned()))
            }
            _ => Err(BadMimeType(written.to_owned())),
        }
    }
}

fn is_visible(c: char) -> bool {
    matches!(c, ' '..='~')
}

/// How much of standard output goes with a failure: its last bytes.
const OUTPUT_TAIL: usize = 8 << 10;

/// The result of the tool `name`.
pub(super) fn reply(name: &str, output: &Output, program: &Program, finish: Finish) -> ToolReply {
    if !finish.success {
        return failure(&why(&finish, program), &finish);
    }
    match output {
        Output::Text | Output::Lines => ToolReply::text(without_last_line_end(finish.stdout)),
        Output::Json(_) => structured(&finish),
        Output::Bytes(mime) => {
            ToolReply::default().and(content(name, mime.as_str(), finish.stdout))
        }
    }
}

/// A line end ends the last line; it does not begin another one.
fn without_last_line_end(bytes: Vec<u8>) -> String {
    let mut text = lossy(bytes);
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

fn structured(finish: &Finish) -> ToolReply {
    match Raw::parse(finish.stdout.clone()) {
        Ok(value) => ToolReply { structured: Some(value), ..ToolReply::default() },
        Err(error) => failure(&format!("it did not write JSON: {error}"), finish),
    }
}

fn content(name: &str, mime: &str, bytes: Vec<u8>) -> Content {
    match mime.split('/').next() {
        Some("image") => Content::image(&bytes, mime),
        Some("audio") => Content::audio(&bytes, mime),
        _ => {
            let uri = format!("command:///{name}");
            Content::resource(match String::from_utf8(bytes) {
                Ok(text) => ResourceContents::text(uri, mime, text),
                Err(error) => ResourceContents::blob(uri, mime, error.as_bytes()),
            })
        }
    }
}

/// What the model is told of a failure.
fn failure(why: &str, finish: &Finish) -> ToolReply {
    let said = lossy(finish.stderr.clone());
    let said = said.trim();
    let cut = if finish.stderr_cut > 0 { "… " } else { "" };
    let mut reply = ToolReply::failed(match said {
        "" => format!("The program failed: {why}"),
        said => format!("{cut}{said}\n({why})"),
    });
    let start = finish.stdout.len().saturating_sub(OUTPUT_TAIL);
    let cut = if start > 0 { "… " } else { "" };
    // Bytes that are no text say nothing to a model; a character cut by a limit is still text.
    let is_text = std::str::from_utf8(&finish.stdout).map_err(|error| error.error_len());
    let is_text = matches!(is_text, Ok(_) | Err(None));
    let written = lossy(finish.stdout[start..].to_vec());
    let written = written.trim_matches(char::REPLACEMENT_CHARACTER).trim();
    if is_text && !written.is_empty() {
        reply = reply.and(Content::text(format!("{cut}{written}")));
    }
    reply
}

fn why(finish: &Finish, program: &Program) -> String {
    let limits = &program.limits;
    match (finish.limit, finish.exit) {
        (Some(Limit::Time), _) => format!("ended: it took longer than {:?}", program.timeout),
        (Some(Limit::Output(stream)), _) => {
            let stream = match stream {
                Stream::Output => "standard output",
                Stream::Error => "standard error",
            };
            format!("ended: it wrote more than {} bytes to {stream}", program.max_output)
        }
        (Some(Limit::Cpu), _) => {
            let seconds = limits.cpu_seconds.unwrap_or_default();
            format!("ended: it used more than {seconds} s of processor time")
        }
        (Some(Limit::FileSize), _) => {
            let bytes = limits.file_size.unwrap_or_default();
            format!("ended: it wanted to write a file of more than {bytes} bytes")
        }
        (None, Some(Exit::Code(code))) => format!("exit code {code}"),
        (None, Some(Exit::Signal(signal))) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("ended by {name}"),
            None => format!("ended by signal {signal}"),
        },
        (None, None) => "it hangs in the kernel and could not be ended".to_owned(),
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
