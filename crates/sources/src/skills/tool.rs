//! The tool that reads skills, for clients that know tools only.

use std::fmt::Write as _;

use percent_encoding::percent_decode_str;
use sabir_wire::types::{Content, ContentKind, ResourceContents, SkillFiles};
use sabir_wire::types::{Tool, ToolAnnotations, ToolReply};
use sabir_wire::{Problem, Raw};
use serde::Deserialize;

use super::folder::{File, Loaded, Snapshot};

const INPUT: &str = r#"{"type":"object","properties":{"skill":{"type":"string","description":"The name of the skill; without it all skills are listed"},"file":{"type":"string","description":"The path of one of its files; without it the instructions are read"}},"additionalProperties":false}"#;

/// The limit of the description in bytes: every model that may call the tool reads it. A call
/// without arguments lists all skills.
const LONGEST_DESCRIPTION: usize = 8 << 10;

#[derive(Deserialize)]
struct Arguments {
    skill: Option<String>,
    file: Option<String>,
}

/// The tool. Its description says when to use which skill.
pub(super) fn describe(name: &str, snapshot: &Snapshot) -> Tool {
    let mut description =
        "Reads a skill: instructions for a kind of work, and files that belong to \
                           them. Read a skill that fits before you begin to work."
            .to_owned();
    for (nth, skill) in snapshot.skills.iter().enumerate() {
        let line = line_of(skill);
        if description.len() + line.len() > LONGEST_DESCRIPTION {
            let left = snapshot.skills.len() - nth;
            let _ = write!(description, "\n\n{left} more are listed by a call without arguments.");
            break;
        }
        description += if nth == 0 { "\n\n" } else { "\n" };
        description += &line;
    }
    let input = Raw::parse(INPUT).unwrap_or_else(|_| Raw::empty_object());
    let annotations = ToolAnnotations { read_only_hint: Some(true), ..ToolAnnotations::default() };
    Tool { annotations: Some(annotations), ..Tool::new(name, description, input) }
}

/// Answers a call.
pub(super) fn read(snapshot: &Snapshot, arguments: &Raw) -> Result<ToolReply, Problem> {
    let misfit = |error: serde_json::Error| Problem::Arguments(error.to_string().into());
    let Arguments { skill, file } = arguments.read().map_err(misfit)?;
    let Some(name) = skill else {
        if file.is_some() {
            return Err(Problem::Arguments("`file` without `skill`".into()));
        }
        let lines: Vec<_> = snapshot.skills.iter().map(line_of).collect();
        return Ok(ToolReply::text(lines.join("\n")));
    };
    let skill = snapshot.skills.iter().find(|skill| skill.name == name);
    let unknown = || Problem::ToolFailed(format!("there is no skill `{name}`").into());
    let skill = skill.ok_or_else(unknown)?;
    let paths = paths_of(skill);
    let Some(wanted) = file else {
        let mut text = skill.body.clone();
        let others: Vec<_> = paths.iter().filter(|(path, _)| path != "SKILL.md").collect();
        if !others.is_empty() {
            text += "\n\nFiles of this skill, which are read with `file`:";
            others.iter().for_each(|(path, _)| text.extend(["\n- ", path.as_str()]));
        }
        return Ok(ToolReply::text(text));
    };
    let found = paths.into_iter().find(|(path, _)| *path == wanted);
    let found = found.and_then(|(_, uri)| Some((uri, snapshot.files.get(uri)?)));
    let unknown = || Problem::ToolFailed(format!("skill `{name}` has no file `{wanted}`").into());
    let (uri, File { mime_type, bytes, .. }) = found.ok_or_else(unknown)?;
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => ToolReply::text(text),
        Err(_) if mime_type.starts_with("image/") => {
            ToolReply::default().and(Content::image(bytes, mime_type))
        }
        Err(_) => {
            let blob = ResourceContents::blob(uri, mime_type.clone(), bytes);
            ToolReply::default().and(ContentKind::Resource(blob).into())
        }
    })
}

fn line_of(skill: &Loaded) -> String {
    format!("- {}: {}", skill.name, skill.description)
}

/// The files of a skill: their paths in its folder, and their URIs.
fn paths_of(skill: &Loaded) -> Vec<(String, &str)> {
    let SkillFiles::Listed(files) = &skill.entry.files else { return Vec::new() };
    let uris = files.iter().map(|file| file.uri.as_str());
    let path = |uri: &str| {
        let rest = uri.strip_prefix(&*skill.folder)?.strip_prefix('/')?;
        Some(percent_decode_str(rest).decode_utf8_lossy().into_owned())
    };
    uris.filter_map(|uri| Some((path(uri)?, uri))).collect()
}
