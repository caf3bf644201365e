//! A request from arguments.

mod multipart; // bodies of several parts

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use self::multipart::{Multipart, Part};
use crate::argument::Target;
use crate::body::Body;
use crate::entry::Method;
use crate::field::Field;
use crate::media::BodyKind;
use crate::operation::Operation;
use crate::parameter::{Format, Parameter, Place, Style};
use crate::render::{self, Pairs};
use crate::values::{ArgumentError, Kind, Members, kind, members, text};

/// The largest body in bytes. A larger one is refused.
const MAX_BODY: usize = 32 << 20;

/// The longest path and query in bytes. A longer one is refused.
const MAX_TARGET: usize = 64 << 10;

/// A request of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The absolute URL.
    pub url: String,
    /// The headers. Names are as the description has them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// Reads files that a caller sends by their path.
pub trait Files {
    /// The bytes of a file, or why it cannot be sent.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// No files can be sent by their path.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("files cannot be sent by `path` here (expected `text` or `base64`)".to_owned())
    }
}

/// The arguments of a call, by their places in the request.
struct Given<'a> {
    parameters: Vec<Option<&'a RawValue>>,
    fields: Vec<Option<(&'a str, &'a RawValue)>>,
    body: Option<&'a RawValue>,
    more: Members<'a>,
}

impl Operation {
    /// The request of a call. `base` is a base URL without a `/` at its end.
    pub fn request(
        &self,
        base: &str,
        arguments: &RawValue,
        files: &dyn Files,
    ) -> Result<Request, ArgumentError> {
        let arguments = members(arguments).ok_or(ArgumentError::NotAnObject)?;
        let given = self.distribute(&arguments)?;
        let mut query = Pairs::new("&");
        let mut cookies = Pairs::new("; ");
        let mut headers = vec![("accept".to_owned(), self.accept.clone())];
        for (parameter, value) in self.parameters.iter().zip(&given.parameters) {
            let default = parameter.default.as_deref().filter(|_| parameter.required);
            let Some(value) = value.or(default) else {
                if parameter.required {
                    return Err(ArgumentError::Missing(self.name_of(parameter)));
                }
                continue;
            };
            match parameter.place {
                Place::Path => {}
                Place::Query => query.add(&parameter.name, parameter.format, value)?,
                Place::Cookie => cookies.add(&parameter.name, parameter.format, value)?,
                Place::Header => {
                    let text = render::header(&parameter.name, parameter.format, value)?;
                    headers.push((parameter.name.clone(), text));
                }
            }
        }
        if !cookies.text.is_empty() {
            headers.push(("cookie".to_owned(), cookies.text));
        }
        let mut url = format!("{base}{}", self.path(&given)?);
        if !query.text.is_empty() {
            url.push(if self.entry.sent_path().contains('?') { '&' } else { '?' });
            url.push_str(&query.text);
        }
        if url.len() > MAX_TARGET {
            return Err(ArgumentError::TooLarge(MAX_TARGET));
        }
        let body = match &self.body {
            Some(body) => self.body(body, &given, files)?,
            None => None,
        };
        if body.as_ref().is_some_and(|(_, bytes)| bytes.len() > MAX_BODY) {
            return Err(ArgumentError::TooLarge(MAX_BODY));
        }
        let body = body.map(|(media, bytes)| {
            headers.push(("content-type".to_owned(), media));
            bytes
        });
        Ok(Request { method: self.entry.method, url, headers, body })
    }

    /// Sorts the arguments by their places.
    fn distribute<'a>(&'a self, arguments: &Members<'a>) -> Result<Given<'a>, ArgumentError> {
        let mut given = Given {
            parameters: vec![None; self.parameters.len()],
            fields: vec![None; self.fields.len()],
            body: None,
            more: Members::new(),
        };
        for (name, value) in arguments {
            let known = self.arguments.iter().find(|argument| argument.name == *name);
            match known.map(|argument| (&argument.name, argument.target)) {
                Some((_, Target::Parameter(number))) => {
                    // A parameter of null counts as absent.
                    given.parameters[number] = Some(*value).filter(|value| value.get() != "null");
                }
                Some((name, Target::Field(number))) => given.fields[number] = Some((name, value)),
                Some((_, Target::Body)) => given.body = Some(value),
                None if self.body.as_ref().is_some_and(|body| body.open) => {
                    given.more.push((name.clone(), value));
                }
                None => return Err(ArgumentError::Unknown(name.clone().into_owned())),
            }
        }
        Ok(given)
    }

