//! A few frames of HTTP/2, written by hand: enough to ask for something and never take it.

/// The preface and settings that allow one byte of each answer.
pub(crate) fn begin() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE (4) = 1
    bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 1]));
    bytes
}

/// A POST on one stream.
pub(crate) fn post(stream: u32, authority: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    let pseudo = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", authority),
        (":path", "/mcp"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    for (name, value) in pseudo.iter().chain(headers) {
        // A literal that is not indexed, neither name nor value compressed.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    // END_HEADERS, then DATA with END_STREAM.
    [frame(1, 4, stream, &block), frame(0, 1, stream, body)].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
