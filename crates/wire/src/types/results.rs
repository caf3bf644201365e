//! Results of requests.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::id::Id;
use crate::json::{Extra, Flat, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{object, read_word, text_of, write_entries};
use crate::method::Method;
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{
    ClientCapabilities, Completion, Content, Implementation, Prompt, PromptReply, Question,
};
use crate::types::{
    Resource, ResourceContents, ResourceReply, ResourceTemplate, ServerCapabilities, Skill, Tool,
    ToolReply,
};

/// The result of a request, in the shape of the newest revision.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerResult {
    /// A result without members.
    Empty,
    /// The result of `initialize`.
    InitializeResult(Box<InitializeResult>),
    /// The result of `server/discover`.
    DiscoverResult(Box<DiscoverResult>),
    /// A page of a list or a long result, already written in the client's revision.
    Ready(Bytes),
    /// The result of `tools/call`.
    Tool(ToolReply),
    /// The result of `prompts/get`.
    Prompt(PromptReply),
    /// The result of `resources/read`.
    Resource(ResourceReply),
    /// The result of `completion/complete`.
    Completion(Completion),
    /// The request needs answers of the client before it can be finished.
    InputRequired(Questions),
    /// The end of a subscription: the id of the request that opened it.
    Listened(Id),
    /// A result of another server, passed on unparsed.
    Relayed(Relayed),
}

/// A result of another server, as JSON of the newest revision ([`crate::raise::result`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Relayed {
    /// The method of the request.
    pub method: Method,
    /// The result.
    pub json: Raw,
}

impl ServerResult {
    /// Reads the result of `method` from JSON of the newest revision. Results that have no type of
    /// their own here, such as lists, are [`ServerResult::Relayed`].
    pub fn read(method: &Method, json: &Raw) -> Result<Self, Invalid> {
        let kind = json.member("resultType").map(|kind| text_of(&kind)).transpose();
        match kind.map_err(|error| error.in_member("resultType"))?.as_deref() {
            None | Some("complete") => {}
            Some("input_required") => return Questions::read_json(json).map(Self::InputRequired),
            Some(_) => {
                let expected = "`complete` or `input_required`";
                return Err(Invalid::new(expected).in_member("resultType"));
            }
        }
        Ok(match method {
            Method::Initialize => Self::InitializeResult(Box::new(ReadJson::read_json(json)?)),
            Method::Discover => Self::DiscoverResult(Box::new(ReadJson::read_json(json)?)),
            Method::CallTool => Self::Tool(ReadJson::read_json(json)?),
            Method::GetPrompt => Self::Prompt(ReadJson::read_json(json)?),
            Method::ReadResource => Self::Resource(ReadJson::read_json(json)?),
            Method::Complete => Self::Completion(ReadJson::read_json(json)?),
            _ => Self::Relayed(Relayed { method: method.clone(), json: json.clone() }),
        })
    }

    /// Approximate size in bytes: its texts, without names and punctuation.
    pub fn size(&self) -> usize {
        match self {
            Self::Ready(page) => page.len(),
            Self::Tool(reply) => {
                let structured = reply.structured.as_ref().map_or(0, |json| json.text().len());
                reply.content.iter().map(Content::size).sum::<usize>() + structured
            }
            Self::Prompt(reply) => reply.messages.iter().map(|m| m.content.size()).sum(),
            Self::Resource(reply) => reply.contents.iter().map(ResourceContents::size).sum(),
            Self::Relayed(relayed) => relayed.json.text().len(),
            // Bounded by our own texts, or by the client's message.
            _ => 0,
        }
    }
}

object! {
    /// The result of `initialize`.
    #[derive(Clone, Debug, Default, PartialEq)]
    InitializeResult result "complete" {
        /// The revision of the session.
        revision: Revision = required "protocolVersion";
        /// Abilities of the server.
        capabilities: ServerCapabilities = required "capabilities";
        /// Name and version of the server.
        server: Implementation = required "serverInfo";
        /// Instructions for the model.
        instructions: Option<String> = optional "instructions";
        /// The `_meta` object.
        meta: Option<Raw> = result_meta "_meta";
    }
}

