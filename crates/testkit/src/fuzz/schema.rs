//! Our schema checker compared with the library jsonschema.

use sabir_registry::Checker;
use sabir_wire::Raw;
use serde_json::Value;

/// A schema on the first line, a value on the second: the checker, which checks plain schemas itself,
/// agrees with jsonschema.
pub fn schema(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (schema, value) = text.split_once('\n').unwrap_or((text, "{}"));
    let (Ok(schema), Ok(value)) = (Raw::parse(schema.to_owned()), Raw::parse(value.to_owned()))
    else {
        return;
    };
    let Ok(checker) = Checker::for_results(&schema) else { return };
    let Ok(tree) = schema.read::<Value>() else { return };
    let draft = match tree.get("$schema").and_then(Value::as_str) {
        Some(uri) if uri.contains("draft-07") => jsonschema::Draft::Draft7,
        _ => jsonschema::Draft::Draft202012,
    };
    let library = jsonschema::options().with_draft(draft).build(&tree);
    let library = library.unwrap_or_else(|error| panic!("a wrong schema was taken: {error}"));
    let is_good = value.read::<Value>().is_ok_and(|value| library.is_valid(&value));
    let checked = checker.check(&value);
    assert_eq!(checked.is_ok(), is_good, "{} for {}: {checked:?}", value.text(), schema.text());
}
