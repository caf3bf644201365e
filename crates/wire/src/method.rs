//! Every method that a client may use, and its params.
//!
//! Adding a method is adding a row to [`Method`], an arm to [`Request::parse`] and an arm to the
//! engine's router; the compiler finds the rest.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Problem;
use crate::id::Id;
use crate::meta::{Meta, present};
use crate::raw::Raw;
use crate::strict::Strict;
use crate::types::{ClientCapabilities, Level, Reference, SubscriptionFilter};

/// The name of a method.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`: the legacy handshake.
    Initialize,
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool,
    /// `prompts/list`.
    ListPrompts,
    /// `prompts/get`.
    GetPrompt,
    /// `resources/list`.
    ListResources,
    /// `resources/templates/list`.
    ListTemplates,
    /// `resources/read`.
    ReadResource,
    /// `resources/subscribe`.
    Subscribe,
    /// `resources/unsubscribe`.
    Unsubscribe,
    /// `completion/complete`.
    Complete,
    /// `logging/setLevel`.
    SetLevel,
    /// `subscriptions/listen`.
    Listen,
    /// `notifications/initialized`.
    Initialized,
    /// `notifications/cancelled`.
    Cancelled,
    /// `notifications/progress`.
    Progress,
    /// `notifications/roots/list_changed`.
    RootsChanged,
    /// One that we do not know.
    Other(Box<str>),
}

const NAMES: [(&str, Method); 19] = [
    ("initialize", Method::Initialize),
    ("ping", Method::Ping),
    ("server/discover", Method::Discover),
    ("tools/list", Method::ListTools),
    ("tools/call", Method::CallTool),
    ("prompts/list", Method::ListPrompts),
    ("prompts/get", Method::GetPrompt),
    ("resources/list", Method::ListResources),
    ("resources/templates/list", Method::ListTemplates),
    ("resources/read", Method::ReadResource),
    ("resources/subscribe", Method::Subscribe),
    ("resources/unsubscribe", Method::Unsubscribe),
    ("completion/complete", Method::Complete),
    ("logging/setLevel", Method::SetLevel),
    ("subscriptions/listen", Method::Listen),
    ("notifications/initialized", Method::Initialized),
    ("notifications/cancelled", Method::Cancelled),
    ("notifications/progress", Method::Progress),
    ("notifications/roots/list_changed", Method::RootsChanged),
];

impl Method {
    /// The method of that name.
    pub fn named(name: &str) -> Self {
        match NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, method)) => method.clone(),
            None => Self::Other(name.into()),
        }
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        if let Self::Other(name) = self {
            return name;
        }
        NAMES.iter().find(|(_, method)| method == self).map_or("", |(name, _)| name)
    }
}

/// A request, its params read.
#[derive(Clone, Debug)]
pub enum Request {
    /// `initialize`.
    Initialize(Initialize),
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    ListTools(Page),
    /// `tools/call`.
    CallTool(CallTool),
    /// `prompts/list`.
    ListPrompts(Page),
    /// `prompts/get`.
    GetPrompt(GetPrompt),
    /// `resources/list`.
    ListResources(Page),
    /// `resources/templates/list`.
    ListTemplates(Page),
    /// `resources/read`.
    ReadResource(ReadResource),
    /// `resources/subscribe`, the URI.
    Subscribe(Box<str>),
    /// `resources/unsubscribe`, the URI.
    Unsubscribe(Box<str>),
    /// `completion/complete`.
    Complete(Complete),
    /// `logging/setLevel`.
    SetLevel(Level),
    /// `subscriptions/listen`.
    Listen(Listen),
}

/// The params of `initialize`.
#[derive(Clone, Debug)]
pub struct Initialize {
    /// The revision that the client would like, known to us or not.
    pub version: Box<str>,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// Who the client is.
    pub client: Option<Raw>,
}

/// Which part of a list is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Where the last part ended; the first part without it.
    pub cursor: Option<Box<str>>,
}

