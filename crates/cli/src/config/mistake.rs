//! Mistakes in a configuration: what is wrong, where, and a hint.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sabir_sources::command::DefinitionError;
use serde_json::{Value, json};
use toml::Spanned;

use crate::escape::{escaped, is_control};

/// A mistake in a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Mistake {
    what: String,
    path: PathBuf,
    excerpt: Option<Box<Excerpt>>,
    hint: Option<String>,
    /// Whether another mistake, which is reported, is its reason.
    is_consequence: bool,
}

/// A line of the file, and the part of it that is wrong.
#[derive(Clone, Debug)]
struct Excerpt {
    /// Counted from 1.
    line: usize,
    text: String,
    /// In characters of `text`.
    marked: Range<usize>,
    /// The byte of the file where the mistake begins.
    start: usize,
}

/// The hint for a path that does not exist.
pub(super) const RELATIVE: &str = "paths are relative to the folder of this file";

/// The path and the text of a configuration file, and the mistakes that were found in it.
///
/// Reading goes on after a mistake, with a default, so that all of them are found.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
    mistakes: RefCell<Vec<Mistake>>,
    /// The places of values that could not be read, and of unknown keys.
    unread: RefCell<Vec<usize>>,
    warnings: RefCell<Vec<Mistake>>,
    has_secrets: Cell<bool>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(path: &'a Path, text: &'a str) -> Self {
        Self {
            path,
            text,
            mistakes: RefCell::default(),
            unread: RefCell::default(),
            warnings: RefCell::default(),
            has_secrets: Cell::default(),
        }
    }
}

