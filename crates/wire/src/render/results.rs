//! Results, as each revision says them.

use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::{Lowered, Object, append_json, object};
use crate::id::{Id, write_json_string};
use crate::message::write_result;
use crate::raw::Raw;
use crate::revision::Revision;
use crate::types::{CacheHint, Completion, Content, ContentKind, DiscoverResult, ListPage};
use crate::types::{InitializeResult, ResourceReply, ServerResult, ToolReply};
use crate::types::{PromptReply, Questions};

/// The response to request `id`: `result`, as `revision` says it. `server` tells who answers, where
/// the revision wants it told with every result.
pub fn response(id: &Id, result: &ServerResult, revision: Revision, server: &Raw) -> Bytes {
    if let ServerResult::Ready(json) = result {
        return write_result(id, json);
    }
    let result = Lowered::new(result, revision);
    let mut out = Vec::with_capacity(server.as_bytes().len() + result.text_length() + 256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","result":"#);
    match result.value {
        ServerResult::Tool(reply) if is_plain(reply) => {
            result.part(reply).write_plainly(server, &mut out);
        }
        _ => append_json(&mut out, &Spoken { result, server }),
    }
    out.push(b'}');
    out.into()
}

/// Whether a reply is text and no more, as most are.
fn is_plain(reply: &ToolReply) -> bool {
    let is_text = |content: &Content| {
        matches!(content.kind, ContentKind::Text(_))
            && content.annotations.is_none()
            && content.meta.is_none()
    };
    reply.meta.is_none() && !reply.content.is_empty() && reply.content.iter().all(is_text)
}

impl Lowered<'_, ServerResult> {
    /// About how long it will be.
    fn text_length(&self) -> usize {
        let ServerResult::Tool(reply) = self.value else { return 0 };
        let length = |content: &Content| match &content.kind {
            ContentKind::Text(text) => text.len() + text.len() / 16 + 32,
            _ => 256,
        };
        let structured = reply.structured.as_ref().map_or(0, |value| value.as_bytes().len());
        reply.content.iter().map(length).sum::<usize>() + structured
    }
}

impl Lowered<'_, ToolReply> {
    /// Writes a plain reply as [`Spoken`] would, but without asking each part how it is written.
    fn write_plainly(&self, server: &Raw, out: &mut Vec<u8>) {
        let begin: &[u8] = match self.features.stateless {
            true => br#"{"resultType":"complete","content":["#,
            false => br#"{"content":["#,
        };
        out.extend_from_slice(begin);
        for (nth, content) in self.value.content.iter().enumerate() {
            let ContentKind::Text(text) = &content.kind else { continue };
            let comma: &[u8] = if nth > 0 { b"," } else { b"" };
            out.extend_from_slice(comma);
            out.extend_from_slice(br#"{"type":"text","text":"#);
            write_json_string(text, out);
            out.push(b'}');
        }
        out.push(b']');
        if let Some(structured) = self.sayable() {
            out.extend_from_slice(br#","structuredContent":"#);
            out.extend_from_slice(structured.as_bytes());
        }
        if self.value.is_error {
            out.extend_from_slice(br#","isError":true"#);
        }
        if self.features.stateless {
            out.extend_from_slice(br#","_meta":{"io.modelcontextprotocol/serverInfo":"#);
            out.extend_from_slice(server.as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
    }

    /// The structured content, where the revision has a place for it.
    fn sayable(&self) -> Option<&Raw> {
        let is_sayable = |value: &&Raw| {
            self.features.stateless || (self.features.structured && value.is_object())
        };
        self.value.structured.as_ref().filter(is_sayable)
    }
}

/// Writes a page of a list as `revision` says it.
pub fn page<'a, T>(page: &'a ListPage<'a, T>, revision: Revision, server: &'a Raw) -> Vec<u8>
where
    Lowered<'a, T>: Serialize,
{
    let mut out = Vec::new();
    append_json(&mut out, &SpokenPage { page, revision, server });
    out
}

/// A result, with the marks that the revision puts on every one.
struct Spoken<'a> {
    result: Lowered<'a, ServerResult>,
    server: &'a Raw,
}

impl Serialize for Spoken<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        let result = &self.result;
        if result.features.stateless {
            let kind = match result.value {
                ServerResult::InputRequired(_) => "input_required",
                _ => "complete",
            };
            map.set("resultType", kind)?;
        }
        match result.value {
            ServerResult::Empty | ServerResult::Listened(_) | ServerResult::Ready(_) => {}
            ServerResult::InitializeResult(welcome) => {
                result.part(welcome.as_ref()).write(&mut map)?
            }
            ServerResult::DiscoverResult(discovery) => {
                result.part(discovery.as_ref()).write(&mut map)?
            }
            ServerResult::Tool(reply) => result.part(reply).write(&mut map)?,
            ServerResult::Prompt(reply) => result.part(reply).write(&mut map)?,
            ServerResult::Resource(reply) => result.part(reply).write(&mut map)?,
            ServerResult::Completion(completion) => result.part(completion).write(&mut map)?,
            ServerResult::InputRequired(questions) => result.part(questions).write(&mut map)?,
        }
        let subscription = match result.value {
            ServerResult::Listened(id) => Some(id),
            _ => None,
        };
        let server = result.features.stateless.then_some(self.server);
        let meta = ResultMeta { server, subscription, own: result.value.meta() };
        if !meta.is_empty() {
            map.set("_meta", &meta)?;
        }
        map.end()
    }
}

/// A page of a list, with the marks that the revision puts on every result.
struct SpokenPage<'a, T> {
    page: &'a ListPage<'a, T>,
    revision: Revision,
    server: &'a Raw,
}

