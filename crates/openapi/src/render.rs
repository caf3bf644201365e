//! Values as text: the styles of OpenAPI, and percent-encoding.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::value::RawValue;

use crate::parameter::{Format, Style};
use crate::values::{ArgumentError, Kind, kind, text};

/// In a path everything is encoded except letters, digits, `-`, `_` and `~`. Dots are encoded too, so
/// that no value can be a relative segment.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// In a query everything is encoded except unreserved characters.
const QUERY: &AsciiSet = &PATH.remove(b'.');

/// With `allowReserved`, reserved characters are kept that do not end the value.
const RESERVED: &AsciiSet = &QUERY
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');

/// The deepest nesting of brackets. Deeper values are written as JSON.
const MAX_BRACKETS: usize = 16;

/// Encodes a value of a path. The result never contains `/` or `.`.
pub fn encode_path(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, PATH).into()
}

/// Encodes a name or a value of a query or a form.
pub fn encode_query(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, QUERY).into()
}

/// A value of a path in its style, encoded.
pub(crate) fn path(name: &str, format: Format, value: &RawValue) -> Result<String, ArgumentError> {
    let encoded = |value: &RawValue| Ok(encode_path(&text(name, value)?).into_owned());
    if format.json {
        return Ok(encode_path(value.get()).into_owned());
    }
    let parts: Vec<(Option<String>, String)> = match kind(name, value)? {
        Kind::Null => vec![(None, String::new())],
        Kind::Scalar(text) => vec![(None, encode_path(&text).into_owned())],
        Kind::List(items) => {
            let items = items.into_iter().map(|item| Ok((None, encoded(item)?)));
            items.collect::<Result<_, _>>()?
        }
        Kind::Object(members) => {
            let members = members.into_iter();
            let members = members
                .map(|(key, value)| Ok((Some(encode_path(&key).into_owned()), encoded(value)?)));
            members.collect::<Result<_, _>>()?
        }
    };
    let key = encode_path(name);
    let pairs = |equals: &str, separator: &str| {
        let pairs = parts.iter().map(|(key, value)| match key {
            Some(key) => format!("{key}{equals}{value}"),
            None => value.clone(),
        });
        pairs.collect::<Vec<_>>().join(separator)
    };
    Ok(match (format.style, format.explode) {
        (Style::Label, true) => format!(".{}", pairs("=", ".")),
        (Style::Label, false) => format!(".{}", pairs(",", ",")),
        (Style::Matrix, true) => {
            let each = parts.iter().map(|(member, value)| match member {
                Some(member) => format!(";{member}={value}"),
                None => format!(";{key}={value}"),
            });
            each.collect()
        }
        (Style::Matrix, false) => format!(";{key}={}", pairs(",", ",")),
        (_, true) => pairs("=", ","),
        (_, false) => pairs(",", ","),
    })
}

/// A value of a header, not encoded.
pub(crate) fn header(
    name: &str,
    format: Format,
    value: &RawValue,
) -> Result<String, ArgumentError> {
    let rendered = match kind(name, value)? {
        _ if format.json => value.get().to_owned(),
        Kind::Null => String::new(),
        Kind::Scalar(text) => text.into_owned(),
        Kind::List(items) => {
            let items: Result<Vec<_>, _> = items.into_iter().map(|item| text(name, item)).collect();
            items?.join(",")
        }
        Kind::Object(members) => {
            let equals = if format.explode { "=" } else { "," };
            let members: Result<Vec<_>, _> = members
                .into_iter()
                .map(|(key, value)| Ok(format!("{key}{equals}{}", text(name, value)?)))
                .collect();
            members?.join(",")
        }
    };
    if rendered.chars().all(|c| matches!(c, ' '..='~' | '\t')) {
        Ok(rendered)
    } else {
        Err(ArgumentError::Header(name.to_owned()))
    }
}

/// Pairs of a query, a form or a cookie: `a=1&a=2`.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) text: String,
    separator: &'static str,
}

impl Pairs {
    pub(crate) fn new(separator: &'static str) -> Self {
        Self { text: String::new(), separator }
    }

    /// Adds an encoded pair.
    fn push(&mut self, key: &str, value: &str) {
        if !self.text.is_empty() {
            self.text.push_str(self.separator);
        }
        self.text.push_str(key);
        self.text.push('=');
        self.text.push_str(value);
    }

    /// Adds a value in its style.
    pub(crate) fn add(
        &mut self,
        name: &str,
        format: Format,
        value: &RawValue,
    ) -> Result<(), ArgumentError> {
        let encode = |value: &str| -> String {
            utf8_percent_encode(value, if format.reserved { RESERVED } else { QUERY }).to_string()
        };
        let encoded = |value: &RawValue| Ok(encode(&text(name, value)?));
        let key = encode_query(name);
        if format.json {
            self.push(&key, &encode(value.get()));
            return Ok(());
        }
        let delimiter = match format.style {
            Style::Space => "%20",
            Style::Pipe => "%7C",
            Style::Tab => "%09",
            _ => ",",
        };
        match kind(name, value)? {
            Kind::Null => {}
            Kind::Scalar(text) => self.push(&key, &encode(&text)),
            Kind::List(items) if format.style == Style::DeepObject => {
                self.add_brackets_list(name, items, MAX_BRACKETS)?;
            }
            Kind::List(items) if format.explode => {
                for item in items {
                    self.push(&key, &encoded(item)?);
                }
            }
            // An empty list and an absent one are the same.
            Kind::List(items) if items.is_empty() => {}
            Kind::List(items) => {
                let items: Result<Vec<_>, _> = items.into_iter().map(encoded).collect();
                self.push(&key, &items?.join(delimiter));
            }
            Kind::Object(_) if format.style == Style::DeepObject => {
                self.add_brackets(name, value, MAX_BRACKETS)?;
            }
            Kind::Object(members) if format.explode => {
                for (member, value) in members {
                    self.push(&encode_query(&member), &encoded(value)?);
                }
            }
            Kind::Object(members) => {
                let members: Result<Vec<_>, ArgumentError> = members
                    .into_iter()
                    .map(|(member, value)| Ok([encode(&member), encoded(value)?].join(delimiter)))
                    .collect();
                self.push(&key, &members?.join(delimiter));
            }
        }
        Ok(())
    }

    /// Adds a value as `name[key][inner]=value`. Lists of scalars are `name[]=value`, others have
    /// numbers.
    pub(crate) fn add_brackets(
        &mut self,
        name: &str,
        value: &RawValue,
        levels: usize,
    ) -> Result<(), ArgumentError> {
        let Some(levels) = levels.checked_sub(1) else {
            self.push(&encode_query(name), &encode_query(value.get()));
            return Ok(());
        };
        match kind(name, value)? {
            Kind::Null => {}
            Kind::Scalar(text) => self.push(&encode_query(name), &encode_query(&text)),
            Kind::List(items) => self.add_brackets_list(name, items, levels)?,
            Kind::Object(members) => {
                for (member, value) in members {
                    self.add_brackets(&format!("{name}[{member}]"), value, levels)?;
                }
            }
        }
        Ok(())
    }

    fn add_brackets_list(
        &mut self,
        name: &str,
        items: Vec<&RawValue>,
        levels: usize,
    ) -> Result<(), ArgumentError> {
        for (number, item) in items.into_iter().enumerate() {
            let is_scalar = !item.get().starts_with(['[', '{']);
            let key = if is_scalar { format!("{name}[]") } else { format!("{name}[{number}]") };
            self.add_brackets(&key, item, levels)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
