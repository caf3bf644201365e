//! Completion of arguments. Spec: server/utilities/completion.

use std::borrow::Cow;

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{object, text_of, write_entries};
use crate::raw::Raw;
use crate::revision::Features;

/// The owner of an argument to complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A prompt.
    Prompt {
        /// Name of the prompt.
        name: Box<str>,
        /// Unknown members.
        extra: Extra,
    },
    /// A resource template, or a resource.
    Resource {
        /// URI of the resource, or the template.
        uri: Box<str>,
        /// Unknown members.
        extra: Extra,
    },
}

impl Reference {
    /// A prompt.
    pub fn prompt(name: impl Into<Box<str>>) -> Self {
        Self::Prompt { name: name.into(), extra: Extra::NONE }
    }

    /// A resource template, or a resource.
    pub fn resource(uri: impl Into<Box<str>>) -> Self {
        Self::Resource { uri: uri.into(), extra: Extra::NONE }
    }
}

impl Object for Reference {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let kind: String = members.take("type")?;
        Ok(match &*kind {
            "ref/prompt" => Self::Prompt { name: members.take("name")?, extra: members.rest() },
            "ref/resource" => Self::Resource { uri: members.take("uri")?, extra: members.rest() },
            _ => return Err(Invalid::new("`ref/prompt` or `ref/resource`").in_member("type")),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        match self {
            Self::Prompt { name, .. } => {
                writer.word("type", "ref/prompt");
                writer.required("name", name);
            }
            Self::Resource { uri, .. } => {
                writer.word("type", "ref/resource");
                writer.required("uri", uri);
            }
        }
    }

    fn extra(&self, _: &Features) -> &Extra {
        match self {
            Self::Prompt { extra, .. } | Self::Resource { extra, .. } => extra,
        }
    }
}

object! {
    /// An argument to complete.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    CompletionArgument {
        /// Name of the argument.
        name: Box<str> = required "name";
        /// Text typed so far.
        value: Box<str> = required "value";
    }
}

object! {
    /// What is known when an argument is completed.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    CompletionContext {
        /// Names and values of the arguments that have one, in the client's order.
        arguments: Vec<(String, String)> = optional "arguments" via Texts;
    }
}

/// An object of strings, in the order of its author.
pub(crate) struct Texts<'a>(pub(crate) Cow<'a, [(String, String)]>);

impl ReadJson for Texts<'_> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let members = json.named_members().ok_or_else(|| Invalid::new("an object of strings"))?;
        let read = members.into_iter().map(|(name, value)| {
            let value = text_of(&value).map_err(|error| error.in_member(&name))?;
            Ok((name.into(), value))
        });
        read.collect::<Result<_, _>>().map(|texts| Self(Cow::Owned(texts)))
    }

    fn absent() -> Option<Self> {
        Some(Self(Cow::Borrowed(&[])))
    }
}

impl WriteJson for Texts<'_> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        write_entries(&self.0, to, out);
    }

    fn is_default(&self) -> bool {
        self.0.is_empty()
    }
}

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Possible values, best first. At most [`Completion::MAX`] are written.
    pub values: Vec<String>,
    /// Number of possible values, if more than `values` has.
    pub total: Option<usize>,
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
}

impl Completion {
    /// How many values a result may have.
    pub const MAX: usize = 100;
}

impl<T: Into<String>> FromIterator<T> for Completion {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl Object for Completion {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        members.result_type("complete")?;
        let Values { values, total } = members.take("completion")?;
        Ok(Self { values, total, meta: members.take("_meta")?, extra: members.rest() })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.result_type("complete");
        let values = &self.values;
        let shown = &values[..values.len().min(Self::MAX)];
        let total = self.total.filter(|total| *total > values.len()).unwrap_or(values.len());
        writer.required("completion", &Shown { values: shown, total });
        writer.result_meta("_meta", &self.meta);
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

/// The `completion` member, read. Its text is kept for unknown members.
struct Values {
    values: Vec<String>,
    total: Option<usize>,
}

impl ReadJson for Values {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let mut members = MemberReader::new(json)?;
        let values: Vec<String> = members.take("values")?;
        let total: Option<u64> = members.take("total")?;
        let total = total.map(|total| usize::try_from(total).unwrap_or(usize::MAX));
        Ok(Self { total: total.filter(|total| *total > values.len()), values })
    }

    fn keeps_text() -> bool {
        true
    }
}

/// The `completion` member, to be written.
struct Shown<'a> {
    values: &'a [String],
    total: usize,
}

impl WriteJson for Shown<'_> {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        let Self { values, total } = self;
        let has_more = *total > values.len();
        let shown = serde_json::json!({ "values": values, "total": total, "hasMore": has_more });
        out.extend_from_slice(shown.to_string().as_bytes());
    }

    fn still_says(&self, text: &Raw) -> bool {
        let said = Values::read_json(text).ok();
        said.is_some_and(|Values { values, total }| {
            values == self.values && total.unwrap_or(values.len()) == self.total
        })
    }
}
