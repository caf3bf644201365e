//! Questions to the client, and its answers. Spec: client/elicitation, client/roots;
//! basic/patterns/mrtr. Questions to the client's model are in `sampling`.

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{deserialize, object, read_word, write_word};
use crate::raw::Raw;
use crate::revision::Features;
use crate::types::{ClientCapabilities, Sample};

/// A question that a server asks in the middle of a call, and only the client can answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Asks the user.
    Elicit(Elicit),
    /// Asks the client's model.
    Sample(Box<Sample>),
    /// Asks which folders may be used.
    Roots {
        /// Params, of which the protocol knows none.
        params: Option<Raw>,
    },
    /// A question that we do not know. It is passed on as it is.
    Other {
        /// The method that asks it.
        method: Box<str>,
        /// Its params.
        params: Option<Raw>,
    },
}

impl Question {
    /// Asks which folders may be used.
    pub fn roots() -> Self {
        Self::Roots { params: None }
    }

    /// The method that asks it.
    pub fn method(&self) -> &str {
        match self {
            Self::Elicit(_) => "elicitation/create",
            Self::Sample(_) => "sampling/createMessage",
            Self::Roots { .. } => "roots/list",
            Self::Other { method, .. } => method,
        }
    }

    /// The capabilities that a client must have declared to be asked.
    pub fn needs(&self) -> ClientCapabilities {
        let mut needs = ClientCapabilities::default();
        match self {
            Self::Elicit(Elicit::Form { .. }) => needs.elicitation_form = true,
            Self::Elicit(Elicit::Url { .. }) => needs.elicitation_url = true,
            Self::Sample(sample) if sample.uses_tools() => needs.sampling_tools = true,
            Self::Sample(_) => needs.sampling = true,
            Self::Roots { .. } => needs.roots = true,
            Self::Other { .. } => {}
        }
        needs
    }

    /// Reads the params of a request with this method; `None` if no known question has it.
    pub fn read_params(method: &str, params: Option<&Raw>) -> Option<Result<Self, Invalid>> {
        let empty = Raw::empty_object();
        let params = params.unwrap_or(&empty);
        Some(match method {
            "elicitation/create" => Elicit::read_json(params).map(Self::Elicit),
            "sampling/createMessage" => {
                Sample::read_json(params).map(|sample| Self::Sample(Box::new(sample)))
            }
            "roots/list" => {
                Ok(Self::Roots { params: Some(params).filter(|all| all.text() != "{}").cloned() })
            }
            _ => return None,
        })
    }
}

/// A question inside of an `input_required` result: a request without an id. [`crate::types::Questions`]
/// keeps its text for members other than `method` and `params`.
impl ReadJson for Question {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let mut members = MemberReader::new(json)?;
        let (method, params): (String, Option<Raw>) =
            (members.take("method")?, members.take("params")?);
        match Self::read_params(&method, params.as_ref()) {
            Some(read) => read.map_err(|error| error.in_member("params")),
            None => Ok(Self::Other { method: method.into(), params }),
        }
    }
}

impl WriteJson for Question {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"method":"#);
        self.method().write_json(to, out);
        let params: Option<&dyn WriteJson> = match self {
            Self::Elicit(elicit) => Some(elicit),
            Self::Sample(sample) => Some(sample.as_ref()),
            Self::Roots { params } | Self::Other { params, .. } => {
                params.as_ref().map(|params| params as &dyn WriteJson)
            }
        };
        if let Some(params) = params {
            out.extend_from_slice(br#","params":"#);
            params.write_json(to, out);
        }
        out.push(b'}');
    }
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicit {
    /// A form to fill in.
    Form {
        /// Text for the user.
        message: String,
        /// JSON Schema of an object with flat, primitive properties.
        schema: Raw,
        /// Unknown members.
        extra: Extra,
    },
    /// A web page to visit. The client does not see what the user does there.
    Url {
        /// Text for the user.
        message: String,
        /// Address of the page.
        url: String,
        /// Name of the visit, which 2025-11-25 needs and no other revision has.
        id: Option<String>,
        /// Unknown members.
        extra: Extra,
    },
}

impl Elicit {
    /// A form to fill in; `schema` describes its fields.
    pub fn form(message: impl Into<String>, schema: impl Into<Raw>) -> Self {
        Self::Form { message: message.into(), schema: schema.into(), extra: Extra::NONE }
    }

    /// A web page to visit.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url { message: message.into(), url: url.into(), id: None, extra: Extra::NONE }
    }
}

impl Object for Elicit {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let mode: Option<String> = members.take("mode")?;
        let message = members.take("message")?;
        Ok(match mode.as_deref() {
            Some("url") => Self::Url {
                message,
                url: members.take("url")?,
                id: members.take("elicitationId")?,
                extra: members.rest(),
            },
            None | Some("form") => {
                let schema = members.take("requestedSchema")?;
                Self::Form { message, schema, extra: members.rest() }
            }
            Some(_) => return Err(Invalid::new("`form` or `url`").in_member("mode")),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let to = writer.to;
        let mode = if matches!(self, Self::Form { .. }) { "form" } else { "url" };
        if to.icons {
            writer.word("mode", mode);
        }
        match self {
            Self::Form { message, schema, .. } => {
                writer.required("message", message);
                writer.required("requestedSchema", schema);
            }
            Self::Url { message, url, id, .. } => {
                writer.required("message", message);
                writer.required("url", url);
                if !to.stateless {
                    writer.optional("elicitationId", id);
                }
            }
        }
    }

    fn extra(&self, _: &Features) -> &Extra {
        match self {
            Self::Form { extra, .. } | Self::Url { extra, .. } => extra,
        }
    }
}

object! {
    /// The user's answer.
    #[derive(Clone, Debug, PartialEq)]
    Elicited {
        /// The user's action.
        action: Action = required "action";
        /// The values of the form, if it was accepted.
        content: Option<Raw> = optional "content";
    }
}

impl<'de> Deserialize<'de> for Elicited {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}

/// The user's reaction to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Answered it.
    Accept,
    /// Refused to answer.
    Decline,
    /// Closed it without an answer.
    Cancel,
}

impl ReadJson for Action {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        read_word(json, "`accept`, `decline` or `cancel`")
    }
}

impl WriteJson for Action {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        write_word(self, out);
    }
}

object! {
    /// The client's roots.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    Roots {
        /// Roots, in the client's order.
        roots: Vec<Root> = required "roots";
    }
}

impl<'de> Deserialize<'de> for Roots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}

object! {
    /// A folder that a server may use.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    Root {
        /// `file:` URI of the folder.
        uri: String = required "uri";
        /// Display name.
        name: Option<String> = optional "name";
    }
}
