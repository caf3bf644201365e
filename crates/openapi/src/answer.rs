//! Reads a response: its body by its type, the API's own error message, and the next page.

use serde_json::Value;

use crate::link::next_page;
use crate::media::{essence, is_json, is_text};
use crate::words::shortened;

/// The limit of an error message in characters.
const MAX_MESSAGE: usize = 2000;

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Empty,
    /// JSON, as the API wrote it.
    Json(String),
    /// Another text, and its media type.
    Text(String, String),
    /// Bytes, and their media type: an image, a sound, an archive.
    Bytes(Vec<u8>, String),
}

/// A parsed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The API's message, if the status is an error.
    pub error: Option<String>,
    /// The content.
    pub content: Content,
    /// Hints for the caller: the next page, the location of a created resource.
    pub notes: Vec<String>,
}

impl Answer {
    /// Reads a response. `header` returns the value of a header by its name in lower case.
    pub fn read<'h>(
        status: u16,
        header: impl Fn(&str) -> Option<&'h str>,
        body: Vec<u8>,
        url: &str,
    ) -> Self {
        let content = content(header("content-type"), body);
        let error = (status >= 400).then(|| error(status, &content));
        let mut notes = Vec::new();
        if error.is_none() {
            let next = header("link").and_then(|link| next_page(link, url));
            // Some APIs have a header of their own, which is the URL.
            let other = || next_page(&format!("<{}>; rel=next", header("next-page")?), url);
            notes.extend(next.or_else(other));
            if let Some(place) = header("location") {
                notes.push(format!("Location: {}", shortened(place, 500)));
            }
        } else if let Some(time) = header("retry-after") {
            notes.push(format!(
                "The API asks to wait before the next call: {}",
                shortened(time, 40)
            ));
        }
        if content == Content::Empty && error.is_none() {
            notes.insert(0, format!("HTTP {status} {}", reason(status)).trim_end().to_owned());
        }
        Self { status, error, content, notes }
    }
}

fn content(media: Option<&str>, body: Vec<u8>) -> Content {
    if body.is_empty() {
        return Content::Empty;
    }
    let essence = media.map(essence).unwrap_or_default();
    let is_latin = media.is_some_and(|media| {
        let media = media.to_ascii_lowercase();
        media.contains("charset=iso-8859-1") || media.contains("charset=windows-1252")
    });
    if is_latin && is_text(&essence) {
        return Content::Text(body.iter().map(|byte| char::from(*byte)).collect(), essence);
    }
    match String::from_utf8(body) {
        // Some APIs send JSON as `text/plain`, or without a type.
        Ok(text) if is_json(&essence) || (essence.is_empty() && is_json_text(&text)) => {
            if is_json_text(&text) {
                Content::Json(text)
            } else {
                Content::Text(text, essence)
            }
        }
        Ok(text) if is_text(&essence) => Content::Text(text, essence),
        Ok(text) if essence.is_empty() => Content::Text(text, "text/plain".to_owned()),
        Err(error) if is_text(&essence) => {
            Content::Text(String::from_utf8_lossy(error.as_bytes()).into_owned(), essence)
        }
        other => {
            let bytes = other.map_or_else(|error| error.into_bytes(), String::into_bytes);
            let unknown = "application/octet-stream".to_owned();
            Content::Bytes(bytes, if essence.is_empty() { unknown } else { essence })
        }
    }
}

