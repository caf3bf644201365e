//! Tools whose schema is the point.

use sabir::{BadOffer, Handle, Raw, ToolFunction};
use serde_json::{Value, json};

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let address = ToolFunction::new(
        "json_schema_2020_12_tool",
        "Has a schema with everything in it",
        async || "never called",
    );
    let header = json!({
        "type": "object",
        "properties": {
            "value": { "type": "string", "description": "Any text", "x-mcp-header": "Value" },
        },
        "required": ["value"],
    });
    let custom_header = ToolFunction::new(
        "test_custom_header",
        "Has an argument that HTTP repeats in a header",
        async |arguments: Raw| format!("got {}", arguments.text()),
    );
    handle.add_source(address.input_schema(address_schema()))?;
    handle.add_source(custom_header.input_schema(header))?;
    Ok(())
}

fn address_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
