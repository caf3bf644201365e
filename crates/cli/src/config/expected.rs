//! What a key of the file should have been: messages and hints for wrong keys and types.
//!
//! The examples are those of the file that `sabir init` writes.

use std::fmt;
use std::sync::LazyLock;

use sabir_sources::command::nearest;
use toml::de::DeValue;

use super::file::HTTP_REQUESTS;

/// The commented file of `sabir init`.
pub(crate) const TEMPLATE: &str = include_str!("sabir.toml");

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Text,
    Integer,
    Count,
    Number,
    Truth,
    List,
    Table,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "a string in quotes",
            Self::Integer => "a whole number",
            Self::Count => "a whole number, 0 or more",
            Self::Number => "a number",
            Self::Truth => "true or false",
            Self::List => "a list",
            Self::Table => "a table",
        })
    }
}

/// A key of the file, with the keys of the tables that contain it.
#[derive(Clone, Debug, Default)]
pub(super) struct Key<'a> {
    path: Vec<&'a str>,
    /// Whether the first table is one of several: `[[command]]`.
    is_item: bool,
}

impl<'a> Key<'a> {
    /// A key of the table with this key.
    pub(super) fn then(&self, name: &'a str) -> Self {
        let mut key = self.clone();
        key.path.push(name);
        key
    }

    /// The key of an item of this list.
    pub(super) fn item(&self) -> Self {
        Self { is_item: self.is_item || self.path.len() == 1, ..self.clone() }
    }

    /// Whether it is `http`, the one key that is a table and a list of tables.
    pub(super) fn is_http(&self) -> bool {
        self.path == ["http"]
    }

    /// A value of another type: what is wrong, and a hint.
    pub(super) fn mismatch(
        &self,
        written: &str,
        value: &DeValue<'_>,
        expected: Expected,
    ) -> (String, String) {
        let name = self.path.last().copied().unwrap_or_default();
        match (value, expected, &self.path[..]) {
            (DeValue::Table(_), Expected::List, [_]) => {
                let what = format!("`[{name}]` in single brackets (expected `[[{name}]]`)");
                return (what, format!("write `[[{name}]]` above each of them"));
            }
            (DeValue::Array(_), Expected::Table, [_]) if !self.is_item => {
                let what = format!("`[[{name}]]` in double brackets (expected `[{name}]`)");
                return (what, format!("there is only one: write `[{name}]`"));
            }
            _ => {}
        }
        let found = match value {
            DeValue::Table(_) => "a table",
            DeValue::Array(_) => "a list",
            _ => written,
        };
        let what = format!("invalid value {found} of `{name}` (expected {expected})");
        (what, format!("write e.g. `{}`", self.correct(value, expected)))
    }

    /// A key that must be there.
    pub(super) fn missing(&self, field: &'static str) -> (String, String) {
        let what = format!("{}: `{field}` is missing", self.section());
        let correct = self.then(field).example();
        (what, format!("add e.g. `{}`", correct.unwrap_or_else(|| format!("{field} = \"…\""))))
    }

    /// A key that is not known in this table.
    pub(super) fn unknown(&self, found: &str, known: &[&str]) -> (String, String) {
        if self.path.is_empty() {
            let what = format!("unknown section or key `{found}`");
            let known: Vec<_> = known.iter().copied().filter(|one| *one != HTTP_REQUESTS).collect();
            let other_word = OTHER_SECTIONS.iter().find(|(word, _)| *word == found);
            let near = other_word.map(|(_, section)| (*section).to_owned());
            let near = near.or_else(|| nearest(found, known.iter().copied()));
            let hint = match (near, home(found)) {
                (Some(near), _) => format!("did you mean {}?", header(&near)),
                (None, Some(home)) => format!("`{found}` is a key of {home}"),
                (None, None) if known.len() > MAX_KEYS => {
                    "`sabir init` writes a file with all sections".to_owned()
                }
                (None, None) => format!("the sections are {}", known.join(", ")),
            };
            return (what, hint);
        }
        let what = format!("{}: unknown key `{found}`", self.section());
        if self.is_http() && !self.is_item && matches!(found, "name" | "url" | "method") {
            return (what, "a request as a tool begins with `[[http]]`".to_owned());
        }
        let other_word =
            OTHER_WORDS.iter().find(|(word, key)| *word == found && known.contains(key));
        let near = other_word.map(|(_, key)| (*key).to_owned());
        let near = near.or_else(|| nearest(found, known.iter().copied()));
        let hint = match (near, home(found)) {
            (Some(near), _) => {
                let example = self.then(&near).example();
                let example = example.map(|example| format!(" Write e.g. `{example}`"));
                format!("did you mean `{near}`?{}", example.unwrap_or_default())
            }
            (None, Some(home)) if known.len() > MAX_KEYS => {
                format!("`{found}` is a key of {home}")
            }
            (None, Some(home)) => {
                let known = known.join(", ");
                format!("`{found}` is a key of {home}; the keys here are {known}")
            }
            (None, None) => format!("the keys are {}", known.join(", ")),
        };
        (what, hint)
    }

    /// A choice that is not known.
    pub(super) fn unknown_value(&self, found: &str, known: &[&str]) -> (String, String) {
        let name = self.path.last().copied().unwrap_or_default();
        let what = format!(
            "invalid value \"{found}\" of `{name}` (expected \"{}\")",
            known.join("\" or \"")
        );
        let near = nearest(found, known.iter().copied()).or(known.first().map(ToString::to_string));
        (what, format!("write e.g. `{name} = \"{}\"`", near.unwrap_or_default()))
    }

