//! Text with placeholders, parsed once.
//!
//! `{name}` is the value of an argument, `{name?}` one that may be absent, `{name?--text}` the
//! text if the argument is `true`. `{{` and `}}` are braces.
//!
//! A command line is a list of *units*: arguments that come, go and repeat together. A unit is
//! left out if an optional value in it is absent, and repeated for every item of a list. A unit is
//! one argument, or a flag and the placeholder after it (`"--limit", "{limit?}"`), or whatever
//! the author puts into an inner list (`["-e", "{pattern}", "-i"]`).
//!
//! Filling in is in `values`; whether the names exist is for `input` to say.

use std::fmt;

/// One entry of `run`: an argument, or an inner list of those that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunItem {
    /// An argument.
    Argument(String),
    /// Arguments that come, go and repeat together.
    Together(Vec<String>),
}

/// A program and its arguments, with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    pub(super) units: Vec<Unit>,
    pub(super) allow_dash: Vec<String>,
}

/// Arguments that come, go and repeat together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Not from an inner list: a placeholder may join it.
    alone: bool,
    pub(super) arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) text: Text,
    /// Whether `--` stands somewhere before it: then no value can be taken for a flag.
    pub(super) after_dashes: bool,
    place: Place,
}

/// A text with placeholders: a program's standard input, or a message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTemplate {
    pub(super) text: Text,
    place: Place,
}

/// What a program finds on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// A text with placeholders.
    Text(TextTemplate),
    /// The arguments as the JSON that the client sent, with the defaults of those it left out.
    Json,
}

pub(super) type Text = Vec<Piece>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    Value { name: String, optional: bool },
    Switch { name: String, text: String },
}

/// A placeholder, and where it stands.
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

/// Where in the configuration of a command something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This entry of `run`, counted from 0, and for an inner list the entry in it.
    Run(usize, Option<usize>),
    /// In `stdin`.
    Stdin,
    /// In the `text` of a prompt, or of this message of it, counted from 0.
    Message(Option<usize>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(index, None) => write!(f, "run[{index}]"),
            Self::Run(index, Some(inner)) => write!(f, "run[{index}][{inner}]"),
            Self::Stdin => f.write_str("stdin"),
            Self::Message(None) => f.write_str("text"),
            Self::Message(Some(index)) => write!(f, "messages[{index}].text"),
        }
    }
}

/// What is wrong with a template, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}, character {character}: {wrong}")]
pub struct TemplateError {
    /// The text that is wrong.
    pub place: Place,
    /// The character in it, counted from 1.
    pub character: usize,
    /// What is wrong there.
    pub wrong: Wrong,
}

/// What can be wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A `{` without its `}`.
    #[error("`{{` is not closed; write `{{{{` for a brace")]
    Unclosed,
    /// A `}` without its `{`.
    #[error("`}}` closes nothing; write `}}}}` for a brace")]
    Unopened,
    /// `{}` or `{?}`.
    #[error("a placeholder needs a name; write `{{{{` and `}}}}` for braces")]
    Unnamed,
    /// A name with a character that is none of letters, digits, `_`, `-` and `.`.
    #[error("`{0}` is no name of an argument; write `{{{{` and `}}}}` for braces")]
    BadName(String),
    /// `{name?text}` beside other text.
    #[error("`{{{0}?…}}` stands for a whole argument; nothing may be written beside it")]
    SwitchBesideText(String),
    /// `run = []`.
    #[error("there is no program")]
    NoProgram,
    /// A placeholder in the program's name.
    #[error("the program is fixed: it cannot be chosen by an argument")]
    ProgramChosen,
    /// A NUL byte in the template itself.
    #[error("a NUL byte cannot be given to a program")]
    Nul,
    /// An inner list without entries.
    #[error("an empty list")]
    EmptyGroup,
}