impl Text<'_> {
    /// Adds a mistake: the file will be refused.
    pub(crate) fn report(&self, mistake: Mistake) {
        if !mistake.is_consequence {
            self.mistakes.borrow_mut().push(mistake);
        }
    }

    /// Adds a mistake in a key or a value that is therefore not read.
    pub(super) fn report_unread(&self, mistake: Mistake) {
        self.unread.borrow_mut().extend(mistake.excerpt.iter().map(|excerpt| excerpt.start));
        self.report(mistake);
    }

    /// A mistake about keys that the table around this place lacks. It is not reported if something
    /// in that table was not read, which may be such a key.
    pub(super) fn lacking(&self, place: Range<usize>, what: impl Into<String>) -> Mistake {
        let at = boundary(self.text, place.start);
        let end = self.text[at..].find("\n[").map_or(self.text.len(), |end| at + end);
        let line = self.text[at..].find('\n').map_or(self.text.len(), |end| at + end);
        let start = self.text[..line].rfind("\n[").unwrap_or(0);
        let is_consequence = self.unread.borrow().iter().any(|at| (start..end).contains(at));
        Mistake { is_consequence, ..self.mistake(place, what) }
    }

    /// Adds a warning: `sabir check` prints it.
    pub(crate) fn warn(&self, mistake: Mistake) {
        self.warnings.borrow_mut().push(mistake);
    }

    /// An environment variable of Sabir. Every value may be a secret. No setting reads a variable in
    /// another way.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let value = std::env::var_os(name)?;
        self.has_secrets.set(true);
        Some(value)
    }

    /// The text of a file with secrets, by a path that is relative to this file's folder.
    pub(crate) fn read_secret(&self, written: &str) -> io::Result<String> {
        self.has_secrets.set(true);
        std::fs::read_to_string(self.resolve(written))
    }

    /// Whether values were read that may be secrets.
    pub(crate) fn has_secrets(&self) -> bool {
        self.has_secrets.get()
    }

    /// Adds what was found in a file that this one imports.
    pub(crate) fn include(&self, imported: &Text<'_>) {
        self.has_secrets.set(self.has_secrets() || imported.has_secrets());
    }

    /// The value. A mistake is reported.
    pub(crate) fn checked<T>(&self, result: Result<T, Mistake>) -> Option<T> {
        result.map_err(|mistake| self.report(mistake)).ok()
    }

    /// Sets `value`, if one is written. A mistake is reported.
    pub(crate) fn set<T>(&self, value: &mut T, written: Result<Option<T>, Mistake>) {
        if let Some(written) = self.checked(written).flatten() {
            *value = written;
        }
    }

    /// Whether the file will be refused.
    pub(crate) fn is_refused(&self) -> bool {
        !self.mistakes.borrow().is_empty()
    }

    /// The warnings, or all mistakes, in the order of the file.
    pub(crate) fn finish(&self) -> Result<Vec<Mistake>, Mistakes> {
        let mut mistakes = self.mistakes.take();
        if mistakes.is_empty() {
            return Ok(self.warnings.take());
        }
        mistakes.sort_by_key(|mistake| mistake.excerpt.as_ref().map(|excerpt| excerpt.start));
        Err(Mistakes(mistakes))
    }

    /// Stands for the mistakes that were reported already.
    pub(super) fn reported(&self) -> Mistake {
        Mistake { is_consequence: true, ..Mistake::of_file(self.path, "") }
    }

    /// A mistake at a place in the text.
    pub(crate) fn mistake(&self, place: Range<usize>, what: impl Into<String>) -> Mistake {
        let excerpt = self.excerpt(&place);
        Mistake { excerpt, ..Mistake::of_file(self.path, what) }
    }

    /// `None` if there is no file.
    fn excerpt(&self, place: &Range<usize>) -> Option<Box<Excerpt>> {
        if self.text.is_empty() {
            return None;
        }
        let start = boundary(self.text, place.start);
        let (before, after) = self.text.split_at(start);
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').map_or(self.text.len(), |at| start + at);
        let until = boundary(self.text, place.end.clamp(start, end));
        let characters = |range: Range<usize>| self.text[range].chars().count();
        let first = characters(begin..start);
        Some(Box::new(Excerpt {
            line: 1 + before.matches('\n').count(),
            text: self.text[begin..end].trim_end().to_owned(),
            marked: first..first + characters(start..until).max(1),
            start,
        }))
    }

    /// An invalid value: its kind, and what was expected instead.
    pub(crate) fn invalid(&self, value: &Spanned<String>, kind: &str, expected: &str) -> Mistake {
        // Some kinds are the key already.
        let of = self.of_key(&value.span());
        let of =
            if of == format!(" of {kind}") || of == format!(" of `{kind}`") { "" } else { &of };
        let what = format!("invalid {kind} `{}`{of} (expected {expected})", value.get_ref());
        self.mistake(value.span(), what)
    }

    /// " of `key`" for the value at a place, if its key is on the same line.
    pub(crate) fn of_key(&self, value: &Range<usize>) -> String {
        let before = &self.text[..boundary(self.text, value.start)];
        let line = before.rsplit('\n').next().unwrap_or_default();
        // The value may be in a list, or in a table of one line.
        let before = line.rsplit_once('=').map(|(before, _)| before.trim());
        let key = before.and_then(|before| before.rsplit(['{', ',', ' ']).next());
        let key = key.filter(|key| is_key(key));
        key.map_or_else(String::new, |key| format!(" of `{key}`"))
    }

    /// A mistake in the definition of `owner`.
    pub(crate) fn wrong_definition(
        &self,
        place: Range<usize>,
        owner: &str,
        error: &DefinitionError,
    ) -> Mistake {
        let mistake = self.mistake(place, format!("{owner}: {error}"));
        Mistake { hint: error.hint.clone(), ..mistake }
    }

    /// The absolute path of the file's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.path.parent().unwrap_or(self.path);
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // It fails only for an empty path, or without a current folder.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        folder.components().collect()
    }

    /// The absolute path for a path that is relative to the file's folder.
    pub(crate) fn resolve(&self, written: &str) -> PathBuf {
        self.folder().join(written).components().collect()
    }

    /// A place in the text, for mistakes that are found later.
    pub(crate) fn place(&self, at: Range<usize>) -> Place {
        Place(self.mistake(at, ""))
    }

    /// Whether it says how clients are served, and has requests under the same key.
    fn has_both_http(&self) -> bool {
        ["[http]", "[[http]]"].iter().all(|header| self.text.lines().any(|l| l.trim() == *header))
    }

    /// An error of the TOML parser.
    pub(crate) fn syntax_error(&self, error: &toml::de::Error) -> Mistake {
        let what = error.message().trim().replace('\n', " ");
        let mistake = match error.span() {
            Some(place) => self.mistake(place, what),
            None => Mistake::of_file(self.path, what),
        };
        let line = mistake.excerpt.as_ref().map(|excerpt| excerpt.text.as_str());
        match line.and_then(|line| quotes(line, &mistake.what).or_else(|| unquoted(line))) {
            Some((what, hint)) => Mistake { what, hint: Some(hint), ..mistake },
            None if self.text.trim_start().starts_with('{') => {
                let what = "this is JSON (expected TOML)";
                let hint = "for a file of `mcpServers` write `[import]` and `path = \"FILE.json\"` \
                            into a sabir.toml; `sabir import` prints the servers of your clients";
                Mistake { what: what.to_owned(), ..mistake }.hint(hint)
            }
            None if self.has_both_http() && mistake.is_at("http") => {
                mistake.hint("a file with `[http]` writes its requests as `[[request]]`")
            }
            None if mistake.what.starts_with("duplicate key") => {
                let key = error.span().and_then(|place| self.text.get(place)).unwrap_or_default();
                let what = format!("duplicate key `{key}`");
                Mistake { what, ..mistake }
                    .hint("remove one of them; several tools are several `[[command]]`")
            }
            None => mistake,
        }
    }
}

