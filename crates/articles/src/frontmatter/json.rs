//! Frontmatter in JSON, as Hugo has it: an object whose first line is `{`.

use serde_json::{Deserializer, Map};

use super::{Frontmatter, LARGEST};
use crate::value::{Field, Value};
use crate::yaml::{self, Fault};

/// The frontmatter and the text of a file that begins with an object.
pub(super) fn split(file: &str) -> Option<(Frontmatter, &str)> {
    if file.lines().next()?.trim_end() != "{" {
        return None;
    }
    let mut objects = Deserializer::from_str(file).into_iter::<Map<String, serde_json::Value>>();
    match objects.next()? {
        Ok(object) => {
            let (inside, rest) = file.split_at(objects.byte_offset());
            let line = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let is_alone = inside.len() <= LARGEST && rest[..line].trim().is_empty();
            is_alone.then(|| (read(inside, object), &rest[line..]))
        }
        Err(error) => Some(invalid(file, &error)),
    }
}

fn read(text: &str, object: Map<String, serde_json::Value>) -> Frontmatter {
    let line_of = |key: &str| {
        let at = text.find(&serde_json::Value::from(key).to_string()).unwrap_or(0);
        1 + text[..at].matches('\n').count()
    };
    let fields = object.into_iter().map(|(key, it)| {
        let line = line_of(&key);
        Field { key, line, value: value(it) }
    });
    let mut fields: Vec<Field> = fields.collect();
    fields.sort_by_key(|field| field.line);
    Frontmatter { fields, ..Frontmatter::default() }
}

/// Reads an object with mistakes as YAML, which allows more, up to the line that closes it.
fn invalid<'a>(file: &'a str, error: &serde_json::Error) -> (Frontmatter, &'a str) {
    let mut end = 0;
    for line in file.split_inclusive('\n') {
        end += line.len();
        if line.trim_end() == "}" || end > LARGEST {
            break;
        }
    }
    let (inside, rest) = file.split_at(end);
    if !inside.trim_end().ends_with("\n}") {
        return (Frontmatter { unclosed: true, ..Frontmatter::default() }, file);
    }
    let fault = Fault { line: error.line().max(1), message: format!("invalid JSON: {error}") };
    let fields = yaml::read(inside).map_or_else(Vec::new, |reading| reading.fields);
    (Frontmatter { fields, faults: vec![fault], unclosed: false }, rest)
}

fn value(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(items) => {
            Value::List(items.into_iter().map(self::value).collect())
        }
        serde_json::Value::Object(entries) => {
            Value::Map(entries.into_iter().map(|(key, it)| (key, self::value(it))).collect())
        }
        other => Value::Bare(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_above_the_text_is_frontmatter() {
        let file = "{\n  \"title\": \"A \\\"title\\\"\",\n  \"tags\": [\"a\", \"b\"],\n  \"draft\": true\n}\n\n# Text\n";
        let (matter, text) = split(file).unwrap();
        assert_eq!(text, "\n# Text\n");
        let shown: Vec<_> =
            matter.fields.iter().map(|it| (it.line, it.key.as_str(), it.value.json())).collect();
        let tags = serde_json::json!(["a", "b"]);
        assert_eq!(
            shown,
            [(2, "title", "A \"title\"".into()), (3, "tags", tags), (4, "draft", true.into())]
        );
        assert!(matter.faults.is_empty() && !matter.unclosed);
        for other in ["{ a }\n", "{}\n", "{\n\"a\": 1\n} text\n", "text\n", ""] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn a_draft_in_invalid_json_stays_one() {
        let (matter, text) = split("{\n  \"draft\": true,\n}\nText\n").unwrap();
        assert_eq!(text, "Text\n");
        let draft = matter.named(&["draft"]).next().unwrap();
        assert_eq!((draft.line, draft.value.truth()), (2, Some(true)));
        assert_eq!(matter.faults.len(), 1);
        assert!(split("{\n  \"draft\": tr").unwrap().0.unclosed);
    }
}