impl<'a, T> Serialize for SpokenPage<'a, T>
where
    Lowered<'a, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let page = self.page;
        let features = self.revision.features();
        let items: Vec<_> =
            page.items.iter().map(|item| Lowered::new(item, self.revision)).collect();
        let mut map = object(serializer)?;
        if features.stateless {
            map.set("resultType", "complete")?;
        }
        map.set(page.key, &items)?;
        map.may("nextCursor", page.next)?;
        if features.stateless {
            write_cache(&mut map, page.cache)?;
            let meta = ResultMeta { server: Some(self.server), subscription: None, own: None };
            map.set("_meta", &meta)?;
        }
        map.end()
    }
}

const SERVER: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a result says about itself: who made it, and what its maker adds.
struct ResultMeta<'a> {
    server: Option<&'a Raw>,
    subscription: Option<&'a Id>,
    own: Option<&'a Raw>,
}

impl ResultMeta<'_> {
    fn is_empty(&self) -> bool {
        self.server.is_none() && self.subscription.is_none() && self.own.is_none()
    }
}

impl Serialize for ResultMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        map.may(SERVER, self.server)?;
        if let Some(id) = self.subscription {
            let id = Raw::parse(id.to_string()).map_err(serde::ser::Error::custom)?;
            map.set(SUBSCRIPTION, &id)?;
        }
        let own = self.own.map(Raw::members).unwrap_or_default();
        // A result that was relayed says who made it; who answers is us.
        for (key, value) in own.iter().filter(|(key, _)| key != SERVER && key != SUBSCRIPTION) {
            map.set(key, value)?;
        }
        map.end()
    }
}

fn write_cache<M: SerializeMap>(map: &mut Object<M>, cache: CacheHint) -> Result<(), M::Error> {
    map.set("ttlMs", &cache.ttl_ms)?;
    map.set("cacheScope", cache.scope.name())
}

impl Lowered<'_, InitializeResult> {
    fn write<M: SerializeMap>(&self, map: &mut Object<M>) -> Result<(), M::Error> {
        let welcome = self.value;
        if welcome.flat {
            map.set("name", &welcome.server.name)?;
            map.set("version", &welcome.server.version)?;
        }
        map.set("protocolVersion", welcome.revision.date())?;
        map.set("capabilities", &self.part(&welcome.capabilities))?;
        map.set("serverInfo", &self.part(&welcome.server))?;
        map.may("instructions", welcome.instructions.as_ref())
    }
}

