//! Answers that are too long for a result. A client reads them as resources.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use sabir_wire::Caller;
use sabir_wire::types::{Resource, ResourceContents};

/// How many answers are kept. The oldest is dropped when there are more.
const MAX_ANSWERS: usize = 64;

/// How many bytes all answers have. The oldest are dropped when there are more.
const MAX_BYTES: usize = 64 << 20;

/// The answers of one source, by URI.
#[derive(Debug)]
pub(super) struct Stored {
    prefix: String,
    answers: Mutex<VecDeque<Stock>>,
}

#[derive(Debug)]
struct Stock {
    uri: String,
    caller: Caller,
    media: String,
    bytes: Bytes,
}

impl Stored {
    /// Answers of the source `name`.
    pub(super) fn new(name: &str) -> Self {
        Self { prefix: format!("api://{name}/answers/"), answers: Mutex::default() }
    }

    /// The template of their URIs.
    pub(super) fn template(&self) -> String {
        format!("{}{{id}}", self.prefix)
    }

    /// Keeps an answer for its caller, and gives the link to it.
    pub(super) fn keep(&self, caller: &Caller, media: &str, bytes: Vec<u8>) -> Resource {
        let uri = format!("{}{}", self.prefix, nanoid::nanoid!());
        let size = Some(bytes.len() as u64);
        let stock = Stock {
            uri: uri.clone(),
            caller: caller.clone(),
            media: media.to_owned(),
            bytes: bytes.into(),
        };
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push_back(stock);
        let mut total: usize = answers.iter().map(|stock| stock.bytes.len()).sum();
        while answers.len() > MAX_ANSWERS || (total > MAX_BYTES && answers.len() > 1) {
            total -= answers.pop_front().map_or(0, |oldest| oldest.bytes.len());
        }
        let mime_type = Some(media.to_owned());
        Resource { uri, name: "answer".to_owned(), mime_type, size, ..Resource::default() }
    }

    /// The answer at a URI, if it is this caller's.
    pub(super) fn read(&self, caller: &Caller, uri: &str) -> Option<ResourceContents> {
        let (media, bytes) = {
            let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let mut own = answers.iter().filter(|stock| stock.caller.is_same_as(caller));
            let found = own.find(|stock| stock.uri == uri)?;
            (found.media.clone(), found.bytes.clone())
        };
        Some(match std::str::from_utf8(&bytes) {
            Ok(text) => ResourceContents::text(uri, media, text),
            Err(_) => ResourceContents::blob(uri, media, &bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_belong_to_their_caller_and_the_oldest_are_dropped() {
        let stored = Stored::new("pets");
        let (ann, bob) = (Caller::new("i", "ann"), Caller::new("i", "bob"));
        let first = stored.keep(&ann, "text/plain", b"hi".to_vec()).uri;
        assert!(first.starts_with("api://pets/answers/"));
        assert_eq!(stored.read(&ann, &first).unwrap().body.as_text(), Some("hi"));
        assert!(stored.read(&bob, &first).is_none());
        for _ in 0..MAX_ANSWERS - 1 {
            stored.keep(&bob, "text/plain", Vec::new());
        }
        assert!(stored.read(&ann, &first).is_some());
        stored.keep(&bob, "text/plain", Vec::new());
        assert!(stored.read(&ann, &first).is_none());
        let large = stored.keep(&ann, "a/b", vec![0xff; MAX_BYTES]).uri;
        assert!(stored.read(&ann, &large).is_some());
        stored.keep(&ann, "a/b", vec![0; 1]);
        assert!(stored.read(&ann, &large).is_none());
    }
}
