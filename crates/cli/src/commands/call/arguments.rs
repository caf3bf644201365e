//! `key=value`, by the schema of the tool.

use sabir_wire::Raw;
use serde_json::{Map, Value};

/// The arguments: those given as a JSON object, and the pairs on top of them.
pub(super) fn read(
    pairs: &[String],
    given: Option<&str>,
    schema: Option<&Raw>,
) -> Result<Raw, String> {
    let given = Raw::parse(given.unwrap_or("{}").to_owned());
    let given = given.ok().filter(Raw::is_object);
    let given = given.ok_or("invalid value of --json (expected a JSON object)")?;
    if pairs.is_empty() {
        // As it was typed, large numbers included.
        return Ok(given);
    }
    let mut arguments: Map<String, Value> = given.read().map_err(|error| error.to_string())?;
    for pair in pairs {
        let (key, text) = pair
            .split_once('=')
            .ok_or_else(|| format!("invalid argument `{pair}` (expected KEY=VALUE)"))?;
        let expected = schema.and_then(|schema| types_of(schema, key));
        let value = value(text, expected.as_deref()).ok_or_else(|| {
            let types = expected.unwrap_or_default().join(" or ");
            format!("invalid value of `{key}`: `{text}` (expected {types})")
        })?;
        arguments.insert(key.to_owned(), value);
    }
    Raw::of(&arguments).map_err(|error| error.to_string())
}

/// The types that the schema allows for an argument; `None` if it does not say.
fn types_of(schema: &Raw, key: &str) -> Option<Vec<String>> {
    let types = schema.member("properties")?.member(key)?.member("type")?;
    types.read::<Vec<String>>().ok().or_else(|| Some(vec![types.read().ok()?]))
}

/// The value of the first type that fits. Without a type, JSON if it is JSON, else text.
fn value(text: &str, types: Option<&[String]>) -> Option<Value> {
    let json = || serde_json::from_str::<Value>(text).ok();
    let string = || Some(Value::String(text.to_owned()));
    let Some(types) = types else { return json().or_else(string) };
    // A text fits nearly everything, so it comes last.
    let (strings, others): (Vec<_>, Vec<_>) = types.iter().partition(|kind| *kind == "string");
    let fits = |kind: &str, value: &Value| match kind {
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(is_whole),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    let found = json().filter(|value| others.iter().any(|kind| fits(kind, value)));
    found.or_else(|| if strings.is_empty() { None } else { string() })
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(pairs: &[&str], given: Option<&str>, expected: Result<Value, &str>) {
        let schema = Raw::from(json!({ "properties": {
            "n": { "type": "integer" }, "x": { "type": "number" }, "s": { "type": "string" },
            "b": { "type": "boolean" }, "l": { "type": "array" }, "m": { "type": ["string", "null"] },
        } }));
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let read = read(&pairs, given, Some(&schema));
        let read = read.map(|raw| raw.read::<Value>().unwrap());
        assert_eq!(read, expected.map_err(str::to_owned));
    }

    #[test]
    fn values_have_the_types_of_the_schema() {
        check(
            &["n=7", "x=1.5", "s=12", "b=true", "l=[1]", "m=null", "other=x", "any=3", "s2=a=b"],
            None,
            Ok(json!({
                "n": 7, "x": 1.5, "s": "12", "b": true, "l": [1], "m": null,
                "other": "x", "any": 3, "s2": "a=b",
            })),
        );
        check(&["n=8"], Some(r#"{"n":7,"k":1}"#), Ok(json!({ "n": 8, "k": 1 })));
    }

    #[test]
    fn wrong_values_are_named() {
        check(&["n=a"], None, Err("invalid value of `n`: `a` (expected integer)"));
        check(&["b=1"], None, Err("invalid value of `b`: `1` (expected boolean)"));
        check(&["n"], None, Err("invalid argument `n` (expected KEY=VALUE)"));
        check(&[], Some("[]"), Err("invalid value of --json (expected a JSON object)"));
    }

    #[test]
    fn json_passes_as_it_was_typed() {
        let big = r#"{"n":123456789012345678901234567890}"#;
        assert_eq!(read(&[], Some(big), None).unwrap().text(), big);
    }
}
