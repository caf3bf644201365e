//! The values of one call, and how they are rendered as text.
//!
//! A string is rendered without quotes and escapes, everything else (`1.10`,
//! `12345678901234567890`, `true`, an object) as its JSON text, byte for byte.
//!
//! A value may be refused but is never changed; see [`RenderError`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::value::RawValue;

use super::duplicate::duplicate_key;
use super::input::Input;
use super::template::{Argument, CommandLine, Group, Piece, Stdin, TextTemplate};

/// The longest argument in bytes: the limit of Linux, without the NUL. A longer one is refused.
pub(super) const MAX_ARGUMENT: usize = 131_071;

/// The largest command line in bytes, including the overhead of the system. A larger one is refused.
/// (Linux allows a quarter of the stack, usually 2 MiB, shared with the environment.)
pub(super) const MAX_COMMAND_LINE: usize = 1 << 20;

/// The longest standard input in bytes. A longer one is refused.
pub(super) const MAX_STDIN: usize = 16 << 20;

/// The overhead of the system for one argument: a NUL and a pointer.
const PER_ARGUMENT: usize = 9;

/// The values of a call, and the defaults of absent arguments.
#[derive(Debug)]
pub struct Values<'a> {
    whole: &'a RawValue,
    given: BTreeMap<Cow<'a, str>, &'a RawValue>,
    defaults: &'a BTreeMap<String, Box<RawValue>>,
}

/// Why values cannot be passed to a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// Not a JSON object.
    #[error("the arguments are not a JSON object")]
    NotAnObject,
    /// An object has two members of the same name, of which only one was checked.
    #[error("duplicate key `{0}` in the arguments")]
    Duplicate(String),
    /// A required argument is absent.
    #[error("`{0}` is missing")]
    Missing(String),
    /// The program would mistake the value for a flag.
    #[error("`{0}` must not start with `-`: the program would mistake it for an option")]
    Dash(String),
    /// The value contains a NUL byte.
    #[error("`{0}` contains a NUL byte, which cannot be passed to a program")]
    Nul(String),
    /// The string contains an unpaired surrogate.
    #[error("`{0}` contains an unpaired surrogate")]
    NotText(String),
    /// The file is not Base64.
    #[error("`{0}` is not a file in Base64 (expected Base64 or a `data:` URI)")]
    NotBase64(String),
    /// The folder does not exist, or is not in the root.
    #[error("there is no folder `{0}`")]
    OutsideFolder(String),
    /// No temporary folder can be made.
    #[error("cannot make a temporary folder: {0}")]
    NoFolder(String),
    /// Two lists in one group of arguments.
    #[error("`{0}` and `{1}` are both lists (expected one list per argument or group)")]
    TwoLists(String, String),
    /// A rendered argument is too long.
    #[error("`{name}` is too long: an argument of {bytes} bytes (limit {MAX_ARGUMENT})")]
    ArgumentTooLong {
        /// The argument.
        name: String,
        /// The length of the rendered argument.
        bytes: usize,
    },
    /// The command line is too long.
    #[error("the command line is too long (limit {MAX_COMMAND_LINE} bytes)")]
    CommandLineTooLong,
    /// The standard input or the text is too long.
    #[error("the rendered text is too long (limit {MAX_STDIN} bytes)")]
    StdinTooLong,
}

impl RenderError {
    pub(super) fn no_folder(error: std::io::Error) -> Self {
        Self::NoFolder(error.to_string())
    }
}

impl<'a> Values<'a> {
    /// Reads the arguments of a call. They are not checked against `input`.
    pub fn parse(arguments: &'a RawValue, input: &'a Input) -> Result<Self, RenderError> {
        let given: BTreeMap<Key<'a>, &'a RawValue> =
            serde_json::from_str(arguments.get()).map_err(|_| RenderError::NotAnObject)?;
        if let Some(key) = duplicate_key(arguments.get()) {
            return Err(RenderError::Duplicate(key));
        }
        let given = given.into_iter().map(|(key, value)| (key.0, value)).collect();
        Ok(Self { whole: arguments, given, defaults: input.defaults() })
    }

    /// The arguments, byte for byte, followed by the defaults of absent ones.
    pub(crate) fn json(&self) -> Result<Vec<u8>, RenderError> {
        let mut json = self.whole.get().to_owned();
        for (name, default) in self.defaults {
            if !self.given.contains_key(&**name) {
                json.pop(); // the closing brace: a raw value has nothing after it
                let comma = if json.trim_end().ends_with('{') { "" } else { "," };
                json += &format!("{comma}{}:{}}}", serde_json::Value::from(&**name), default.get());
            }
        }
        if json.len() > MAX_STDIN {
            return Err(RenderError::StdinTooLong);
        }
        Ok(json.into_bytes())
    }

    /// The value or its default. A value of null counts as absent.
    pub(crate) fn value(&self, name: &str) -> Option<&RawValue> {
        let given = self.given.get(name).copied().filter(|value| value.get() != "null");
        given.or_else(|| self.defaults.get(name).map(|value| &**value))
    }
}

impl CommandLine {
    /// Renders the arguments after the program's name.
    pub fn render(&self, values: &Values<'_>) -> Result<Vec<OsString>, RenderError> {
        let mut out = Arguments { list: Vec::new(), bytes: 0 };
        for group in &self.groups {
            self.render_group(group, values, &mut out)?;
        }
        Ok(out.list)
    }

