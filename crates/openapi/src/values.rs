//! The arguments of one call.
//!
//! Values are kept as the JSON text of the client: numbers are sent as they were written.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// Why arguments cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// Not a JSON object.
    #[error("the arguments are not a JSON object")]
    NotAnObject,
    /// A required argument is absent.
    #[error("`{0}` is missing")]
    Missing(String),
    /// No argument has this name.
    #[error("unknown argument `{0}`")]
    Unknown(String),
    /// The value would change the path.
    #[error("`{0}` must not be empty, `.` or `..`: it is a part of the path")]
    Path(String),
    /// The value cannot be a header.
    #[error("`{0}` contains a character that a header cannot have")]
    Header(String),
    /// The string contains an unpaired surrogate.
    #[error("`{0}` contains an unpaired surrogate")]
    NotText(String),
    /// A file is not given as expected.
    #[error("`{name}`: {what}")]
    File {
        /// The argument.
        name: String,
        /// The mistake.
        what: String,
    },
    /// The request is too large.
    #[error("the request is too large (limit {0} bytes)")]
    TooLarge(usize),
}

/// The members of a JSON object, as written.
pub(crate) type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// A value, by its kind.
pub(crate) enum Kind<'a> {
    Null,
    /// Text, a number or a truth value.
    Scalar(Cow<'a, str>),
    List(Vec<&'a RawValue>),
    Object(Members<'a>),
}

/// The kind of a value. `name` is the argument, for errors.
pub(crate) fn kind<'a>(name: &str, value: &'a RawValue) -> Result<Kind<'a>, ArgumentError> {
    let json = value.get();
    let not_text = || ArgumentError::NotText(name.to_owned());
    Ok(match json.as_bytes().first() {
        Some(b'n') => Kind::Null,
        Some(b'[') => Kind::List(serde_json::from_str(json).map_err(|_| not_text())?),
        Some(b'{') => Kind::Object(members(value).ok_or_else(not_text)?),
        Some(b'"') => {
            let text: Text<'a> = serde_json::from_str(json).map_err(|_| not_text())?;
            Kind::Scalar(text.0)
        }
        _ => Kind::Scalar(Cow::Borrowed(json)),
    })
}

/// The text of a value; lists and objects are JSON.
pub(crate) fn text<'a>(name: &str, value: &'a RawValue) -> Result<Cow<'a, str>, ArgumentError> {
    match kind(name, value)? {
        Kind::Scalar(text) => Ok(text),
        Kind::Null | Kind::List(_) | Kind::Object(_) => Ok(Cow::Borrowed(value.get())),
    }
}

/// The members of an object in their order. `None` if it is not an object.
pub(crate) fn members(value: &RawValue) -> Option<Members<'_>> {
    let Object(members) = serde_json::from_str(value.get()).ok()?;
    Some(members)
}

/// A string that borrows from the JSON text unless it has escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Object<'a>(Members<'a>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Object<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> serde::de::Visitor<'de> for Collect {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Object<'de>, A::Error> {
                let mut members: Members<'de> = Vec::new();
                while let Some((Text(key), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    // The last of equal keys counts, as in `serde_json`.
                    members.retain(|(known, _)| *known != key);
                    members.push((key, value));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