impl CommandLine {
    /// Reads `run`. Values of the arguments named in `allow_dash` may begin with `-`.
    pub fn parse(run: &[RunItem], allow_dash: &[String]) -> Result<Self, TemplateError> {
        let program = parse_program(run)?;
        let mut units: Vec<Unit> = Vec::new();
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
                    match units.last_mut() {
                        Some(flag) if is_value && flag.is_flag() => flag.arguments.push(argument),
                        _ => units.push(Unit { alone: true, arguments: vec![argument] }),
                    }
                }
                RunItem::Together(list) if list.is_empty() => {
                    return Err(TemplateError { place, character: 1, wrong: Wrong::EmptyGroup });
                }
                RunItem::Together(list) => {
                    let places = (0..).map(|inner| Place::Run(index, Some(inner)));
                    let arguments = list.iter().zip(places).map(|(s, p)| argument(s, p));
                    let arguments = arguments.collect::<Result<_, _>>()?;
                    units.push(Unit { alone: false, arguments });
                }
            }
        }
        Ok(Self { program, units, allow_dash: allow_dash.to_vec() })
    }

    /// The program, as written.
    pub fn program(&self) -> &str {
        &self.program
    }

    pub(super) fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        self.units.iter().flat_map(Unit::uses)
    }
}

impl Unit {
    pub(super) fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        self.arguments.iter().flat_map(|argument| uses(&argument.text, argument.place))
    }

    /// A single literal argument that begins with `-` and is more than dashes.
    fn is_flag(&self) -> bool {
        let literal = match &self.arguments[..] {
            [Argument { text, .. }] if self.alone => &text[..],
            _ => return false,
        };
        matches!(literal, [Piece::Literal(flag)]
            if flag.starts_with('-') && flag.chars().any(|c| c != '-'))
    }
}

impl TextTemplate {
    /// Reads `stdin`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_at(Place::Stdin, text)
    }

    /// Reads a text that stands at `place`.
    pub fn parse_at(place: Place, text: &str) -> Result<Self, TemplateError> {
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

fn parse_program(run: &[RunItem]) -> Result<String, TemplateError> {
    let place = Place::Run(0, None);
    let wrong = |wrong| TemplateError { place, character: 1, wrong };
    let program = match run.first() {
        Some(RunItem::Argument(program)) => program,
        Some(RunItem::Together(_)) | None => return Err(wrong(Wrong::NoProgram)),
    };
    match &parse_argument(program, place)?[..] {
        [Piece::Literal(program)] => Ok(program.clone()),
        [] => Err(wrong(Wrong::NoProgram)),
        _ => Err(wrong(Wrong::ProgramChosen)),
    }
}

/// An argument: as text, but no NUL, and a switch stands alone.
fn parse_argument(source: &str, place: Place) -> Result<Text, TemplateError> {
    let text = parse_text(source, place)?;
    let wrong = |character, wrong| Err(TemplateError { place, character, wrong });
    if let Some(at) = source.chars().position(|c| c == '\0') {
        return wrong(at + 1, Wrong::Nul);
    }
    let switch = text.iter().find_map(|piece| match piece {
        Piece::Switch { name, .. } => Some(name),
        _ => None,
    });
    match switch {
        Some(name) if text.len() > 1 => wrong(1, Wrong::SwitchBesideText(name.clone())),
        _ => Ok(text),
    }
}

fn parse_text(source: &str, place: Place) -> Result<Text, TemplateError> {
    let mut text = Text::new();
    let mut literal = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        literal.push_str(before);
        let character = source[..source.len() - brace.len()].chars().count() + 1;
        let wrong = |wrong| TemplateError { place, character, wrong };
        if brace.starts_with("{{") || brace.starts_with("}}") {
            literal.push_str(&brace[..1]);
            rest = &brace[2..];
        } else if brace.starts_with('}') {
            return Err(wrong(Wrong::Unopened));
        } else {
            let end = brace[1..].find(['{', '}']).map(|end| end + 1);
            let Some(end) = end.filter(|end| brace[*end..].starts_with('}')) else {
                return Err(wrong(Wrong::Unclosed));
            };
            if !literal.is_empty() {
                text.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            text.push(parse_placeholder(&brace[1..end]).map_err(wrong)?);
            rest = &brace[end + 1..];
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        text.push(Piece::Literal(literal));
    }
    Ok(text)
}

/// What stands between the braces.
fn parse_placeholder(inside: &str) -> Result<Piece, Wrong> {
    let (name, after) = match inside.split_once('?') {
        Some((name, after)) => (name, Some(after)),
        None => (inside, None),
    };
    if name.is_empty() {
        return Err(Wrong::Unnamed);
    }
    if !name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c)) {
        return Err(Wrong::BadName(name.to_owned()));
    }
    let name = name.to_owned();
    Ok(match after {
        None => Piece::Value { name, optional: false },
        Some("") => Piece::Value { name, optional: true },
        Some(text) => Piece::Switch { name, text: text.to_owned() },
    })
}

#[cfg(test)]
mod tests;