    fn render_group(
        &self,
        group: &Group,
        values: &Values<'_>,
        out: &mut Arguments,
    ) -> Result<(), RenderError> {
        let mut list: Option<(&str, Vec<&RawValue>)> = None;
        let pieces = group.arguments.iter().flat_map(|argument| &argument.text);
        for piece in pieces {
            match piece {
                Piece::Literal(_) => {}
                Piece::Switch { name, .. } => {
                    if values.value(name).is_none_or(|value| value.get() != "true") {
                        return Ok(());
                    }
                }
                Piece::Value { name, optional } => match (values.value(name), optional) {
                    (None, true) => return Ok(()),
                    (None, false) => return Err(RenderError::Missing(name.clone())),
                    (Some(value), _) => match (items(value), &list) {
                        (None, _) => {}
                        (Some(items), None) => list = Some((name, items)),
                        (Some(_), Some((other, _))) if other == name => {}
                        (Some(_), Some((other, _))) => {
                            let both = ((*other).to_owned(), name.clone());
                            return Err(RenderError::TwoLists(both.0, both.1));
                        }
                    },
                },
            }
        }
        let Some((name, items)) = list else {
            return self.render_once(group, &|name| values.value(name), out);
        };
        for item in items {
            let value =
                |wanted: &str| if wanted == name { Some(item) } else { values.value(wanted) };
            self.render_once(group, &value, out)?;
        }
        Ok(())
    }

    /// Renders a group with values for all its names.
    fn render_once<'v>(
        &self,
        group: &Group,
        value: &dyn Fn(&str) -> Option<&'v RawValue>,
        out: &mut Arguments,
    ) -> Result<(), RenderError> {
        for argument in &group.arguments {
            let mut rendered = String::new();
            let mut last = "";
            for piece in &argument.text {
                match piece {
                    Piece::Literal(text) | Piece::Switch { text, .. } => rendered.push_str(text),
                    Piece::Value { name, .. } => {
                        let raw = value(name).ok_or_else(|| RenderError::Missing(name.clone()))?;
                        rendered.push_str(&text(name, raw)?);
                        last = name;
                    }
                }
                if rendered.len() > MAX_ARGUMENT {
                    let (name, bytes) = (last.to_owned(), rendered.len());
                    return Err(RenderError::ArgumentTooLong { name, bytes });
                }
            }
            if let Some(name) = self.mistaken_for_flag(argument, &rendered) {
                return Err(RenderError::Dash(name.to_owned()));
            }
            out.push(rendered)?;
        }
        Ok(())
    }

    /// The argument whose value makes the rendered text start with `-`.
    fn mistaken_for_flag<'t>(&self, argument: &'t Argument, rendered: &str) -> Option<&'t str> {
        match argument.text.first() {
            Some(Piece::Value { name, .. })
                if rendered.starts_with('-')
                    && !argument.after_dashes
                    && !self.allow_dash.contains(name) =>
            {
                Some(name)
            }
            _ => None,
        }
    }
}

impl Stdin {
    /// Renders the standard input. `None` if it is empty.
    pub fn render(&self, values: &Values<'_>) -> Result<Option<Vec<u8>>, RenderError> {
        match self {
            Self::Empty => Ok(None),
            Self::Text(template) => Ok(Some(template.render(values)?.into_bytes())),
            Self::Json => values.json().map(Some),
        }
    }
}

impl TextTemplate {
    /// Renders the text. An absent value is empty; the items of a list are lines.
    pub fn render(&self, values: &Values<'_>) -> Result<String, RenderError> {
        let mut out = String::new();
        for piece in &self.text {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Switch { name, text } => {
                    if values.value(name).is_some_and(|value| value.get() == "true") {
                        out.push_str(text);
                    }
                }
                Piece::Value { name, optional } => match (values.value(name), optional) {
                    (None, true) => {}
                    (None, false) => return Err(RenderError::Missing(name.clone())),
                    (Some(value), _) => match items(value) {
                        None => out.push_str(&text(name, value)?),
                        Some(items) => {
                            let lines: Result<Vec<_>, _> =
                                items.into_iter().map(|item| text(name, item)).collect();
                            out.push_str(&lines?.join("\n"));
                        }
                    },
                },
            }
            if out.len() > MAX_STDIN {
                return Err(RenderError::StdinTooLong);
            }
        }
        Ok(out)
    }
}

/// The rendered arguments.
struct Arguments {
    list: Vec<OsString>,
    bytes: usize,
}

impl Arguments {
    fn push(&mut self, argument: String) -> Result<(), RenderError> {
        self.bytes += argument.len() + PER_ARGUMENT;
        if self.bytes > MAX_COMMAND_LINE {
            return Err(RenderError::CommandLineTooLong);
        }
        self.list.push(argument.into());
        Ok(())
    }
}

/// The items, if the value is a list.
pub(crate) fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    if !value.get().starts_with('[') {
        return None;
    }
    serde_json::from_str(value.get()).ok()
}

/// The text of a value.
pub(crate) fn text<'v>(name: &str, value: &'v RawValue) -> Result<Cow<'v, str>, RenderError> {
    let json = value.get();
    let text = if json.starts_with('"') {
        serde_json::from_str::<Key<'v>>(json).map_err(|_| RenderError::NotText(name.to_owned()))?.0
    } else {
        Cow::Borrowed(json)
    };
    if text.contains('\0') {
        return Err(RenderError::Nul(name.to_owned()));
    }
    Ok(text)
}

/// A string that borrows from the JSON text unless it has escapes.
#[derive(serde::Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests;
