//! The result of a tool from the answer of an API.

use sabir_openapi::{Answer, Content as Body};
use sabir_wire::types::{Content, ResourceContents, ToolReply};
use sabir_wire::{Caller, Raw};

use super::stored::Stored;

/// How much of an answer a result contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// The bytes of text. The whole text is a resource then.
    pub text: usize,
    /// The bytes of an image, a sound or a file. A larger one is a resource.
    pub bytes: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self { text: 64 << 10, bytes: 2 << 20 }
    }
}

/// The result for a caller. `is_structured`: JSON is structured content too.
pub(super) fn reply(
    answer: Answer,
    caller: &Caller,
    limits: ReplyLimits,
    stored: &Stored,
    is_structured: bool,
) -> ToolReply {
    if let Some(error) = answer.error {
        let notes = answer.notes.into_iter().map(Content::text);
        return notes.fold(ToolReply::failed(error), ToolReply::and);
    }
    let mut reply = ToolReply::default();
    match answer.content {
        Body::Empty => {}
        Body::Json(text) => {
            if is_structured {
                reply.structured = Raw::parse(text.clone()).ok();
            }
            reply = add_text(reply, text, "application/json", caller, limits, stored);
        }
        Body::Text(text, media) => {
            reply = add_text(reply, text, &media, caller, limits, stored);
        }
        Body::Bytes(bytes, media) if bytes.len() > limits.bytes => {
            let said = format!("The answer is a file of {} bytes ({media}).", bytes.len());
            let link = stored.keep(caller, &media, bytes);
            reply = reply.and(Content::text(said)).and(Content::link(link));
        }
        Body::Bytes(bytes, media) => {
            reply = reply.and(match media.split('/').next() {
                Some("image") => Content::image(&bytes, media),
                Some("audio") => Content::audio(&bytes, media),
                _ => Content::resource(ResourceContents::blob("api:answer", media, &bytes)),
            });
        }
    }
    answer.notes.into_iter().map(Content::text).fold(reply, ToolReply::and)
}

/// Adds a text, or its beginning and a link to the whole.
fn add_text(
    reply: ToolReply,
    text: String,
    media: &str,
    caller: &Caller,
    limits: ReplyLimits,
    stored: &Stored,
) -> ToolReply {
    if text.len() <= limits.text {
        return reply.and(Content::text(text));
    }
    let end = (0..=limits.text).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let said = format!(
        "The answer is cut after {end} of {} bytes. The linked resource has all of it.",
        text.len()
    );
    let head = text[..end].to_owned();
    let link = stored.keep(caller, media, text.into_bytes());
    reply.and(Content::text(head)).and(Content::text(said)).and(Content::link(link))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, limit: usize) -> (ToolReply, Stored) {
        let stored = Stored::new("x");
        let media = |name: &str| (name == "content-type").then_some("text/plain");
        let answer = Answer::read(200, media, text.as_bytes().to_vec(), "https://x.test");
        let limits = ReplyLimits { text: limit, bytes: 10 };
        (reply(answer, &Caller::local(), limits, &stored, false), stored)
    }

    #[test]
    fn a_long_answer_is_cut_at_its_limit_and_whole_as_a_resource() {
        assert_eq!(cut("abcde", 5).0, ToolReply::text("abcde"));
        let (reply, stored) = cut("abcdé", 5);
        assert_eq!(reply.content[0], Content::text("abcd"));
        let sabir_wire::types::ContentKind::Link(link) = &reply.content[2].kind else {
            panic!("{reply:?}")
        };
        let whole = stored.read(&Caller::local(), &link.uri).unwrap();
        assert_eq!(whole.body.as_text(), Some("abcdé"));
    }
}
