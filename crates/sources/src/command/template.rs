//! Texts with placeholders, parsed once.
//!
//! `{name}` is the value of an argument, `{name?}` the value of an optional argument, and
//! `{name?--text}` is the text `--text` if the argument is `true`. `{{` and `}}` are literal braces.
//!
//! A command line is a list of *groups* of arguments. A group is left out if an optional value in
//! it is absent, and repeated for every item of a list. A group is one argument, or a flag and the
//! placeholder after it (`"--limit", "{limit?}"`), or an inner list (`["-e", "{pattern}", "-i"]`).
//!
//! `values` renders the texts, and `input` checks that the arguments exist.

use super::definition::{DefinitionError, Location, Place};

/// One entry of `run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunItem {
    /// One argument.
    Argument(String),
    /// Arguments that are left out and repeated together.
    Group(Vec<String>),
}

/// A program and its arguments, with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    pub(super) groups: Vec<Group>,
    pub(super) allow_dash: Vec<String>,
}

/// Arguments that are left out and repeated together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Not from an inner list: a placeholder may follow a flag.
    single: bool,
    pub(super) arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) text: Text,
    /// Whether it comes after `--`, so that no value can be mistaken for a flag.
    pub(super) after_dashes: bool,
    pub(super) place: Place,
}

/// A text with placeholders: a program's standard input, or a message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTemplate {
    pub(crate) text: Text,
    place: Place,
}

/// The standard input of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// A text with placeholders.
    Text(TextTemplate),
    /// The JSON arguments of the client, with the defaults of those that are absent.
    Json,
}

pub(crate) type Text = Vec<Piece>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    Value { name: String, optional: bool },
    Switch { name: String, text: String },
}

/// A placeholder, and the text that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use<'a> {
    pub(super) name: &'a str,
    pub(super) kind: UseKind,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UseKind {
    Required,
    Optional,
    Switch,
}

impl CommandLine {
    /// Parses `run`. The values of the arguments in `allow_dash` may start with `-`.
    pub fn parse(run: &[RunItem], allow_dash: &[String]) -> Result<Self, DefinitionError> {
        let program = parse_program(run)?;
        let mut groups: Vec<Group> = Vec::new();
        let mut after_dashes = false;
        let mut argument = |source: &String, place| {
            let text = parse_argument(source, place)?;
            let argument = Argument { text, after_dashes, place };
            after_dashes |= matches!(&argument.text[..], [Piece::Literal(text)] if text == "--");
            Ok(argument)
        };
        for (index, item) in run.iter().enumerate().skip(1) {
            let place = Place::Run(index, None);
            match item {
                RunItem::Argument(source) => {
                    let argument = argument(source, place)?;
                    let is_value = matches!(argument.text[..], [Piece::Value { .. }]);
                    match groups.last_mut() {
                        Some(flag) if is_value && flag.is_flag() => flag.arguments.push(argument),
                        _ => groups.push(Group { single: true, arguments: vec![argument] }),
                    }
                }
                RunItem::Group(list) if list.is_empty() => {
                    return Err(error(place, 1, "empty list"));
                }
                RunItem::Group(list) => {
                    let places = (0..).map(|inner| Place::Run(index, Some(inner)));
                    let arguments = list.iter().zip(places).map(|(s, p)| argument(s, p));
                    let arguments = arguments.collect::<Result<_, _>>()?;
                    groups.push(Group { single: false, arguments });
                }
            }
        }
        Ok(Self { program, groups, allow_dash: allow_dash.to_vec() })
    }

    /// The program, as written in the definition.
    pub fn program(&self) -> &str {
        &self.program
    }

    pub(super) fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        self.groups.iter().flat_map(Group::uses)
    }
}

impl Group {
    pub(super) fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        self.arguments.iter().flat_map(|argument| uses(&argument.text, argument.place))
    }

    /// Whether it is a single literal argument like `-l` or `--limit`.
    fn is_flag(&self) -> bool {
        let literal = match &self.arguments[..] {
            [Argument { text, .. }] if self.single => &text[..],
            _ => return false,
        };
        matches!(literal, [Piece::Literal(flag)]
            if flag.starts_with('-') && flag.chars().any(|c| c != '-'))
    }
}

impl Argument {
    /// The names of its values.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.text.iter().filter_map(|piece| match piece {
            Piece::Value { name, .. } => Some(name.as_str()),
            Piece::Literal(_) | Piece::Switch { .. } => None,
        })
    }
}

