//! Media types.

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BodyKind {
    Json,
    Form,
    Multipart,
    Text,
    Bytes,
}

/// The type and subtype in lower case, without parameters.
pub(crate) fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether the type is JSON: `application/json`, `application/problem+json`, `text/json`, …
pub(crate) fn is_json(media: &str) -> bool {
    let essence = essence(media);
    let subtype = essence.split('/').nth(1).unwrap_or_default();
    subtype == "json" || subtype.ends_with("+json") || subtype == "x-json"
}

/// Whether the body is text that a person can read.
pub(crate) fn is_text(media: &str) -> bool {
    const TEXTS: [&str; 10] = [
        "xml",
        "javascript",
        "yaml",
        "x-yaml",
        "x-ndjson",
        "jsonl",
        "sql",
        "graphql",
        "toml",
        "x-www-form-urlencoded",
    ];
    let essence = essence(media);
    let (kind, subtype) = essence.split_once('/').unwrap_or_default();
    kind == "text" || is_json(&essence) || subtype.ends_with("+xml") || TEXTS.contains(&subtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_suffix_too() {
        for json in ["application/json; charset=utf-8", "application/vnd.api+JSON", "text/json"] {
            assert!(is_json(json) && is_text(json), "{json}");
        }
        for text in ["text/csv", "application/xml", "image/svg+xml"] {
            assert!(is_text(text) && !is_json(text), "{text}");
        }
        for bytes in ["application/octet-stream", "image/png", "json", ""] {
            assert!(!is_text(bytes) && !is_json(bytes), "{bytes}");
        }
    }
}