    /// The name of the argument of a parameter.
    fn name_of(&self, parameter: &Parameter) -> String {
        let number = self.parameters.iter().position(|known| std::ptr::eq(known, parameter));
        let is_it = |target: Target| number.is_some_and(|n| target == Target::Parameter(n));
        let argument = self.arguments.iter().find(|argument| is_it(argument.target));
        argument.map_or_else(|| parameter.name.clone(), |argument| argument.name.clone())
    }

    /// The path with its values.
    fn path(&self, given: &Given<'_>) -> Result<String, ArgumentError> {
        let mut out = String::new();
        let mut rest = self.entry.sent_path();
        if !rest.starts_with('/') {
            out.push('/');
        }
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                rest = after;
                break;
            };
            out.push_str(&self.path_value(name, given, before, after)?);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn path_value(
        &self,
        placeholder: &str,
        given: &Given<'_>,
        before: &str,
        after: &str,
    ) -> Result<String, ArgumentError> {
        let (name, keeps_slashes) = match placeholder.strip_prefix('+') {
            Some(name) => (name, true),
            None => (placeholder, false),
        };
        let mut parameters = self.parameters.iter().zip(&given.parameters);
        let is_it =
            |parameter: &Parameter| parameter.place == Place::Path && parameter.name == name;
        let Some((parameter, value)) = parameters.find(|(parameter, _)| is_it(parameter)) else {
            return Err(ArgumentError::Missing(name.to_owned()));
        };
        let argument = self.name_of(parameter);
        let value = value.or(parameter.default.as_deref());
        let value = value.ok_or_else(|| ArgumentError::Missing(argument.clone()))?;
        let text = text(&argument, value)?;
        // A server that decodes before it resolves segments would leave the intended path.
        let is_relative = |segment: &str| segment.is_empty() || segment == "." || segment == "..";
        let is_whole = before.ends_with('/') && (after.is_empty() || after.starts_with('/'));
        if text.is_empty() {
            return Err(ArgumentError::Path(argument));
        }
        if !keeps_slashes {
            let rendered = render::path(&parameter.name, parameter.format, value)?;
            let decoded = percent_decode_str(&rendered).decode_utf8_lossy();
            if rendered.is_empty() || (is_whole && is_relative(&decoded)) {
                return Err(ArgumentError::Path(argument));
            }
            return Ok(rendered);
        }
        if text.split('/').any(is_relative) {
            return Err(ArgumentError::Path(argument));
        }
        Ok(text.split('/').map(render::encode_path).collect::<Vec<_>>().join("/"))
    }

    /// The media type and the bytes of the body. `None` if no argument belongs to it.
    fn body(
        &self,
        body: &Body,
        given: &Given<'_>,
        files: &dyn Files,
    ) -> Result<Option<(String, Vec<u8>)>, ArgumentError> {
        if let Some(value) = given.body {
            return whole_body(body, value, files).map(Some);
        }
        let fields: Vec<_> = self
            .fields
            .iter()
            .zip(&given.fields)
            .filter_map(|(field, value)| value.map(|(name, value)| (field, name, value)))
            .collect();
        if fields.is_empty() && given.more.is_empty() && (!body.required || self.fields.is_empty())
        {
            return if body.required {
                Err(ArgumentError::Missing("body".to_owned()))
            } else {
                Ok(None)
            };
        }
        let bytes = match body.kind {
            BodyKind::Form => form(&fields, &given.more)?.into_bytes(),
            BodyKind::Multipart => {
                let mut parts = Multipart::default();
                for (field, name, value) in fields {
                    parts.add(field, name, value, files)?;
                }
                let essence = body.media.split(';').next().unwrap_or("multipart/form-data");
                return Ok(Some(parts.finish(essence.trim())));
            }
            _ => {
                let named = fields.iter().map(|(field, _, value)| (field.name.as_str(), *value));
                let more = given.more.iter().map(|(name, value)| (&**name, *value));
                object(named.chain(more)).into_bytes()
            }
        };
        Ok(Some((body.media.clone(), bytes)))
    }
}

