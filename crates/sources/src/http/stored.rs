//! Answers that are too long for a result. A client reads them as resources.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use sabir_wire::Caller;
use sabir_wire::types::{Resource, ResourceContents};

/// How many answers are kept. When there are more, the caller with the most loses its oldest.
const MAX_ANSWERS: usize = 64;

/// How many bytes all answers have. When there are more, the caller with the most loses its oldest.
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
            let at = oldest_of_the_largest(&answers);
            let dropped = answers.remove(at);
            total -= dropped.map_or(0, |stock| stock.bytes.len());
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

/// The place of the oldest answer of the caller that holds the most, so that one caller does not
/// displace the answers of others. The newest answer is kept in any case.
fn oldest_of_the_largest(answers: &VecDeque<Stock>) -> usize {
    let weight = |stock: &Stock| stock.bytes.len() + MAX_BYTES / MAX_ANSWERS;
    let held = |caller: &Caller| -> usize {
        answers.iter().filter(|stock| stock.caller.is_same_as(caller)).map(weight).sum()
    };
    let older = answers.iter().take(answers.len().saturating_sub(1)).enumerate();
    // The first of several with the same weight.
    older.rev().max_by_key(|(_, stock)| held(&stock.caller)).map_or(0, |(at, _)| at)
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
        let bobs: Vec<_> =
            (0..MAX_ANSWERS).map(|_| stored.keep(&bob, "text/plain", Vec::new()).uri).collect();
        assert!(stored.read(&ann, &first).is_some(), "another caller displaced it");
        assert!(stored.read(&bob, &bobs[0]).is_none());
        assert!(stored.read(&bob, &bobs[1]).is_some());
        let large = stored.keep(&ann, "a/b", vec![0xff; MAX_BYTES]).uri;
        assert!(stored.read(&ann, &large).is_some());
        stored.keep(&ann, "a/b", vec![0; 1]);
        assert!(stored.read(&ann, &large).is_none());
    }
}