impl Lowered<'_, DiscoverResult> {
    fn write<M: SerializeMap>(&self, map: &mut Object<M>) -> Result<(), M::Error> {
        let discovery = self.value;
        let dates: Vec<_> = discovery.revisions.iter().map(|revision| revision.date()).collect();
        map.set("supportedVersions", &dates)?;
        map.set("capabilities", &self.part(&discovery.capabilities))?;
        map.may("instructions", discovery.instructions.as_ref())?;
        write_cache(map, discovery.cache)
    }
}

impl Lowered<'_, ToolReply> {
    fn write<M: SerializeMap>(&self, map: &mut Object<M>) -> Result<(), M::Error> {
        let reply = self.value;
        match &reply.structured {
            // A client that reads only text must not miss what was said to programs.
            Some(value) if reply.content.is_empty() => {
                let text = Content::text(value.text());
                map.set("content", &[Lowered { value: &text, features: self.features }])?;
            }
            _ => map.set("content", &self.parts(&reply.content))?,
        }
        map.may("structuredContent", self.sayable())?;
        if reply.is_error {
            map.set("isError", &true)?;
        }
        Ok(())
    }
}

impl Lowered<'_, PromptReply> {
    fn write<M: SerializeMap>(&self, map: &mut Object<M>) -> Result<(), M::Error> {
        map.may("description", self.value.description.as_ref())?;
        map.set("messages", &self.parts(&self.value.messages))
    }
}

impl Lowered<'_, ResourceReply> {
    fn write<M: SerializeMap>(&self, map: &mut Object<M>) -> Result<(), M::Error> {
        map.set("contents", &self.parts(&self.value.contents))?;
        if self.features.stateless {
            write_cache(map, self.value.cache)?;
        }
        Ok(())
    }
}

impl Lowered<'_, Completion> {
    fn write<M: SerializeMap>(&self, map: &mut Object<M>) -> Result<(), M::Error> {
        let all = &self.value.values;
        let shown = &all[..all.len().min(Completion::MAX)];
        let total = self.value.total.unwrap_or(all.len()).max(all.len());
        map.set(
            "completion",
            &json!({ "values": shown, "total": total, "hasMore": total > shown.len() }),
        )
    }
}

impl Lowered<'_, Questions> {
    fn write<M: SerializeMap>(&self, map: &mut Object<M>) -> Result<(), M::Error> {
        let questions = &self.value.questions;
        if !questions.is_empty() {
            map.set("inputRequests", &self.part(questions.as_slice()))?;
        }
        map.may("requestState", self.value.state.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written plainly is what the general way writes.
    #[test]
    fn both_ways_write_the_same() {
        let text = |text: &str| Content::text(text);
        let server = Raw::parse(r#"{"name":"s","version":"1"}"#).unwrap();
        let object = Raw::parse(r#"{"a":1}"#).unwrap();
        for (content, structured, is_error) in [
            (vec![text("")], None, false),
            (vec![text("a\n\"b\""), text("é")], None, true),
            (vec![text("a")], Some(object), false),
            (vec![text("a")], Some(Raw::parse("[1]").unwrap()), false),
        ] {
            let reply = ToolReply { content, structured, is_error, meta: None };
            assert!(is_plain(&reply));
            let result = ServerResult::Tool(reply.clone());
            for revision in Revision::ALL {
                let (mut plainly, mut generally) = (Vec::new(), Vec::new());
                let lowered = Lowered::new(&result, revision);
                lowered.part(&reply).write_plainly(&server, &mut plainly);
                append_json(&mut generally, &Spoken { result: lowered, server: &server });
                assert_eq!(String::from_utf8(plainly), String::from_utf8(generally));
            }
        }
    }
}
