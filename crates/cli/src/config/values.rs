//! Values that many keys share: times, sizes, counts and choices.

use std::time::Duration;

use toml::{Spanned, Value};

use super::mistake::{Mistake, Text};
use super::units;

/// A time that may also be `"none"`.
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
    let duration = units::duration(written.get_ref()).ok_or_else(|| {
        text.mistake(written.span(), format!("`{}` is no duration", written.get_ref()))
            .hint("write it like \"250ms\", \"5s\", \"2m\" or \"1h\"")
    })?;
    Ok(Some(duration))
}

pub(super) fn size(
    written: Option<&Spanned<String>>,
    text: &Text<'_>,
) -> Result<Option<usize>, Mistake> {
    let Some(written) = written else { return Ok(None) };
    let size = units::size(written.get_ref()).filter(|size| *size > 0).ok_or_else(|| {
        text.mistake(written.span(), format!("`{}` is no size", written.get_ref()))
            .hint("write it like \"64KB\" or \"16MB\"")
    })?;
    Ok(Some(size))
}

pub(super) fn positive(
    number: Option<&Spanned<usize>>,
    text: &Text<'_>,
) -> Result<Option<usize>, Mistake> {
    match number {
        Some(zero) if *zero.get_ref() == 0 => {
            Err(text.mistake(zero.span(), "0 would let nothing pass").hint("write 1 or more"))
        }
        number => Ok(number.map(|number| *number.get_ref())),
    }
}

/// The choice that a value names, each written as it stands in the file.
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
        text.mistake(value.span(), format!("{written} is not one of the choices here"))
            .hint(format!("write {}", names.join(" or ")))
    })
}
