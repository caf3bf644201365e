//! WebSocket: the handshake, and one message per text frame.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::answer::{Answer, read_answer};

/// A complete text frame.
const TEXT: u8 = 0x81;
/// The bits of the second byte: a mask follows; the length.
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// Asks the server for a WebSocket.
pub(super) fn shake_hands(stream: &mut TcpStream, address: SocketAddr) -> io::Result<()> {
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: {address}\r\nUser-Agent: bench/1.0\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    // What follows the head belongs to the WebSocket.
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    match read_answer(&head).map_err(io::Error::other)? {
        Some(answer) if answer.status == 101 => Ok(()),
        _ => Err(io::Error::other(String::from_utf8_lossy(&head).into_owned())),
    }
}

/// A message as a client sends it. The mask is all zeros, so that the id can be replaced in place;
/// the server applies it all the same.
pub(super) fn frame(message: &str) -> Vec<u8> {
    let mut frame = vec![TEXT];
    match message.len() {
        short @ ..126 => frame.push(MASKED | short as u8),
        middle @ ..0x1_0000 => {
            frame.push(MASKED | 126);
            frame.extend((middle as u16).to_be_bytes());
        }
        long => {
            frame.push(MASKED | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(message.as_bytes());
    frame
}

/// Parses the frame at the beginning of `input`. Returns `None` if it is not complete.
pub(super) fn read_frame(input: &[u8]) -> Result<Option<Answer<'_>>, String> {
    let Some((&[first, second], rest)) = input.split_first_chunk() else { return Ok(None) };
    if first != TEXT || second & MASKED != 0 {
        return Err(format!("unexpected frame {first:#x} {second:#x}"));
    }
    let (size, begin) = match (second & LENGTH, rest) {
        (126, [a, b, ..]) => (usize::from(u16::from_be_bytes([*a, *b])), 4),
        (127, [a, b, c, d, e, f, g, h, ..]) => {
            let size = u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
            (usize::try_from(size).map_err(|error| error.to_string())?, 10)
        }
        (126 | 127, _) => return Ok(None),
        (short, _) => (usize::from(short), 2),
    };
    let body = input.get(begin..begin + size);
    Ok(body.map(|body| Answer {
        status: 200,
        body: Cow::Borrowed(body),
        session: None,
        length: begin + size,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_has_three_forms() {
        for (size, head) in [(125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
            let mut frame = frame(&"x".repeat(size));
            assert_eq!(frame.len(), head + 4 + size);
            // As a server sends it: without a mask.
            frame.drain(head..head + 4);
            frame[1] &= LENGTH;
            for short in [0, 1, head, head + size - 1] {
                assert!(read_frame(&frame[..short]).unwrap().is_none(), "{size}: {short}");
            }
            frame.extend(b"next");
            let answer = read_frame(&frame).unwrap().unwrap();
            assert_eq!((answer.body.len(), answer.length), (size, head + size));
        }
        assert!(read_frame(&[0x88, 0]).is_err(), "a close frame was read as an answer");
    }
}
