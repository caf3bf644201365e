//! The arguments of one call, and how they become text.
//!
//! A value is taken as it was written: a string without its quotes and escapes, everything else
//! (`1.10`, `12345678901234567890`, `true`, an object) as its JSON text, byte for byte.
//!
//! A value can be refused, never altered: see [`RenderError`] for what a program cannot be given.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::value::RawValue;

use super::input::Input;
use super::template::{Argument, CommandLine, Piece, Stdin, TextTemplate, Unit};

/// The longest single argument, in bytes. It is Linux's own bound, its NUL left off.
/// A longer one is refused.
pub(super) const MAX_ARGUMENT: usize = 131_071;

/// The largest command line, in bytes, with what the system needs to hold it.
/// A larger one is refused. (Linux: a quarter of the stack, usually 2 MiB, shared with the
/// environment.)
pub(super) const MAX_COMMAND_LINE: usize = 1 << 20;

/// The longest standard input that a template makes. A longer one is refused.
pub(super) const MAX_STDIN: usize = 16 << 20;

/// What the system needs for one argument beside its bytes: a NUL and a pointer.
const PER_ARGUMENT: usize = 9;

/// The arguments of a call, with the defaults of those that were not given.
#[derive(Debug)]
pub struct Values<'a> {
    whole: &'a RawValue,
    given: BTreeMap<Cow<'a, str>, &'a RawValue>,
    defaults: &'a BTreeMap<String, Box<RawValue>>,
}

/// Why a program cannot be given these arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// Not a JSON object.
    #[error("the arguments are not a JSON object")]
    NotAnObject,
    /// An argument is needed and was not given.
    #[error("`{0}` is missing")]
    Missing(String),
    /// It would be taken for a flag.
    #[error("`{0}` may not begin with `-` here: the program would take it for an option")]
    Dash(String),
    /// It contains a NUL byte.
    #[error("`{0}` contains a NUL byte, which cannot be passed on")]
    Nul(String),
    /// A string with half of a surrogate pair.
    #[error("`{0}` is not text: it contains half of a surrogate pair")]
    NotText(String),
    /// Two lists in arguments that repeat together.
    #[error("`{0}` and `{1}` are lists; only one of them can repeat the same argument")]
    TwoLists(String, String),
    /// It is longer than one argument of a program can be.
    #[error("`{name}` makes an argument of {bytes} bytes; a program takes at most {MAX_ARGUMENT}")]
    ArgumentTooLong {
        /// The argument of the call.
        name: String,
        /// The length of what it became.
        bytes: usize,
    },
    /// All of it together is too long.
    #[error(
        "the arguments are too long together; a program takes at most {MAX_COMMAND_LINE} bytes"
    )]
    CommandLineTooLong,
    /// The text that they make is too long.
    #[error("the arguments are too long; the text that they make has at most {MAX_STDIN} bytes")]
    StdinTooLong,
}

impl<'a> Values<'a> {
    /// Reads the arguments of a call, which `input` describes. They are not checked against it.
    pub fn parse(arguments: &'a RawValue, input: &'a Input) -> Result<Self, RenderError> {
        // Strings with escapes cannot be borrowed; a `Cow` key takes either.
        let given: BTreeMap<Key<'a>, &'a RawValue> =
            serde_json::from_str(arguments.get()).map_err(|_| RenderError::NotAnObject)?;
        let given = given.into_iter().map(|(key, value)| (key.0, value)).collect();
        Ok(Self { whole: arguments, given, defaults: input.defaults() })
    }

    /// The arguments as they came, byte for byte, and then the defaults of those that did not.
    fn json(&self) -> Result<Vec<u8>, RenderError> {
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

    /// The value, unless it is absent: not given, or null, and without a default.
    fn value(&self, name: &str) -> Option<&RawValue> {
        let given = self.given.get(name).copied().filter(|value| value.get() != "null");
        given.or_else(|| self.defaults.get(name).map(|value| &**value))
    }
}

impl CommandLine {
    /// The arguments after the program's name.
    pub fn render(&self, values: &Values<'_>) -> Result<Vec<OsString>, RenderError> {
        let mut out = Arguments { list: Vec::new(), bytes: 0 };
        for unit in &self.units {
            self.render_unit(unit, values, &mut out)?;
        }
        Ok(out.list)
    }

    fn render_unit(
        &self,
        unit: &Unit,
        values: &Values<'_>,
        out: &mut Arguments,
    ) -> Result<(), RenderError> {
        let mut list: Option<(&str, Vec<&RawValue>)> = None;
        let pieces = unit.arguments.iter().flat_map(|argument| &argument.text);
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
            return self.render_once(unit, &|name| values.value(name), out);
        };
        for item in items {
            let value =
                |wanted: &str| if wanted == name { Some(item) } else { values.value(wanted) };
            self.render_once(unit, &value, out)?;
        }
        Ok(())
    }

    /// `value` gives every name that the unit uses: absent ones have been dealt with.
    fn render_once<'v>(
        &self,
        unit: &Unit,
        value: &dyn Fn(&str) -> Option<&'v RawValue>,
        out: &mut Arguments,
    ) -> Result<(), RenderError> {
        for argument in &unit.arguments {
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
            if let Some(name) = self.would_be_a_flag(argument, &rendered) {
                return Err(RenderError::Dash(name.to_owned()));
            }
            out.push(rendered)?;
        }
        Ok(())
    }

    /// Whether a value made this argument begin with `-`, or left what begins with it in front.
    fn would_be_a_flag<'t>(&self, argument: &'t Argument, rendered: &str) -> Option<&'t str> {
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
    /// What the program finds there. `None`: nothing.
    pub fn render(&self, values: &Values<'_>) -> Result<Option<Vec<u8>>, RenderError> {
        match self {
            Self::Empty => Ok(None),
            Self::Text(template) => Ok(Some(template.fill_in(values)?.into_bytes())),
            Self::Json => values.json().map(Some),
        }
    }
}

impl TextTemplate {
    /// The text with its values. An absent one is empty; the items of a list are lines.
    pub fn fill_in(&self, values: &Values<'_>) -> Result<String, RenderError> {
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

/// What has been rendered, within bounds.
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

/// The items, if it is a list.
fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    if !value.get().starts_with('[') {
        return None;
    }
    serde_json::from_str(value.get()).ok()
}

/// The value as the program gets it.
fn text<'v>(name: &str, value: &'v RawValue) -> Result<Cow<'v, str>, RenderError> {
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

/// A string that is borrowed from the JSON unless it has escapes.
#[derive(serde::Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests;
