//! Reading the params of each method.

use serde::Deserialize;

use super::{CallTool, Complete, GetPrompt, Initialize, Listen, Page};
use super::{ReadFolder, ReadResource, Request, Resume, TaskResult, UpdateTask};
use crate::error::Problem;
use crate::json::{Extra, ReadJson};
use crate::meta::{Fields as MetaFields, Meta, present};
use crate::method::Method;
use crate::raw::Raw;
use crate::scan::{Scanner, plain_string};
use crate::types::{SubscriptionFilter, Texts};

/// The members that any method reads, as raw JSON. One pass over the params serves the era, the
/// metadata and the method.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fields<'a> {
    #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
    meta: Option<&'a str>,
    /// The members of `meta`, if the scanner has found them already.
    #[serde(skip)]
    meta_fields: Option<MetaFields<'a>>,
    /// The number of members, if the scanner has counted them.
    #[serde(skip)]
    count: Option<usize>,
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
    #[serde(borrow, default, deserialize_with = "present")]
    task: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    task_id: Option<&'a str>,
}

impl Request {
    /// Reads the metadata and the params of a request.
    ///
    /// The metadata is read separately: it decides the era, and with it the answer to an unknown
    /// method.
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
        match params.read::<Fields<'_>>() {
            Ok(fields) => fields.parse(method, params),
            Err(error) => {
                let problem = Problem::Params(error.to_string().into());
                (Err(problem.clone()), Err(problem))
            }
        }
    }
}

impl<'a> Fields<'a> {
    /// Reads the object that comes next with the scanner; `None` if it needs a full parser.
    pub(crate) fn scan(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let (fields, mut count) = (self, 0);
        let scanned = scanner.object(|scanner, key| {
            count += 1;
            let slot = match key {
                "_meta" if scanner.is_at_object() => {
                    let begin = scanner.place();
                    fields.meta_fields.insert(MetaFields::default()).scan(scanner)?;
                    return fields.meta.replace(scanner.since(begin)).is_none().then_some(());
                }
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
                "task" => &mut fields.task,
                "taskId" => &mut fields.task_id,
                _ => return scanner.value().map(drop),
            };
            slot.replace(scanner.value()?).is_none().then_some(())
        });
        fields.count = Some(count);
        scanned
    }

    /// The metadata and the request. The members are those of `params`.
    pub(crate) fn parse(
        &self,
        method: &Method,
        params: &Raw,
    ) -> (Result<Meta, Problem>, Result<Request, Problem>) {
        let meta = match (self.meta, &self.meta_fields) {
            (None, _) => Ok(Meta::default()),
            (Some(meta), None) => Meta::read(params, meta),
            (Some(meta), Some(fields)) => fields.read(params, meta),
        };
        (meta, self.request(method, params))
    }

    fn request(&self, method: &Method, params: &Raw) -> Result<Request, Problem> {
        Ok(match method {
            Method::Initialize => Request::Initialize(self.initialize(params)?),
            Method::Ping => Request::Ping,
            Method::Discover => Request::Discover,
            Method::ListTools => Request::ListTools(self.page()?),
            Method::CallTool => Request::CallTool(self.call_tool(params)?),
            Method::ListPrompts => Request::ListPrompts(self.page()?),
            Method::GetPrompt => Request::GetPrompt(self.get_prompt(params)?),
            Method::ListResources => Request::ListResources(self.page()?),
            Method::ListTemplates => Request::ListTemplates(self.page()?),
            Method::ReadResource => Request::ReadResource(ReadResource {
                uri: self.uri()?,
                resume: self.resume(params)?,
                extra: self.extra(params, &[("uri", self.uri)]),
            }),
            Method::Subscribe => Request::Subscribe(self.uri()?),
            Method::Unsubscribe => Request::Unsubscribe(self.uri()?),
            Method::Complete => Request::Complete(self.complete(params)?),
            Method::SetLevel => Request::SetLevel(needed(self.level, "level", "a log level")?),
            Method::Listen => {
                let filter: Raw = needed(self.notifications, "notifications", "a filter")?;
                let filter = SubscriptionFilter::read_json(&filter);
                let refused = |_| Problem::Params("`notifications` must be a filter".into());
                // The acknowledgement repeats the filter, without unknown members.
                let filter = SubscriptionFilter { extra: Extra::NONE, ..filter.map_err(refused)? };
                Request::Listen(Listen { filter })
            }
            Method::GetTask => Request::GetTask(self.task_id()?),
            Method::UpdateTask => {
                let Resume { answers, .. } = self.resume(params)?;
                Request::UpdateTask(UpdateTask { id: self.task_id()?, answers })
            }
            Method::CancelTask => Request::CancelTask(self.task_id()?),
            Method::TaskResult => {
                Request::TaskResult(TaskResult { id: self.task_id()?, resume: Resume::default() })
            }
            Method::ListTasks => Request::ListTasks(self.page()?),
            Method::ListSkills => Request::ListSkills(self.page()?),
            Method::GetSkill => Request::GetSkill(self.uri()?),
            Method::ReadFolder => {
                let (uri, cursor) = (self.uri()?, self.page()?.cursor);
                let extra = self.extra(params, &[("uri", self.uri), ("cursor", self.cursor)]);
                Request::ReadFolder(ReadFolder { uri, cursor, extra })
            }
            // Notifications, and requests that only a server sends.
            _ => return Err(Problem::Method(method.name().into())),
        })
    }

