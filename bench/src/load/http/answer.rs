//! Parses HTTP responses.

use std::borrow::Cow;

/// A complete response.
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) body: Cow<'a, [u8]>,
    /// The value of `Mcp-Session-Id`.
    pub(super) session: Option<String>,
    /// The length of head and body in bytes.
    pub(super) length: usize,
}

/// Parses the response at the beginning of `input`. Returns `None` if it is not complete.
pub(super) fn read_answer(input: &[u8]) -> Result<Option<Answer<'_>>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let begin = match head.parse(input).map_err(|error| error.to_string())? {
        httparse::Status::Complete(begin) => begin,
        httparse::Status::Partial => return Ok(None),
    };
    let named = |name: &str| {
        let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    let (body, length) = match named("content-length").map(str::parse::<usize>) {
        Some(Ok(size)) if input.len() >= begin + size => {
            (Cow::Borrowed(&input[begin..begin + size]), begin + size)
        }
        Some(Ok(_)) => return Ok(None),
        Some(Err(error)) => return Err(format!("invalid Content-Length: {error}")),
        None if named("transfer-encoding") == Some("chunked") => {
            match join_chunks(&input[begin..])? {
                Some((body, size)) => (Cow::Owned(body), begin + size),
                None => return Ok(None),
            }
        }
        None => (Cow::Borrowed(&[][..]), begin),
    };
    let session = named("mcp-session-id").map(str::to_owned);
    let status = head.code.unwrap_or_default();
    Ok(Some(Answer { status, body, session, length }))
}

/// Joins the chunks of a body. Returns it with the length of its encoding, or `None` if the last
/// chunk is missing.
fn join_chunks(mut input: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, all) = (Vec::new(), input.len());
    loop {
        let (begin, size) = match httparse::parse_chunk_size(input) {
            Ok(httparse::Status::Complete((begin, size))) => (begin, size as usize),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err("invalid chunk size".into()),
        };
        let end = begin + size + 2;
        if input.len() < end {
            return Ok(None);
        }
        body.extend_from_slice(&input[begin..begin + size]);
        input = &input[end..];
        if size == 0 {
            return Ok(Some((body, all - input.len())));
        }
    }
}
