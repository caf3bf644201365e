//! The result of a call, for people or as JSON.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sabir_wire::types::{Content, ContentKind, ResourceBody, ToolReply};
use sabir_wire::{Revision, WriteJson as _};

use crate::report::Failure;

/// The whole result as JSON of the newest revision.
pub(super) fn json(reply: &ToolReply) -> String {
    reply.to_raw(Revision::NEWEST).text().to_owned()
}

/// The text of the result. Pictures, sounds and other files are written into `folder`.
pub(super) fn text(tool: &str, reply: &ToolReply, folder: &Path) -> Result<String, Failure> {
    let mut files = Files { tool, folder };
    let mut parts = Vec::new();
    for content in &reply.content {
        parts.push(block(content, &mut files)?);
    }
    if let (true, Some(structured)) = (parts.is_empty(), &reply.structured) {
        let value: serde_json::Value = structured.read().unwrap_or_default();
        parts.push(format!("{value:#}"));
    }
    Ok(parts.join("\n"))
}

fn block(content: &Content, files: &mut Files<'_>) -> Result<String, Failure> {
    Ok(match &content.kind {
        ContentKind::Text(text) => text.clone(),
        ContentKind::Image { data, mime_type } | ContentKind::Audio { data, mime_type } => {
            files.write(data, mime_type)?
        }
        ContentKind::Link(resource) => format!("{} ({})", resource.uri, resource.name),
        ContentKind::Resource(contents) => match &contents.body {
            ResourceBody::Text(text) => text.clone(),
            ResourceBody::Blob(data) => {
                files.write(data, contents.mime_type.as_deref().unwrap_or_default())?
            }
        },
        ContentKind::Other(json) => json.text().to_owned(),
    })
}

/// Where files go: `TOOL-1.png` and so on. None is overwritten.
struct Files<'a> {
    tool: &'a str,
    folder: &'a Path,
}

impl Files<'_> {
    fn write(&mut self, data: &str, mime_type: &str) -> Result<String, Failure> {
        let bytes = BASE64_STANDARD.decode(data);
        let bytes = bytes.map_err(|error| Failure::new(format!("invalid Base64: {error}")))?;
        let failed = |path: &Path, error: &io::Error| {
            Failure::new(format!("cannot write {}: {error}", path.display()))
        };
        for nth in 1..10_000 {
            let path = self.path(nth, mime_type);
            match std::fs::File::create_new(&path) {
                Ok(mut file) => {
                    file.write_all(&bytes).map_err(|error| failed(&path, &error))?;
                    return Ok(format!("{mime_type} written to {}", path.display()));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, &error)),
            }
        }
        Err(Failure::new("too many files of this tool in this folder (limit 9999)"))
    }

    fn path(&self, nth: usize, mime_type: &str) -> PathBuf {
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let tool: String = self.tool.chars().map(|c| if safe(c) { c } else { '_' }).collect();
        let subtype = mime_type.split(['/', ';']).nth(1).unwrap_or_default();
        let subtype: String =
            subtype.split('+').next().unwrap_or_default().chars().take(16).collect();
        let extension = match subtype.as_str() {
            "jpeg" => "jpg",
            "mpeg" => "mp3",
            "plain" => "txt",
            known if !known.is_empty() && known.chars().all(safe) => known,
            _ => "bin",
        };
        let extension = if extension == "octet-stream" { "bin" } else { extension };
        self.folder.join(format!("{tool}-{nth}.{extension}"))
    }
}
