//! Values with their places: durations, sizes, counts and choices.

use std::time::Duration;

use sabir::{TaskMode, TaskPolicy};
use toml::{Spanned, Value};

use super::mistake::{Mistake, Text};
use super::units;

/// A duration or `"none"`.
pub(super) fn time(
    written: Option<&Spanned<String>>,
    text: &Text<'_>,
    default: Option<Duration>,
) -> Result<Option<Duration>, Mistake> {
    match written {
        None => Ok(default),
        Some(none) if none.get_ref() == "none" => Ok(None),
        some => duration(some, text),
    }
}

pub(super) fn duration(
    written: Option<&Spanned<String>>,
    text: &Text<'_>,
) -> Result<Option<Duration>, Mistake> {
    let Some(written) = written else { return Ok(None) };
    let expected = "e.g. \"250ms\", \"5s\", \"2m\"";
    let duration = units::duration(written.get_ref());
    duration.map(Some).ok_or_else(|| text.invalid(written, "duration", expected))
}

/// `10/s`: so many times in a second, a minute or an hour.
pub(super) fn rate(written: &Spanned<String>, text: &Text<'_>) -> Result<(u32, Duration), Mistake> {
    let expected = "e.g. \"10/s\", \"100/m\" or \"1000/h\"";
    units::rate(written.get_ref()).ok_or_else(|| text.invalid(written, "rate", expected))
}

pub(super) fn size(
    written: Option<&Spanned<String>>,
    text: &Text<'_>,
) -> Result<Option<usize>, Mistake> {
    let Some(written) = written else { return Ok(None) };
    let size = units::size(written.get_ref()).filter(|size| *size > 0);
    size.map(Some).ok_or_else(|| text.invalid(written, "size", "e.g. \"64KB\", \"16MB\""))
}

pub(super) fn positive(
    number: Option<&Spanned<usize>>,
    text: &Text<'_>,
) -> Result<Option<usize>, Mistake> {
    match number {
        Some(zero) if *zero.get_ref() == 0 => {
            let of = text.of_key(&zero.span());
            Err(text.mistake(zero.span(), format!("invalid number 0{of} (expected at least 1)")))
        }
        number => Ok(number.map(|number| *number.get_ref())),
    }
}

/// The choice that a value names. The names are as written in the file, with quotes.
pub(super) fn one_of<T: Copy>(
    value: Option<&Spanned<Value>>,
    text: &Text<'_>,
    choices: &[(&str, T)],
) -> Result<Option<T>, Mistake> {
    let Some(value) = value else { return Ok(None) };
    let written = value.get_ref().to_string();
    let chosen = choices.iter().find(|(name, _)| *name == written);
    chosen.map(|(_, choice)| Some(*choice)).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let of = text.of_key(&value.span());
        let what = format!("invalid value {written}{of} (expected {})", names.join(" or "));
        text.mistake(value.span(), what)
    })
}

/// Whether calls become tasks, if `mode` is written.
pub(super) fn task(
    mode: Option<&Spanned<Value>>,
    after: Option<&Spanned<String>>,
    owner: &str,
    text: &Text<'_>,
) -> Option<TaskPolicy> {
    let modes = [
        ("\"auto\"", TaskMode::Auto),
        ("\"always\"", TaskMode::Always),
        ("\"never\"", TaskMode::Never),
    ];
    let mode = text.checked(one_of(mode, text, &modes)).flatten();
    if let Some(written) = after.filter(|_| mode != Some(TaskMode::Auto)) {
        let what = format!("{owner}: `task_after` without `task = \"auto\"`");
        text.report(text.mistake(written.span(), what).hint("add `task = \"auto\"`"));
    }
    let after = text.checked(duration(after, text)).flatten();
    mode.map(|mode| TaskPolicy { mode, after })
}

/// The value of an environment variable.
pub(super) fn variable(name: &Spanned<String>, text: &Text<'_>) -> Result<String, Mistake> {
    let value = text.variable(name.get_ref()).and_then(|value| value.into_string().ok());
    value.ok_or_else(|| {
        let what = format!("environment variable `{}` is not set", name.get_ref());
        text.mistake(name.span(), what)
    })
}