    /// The table with this key, as it is written in the file.
    fn section(&self) -> String {
        match (&self.path[..], self.is_item) {
            ([one], false) => format!("[{one}]"),
            ([one], true) => format!("[[{one}]]"),
            (path, _) => format!("`{}`", path.join(".")),
        }
    }

    /// A correct line for this key.
    fn correct(&self, value: &DeValue<'_>, expected: Expected) -> String {
        let name = self.path.last().copied().unwrap_or_default();
        if let (DeValue::String(text), Expected::List) = (value, expected)
            && name != "messages"
        {
            let words: Vec<_> = match name {
                "run" => text.split_whitespace().collect(),
                _ => vec![&**text],
            };
            return format!("{name} = {words:?}");
        }
        self.example().unwrap_or_else(|| match expected {
            Expected::Text => format!("{name} = \"…\""),
            Expected::Integer | Expected::Count | Expected::Number => format!("{name} = 1"),
            Expected::Truth => format!("{name} = true"),
            Expected::List => format!("{name} = [\"…\"]"),
            Expected::Table => format!("{name} = {{ … }}"),
        })
    }

    /// The line of the template for this key.
    fn example(&self) -> Option<String> {
        let [section @ .., name] = &self.path[..] else { return None };
        let section = match (section, self.is_item) {
            // The other name of `[[request]]`.
            (["http"], true) => "request".to_owned(),
            _ => section.join("."),
        };
        if section == "clients" {
            return Some(format!("{name} = \"280s\""));
        }
        let mut lines = EXAMPLES.iter().filter(|line| line.section == section);
        let line = lines.find(|line| line.key == *name).map(|line| line.text.to_owned());
        line.or_else(|| {
            let more = MORE_EXAMPLES.iter();
            let mut more = more.filter(|(home, line)| *home == section && line.starts_with(*name));
            more.next().map(|(_, line)| (*line).to_owned())
        })
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path.join("."))
    }
}

/// How many sections are named in a hint, or keys beside the section that a key belongs to.
const MAX_KEYS: usize = 12;

/// Lines for keys that are not in the template.
const MORE_EXAMPLES: [(&str, &str); 13] = [
    ("articles", "max_chars = 24000"),
    ("articles", "weight = [{ path = \"blog\", factor = 0.7 }]"),
    ("articles.weight", "path = \"blog\""),
    ("articles.weight", "factor = 0.7"),
    ("articles.embeddings", "url = \"http://localhost:11434/v1\""),
    ("articles.embeddings", "model = \"nomic-embed-text\""),
    ("request", "headers = { Accept = \"application/json\" }"),
    ("request", "output = \"json\""),
    ("command.limits", "memory = \"512MB\""),
    ("command.limits", "cpu_time = \"10s\""),
    ("command.limits", "file_size = \"10MB\""),
    ("command", "env = { API_KEY = true }"),
    ("prompt", "messages = [{ text = \"Explain {topic}\" }]"),
];

/// Sections of other tools, which people may write here.
const OTHER_SECTIONS: [(&str, &str); 8] = [
    ("tool", "command"),
    ("tools", "command"),
    ("folder", "articles"),
    ("folders", "articles"),
    ("docs", "articles"),
    ("mcpServers", "upstream"),
    ("mcp", "upstream"),
    ("servers", "upstream"),
];

/// Keys of other tools, which people may write here.
const OTHER_WORDS: [(&str, &str); 18] = [
    ("cmd", "run"),
    ("command", "run"),
    ("args", "run"),
    ("exec", "run"),
    ("arguments", "input"),
    ("params", "input"),
    ("inputs", "input"),
    ("directory", "cwd"),
    ("workdir", "cwd"),
    ("working_directory", "cwd"),
    ("help", "description"),
    ("spec", "path"),
    ("file", "path"),
    ("folder", "path"),
    ("directory", "path"),
    ("server", "run"),
    ("port", "http"),
    ("address", "http"),
];

/// A line of the template: `key = value`, commented out or not.
struct Example {
    section: &'static str,
    header: &'static str,
    key: &'static str,
    text: &'static str,
}

static EXAMPLES: LazyLock<Vec<Example>> = LazyLock::new(|| {
    let (mut section, mut header) = ("", "");
    let mut examples = Vec::new();
    for line in TEMPLATE.lines() {
        let line = line.strip_prefix("# ").unwrap_or(line);
        if line.starts_with('[') {
            header = line;
            section = line.trim_matches(['[', ']']);
        } else if let Some((key, _)) = line.split_once(" = ")
            && !key.contains([' ', '`'])
        {
            let text = line.split("  #").next().unwrap_or(line).trim_end();
            examples.push(Example { section, header, key, text });
        }
    }
    examples
});

/// The header of a section of the template.
fn header(section: &str) -> String {
    let known = EXAMPLES.iter().find(|line| line.section == section);
    known.map_or(format!("`{section}`"), |line| format!("`{}`", line.header))
}

/// The section of the template that has this key, if there is one only.
fn home(key: &str) -> Option<&'static str> {
    let mut homes: Vec<_> =
        EXAMPLES.iter().filter(|line| line.key == key).map(|line| line.header).collect();
    homes.dedup();
    match homes[..] {
        [home] => Some(home),
        _ => None,
    }
}
