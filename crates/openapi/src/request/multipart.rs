//! Bodies of several parts.

use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{File, file};
use crate::field::Field;
use crate::parameter::Format;
use crate::render::Pairs;
use crate::request::Files;
use crate::values::{ArgumentError, Kind, kind, text};

/// The parts of a body.
#[derive(Debug, Default)]
pub(super) struct Multipart(Vec<Part>);

#[derive(Debug)]
pub(super) struct Part {
    head: String,
    bytes: Vec<u8>,
}

impl Part {
    /// A part that is not a file.
    pub(super) fn of(name: &str, media: Option<&str>, text: &str) -> Self {
        let mut head = format!("Content-Disposition: form-data; name=\"{}\"\r\n", quoted(name));
        if let Some(media) = media {
            head += &format!("Content-Type: {}\r\n", plain(media));
        }
        Self { head, bytes: text.as_bytes().to_vec() }
    }

    fn file(name: &str, media: Option<&str>, file: File) -> Self {
        let filename = file.name.as_deref().unwrap_or(name);
        let media = file.media.as_deref().or(media).unwrap_or("application/octet-stream");
        let head = format!(
            "Content-Disposition: form-data; name=\"{}\"; filename=\"{}\"\r\nContent-Type: {}\r\n",
            quoted(name),
            quoted(filename),
            plain(media)
        );
        Self { head, bytes: file.bytes }
    }
}

impl Multipart {
    pub(super) fn push(&mut self, part: Part) {
        self.0.push(part);
    }

    /// Adds the value of a field. The items of a list are parts of their own.
    pub(super) fn add(
        &mut self,
        field: &Field,
        argument: &str,
        value: &RawValue,
        files: &dyn Files,
    ) -> Result<(), ArgumentError> {
        let media = field.media.as_deref();
        let as_json =
            || Part::of(&field.name, Some(media.unwrap_or("application/json")), value.get());
        let kind = kind(argument, value)?;
        // OpenAPI 3.0 has styles for forms only, 3.1 here too. A written style is always applied.
        if let (Some(format), Kind::List(_) | Kind::Object(_)) = (field.format, &kind)
            && !field.file
        {
            return self.add_styled(&field.name, format, value);
        }
        match kind {
            Kind::Null => {}
            Kind::List(items) if field.file => {
                for item in items {
                    self.push(Part::file(&field.name, media, file(argument, item, files)?));
                }
            }
            _ if field.file => {
                self.push(Part::file(&field.name, media, file(argument, value, files)?));
            }
            Kind::List(_) if media.is_some_and(crate::media::is_json) => self.push(as_json()),
            Kind::List(items) => {
                for item in items {
                    self.push(Part::of(&field.name, media, &text(argument, item)?));
                }
            }
            Kind::Object(_) => self.push(as_json()),
            Kind::Scalar(text) => self.push(Part::of(&field.name, media, &text)),
        }
        Ok(())
    }

    /// Adds a list or an object in its style: the pairs of a form, as parts that are not encoded.
    fn add_styled(
        &mut self,
        name: &str,
        format: Format,
        value: &RawValue,
    ) -> Result<(), ArgumentError> {
        let mut pairs = Pairs::new("&");
        pairs.add(name, format, value)?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        for (name, value) in pairs.text.split('&').filter_map(|pair| pair.split_once('=')) {
            self.push(Part::of(&decoded(name), None, &decoded(value)));
        }
        Ok(())
    }

    /// The media type and the bytes.
    pub(super) fn finish(self, essence: &str) -> (String, Vec<u8>) {
        let boundary = self.boundary();
        let mut out = Vec::new();
        for Part { head, bytes } in &self.0 {
            out.extend_from_slice(format!("--{boundary}\r\n{head}\r\n").as_bytes());
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (format!("{essence}; boundary={boundary}"), out)
    }

    /// A boundary that is in no part: a hash of the parts.
    fn boundary(&self) -> String {
        let boundaries = (0u64..).map(|attempt| {
            let seed = |seed, part: &Part| xxh3_64_with_seed(&part.bytes, seed);
            format!("sabir-{:016x}", self.0.iter().fold(attempt, seed))
        });
        let is_free = |boundary: &String| {
            let has = |bytes: &[u8]| {
                bytes.windows(boundary.len()).any(|window| window == boundary.as_bytes())
            };
            !self.0.iter().any(|part| has(&part.bytes))
        };
        boundaries.into_iter().find(is_free).unwrap_or_default()
    }
}

/// A name in a `Content-Disposition`, as browsers write it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// A media type without line ends.
fn plain(media: &str) -> String {
    media.chars().filter(|c| !c.is_control()).collect()
}
