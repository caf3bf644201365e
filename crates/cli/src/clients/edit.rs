//! Adding and removing an entry in the text of a client's file, in any format.

use std::fmt;

use serde_json::{Map, Value};

use super::{Client, Format, Server, json, toml, yaml};

/// Why a text cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditError(pub(super) String);

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The byte order mark that editors on Windows write.
const BOM: &str = "\u{feff}";

impl Client {
    /// The servers in a text.
    pub(crate) fn servers(self, text: &str) -> Result<Vec<Server>, EditError> {
        Ok(Server::all(&self.parsed(text)?[self.key()]))
    }

    /// The whole text, as JSON.
    pub(crate) fn parsed(self, text: &str) -> Result<Value, EditError> {
        let (_, text) = split_bom(text);
        match self.format() {
            _ if text.trim().is_empty() => Ok(Value::Null),
            Format::Json => json::parsed(text),
            Format::Toml => toml::parsed(text),
            Format::Yaml => yaml::parsed(text),
        }
    }

    /// Whether two texts mean the same. A table of servers without any means nothing.
    pub(super) fn is_same(self, one: &str, other: &str) -> bool {
        let meaning = |text: &str| {
            let mut whole = self.parsed(text).ok()?;
            if let Some(members) = whole.as_object_mut()
                && members.get(self.key()).is_some_and(|servers| {
                    servers.is_null() || servers.as_object().is_some_and(Map::is_empty)
                })
            {
                members.shift_remove(self.key());
            }
            Some(whole)
        };
        meaning(one).is_some_and(|one| Some(one) == meaning(other))
    }

    /// The text with an entry, which replaces one of the same name.
    pub(crate) fn with(self, text: &str, name: &str, value: &Value) -> Result<String, EditError> {
        let (bom, text) = split_bom(text);
        let text = match self.format() {
            Format::Json => json::with(text, self.key(), name, value),
            Format::Toml => toml::with(text, self.key(), name, value),
            Format::Yaml => yaml::with(text, self.key(), name, value),
        }?;
        Ok(format!("{bom}{text}"))
    }

    /// The text without an entry.
    pub(crate) fn without(self, text: &str, server: &Server) -> Result<String, EditError> {
        let (bom, text) = split_bom(text);
        let name = &server.name;
        let text = match (self.format(), &server.folder) {
            (Format::Json, Some(folder)) => {
                json::without(text, &["projects", folder, "mcpServers"], name)
            }
            (Format::Json, None) => json::without(text, &[self.key()], name),
            (Format::Toml, _) => toml::without(text, self.key(), name),
            (Format::Yaml, _) => yaml::without(text, self.key(), name),
        }?;
        Ok(format!("{bom}{text}"))
    }
}

fn split_bom(text: &str) -> (&str, &str) {
    match text.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", text),
    }
}

/// The line end of a text.
pub(super) fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests;
