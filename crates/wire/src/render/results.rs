//! Results, with the members that each revision requires in all of them.

use bytes::Bytes;

use crate::id::Id;
use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, SERVER, write_object};
use crate::message::write_result;
use crate::method::Method;
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{Content, ContentKind, ListPage, Listed, Relayed, ServerResult};

/// The response to request `id`. `server` is our identity, for revisions that require it in every
/// result.
pub fn response(id: &Id, result: &ServerResult, revision: Revision, server: &Raw) -> Bytes {
    if let ServerResult::Ready(json) = result {
        return write_result(id, json);
    }
    let mut out = Vec::with_capacity(server.as_bytes().len() + text_length(result) + 256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","result":"#);
    write(result, revision.features(), server, &mut out);
    out.push(b'}');
    out.into()
}

/// The result alone, as in [`response`]: for [`ServerResult::Ready`].
pub fn result(result: &ServerResult, revision: Revision, server: &Raw) -> Bytes {
    let mut out = Vec::with_capacity(server.as_bytes().len() + text_length(result) + 256);
    write(result, revision.features(), server, &mut out);
    out.into()
}

/// The estimated length of the result.
fn text_length(result: &ServerResult) -> usize {
    let length = |content: &Content| match &content.kind {
        ContentKind::Text(text) => text.len() + text.len() / 16 + 32,
        _ => 256,
    };
    match result {
        ServerResult::Tool(reply) => {
            let structured = reply.structured.as_ref().map_or(0, |value| value.as_bytes().len());
            reply.content.iter().map(length).sum::<usize>() + structured
        }
        ServerResult::Relayed(relayed) => relayed.json.as_bytes().len(),
        ServerResult::Resource(_) => result.size() + result.size() / 16,
        _ => 0,
    }
}

fn write(result: &ServerResult, to: &'static Features, server: &Raw, out: &mut Vec<u8>) {
    let server = Some(server);
    match result {
        ServerResult::Empty => write_object(&Bare(None), to, server, out),
        ServerResult::Listened(id) => write_object(&Bare(Some(id)), to, server, out),
        ServerResult::InitializeResult(result) => write_object(result.as_ref(), to, server, out),
        ServerResult::DiscoverResult(result) => write_object(result.as_ref(), to, server, out),
        ServerResult::Ready(json) => out.extend_from_slice(json),
        ServerResult::Tool(reply) => write_object(reply, to, server, out),
        ServerResult::Prompt(reply) => write_object(reply, to, server, out),
        ServerResult::Resource(reply) => write_object(reply, to, server, out),
        ServerResult::Completion(completion) => write_object(completion, to, server, out),
        ServerResult::InputRequired(questions) => write_object(questions, to, server, out),
        ServerResult::Relayed(relayed) => write_relayed(relayed, to, server, out),
    }
}

/// A result of another server. Since 2025-11-25 only members at its top differ between revisions;
/// for older clients it is parsed, unless it does not fit its method.
fn write_relayed(
    relayed: &Relayed,
    to: &'static Features,
    server: Option<&Raw>,
    out: &mut Vec<u8>,
) {
    let Relayed { method, json } = relayed;
    if !to.icons {
        match ServerResult::read(method, json) {
            Ok(ServerResult::Relayed(_)) | Err(_) => {}
            Ok(result) => return write(&result, to, server.unwrap_or(json), out),
        }
    }
    let members = json.named_members().unwrap_or_default();
    let member = |name| members.iter().find(|(found, _)| &**found == name).map(|(_, value)| value);
    let meta = member("_meta").cloned();
    let mut changes = Vec::new();
    let meta = match (to.stateless, meta) {
        (true, meta) => {
            if member("resultType").is_none() {
                changes.push(("resultType", Some(r#""complete""#)));
            }
            let own = meta.unwrap_or_else(Raw::empty_object);
            Some(own.with_members(&[(SERVER, server.map(Raw::text))]))
        }
        (false, meta) => {
            changes.push(("resultType", None));
            // The cache hints of an extension are the same in every revision.
            if *method != Method::GetSkill {
                changes.extend(["ttlMs", "cacheScope"].map(|name| (name, None)));
            }
            if member("structuredContent").is_some_and(|value| !value.is_object()) {
                changes.push(("structuredContent", None));
            }
            meta.map(|own| own.with_members(&[(SERVER, None)]))
        }
    };
    changes.push(("_meta", meta.as_ref().map(Raw::text)));
    crate::json::write_changed(&members, &changes, out);
}

/// Writes a page of a list; `server` as in [`response`].
pub fn page<T: Listed>(page: &ListPage<'_, T>, revision: Revision, server: &Raw) -> Vec<u8> {
    let mut out = Vec::new();
    write_object(page, revision.features(), Some(server), &mut out);
    out
}

/// A result without members of its own; that of a subscription names the subscription.
struct Bare<'a>(Option<&'a Id>);

impl Object for Bare<'_> {
    fn read_members(_: &mut MemberReader) -> Result<Self, Invalid> {
        Ok(Self(None))
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        writer.result_type("complete");
        writer.subscription_meta("_meta", &None, self.0);
    }

    fn extra(&self, _: &Features) -> &Extra {
        Extra::none()
    }
}
