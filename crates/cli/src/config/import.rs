//! `mcpServers` JSON, as Claude, Cursor, VS Code and others write it.

use std::ops::Range;

use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::json::Entries;
use super::mistake::{Mistake, Mistakes, Text};
use super::upstream::Upstream;

/// A server, as written. Members that only a client needs, such as the tools that it may call
/// without asking, are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Server {
    r#type: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: Map<String, Value>,
    env_file: Option<String>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    headers: Map<String, Value>,
    disabled: bool,
}

/// The upstreams of a file. Those that are disabled are left out.
pub(super) fn upstreams(text: &Text<'_>) -> Result<Vec<Upstream>, Mistakes> {
    let json = plain_json(text.text);
    let file: Value = serde_json::from_str(&json).map_err(|error| {
        let place = line_start(text.text, error.line());
        text.mistake(place..place, format!("invalid JSON: {error}"))
    })?;
    let places = ["/mcpServers", "/servers", "/mcp/servers", "/context_servers"];
    let servers = places.iter().find_map(|place| file.pointer(place)?.as_object());
    let servers = servers.ok_or_else(|| {
        let what = "no servers in this file (expected an object `mcpServers` or `servers`)";
        text.mistake(0..0, what)
    })?;
    let upstreams = servers.iter().map(|(name, value)| upstream(name, value, text));
    Ok(Mistakes::all(upstreams)?.into_iter().flatten().collect())
}

fn upstream(name: &str, value: &Value, text: &Text<'_>) -> Result<Option<Upstream>, Mistake> {
    let place = place_of(name, text.text);
    let wrong = |what: &str| text.mistake(place.clone(), format!("server `{name}`: {what}"));
    let server: Server =
        serde_json::from_value(value.clone()).map_err(|error| wrong(&error.to_string()))?;
    if server.disabled {
        return Ok(None);
    }
    let spanned = |value: String| Spanned::new(place.clone(), value);
    let mut upstream = Upstream::named(spanned(name.to_owned()));
    match (&server.command, &server.url) {
        (Some(command), None) => {
            let line = std::iter::once(command).chain(&server.args);
            upstream.run = Some(Spanned::new(place.clone(), line.cloned().collect()));
        }
        (None, Some(url)) => upstream.url = Some(spanned(url.clone())),
        _ => return Err(wrong("expected either `command` or `url`")),
    }
    if let Some(other) = server.r#type.as_deref().filter(|kind| !KINDS.contains(kind)) {
        return Err(wrong(&format!("unknown type `{other}` (expected {})", KINDS.join(", "))));
    }
    upstream.cwd = server.cwd.map(spanned);
    let mut env = env_file(server.env_file.as_deref(), text).map_err(|reason| wrong(&reason))?;
    env.extend(server.env);
    upstream.env = entries(env, &place);
    upstream.headers = entries(server.headers, &place);
    Ok(Some(upstream))
}

/// The URL says whether it is HTTP or WebSocket.
const KINDS: [&str; 7] =
    ["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse", "ws"];

/// Clients take numbers and booleans for their text.
fn entries(members: Map<String, Value>, place: &Range<usize>) -> Option<Entries> {
    let entry = |(name, value): (String, Value)| {
        let value = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        (Spanned::new(place.clone(), name), toml::Value::String(value))
    };
    (!members.is_empty()).then(|| Entries(members.into_iter().map(entry).collect()))
}

/// The variables of a file with lines `NAME=value`.
fn env_file(path: Option<&str>, text: &Text<'_>) -> Result<Map<String, Value>, String> {
    let Some(path) = path else { return Ok(Map::new()) };
    let path = super::expand::expand(path, text)?;
    let lines = text
        .read_secret(&path)
        .map_err(|error| format!("cannot read {}: {error}", text.resolve(&path).display()))?;
    let lines = lines.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = value.trim();
        let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
        let value = inner('"').or_else(|| inner('\'')).unwrap_or(value);
        Some((name.trim().to_owned(), value.into()))
    });
    Ok(pairs.collect())
}

/// The text without comments and trailing commas, which editors allow. Places stay the same.
fn plain_json(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let (mut at, mut comma) = (0, None);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => {
                comma = None;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            (b'/', Some(b'/')) => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    bytes[at] = b' ';
                    at += 1;
                }
            }
            (b'/', Some(b'*')) => {
                let end = text[at + 2..].find("*/").map_or(bytes.len(), |end| at + end + 4);
                for byte in bytes[at..end].iter_mut().filter(|byte| **byte != b'\n') {
                    *byte = b' ';
                }
                at = end;
                continue;
            }
            (b',', _) => comma = Some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            (byte, _) if !byte.is_ascii_whitespace() => comma = None,
            _ => {}
        }
        at += 1;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The place of a member's name.
fn place_of(name: &str, text: &str) -> Range<usize> {
    let quoted = Value::from(name).to_string();
    let mut found = text.match_indices(&quoted);
    let is_name = |end: usize| text[end..].trim_start().starts_with(':');
    let at = found.find(|(at, quoted)| is_name(at + quoted.len())).map_or(0, |(at, _)| at);
    at..at + quoted.len()
}

fn line_start(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(json: &str) -> Result<Vec<Upstream>, Mistakes> {
        upstreams(&Text::new(Path::new("/x/.mcp.json"), json))
    }

    #[test]
    fn the_files_of_known_clients_are_read() {
        for file in [
            r#"{"mcpServers":{"a b":{"command":"npx","args":["-y","x"],"env":{"N":1}},"off":{"command":"x","disabled":true}}}"#,
            "{ // comment\n\"servers\": {\"a b\": {\"type\":\"stdio\",\"command\":\"npx\",/* x */\"args\":[\"-y\",\"x\",],\"env\":{\"N\":\"1\"},},}, \"inputs\":[]}",
            r#"{"mcp":{"servers":{"a b":{"command":"npx","args":["-y","x"],"env":{"N":"1"},"alwaysAllow":["x"]}}}}"#,
        ] {
            let found = read(file).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].name.get_ref(), "a b");
            assert_eq!(found[0].run.as_ref().unwrap().get_ref(), &["npx", "-y", "x"]);
            let env = &found[0].env.as_ref().unwrap().0[0];
            assert_eq!((&**env.0.get_ref(), env.1.as_str()), ("N", Some("1")));
        }
        for url in ["url", "serverUrl", "httpUrl"] {
            let found = read(&format!(r#"{{"mcpServers":{{"w":{{"{url}":"https://w/mcp"}}}}}}"#));
            assert_eq!(found.unwrap()[0].url.as_ref().unwrap().get_ref(), "https://w/mcp");
        }
    }

    #[test]
    fn mistakes_have_their_lines() {
        for (file, expected) in [
            ("{\n\"mcpServers\": [\n}", "invalid JSON: "),
            ("{}", "no servers in this file"),
            (
                "{\"mcpServers\":{\n\"a\":{}}}",
                "server `a`: expected either `command` or `url`\n  --> /x/.mcp.json:2",
            ),
            (
                "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"type\":\"carrier pigeon\"}}}",
                "server `a`: unknown type `carrier pigeon`",
            ),
            ("{\"mcpServers\":{\"a\":{\"command\":7}}}", "server `a`: invalid type"),
        ] {
            let error = read(file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_comment_in_a_string_is_none() {
        let json = r#"{"a":"http://x, ]","b":[1,/*,*/2,]} // end"#;
        let plain: Value = serde_json::from_str(&plain_json(json)).unwrap();
        assert_eq!(plain, serde_json::json!({ "a": "http://x, ]", "b": [1, 2] }));
    }
}
