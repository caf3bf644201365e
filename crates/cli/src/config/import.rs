//! `mcpServers` JSON, as Claude, Cursor, VS Code and others write it.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;

use super::json::Entries;
use super::mistake::{Mistake, Mistakes, Text};
use super::upstream::Upstream;

/// A server, as written. Members that only a client needs, such as the tools that it may call
/// without asking, are not read.
struct Server<'j>(&'j Map<String, Value>);

impl<'j> Server<'j> {
    /// The first of these members, unless it is null.
    fn member(&self, names: &[&'static str]) -> Option<(&'static str, &'j Value)> {
        let mut members = names.iter().filter_map(|name| Some((*name, self.0.get(*name)?)));
        members.find(|(_, value)| !value.is_null())
    }

    fn text(&self, names: &[&'static str]) -> Result<Option<String>, String> {
        let Some((name, value)) = self.member(names) else { return Ok(None) };
        let text = value.as_str().map(|text| Some(text.to_owned()));
        text.ok_or_else(|| format!("`{name}`: expected a text"))
    }

    fn table(&self, name: &'static str, example: &str) -> Result<Map<String, Value>, String> {
        let Some((_, value)) = self.member(&[name]) else { return Ok(Map::new()) };
        let table = value.as_object().cloned();
        table.ok_or_else(|| format!("`{name}`: expected an object, e.g. {example}"))
    }

    fn args(&self) -> Result<Vec<String>, String> {
        let Some((_, value)) = self.member(&["args"]) else { return Ok(Vec::new()) };
        let args = value.as_array().and_then(|args| args.iter().map(scalar).collect());
        args.ok_or_else(|| "`args`: expected a list of texts, e.g. [\"-y\", \"pkg\"]".to_owned())
    }

    fn is_disabled(&self) -> Result<bool, String> {
        let Some((_, value)) = self.member(&["disabled"]) else { return Ok(false) };
        value.as_bool().ok_or_else(|| "`disabled`: expected true or false".to_owned())
    }
}

/// The text of a value. Clients take numbers and booleans for their text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
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
    settled(name, value, &place, text)
        .map_err(|reason| text.mistake(place.clone(), format!("server `{name}`: {reason}")))
}

fn settled(
    name: &str,
    value: &Value,
    place: &Range<usize>,
    text: &Text<'_>,
) -> Result<Option<Upstream>, String> {
    let members = value.as_object().ok_or_else(|| {
        "expected an object, e.g. {\"command\": \"npx\", \"args\": [\"-y\", \"pkg\"]}".to_owned()
    })?;
    let server = Server(members);
    if server.is_disabled()? {
        return Ok(None);
    }
    let spanned = |value: String| Spanned::new(place.clone(), value);
    let mut upstream = Upstream::named(spanned(name.to_owned()));
    let args = server.args()?;
    match (server.text(&["command"])?, server.text(&["url", "serverUrl", "httpUrl"])?) {
        (Some(command), None) => {
            let line = std::iter::once(command).chain(args).collect();
            upstream.run = Some(Spanned::new(place.clone(), line));
        }
        (None, Some(url)) => upstream.url = Some(spanned(url)),
        _ => return Err("expected either `command` or `url`".to_owned()),
    }
    if let Some(other) = server.text(&["type"])?.filter(|kind| !KINDS.contains(&kind.as_str())) {
        return Err(format!("unknown type `{other}` (expected {})", KINDS.join(", ")));
    }
    upstream.cwd = server.text(&["cwd"])?.map(spanned);
    let mut env = env_file(server.text(&["envFile"])?.as_deref(), text)?;
    env.extend(server.table("env", "{\"LEVEL\": \"info\"}")?);
    upstream.env = entries(env, place);
    let headers = server.table("headers", "{\"X-Team\": \"docs\"}")?;
    upstream.headers = entries(headers, place);
    Ok(Some(upstream))
}

/// The URL says whether it is HTTP or WebSocket.
const KINDS: [&str; 7] =
    ["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse", "ws"];

fn entries(members: Map<String, Value>, place: &Range<usize>) -> Option<Entries> {
    let entry = |(name, value): (String, Value)| {
        let value = scalar(&value).unwrap_or_else(|| value.to_string());
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
            ("{\"mcpServers\":{\"a\":{\"command\":7}}}", "server `a`: `command`: expected a text"),
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
