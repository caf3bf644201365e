//! The schema of an operation's arguments, within a budget.

use serde_json::{Map, Value};

use crate::argument::{Argument, arguments};
use crate::body::DescribedBody;
use crate::description::Description;
use crate::parameter::DescribedParameter;
use crate::schema::{Converter, Detail, Direction};
use crate::words::shortened;

/// How many bytes the definition of an operation may have: its description and its schema. With less
/// room it has less detail; the names of all arguments are always there, so that a definition can be
/// larger than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub usize);

impl Budget {
    /// The budget for an operation that is described alone.
    pub const ALONE: Self = Self(64 << 10);
}

/// From much detail to little, with the characters of the operation's own description.
const DETAILS: [(usize, Detail); 8] = [
    (2000, Detail { top: 800, nested: 300, depth: 16, choices: 2000 }),
    (1000, Detail { top: 400, nested: 120, depth: 12, choices: 1000 }),
    (600, Detail { top: 250, nested: 0, depth: 8, choices: 600 }),
    (400, Detail { top: 150, nested: 0, depth: 4, choices: 300 }),
    (300, Detail { top: 100, nested: 0, depth: 3, choices: 200 }),
    (200, Detail { top: 60, nested: 0, depth: 2, choices: 100 }),
    (120, Detail { top: 0, nested: 0, depth: 1, choices: 100 }),
    (80, Detail { top: 0, nested: 0, depth: 1, choices: 0 }),
];

/// The description and the schema of an operation.
pub(crate) struct Definition {
    pub(crate) text: String,
    pub(crate) schema: Value,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) problems: Vec<String>,
    /// Whether detail was left out to fit into the budget.
    pub(crate) shortened: bool,
}

/// Defines an operation with as much detail as the budget allows.
pub(crate) fn define<'d>(
    description: &'d Description,
    parameters: &[DescribedParameter<'d>],
    body: Option<&DescribedBody<'d>>,
    about: &str,
    budget: Budget,
) -> Definition {
    let mut last = None;
    for (level, (characters, detail)) in DETAILS.into_iter().enumerate() {
        let mut converter = Converter::new(description, detail, Direction::Request);
        let (arguments, schema) = arguments(parameters, body, &mut converter);
        let schema = converter.finish(schema);
        let text = shortened(about, characters);
        let bytes = text.len() + schema.to_string().len();
        let (problems, shortened) = (converter.problems, level > 0);
        last = Some(Definition { text, schema, arguments, problems, shortened });
        if bytes <= budget.0 {
            break;
        }
    }
    // The list of details is not empty.
    last.unwrap_or_else(|| Definition {
        text: String::new(),
        schema: Value::Object(Map::new()),
        arguments: Vec::new(),
        problems: Vec::new(),
        shortened: true,
    })
}

/// The schema of a response, if it is an object and fits into the budget.
pub(crate) fn output(
    description: &Description,
    schema: crate::description::Node<'_>,
    budget: Budget,
) -> Option<Value> {
    DETAILS.into_iter().find_map(|(_, detail)| {
        let mut converter = Converter::new(description, detail, Direction::Response);
        let result = converter.argument(schema, None);
        let Value::Object(result) = converter.finish(Map::from_iter([("r".to_owned(), result)]))
        else {
            return None;
        };
        let (mut result, mut root) = (result, Map::new());
        if let Some(Value::Object(schema)) = result.remove("r") {
            root = schema;
        }
        root.extend(result);
        loosen(&mut root);
        let root = Value::Object(root);
        let is_object = root.get("type").is_some_and(|kind| kind == "object");
        (is_object && root.to_string().len() <= budget.0).then_some(root)
    })
}

/// Real answers break their schemas: a field is missing, null, or one of a new kind.
fn loosen(schema: &mut Map<String, Value>) {
    let is_root = schema.get("type").is_some_and(|kind| kind == "object");
    for keyword in ["required", "enum", "const", "pattern", "format", "additionalProperties"] {
        schema.remove(keyword);
    }
    for keyword in ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"] {
        schema.remove(keyword);
    }
    for keyword in ["properties", "$defs"] {
        let Some(Value::Object(parts)) = schema.get_mut(keyword) else { continue };
        for part in parts.values_mut() {
            let Value::Object(part) = part else { continue };
            loosen(part);
            if let Some(kind) = part.get("type").and_then(Value::as_str).map(str::to_owned) {
                part.insert("type".into(), serde_json::json!([kind, "null"]));
            }
        }
    }
    for keyword in ["anyOf", "allOf", "prefixItems"] {
        schema.remove(keyword);
    }
    match schema.get_mut("items") {
        Some(Value::Object(items)) => loosen(items),
        _ => debug_assert!(is_root || !schema.contains_key("items")),
    }
}