/// What a client sends when it asks again with the answers to our questions.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// The answers by the keys of the questions.
    pub answers: Vec<(String, Raw)>,
    /// What we gave the client to keep, sealed.
    pub state: Option<Box<str>>,
}

/// The params of `tools/call`.
#[derive(Clone, Debug)]
pub struct CallTool {
    /// Which tool.
    pub name: Box<str>,
    /// An object, unchecked; absent means empty.
    pub arguments: Option<Raw>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `prompts/get`.
#[derive(Clone, Debug)]
pub struct GetPrompt {
    /// Which prompt.
    pub name: Box<str>,
    /// By name.
    pub arguments: BTreeMap<String, String>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `resources/read`.
#[derive(Clone, Debug)]
pub struct ReadResource {
    /// Which resource.
    pub uri: Box<str>,
    /// Answers, if this is a second start.
    pub resume: Resume,
}

/// The params of `completion/complete`.
#[derive(Clone, Debug)]
pub struct Complete {
    /// What the argument belongs to.
    pub reference: Reference,
    /// The argument's name.
    pub argument: Box<str>,
    /// What was typed so far.
    pub value: Box<str>,
    /// Arguments that were given already.
    pub given: BTreeMap<String, String>,
}

/// The params of `subscriptions/listen`.
#[derive(Clone, Debug)]
pub struct Listen {
    /// What the client wants to hear.
    pub filter: SubscriptionFilter,
}

/// The params of `notifications/cancelled`.
#[derive(Clone, Debug)]
pub struct Cancelled {
    /// The request that is no longer wanted.
    pub request: Id,
    /// Why, for the log.
    pub reason: Option<String>,
}

/// Every field that any method reads, none interpreted.
///
/// One pass over the params serves the era, the metadata and the method.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
    meta: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    arguments: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    uri: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    cursor: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    input_responses: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    request_state: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    protocol_version: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    capabilities: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    client_info: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    level: Option<&'a str>,
    #[serde(borrow, default, rename = "ref", deserialize_with = "present")]
    reference: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    argument: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    context: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    notifications: Option<&'a str>,
}

impl Request {
    /// Reads the metadata and the params of a request.
    ///
    /// The metadata comes first and on its own: it decides the era, and with it what an unknown
    /// method is answered.
    pub fn parse(
        method: &Method,
        params: Option<&Raw>,
    ) -> (Result<Meta, Problem>, Result<Self, Problem>) {
        let absent = Raw::empty_object();
        let params = params.unwrap_or(&absent);
        if !params.is_object() {
            let problem = Problem::Params("`params` must be an object".into());
            return (Err(problem.clone()), Err(problem));
        }
        let fields = Fields::scan(params).map_or_else(|| params.read::<Fields<'_>>(), Ok);
        let fields = match fields {
            Ok(fields) => fields,
            Err(error) => {
                let problem = Problem::Params(error.to_string().into());
                return (Err(problem.clone()), Err(problem));
            }
        };
        let meta = fields.meta.map_or_else(|| Ok(Meta::default()), |meta| Meta::read(params, meta));
        (meta, fields.request(method, params))
    }
}

impl<'a> Fields<'a> {
    /// The same without a general parser; `None` if it needs one.
    fn scan(params: &'a Raw) -> Option<Self> {
        let mut fields = Self::default();
        params.plain_members(|key, value| {
            let slot = match key {
                "_meta" => &mut fields.meta,
                "name" => &mut fields.name,
                "arguments" => &mut fields.arguments,
                "uri" => &mut fields.uri,
                "cursor" => &mut fields.cursor,
                "inputResponses" => &mut fields.input_responses,
                "requestState" => &mut fields.request_state,
                "protocolVersion" => &mut fields.protocol_version,
                "capabilities" => &mut fields.capabilities,
                "clientInfo" => &mut fields.client_info,
                "level" => &mut fields.level,
                "ref" => &mut fields.reference,
                "argument" => &mut fields.argument,
                "context" => &mut fields.context,
                "notifications" => &mut fields.notifications,
                _ => return Some(()),
            };
            slot.replace(value).is_none().then_some(())
        })?;
        Some(fields)
    }