impl InitializeResult {
    /// Repeats the server's name and version at the top of the result, for clients that look there.
    #[must_use]
    pub fn flat(mut self) -> Self {
        self.extra.set("name", self.server.name.to_raw(self.revision));
        self.extra.set("version", self.server.version.to_raw(self.revision));
        self
    }
}

object! {
    /// The result of `server/discover`. The server's name and version are in its metadata.
    #[derive(Clone, Debug, Default, PartialEq)]
    DiscoverResult result "complete" {
        /// Revisions that the server speaks. Reading leaves out those that this crate does not know.
        revisions: Vec<Revision> = required "supportedVersions" via Revisions;
        /// Abilities of the server.
        capabilities: ServerCapabilities = required "capabilities";
        /// Instructions for the model.
        instructions: Option<String> = optional "instructions";
        /// How long a client may keep the result.
        cache: CacheHint = flat "ttlMs";
        /// The `_meta` object.
        meta: Option<Raw> = result_meta "_meta";
    }
}

/// A list of dates. Its text is kept for unknown dates.
#[derive(PartialEq)]
struct Revisions<'a>(Cow<'a, [Revision]>);

impl ReadJson for Revisions<'_> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let dates: Vec<String> = ReadJson::read_json(json)?;
        Ok(Self(dates.iter().filter_map(|date| Revision::parse(date)).collect()))
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for Revisions<'_> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        self.0.write_json(to, out);
    }

    fn still_says(&self, text: &Raw) -> bool {
        Self::read_json(text).is_ok_and(|said| said == *self)
    }
}

impl ReadJson for Revision {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let known = || Self::ALL.map(Self::date).join(", ");
        let date = text_of(json)?;
        Self::parse(&date).ok_or_else(|| Invalid::new(format!("one of {}", known())))
    }
}

impl WriteJson for Revision {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        self.date().write_json(to, out);
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage<'a, T: Clone> {
    /// The items of this page.
    pub items: Cow<'a, [T]>,
    /// Cursor of the next page; `None` on the last.
    pub next: Option<String>,
    /// How long a client may keep the page.
    pub cache: CacheHint,
    /// The `_meta` object.
    pub meta: Option<Raw>,
    /// Unknown members.
    pub extra: Extra,
}

/// An item of a list.
pub trait Listed: Object + Clone {
    /// The member of the result that has the list.
    const LIST: &'static str;
    /// Whether the list is one of an extension, which has cache hints in every revision.
    const IS_EXTENSION: bool = false;
}

impl Listed for Tool {
    const LIST: &'static str = "tools";
}

impl Listed for Prompt {
    const LIST: &'static str = "prompts";
}

impl Listed for Resource {
    const LIST: &'static str = "resources";
}

impl Listed for ResourceTemplate {
    const LIST: &'static str = "resourceTemplates";
}

impl Listed for Skill {
    const LIST: &'static str = "skills";
    const IS_EXTENSION: bool = true;
}

impl<'a, T: Listed> ListPage<'a, T> {
    /// A page of these items.
    pub fn new(items: &'a [T], next: Option<String>, cache: CacheHint) -> Self {
        Self { items: Cow::Borrowed(items), next, cache, meta: None, extra: Extra::NONE }
    }

    /// Reads a page of another server. Items that are invalid are left out and reported.
    pub fn read_tolerantly(json: &Raw) -> Result<(Self, Vec<Invalid>), Invalid> {
        let mut members = MemberReader::new(json)?;
        let items: Vec<Raw> = members.take(T::LIST)?;
        let (mut good, mut bad) = (Vec::with_capacity(items.len()), Vec::new());
        for (nth, item) in items.iter().enumerate() {
            match T::read_json(item) {
                Ok(item) => good.push(item),
                Err(error) => bad.push(error.in_item(nth).in_member(T::LIST)),
            }
        }
        Ok((Self::with_items(good, &mut members)?, bad))
    }

    fn with_items(items: Vec<T>, members: &mut MemberReader) -> Result<Self, Invalid> {
        members.result_type("complete")?;
        let (next, cache) = (members.take("nextCursor")?, members.flat("ttlMs")?);
        let (meta, extra) = (members.take("_meta")?, members.rest());
        Ok(Self { items: Cow::Owned(items), next, cache, meta, extra })
    }
}