/// A place in a file, for mistakes that are found later.
#[derive(Clone, Debug)]
pub(crate) struct Place(Mistake);

impl Place {
    /// Adds a hint to every mistake at this place.
    pub(crate) fn hint(self, hint: &str) -> Self {
        Self(self.0.hint(hint))
    }

    /// A mistake at this place.
    pub(crate) fn mistake(self, what: impl Into<String>) -> Mistake {
        Mistake { what: what.into(), ..self.0 }
    }
}

impl Mistake {
    /// A file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            let hint = "name a folder of Markdown, or a sabir.toml; `sabir init` writes one";
            return Self::of_file(path, "file or folder not found").hint(hint);
        }
        if error.kind() == io::ErrorKind::InvalidData
            && let Ok(bytes) = std::fs::read(path)
            && let Err(invalid) = str::from_utf8(&bytes)
        {
            let line = 1 + bytes[..invalid.valid_up_to()].iter().filter(|b| **b == b'\n').count();
            let what = format!("invalid UTF-8 in line {line} (expected a text file in UTF-8)");
            return Self::of_file(path, what).hint("save the file as UTF-8 in your editor");
        }
        Self::of_file(path, format!("cannot read the configuration: {error}"))
    }

    /// Whether it is at the header of this section.
    fn is_at(&self, section: &str) -> bool {
        let excerpt = self.excerpt.as_ref();
        excerpt.is_some_and(|excerpt| excerpt.text.trim().trim_matches(['[', ']']) == section)
    }

    /// The line, counted from 1.
    pub(super) fn line(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.line)
    }

    /// The mistake as a person reads it, after `error` or `warning`.
    pub(crate) fn labelled(&self, label: &str) -> String {
        let path = self.path.display().to_string();
        let mut shown = format!("{label}: {}\n  --> {}", escaped(&self.what), escaped(&path));
        if let Some(excerpt) = &self.excerpt {
            shown += &format!(":{}{excerpt}", excerpt.line);
        }
        if let Some(hint) = &self.hint {
            shown += &format!("\n  hint: {}", escaped(hint));
        }
        shown
    }

    /// The mistake as a program reads it.
    pub(crate) fn to_json(&self) -> Value {
        let excerpt = self.excerpt.as_ref();
        json!({
            "message": self.what,
            "file": self.path.display().to_string(),
            "line": excerpt.map(|excerpt| excerpt.line),
            "column": excerpt.map(|excerpt| excerpt.marked.start + 1),
            "hint": self.hint,
        })
    }

    /// A mistake about the whole file.
    pub(crate) fn of_file(path: &Path, what: impl Into<String>) -> Self {
        let (what, path) = (what.into(), path.into());
        Self { what, path, excerpt: None, hint: None, is_consequence: false }
    }

    /// Adds a hint, unless there is one.
    pub(super) fn or_hint(mut self, hint: impl FnOnce() -> String) -> Self {
        self.hint = self.hint.or_else(|| Some(hint()));
        self
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// All mistakes that were found.
#[derive(Debug, Default)]
pub(crate) struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }

    /// All values, or all mistakes.
    pub(super) fn all<T>(
        results: impl IntoIterator<Item = Result<T, Mistake>>,
    ) -> Result<Vec<T>, Self> {
        let (mut values, mut mistakes) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(value) => values.push(value),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if mistakes.is_empty() { Ok(values) } else { Err(Self(mistakes)) }
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self(vec![mistake])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mistakes: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&mistakes.join("\n"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.labelled("error"))
    }
}