fn is_json_text(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The status and the API's own message.
fn error(status: u16, content: &Content) -> String {
    let message = match content {
        Content::Empty | Content::Bytes(..) => String::new(),
        Content::Text(text, media) if media.contains("html") => {
            // An HTML page: its title says most.
            let title =
                text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
            shortened(title.map_or("", |(title, _)| title), 200)
        }
        Content::Text(text, _) => shortened(text, MAX_MESSAGE),
        Content::Json(text) => {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            match message(&value, 3) {
                Some(message) if text.len() <= MAX_MESSAGE => {
                    format!("{}\n{text}", shortened(&message, MAX_MESSAGE))
                }
                Some(message) => shortened(&message, MAX_MESSAGE),
                None => shortened(text, MAX_MESSAGE),
            }
        }
    };
    let separator = if message.is_empty() { "" } else { ": " };
    format!("HTTP {status} {}", reason(status)).trim_end().to_owned() + separator + &message
}

/// The message of an error, as problem documents (RFC 9457), OAuth and most APIs name it.
fn message(value: &Value, levels: usize) -> Option<String> {
    const KEYS: [&str; 10] = [
        "detail",
        "message",
        "error_description",
        "errorMessage",
        "error",
        "title",
        "reason",
        "errors",
        "msg",
        "description",
    ];
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Object(members) if levels > 0 => KEYS
            .iter()
            .find_map(|key| members.get(*key).and_then(|inner| message(inner, levels - 1))),
        Value::Array(items) if levels > 0 => {
            let messages: Vec<_> =
                items.iter().take(5).filter_map(|item| message(item, levels - 1)).collect();
            (!messages.is_empty()).then(|| messages.join("; "))
        }
        _ => None,
    }
}

/// The usual words for a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[(&str, &'static str)], body: &[u8]) -> Answer {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, v)| *v);
        Answer::read(status, header, body.to_vec(), "https://x.test/pets?page=1&limit=2")
    }

    #[test]
    fn the_body_is_read_by_its_type() {
        let json = [("content-type", "application/vnd.api+json; charset=utf-8")];
        assert_eq!(read(200, &json, b"{\"n\":1.10}").content, Content::Json("{\"n\":1.10}".into()));
        let text = Content::Text("{oops".into(), "application/vnd.api+json".into());
        assert_eq!(read(200, &json, b"{oops").content, text);
        let png = read(200, &[("content-type", "image/png")], b"\x89PNG");
        assert_eq!(png.content, Content::Bytes(b"\x89PNG".to_vec(), "image/png".into()));
        assert_eq!(read(200, &[], b"[1]").content, Content::Json("[1]".into()));
        assert_eq!(read(200, &[], b"hi").content, Content::Text("hi".into(), "text/plain".into()));
        let latin = [("content-type", "text/plain; charset=ISO-8859-1")];
        assert_eq!(
            read(200, &latin, b"\xe9").content,
            Content::Text("é".into(), "text/plain".into())
        );
        let empty = read(204, &[], b"");
        assert_eq!(
            (empty.content, empty.notes),
            (Content::Empty, vec!["HTTP 204 No Content".into()])
        );
    }

    #[test]
    fn an_error_has_the_message_of_the_api() {
        let json = [("content-type", "application/json"), ("retry-after", "3")];
        let message = |body: &str| read(404, &json, body.as_bytes()).error.unwrap();
        assert_eq!(
            message(r#"{"error":{"code":5,"message":"no such pet"}}"#),
            "HTTP 404 Not Found: no such pet\n{\"error\":{\"code\":5,\"message\":\"no such pet\"}}"
        );
        assert!(
            message(r#"{"errors":[{"message":"a"},"b"]}"#)
                .starts_with("HTTP 404 Not Found: a; b\n")
        );
        assert_eq!(message("{}"), "HTTP 404 Not Found: {}");
        assert_eq!(read(500, &[], b"").error.unwrap(), "HTTP 500 Internal Server Error");
        let html = read(502, &[("content-type", "text/html")], b"<html><title>Oh no</title>");
        assert_eq!(html.error.unwrap(), "HTTP 502 Bad Gateway: Oh no");
        assert_eq!(read(429, &json, b"{}").notes, ["The API asks to wait before the next call: 3"]);
    }

    #[test]
    fn the_next_page_is_told_in_words() {
        let link = [(
            "link",
            "<https://x.test/pets?page=2&limit=2>; rel=\"next\", <https://x.test/pets?page=9>; rel=last",
        )];
        assert_eq!(
            read(200, &link, b"[]").notes,
            ["There are more results. For the next page call again with page = 2"]
        );
    }
}