impl<T: Listed> Object for ListPage<'_, T> {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let items = members.take(T::LIST)?;
        Self::with_items(items, members)
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.result_type("complete");
        writer.required(T::LIST, &self.items);
        writer.optional("nextCursor", &self.next);
        match T::IS_EXTENSION {
            true => self.cache.write(writer),
            false => writer.flat("ttlMs", &self.cache),
        }
        writer.result_meta("_meta", &self.meta);
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

object! {
    /// Questions that must be answered before a call can go on.
    #[derive(Clone, Debug, Default, PartialEq)]
    Questions result "input_required" {
        /// Questions, each with a key that is unique within the call.
        questions: Vec<(String, Question)> = optional "inputRequests" via Requests;
        /// State of the call, which the client sends back with the answers.
        state: Option<String> = optional "requestState";
        /// The `_meta` object.
        meta: Option<Raw> = result_meta "_meta";
    }
}

impl Questions {
    /// The capabilities that a client must have declared to be asked all of them.
    pub fn needs(&self) -> ClientCapabilities {
        let all = self.questions.iter().map(|(_, question)| question.needs());
        all.fold(ClientCapabilities::default(), |all, needs| all.union(&needs))
    }
}

/// Questions as an object, by their keys. Their text is kept for unknown members.
#[derive(PartialEq)]
struct Requests<'a>(Cow<'a, [(String, Question)]>);

impl ReadJson for Requests<'_> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let members = json.named_members().ok_or_else(|| Invalid::new("an object"))?;
        let read = members.into_iter().map(|(key, question)| {
            let question = Question::read_json(&question);
            Ok((key.to_string(), question.map_err(|error| error.in_member(&key))?))
        });
        read.collect::<Result<_, _>>().map(|questions| Self(Cow::Owned(questions)))
    }

    fn absent() -> Option<Self> {
        Some(Self(Cow::Borrowed(&[])))
    }

    fn keeps_text() -> bool {
        true
    }
}

impl WriteJson for Requests<'_> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        write_entries(&self.0, to, out);
    }

    fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    fn still_says(&self, text: &Raw) -> bool {
        Self::read_json(text).is_ok_and(|said| said == *self)
    }
}

/// How long a result may be cached, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheHint {
    /// Time in milliseconds; 0 means that the result may be stale at once.
    pub ttl_ms: u64,
    /// Whether a cache may be shared.
    pub scope: CacheScope,
}

impl Flat for CacheHint {
    fn read_flat(members: &mut MemberReader) -> Result<Self, Invalid> {
        let ttl_ms: Option<u64> = members.take("ttlMs")?;
        let scope: Option<CacheScope> = members.take("cacheScope")?;
        Ok(Self { ttl_ms: ttl_ms.unwrap_or_default(), scope: scope.unwrap_or_default() })
    }

    fn write_flat(&self, writer: &mut MemberWriter<'_>) {
        if writer.to.stateless {
            self.write(writer);
        }
    }
}

impl CacheHint {
    fn write(self, writer: &mut MemberWriter<'_>) {
        writer.required("ttlMs", &self.ttl_ms);
        writer.word("cacheScope", self.scope.name());
    }
}

/// Who may cache a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Callers with the same authorization.
    #[default]
    Private,
    /// All callers.
    Public,
}

impl CacheScope {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }
}

impl ReadJson for CacheScope {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        read_word(json, "`private` or `public`")
    }
}

impl From<ToolReply> for ServerResult {
    fn from(reply: ToolReply) -> Self {
        Self::Tool(reply)
    }
}

impl From<PromptReply> for ServerResult {
    fn from(reply: PromptReply) -> Self {
        Self::Prompt(reply)
    }
}

impl From<ResourceReply> for ServerResult {
    fn from(reply: ResourceReply) -> Self {
        Self::Resource(reply)
    }
}

impl From<Completion> for ServerResult {
    fn from(completion: Completion) -> Self {
        Self::Completion(completion)
    }
}
