//! The fields at the top of a `SKILL.md`: YAML between two lines of `---`.

use sabir_wire::Raw;
use serde_json::Value;

/// A parsed `SKILL.md`.
#[derive(Debug, PartialEq)]
pub(super) struct Parsed {
    pub(super) name: String,
    pub(super) description: String,
    /// All fields as JSON.
    pub(super) fields: Raw,
    /// The text below.
    pub(super) body: String,
}

/// The limit of the fields in bytes.
const LONGEST: usize = 64 << 10;

/// Parses a `SKILL.md`. The error is for the operator.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = || "SKILL.md must begin with fields between two lines of `---`".to_owned();
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let rest = rest.ok_or_else(missing)?;
    let mut length = 0;
    let end = rest.split_inclusive('\n').find_map(|line| {
        let begin = length;
        length += line.len();
        (line.trim_end() == "---").then_some((begin, length))
    });
    let (fields_end, body_begin) = end.ok_or_else(missing)?;
    if fields_end > LONGEST {
        return Err(format!("the fields of SKILL.md are too long (limit {LONGEST} bytes)"));
    }
    let fields = sabir_openapi::parse_yaml(&rest[..fields_end])?;
    let text_of = |name: &str| match fields.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(format!("SKILL.md has no `{name}` (expected a text)")),
    };
    let (name, description) = (text_of("name")?, text_of("description")?);
    check_name(&name)?;
    let body = rest[body_begin..].trim_start().to_owned();
    let fields = Raw::of(&fields).map_err(|error| error.to_string())?;
    Ok(Parsed { name, description, fields, body })
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_good = (1..=64).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !(name.starts_with('-') || name.ends_with('-') || name.contains("--"));
    let expected = "1 to 64 of a-z, 0-9 and single hyphens inside";
    if is_good { Ok(()) } else { Err(format!("invalid name `{name}` (expected {expected})")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_and_text_are_told_apart() {
        let parsed = parse(
            "---\nname: tidy-up\ndescription: \"Tidy: up\"\nmetadata:\n  n: 1\n---\n\n# Hi\n---\n",
        );
        let parsed = parsed.unwrap();
        assert_eq!((&*parsed.name, &*parsed.description), ("tidy-up", "Tidy: up"));
        let fields: Value = parsed.fields.read().unwrap();
        assert_eq!(
            fields,
            json!({ "name": "tidy-up", "description": "Tidy: up", "metadata": { "n": 1 } })
        );
        assert_eq!(parsed.body, "# Hi\n---\n");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, reason) in [
            ("# no fields", "between two lines"),
            ("---\nname: a\n", "between two lines"),
            ("---\nname: a\n---\n", "no `description`"),
            ("---\ndescription: a\n---\n", "no `name`"),
            ("---\nname: [a]\ndescription: b\n---\n", "no `name`"),
            ("---\nname: A\ndescription: b\n---\n", "invalid name `A`"),
            ("---\nname: a--b\ndescription: b\n---\n", "invalid name"),
            ("---\nname: -a\ndescription: b\n---\n", "invalid name"),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(reason), "{text}: {told}");
        }
    }
}