    fn request(&self, method: &Method, params: &Raw) -> Result<Request, Problem> {
        Ok(match method {
            Method::Initialize => Request::Initialize(self.initialize(params)?),
            Method::Ping => Request::Ping,
            Method::Discover => Request::Discover,
            Method::ListTools => Request::ListTools(self.page()?),
            Method::CallTool => Request::CallTool(self.call_tool(params)?),
            Method::ListPrompts => Request::ListPrompts(self.page()?),
            Method::GetPrompt => Request::GetPrompt(GetPrompt {
                name: needed(self.name, "name", "a string")?,
                arguments: optional(self.arguments, "arguments", "an object of strings")?
                    .unwrap_or_default(),
                resume: self.resume(params)?,
            }),
            Method::ListResources => Request::ListResources(self.page()?),
            Method::ListTemplates => Request::ListTemplates(self.page()?),
            Method::ReadResource => Request::ReadResource(ReadResource {
                uri: self.uri()?,
                resume: self.resume(params)?,
            }),
            Method::Subscribe => Request::Subscribe(self.uri()?),
            Method::Unsubscribe => Request::Unsubscribe(self.uri()?),
            Method::Complete => Request::Complete(self.complete()?),
            Method::SetLevel => Request::SetLevel(needed(self.level, "level", "a log level")?),
            Method::Listen => {
                let Strict(filter) = needed(self.notifications, "notifications", "a filter")?;
                Request::Listen(Listen { filter })
            }
            // What is a notification cannot be asked for.
            Method::Initialized
            | Method::Cancelled
            | Method::Progress
            | Method::RootsChanged
            | Method::Other(_) => return Err(Problem::Method(method.name().into())),
        })
    }

    fn initialize(&self, params: &Raw) -> Result<Initialize, Problem> {
        // Clients of every age have left out one field or another; none of them is needed.
        Ok(Initialize {
            version: optional(self.protocol_version, "protocolVersion", "a string")?
                .unwrap_or_default(),
            capabilities: optional(self.capabilities, "capabilities", "an object of objects")?
                .unwrap_or_default(),
            client: self.client_info.map(|client| params.subset(client)),
        })
    }

    fn call_tool(&self, params: &Raw) -> Result<CallTool, Problem> {
        let arguments = self
            .arguments
            .filter(|arguments| *arguments != "null")
            .map(|arguments| params.subset(arguments));
        if arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
            return Err(Problem::Params("`arguments` must be an object".into()));
        }
        let name = needed(self.name, "name", "a string")?;
        Ok(CallTool { name, arguments, resume: self.resume(params)? })
    }

    fn complete(&self) -> Result<Complete, Problem> {
        #[derive(Deserialize)]
        struct Argument {
            name: Box<str>,
            value: Box<str>,
        }
        #[derive(Deserialize)]
        struct Context {
            #[serde(default)]
            arguments: BTreeMap<String, String>,
        }
        let Strict(argument): Strict<Argument> =
            needed(self.argument, "argument", "a name and a value")?;
        let context: Option<Strict<Context>> = optional(self.context, "context", "an object")?;
        let Strict(reference) =
            needed(self.reference, "ref", "a reference to a prompt or a resource")?;
        Ok(Complete {
            reference,
            argument: argument.name,
            value: argument.value,
            given: context.map(|Strict(context)| context.arguments).unwrap_or_default(),
        })
    }

    fn page(&self) -> Result<Page, Problem> {
        Ok(Page { cursor: optional(self.cursor, "cursor", "a string")? })
    }

    fn uri(&self) -> Result<Box<str>, Problem> {
        needed(self.uri, "uri", "a string")
    }