impl TextTemplate {
    /// Parses `stdin`.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        Self::parse_at(Place::Stdin, text)
    }

    /// Parses the text at `place`.
    pub fn parse_at(place: Place, text: &str) -> Result<Self, DefinitionError> {
        Ok(Self { text: parse_text(text, place)?, place })
    }

    pub(super) fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        uses(&self.text, self.place)
    }
}

fn uses(text: &Text, place: Place) -> impl Iterator<Item = Use<'_>> {
    text.iter().filter_map(move |piece| match piece {
        Piece::Literal(_) => None,
        Piece::Value { name, optional: false } => {
            Some(Use { name, kind: UseKind::Required, place })
        }
        Piece::Value { name, optional: true } => Some(Use { name, kind: UseKind::Optional, place }),
        Piece::Switch { name, .. } => Some(Use { name, kind: UseKind::Switch, place }),
    })
}

fn error(place: Place, character: usize, message: impl Into<String>) -> DefinitionError {
    DefinitionError::new(Location::Text(place, Some(character)), message)
}

fn parse_program(run: &[RunItem]) -> Result<String, DefinitionError> {
    let place = Place::Run(0, None);
    let program = match run.first() {
        Some(RunItem::Argument(program)) => parse_argument(program, place)?,
        Some(RunItem::Group(_)) | None => Text::new(),
    };
    match &program[..] {
        [Piece::Literal(program)] => Ok(program.clone()),
        [] => {
            let hint = "write e.g. `run = [\"du\", \"-h\", \"{path}\"]`";
            Err(error(place, 1, "missing program").hint(hint))
        }
        _ => Err(error(place, 1, "the program cannot contain placeholders")),
    }
}

/// Parses an argument: a text without NUL bytes, in which a switch has no other text beside it.
fn parse_argument(source: &str, place: Place) -> Result<Text, DefinitionError> {
    let text = parse_text(source, place)?;
    if let Some(at) = source.chars().position(|c| c == '\0') {
        return Err(error(place, at + 1, "a NUL byte cannot be passed to a program"));
    }
    let switch = text.iter().find_map(|piece| match piece {
        Piece::Switch { name, .. } => Some(name),
        _ => None,
    });
    match switch {
        Some(name) if text.len() > 1 => {
            Err(error(place, 1, format!("`{{{name}?…}}` must be the whole argument")))
        }
        _ => Ok(text),
    }
}

fn parse_text(source: &str, place: Place) -> Result<Text, DefinitionError> {
    let mut text = Text::new();
    let mut literal = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        literal.push_str(before);
        let character = source[..source.len() - brace.len()].chars().count() + 1;
        let error = |message: &str| error(place, character, message);
        if brace.starts_with("{{") || brace.starts_with("}}") {
            literal.push_str(&brace[..1]);
            rest = &brace[2..];
        } else if brace.starts_with('}') {
            return Err(error("unmatched `}`").hint("write `}}` for a literal brace"));
        } else {
            let end = brace[1..].find(['{', '}']).map(|end| end + 1);
            let Some(end) = end.filter(|end| brace[*end..].starts_with('}')) else {
                return Err(error("unclosed `{`").hint("write `{{` for a literal brace"));
            };
            if !literal.is_empty() {
                text.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            let placeholder = parse_placeholder(&brace[1..end]);
            let braces = "write `{{` and `}}` for literal braces";
            text.push(placeholder.map_err(|message| error(&message).hint(braces))?);
            rest = &brace[end + 1..];
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        text.push(Piece::Literal(literal));
    }
    Ok(text)
}

/// Parses the text between the braces.
fn parse_placeholder(inside: &str) -> Result<Piece, String> {
    let (name, after) = match inside.split_once('?') {
        Some((name, after)) => (name, Some(after)),
        None => (inside, None),
    };
    if name.is_empty() {
        return Err("placeholder without a name".to_owned());
    }
    if !is_argument_name(name) {
        return Err(format!("invalid argument name `{name}` ({NAME_CHARACTERS})"));
    }
    let name = name.to_owned();
    Ok(match after {
        None => Piece::Value { name, optional: false },
        Some("") => Piece::Value { name, optional: true },
        Some(text) => Piece::Switch { name, text: text.to_owned() },
    })
}

pub(super) const NAME_CHARACTERS: &str = "expected letters, digits, `_`, `-` or `.`";

pub(super) fn is_argument_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}

#[cfg(test)]
mod tests;
