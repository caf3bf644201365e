//! The result of a tool from the output of its program.
//!
//! A success is the program's standard output in the defined form. A failure is text for the model:
//! the end of standard error, the reason, and the end of standard output.

use sabir_supervisor::Exit;
use sabir_wire::Raw;
use sabir_wire::types::{Content, ResourceContents, ToolReply};
use serde_json::Value;

use super::capture::Stream;
use super::program::Program;
use super::run::{Finish, Limit};

/// The form of a command's result.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Text.
    Text,
    /// Text, and every line is also sent as progress while the program runs.
    Lines,
    /// A JSON value as structured content, and its schema.
    Json(Option<Value>),
    /// Bytes of this media type: an image, audio, or a resource.
    Bytes(MimeType),
}

/// A media type such as `image/png`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MimeType(String);

/// An invalid media type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid media type `{0}` (expected e.g. \"image/png\")")]
pub struct BadMimeType(pub String);

impl MimeType {
    /// The media type as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for MimeType {
    type Error = BadMimeType;

    /// Two names separated by a slash, and optional parameters: `text/csv; charset=utf-8`.
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

/// The number of bytes from the end of standard output that are part of a failure.
const OUTPUT_TAIL: usize = 8 << 10;

/// The result of the tool `name`.
pub(super) fn reply(name: &str, output: &Output, program: &Program, finish: Finish) -> ToolReply {
    if !finish.success {
        return failure(&reason(&finish, program), &finish);
    }
    match output {
        Output::Text | Output::Lines => ToolReply::text(without_last_line_end(finish.stdout)),
        Output::Json(_) => structured(&finish),
        Output::Bytes(mime) => {
            ToolReply::default().and(content(name, mime.as_str(), finish.stdout))
        }
    }
}

/// Removes the line end of the last line.
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
        Err(error) => failure(&format!("the output is not JSON: {error}"), finish),
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

/// A failure, with the reason in parentheses.
fn failure(reason: &str, finish: &Finish) -> ToolReply {
    let stderr = lossy(finish.stderr.clone());
    let cut = if finish.stderr_cut > 0 { "… " } else { "" };
    let mut reply = ToolReply::failed(match stderr.trim() {
        "" => format!("The program failed: {reason}"),
        stderr => format!("{cut}{stderr}\n({reason})"),
    });
    let start = finish.stdout.len().saturating_sub(OUTPUT_TAIL);
    let cut = if start > 0 { "… " } else { "" };
    // Binary output is of no use to a model. A character that was cut by a limit is still text.
    let is_text = std::str::from_utf8(&finish.stdout).map_err(|error| error.error_len());
    let is_text = matches!(is_text, Ok(_) | Err(None));
    let written = lossy(finish.stdout[start..].to_vec());
    let written = written.trim_matches(char::REPLACEMENT_CHARACTER).trim();
    if is_text && !written.is_empty() {
        reply = reply.and(Content::text(format!("{cut}{written}")));
    }
    reply
}

fn reason(finish: &Finish, program: &Program) -> String {
    let limits = &program.limits;
    match (finish.limit, finish.exit) {
        (Some(Limit::Time), _) => format!("stopped: it ran longer than {:?}", program.timeout),
        (Some(Limit::Output(stream)), _) => {
            let stream = match stream {
                Stream::Output => "standard output",
                Stream::Error => "standard error",
            };
            format!("stopped: it wrote more than {} bytes to {stream}", program.max_output)
        }
        (Some(Limit::Cpu), _) => {
            let seconds = limits.cpu_seconds.unwrap_or_default();
            format!("stopped: it used more than {seconds} s of CPU time")
        }
        (Some(Limit::FileSize), _) => {
            let bytes = limits.file_size.unwrap_or_default();
            format!("stopped: it wrote a file of more than {bytes} bytes")
        }
        (None, Some(Exit::Code(code))) => format!("exit code {code}"),
        (None, Some(Exit::Signal(signal))) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        (None, None) => "it is blocked in the kernel and cannot be stopped".to_owned(),
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