impl fmt::Display for Excerpt {
    /// The line, and carets below the part that is wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.marked.start {
            start if self.text.chars().count() > MAX_WIDTH => start.saturating_sub(MAX_WIDTH / 2),
            _ => 0,
        };
        // A tab has one column here, so that the carets are at the right place.
        let shown = self.text.chars().skip(from).take(MAX_WIDTH).map(|c| match c {
            '\t' => ' ',
            c if is_control(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        let shown: String = shown.collect();
        let before = self.marked.start - from;
        let carets = self.marked.len().min(MAX_WIDTH - before);
        let number = self.line.to_string();
        write!(f, "\n  {number} | {shown}")?;
        let (margin, carets) = (" ".repeat(number.len()), "^".repeat(carets));
        write!(f, "\n  {margin} | {}{carets}", " ".repeat(before))
    }
}

/// The start of the character at this byte.
fn boundary(text: &str, byte: usize) -> usize {
    (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The longest part of a line that is shown, in characters.
const MAX_WIDTH: usize = 120;

/// Whether it can be a key without quotes.
fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}

/// A line with backslashes in double quotes, or with curly quotes: what is wrong, and a hint.
fn quotes(line: &str, reason: &str) -> Option<(String, String)> {
    let is_curly = |c: char| "“”„‘’".contains(c);
    if line.contains(is_curly) && !reason.contains("escape") && !reason.contains("unicode") {
        let what = "invalid value in curly quotes (expected straight ones)".to_owned();
        return Some((what, format!("write `{}`", line.trim().replace(is_curly, "\""))));
    }
    if !line.contains('\\') || !["escape", "unicode"].iter().any(|word| reason.contains(word)) {
        return None;
    }
    let what = "invalid value: a backslash in double quotes starts an escape (expected single \
                quotes)";
    let hint = match line.matches('"').count() {
        2 => line.trim().replace('"', "'"),
        _ => "path = 'C:\\temp'".to_owned(),
    };
    Some((what.to_owned(), format!("write e.g. `{hint}`")))
}

/// A line that lacks quotes, a value or the equals sign: what is wrong, and a hint.
fn unquoted(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once([':', '='])?;
    let (key, value) = (key.trim(), value.trim());
    let is_word = |c: char| c.is_alphanumeric() || "_-./: ".contains(c);
    match value {
        _ if !is_key(key) => None,
        "" => Some((format!("`{key}` has no value"), format!("write e.g. `{key} = \"…\"`"))),
        _ if !line.contains('=') => {
            let what = format!("invalid line `{}` (expected `=` after the key)", line.trim());
            let is_value = toml::from_str::<toml::Table>(&format!("x = {value}")).is_ok();
            let value = if is_value { value.to_owned() } else { format!("{value:?}") };
            Some((what, format!("write e.g. `{key} = {value}`")))
        }
        "True" | "False" | "yes" | "no" | "on" | "off" => {
            let is_true = ["True", "yes", "on"].contains(&value);
            let what = format!("invalid value {value} of `{key}` (expected true or false)");
            Some((what, format!("write `{key} = {is_true}`")))
        }
        value if value.chars().all(is_word) => {
            let what = format!("invalid value {value} of `{key}` (expected a string in quotes)");
            Some((what, format!("write `{key} = \"{value}\"`")))
        }
        _ => None,
    }
}