/// A JSON object of values as they were written.
fn object<'a>(members: impl Iterator<Item = (&'a str, &'a RawValue)>) -> String {
    let mut out = String::from("{");
    for (name, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&serde_json::Value::from(name).to_string());
        out.push(':');
        out.push_str(value.get());
    }
    out + "}"
}

/// How a field of a form is written if the description does not say: lists are repeated, and
/// objects have brackets.
const REPEATED: Format = Format { style: Style::Form, explode: true, reserved: false, json: false };

fn form(fields: &[(&Field, &str, &RawValue)], more: &Members<'_>) -> Result<String, ArgumentError> {
    let mut pairs = Pairs::new("&");
    for (field, _, value) in fields {
        let is_json = field.media.as_deref().is_some_and(crate::media::is_json);
        match field.format {
            _ if is_json => pairs.add(&field.name, Format { json: true, ..REPEATED }, value)?,
            Some(format) => pairs.add(&field.name, format, value)?,
            None if value.get().starts_with('{') => {
                pairs.add(&field.name, Format { style: Style::DeepObject, ..REPEATED }, value)?;
            }
            None => pairs.add(&field.name, REPEATED, value)?,
        }
    }
    for (name, value) in more {
        pairs.add(name, REPEATED, value)?;
    }
    Ok(pairs.text)
}

/// A body that is one argument.
fn whole_body(
    body: &Body,
    value: &RawValue,
    files: &dyn Files,
) -> Result<(String, Vec<u8>), ArgumentError> {
    let bytes = match body.kind {
        BodyKind::Json => value.get().as_bytes().to_vec(),
        BodyKind::Text => text("body", value)?.into_owned().into_bytes(),
        BodyKind::Bytes => {
            let file = file("body", value, files)?;
            let media = file.media.filter(|_| body.media.contains('*'));
            return Ok((media.unwrap_or_else(|| body.media.clone()), file.bytes));
        }
        BodyKind::Form => match kind("body", value)? {
            Kind::Object(members) => form(&[], &members)?.into_bytes(),
            _ => text("body", value)?.into_owned().into_bytes(),
        },
        BodyKind::Multipart => {
            let mut parts = Multipart::default();
            let Kind::Object(members) = kind("body", value)? else {
                let what = "expected an object".to_owned();
                return Err(ArgumentError::File { name: "body".to_owned(), what });
            };
            for (name, value) in &members {
                parts.push(Part::of(name, None, &text(name, value)?));
            }
            return Ok(parts.finish("multipart/form-data"));
        }
    };
    Ok((body.media.clone(), bytes))
}

/// A file of a call.
struct File {
    bytes: Vec<u8>,
    name: Option<String>,
    media: Option<String>,
}

/// Reads a file from an argument: a string is its text.
fn file(name: &str, value: &RawValue, files: &dyn Files) -> Result<File, ArgumentError> {
    let wrong = |what: &str| ArgumentError::File { name: name.to_owned(), what: what.to_owned() };
    let members = match kind(name, value)? {
        Kind::Scalar(text) => {
            let bytes = text.into_owned().into_bytes();
            return Ok(File { bytes, name: None, media: None });
        }
        Kind::Object(members) => members,
        Kind::Null | Kind::List(_) => {
            return Err(wrong("expected a file with `text`, `base64` or `path`"));
        }
    };
    let member = |key: &str| {
        let found = members.iter().find(|(name, value)| name == key && value.get() != "null");
        found.map(|(_, value)| text(name, value)).transpose()
    };
    let (written, encoded, path) = (member("text")?, member("base64")?, member("path")?);
    let (filename, media) = (member("filename")?, member("type")?);
    let mut filename = filename.map(|name| name.into_owned());
    let bytes = match (written, encoded, path) {
        (Some(text), None, None) => text.into_owned().into_bytes(),
        (None, Some(encoded), None) => {
            let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE];
            let decoded = engines.iter().find_map(|engine| engine.decode(encoded.trim()).ok());
            decoded.ok_or_else(|| wrong("`base64` is not valid Base64"))?
        }
        (None, None, Some(path)) => {
            let last = || path.rsplit('/').next().map(str::to_owned);
            filename = filename.or_else(last);
            files.read(&path).map_err(|what| wrong(&what))?
        }
        _ => return Err(wrong("expected exactly one of `text`, `base64` and `path`")),
    };
    Ok(File { bytes, name: filename, media: media.map(|media| media.into_owned()) })
}

#[cfg(test)]
mod tests;