    fn initialize(&self, params: &Raw) -> Result<Initialize, Problem> {
        // Some clients leave out one member or another, so none is required.
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
        let name = match self.name.and_then(plain_string) {
            Some(name) => params.slice(name),
            None => needed::<String>(self.name, "name", "a string")?.into(),
        };
        let task = self.task.map(|task| params.subset(task));
        let known = [("name", self.name), ("arguments", self.arguments), ("task", self.task)];
        let extra = self.extra(params, &known);
        Ok(CallTool { name, arguments, resume: self.resume(params)?, task, extra })
    }

    fn get_prompt(&self, params: &Raw) -> Result<GetPrompt, Problem> {
        let arguments = read(params, self.arguments, "arguments", "an object of strings")?;
        Ok(GetPrompt {
            name: needed(self.name, "name", "a string")?,
            arguments: arguments.map_or_else(Vec::new, |Texts(texts)| texts.into_owned()),
            resume: self.resume(params)?,
            extra: self.extra(params, &[("name", self.name), ("arguments", self.arguments)]),
        })
    }

    fn complete(&self, params: &Raw) -> Result<Complete, Problem> {
        let what = "a reference to a prompt or a resource";
        let reference = read(params, self.reference, "ref", what)?;
        let argument = read(params, self.argument, "argument", "a name and a value")?;
        let given = read(params, self.context, "context", "an object")?;
        let known =
            [("ref", self.reference), ("argument", self.argument), ("context", self.context)];
        Ok(Complete {
            argument: argument.ok_or_else(|| missing("argument", "a name and a value"))?,
            given: given.unwrap_or_default(),
            reference: reference.ok_or_else(|| missing("ref", what))?,
            extra: self.extra(params, &known),
        })
    }

    fn page(&self) -> Result<Page, Problem> {
        Ok(Page { cursor: optional(self.cursor, "cursor", "a string")? })
    }

    fn task_id(&self) -> Result<Box<str>, Problem> {
        needed(self.task_id, "taskId", "a string")
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
        let state = optional(self.request_state, "requestState", "a string")?;
        Ok(Resume { answers, state, ..Resume::default() })
    }

    /// The members that the method does not know. `known` are those that it knows, besides the
    /// metadata and the answers.
    fn extra(&self, params: &Raw, known: &[(&str, Option<&str>)]) -> Extra {
        let always = [
            ("_meta", self.meta),
            ("inputResponses", self.input_responses),
            ("requestState", self.request_state),
        ];
        let present = known.iter().chain(&always).filter(|(_, value)| value.is_some()).count();
        if self.count == Some(present) {
            return Extra::NONE;
        }
        let is_known = |name: &str| known.iter().chain(&always).any(|(known, _)| *known == name);
        let members = params.named_members().unwrap_or_default().into_iter();
        Extra::unknown_members(members.filter(|(name, _)| !is_known(name)))
    }
}

/// Reads a member of `params`, if it is present.
fn read<T: ReadJson>(
    params: &Raw,
    field: Option<&str>,
    name: &str,
    what: &str,
) -> Result<Option<T>, Problem> {
    let read = field.map(|field| T::read_json(&params.subset(field))).transpose();
    read.map_err(|_| Problem::Params(format!("`{name}` must be {what}").into()))
}

fn missing(name: &str, what: &str) -> Problem {
    Problem::Params(format!("`{name}` is missing (expected {what})").into())
}

fn needed<'a, T: Deserialize<'a>>(
    field: Option<&'a str>,
    name: &str,
    what: &str,
) -> Result<T, Problem> {
    optional(field, name, what)?.ok_or_else(|| missing(name, what))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: &str, params: &str) -> Result<Request, Problem> {
        let params = Raw::parse(params.to_owned()).unwrap();
        Request::parse(&Method::named(method), Some(&params)).1
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
            ("tools/call", "{}", "`name` is missing (expected a string)"),
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