    fn resume(&self, params: &Raw) -> Result<Resume, Problem> {
        let answers = match self.input_responses {
            None => Vec::new(),
            Some(answers) if answers.starts_with('{') => params.subset(answers).members(),
            Some(_) => return Err(Problem::Params("`inputResponses` must be an object".into())),
        };
        Ok(Resume { answers, state: optional(self.request_state, "requestState", "a string")? })
    }
}

fn needed<'a, T: Deserialize<'a>>(
    field: Option<&'a str>,
    name: &str,
    what: &str,
) -> Result<T, Problem> {
    optional(field, name, what)?
        .ok_or_else(|| Problem::Params(format!("`{name}` is missing: {what}").into()))
}

fn optional<'a, T: Deserialize<'a>>(
    field: Option<&'a str>,
    name: &str,
    what: &str,
) -> Result<Option<T>, Problem> {
    field
        .map(serde_json::from_str)
        .transpose()
        .map_err(|_| Problem::Params(format!("`{name}` must be {what}").into()))
}

impl Cancelled {
    /// Reads the params; `None` if they name no request. A wrong notification is not answered.
    pub fn parse(params: Option<&Raw>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
            reason: Option<String>,
        }
        let Strict(fields): Strict<Fields<'_>> = params?.read().ok()?;
        Some(Self { request: Id::parse(fields.request_id.get())?, reason: fields.reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: &str, params: &str) -> Result<Request, Problem> {
        let params = Raw::parse(params.to_owned()).unwrap();
        Request::parse(&Method::named(method), Some(&params)).1
    }

    #[test]
    fn every_row_reads_back() {
        for (name, method) in &NAMES {
            assert_eq!(&Method::named(name), method);
            assert_eq!(method.name(), *name);
        }
        assert_eq!(Method::named("tools/cal"), Method::Other("tools/cal".into()));
    }

    #[test]
    fn a_call_keeps_its_arguments_as_they_are() {
        let call = parse("tools/call", r#"{"name":"t","arguments":{"b":1e400,"a":"\u00e9"}}"#);
        let Ok(Request::CallTool(call)) = call else { panic!("{call:?}") };
        assert_eq!(call.arguments.unwrap().text(), r#"{"b":1e400,"a":"\u00e9"}"#);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (method, params, reason) in [
            ("tools/call", "{}", "`name` is missing: a string"),
            ("tools/call", r#"{"name":7}"#, "`name` must be a string"),
            ("tools/call", r#"{"name":"t","arguments":[]}"#, "`arguments` must be an object"),
            ("tools/list", r#"{"cursor":1}"#, "`cursor` must be a string"),
            ("tools/list", "[]", "`params` must be an object"),
            ("logging/setLevel", r#"{"level":"loud"}"#, "`level` must be a log level"),
            ("subscriptions/listen", r#"{"notifications":[]}"#, "`notifications` must be a filter"),
            (
                "prompts/get",
                r#"{"name":"p","arguments":{"a":1}}"#,
                "`arguments` must be an object of strings",
            ),
        ] {
            assert_eq!(
                parse(method, params).unwrap_err(),
                Problem::Params(reason.into()),
                "{method}"
            );
        }
    }

    #[test]
    fn metadata_is_read_even_if_the_method_is_unknown() {
        let params =
            Raw::parse(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"v9"}}"#).unwrap();
        let (meta, request) = Request::parse(&Method::named("nope"), Some(&params));
        assert_eq!(meta.unwrap().version.as_deref(), Some("v9"));
        assert_eq!(request.unwrap_err(), Problem::Method("nope".into()));
    }

    #[test]
    fn metadata_of_the_wrong_type_is_refused() {
        for meta in [
            r#"{"_meta":1}"#,
            r#"{"_meta":{"progressToken":1.5}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":[]}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":[null,null,null]}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":true}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":[null]}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientInfo":["x","1"]}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"x","version":1}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"x"}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}"#,
        ] {
            let params = Raw::parse(meta).unwrap();
            let (read, _) = Request::parse(&Method::Ping, Some(&params));
            assert!(matches!(read, Err(Problem::Params(_))), "{meta}");
        }
    }
}
