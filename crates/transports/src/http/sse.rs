//! Server-sent events: one message, one event, one `data` line.

use bytes::Bytes;

/// Appends one event. `id` lets the client resume the stream after it.
pub(crate) fn write(out: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    if let Some(id) = id {
        line(out, b"id: ", id.as_bytes());
    }
    line(out, b"data: ", data);
    out.push(b'\n');
}

/// Appends one event with an event type.
pub(crate) fn write_kind(out: &mut Vec<u8>, kind: &str, data: &[u8]) {
    line(out, b"event: ", kind.as_bytes());
    line(out, b"data: ", data);
    out.push(b'\n');
}

/// An event without data, whose id lets a client resume the stream.
pub(crate) fn prime(id: &str, retry_ms: u128) -> Bytes {
    format!("id: {id}\nretry: {retry_ms}\ndata:\n\n").into()
}

/// Tells a client how long to wait before it reconnects.
pub(crate) fn retry(retry_ms: u128) -> Bytes {
    format!("retry: {retry_ms}\n\n").into()
}

/// A comment, which clients ignore.
pub(crate) fn keep_alive() -> Bytes {
    Bytes::from_static(b":\n\n")
}

fn line(out: &mut Vec<u8>, field: &[u8], value: &[u8]) {
    out.extend_from_slice(field);
    // Our own messages have no line break, but raw JSON of a source may: there it can only be white
    // space.
    if memchr::memchr2(b'\n', b'\r', value).is_none() {
        out.extend_from_slice(value);
    } else {
        out.extend(
            value.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }),
        );
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_data_and_a_blank_line() {
        let mut out = Vec::new();
        write(&mut out, None, br#"{"a":1}"#);
        write(&mut out, Some("p1-2"), br#"{"b":2}"#);
        write_kind(&mut out, "endpoint", b"/messages");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "data: {\"a\":1}\n\nid: p1-2\ndata: {\"b\":2}\n\nevent: endpoint\ndata: /messages\n\n"
        );
    }

    #[test]
    fn a_line_break_in_a_message_does_not_end_its_event() {
        let mut out = Vec::new();
        write(&mut out, None, b"{\r\n}");
        assert_eq!(out, b"data: {  }\n\n");
    }
}
