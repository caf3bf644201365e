//! Tools whose schema is the point.

use sabir::{BadOffer, Handle, Raw, ToolFunction};
use serde_json::{Value, json};

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let schema = |value: &Value| Raw::of(value).unwrap_or_else(|_| Raw::empty_object());
    let address = ToolFunction::raw(
        "json_schema_2020_12_tool",
        "Has a schema with everything in it",
        schema(&address_schema()),
        async |_: Raw| "never called",
    );
    let header = json!({
        "type": "object",
        "properties": {
            "value": { "type": "string", "description": "Any text", "x-mcp-header": "Value" },
        },
        "required": ["value"],
    });
    let custom_header = ToolFunction::raw(
        "test_custom_header",
        "Has an argument that HTTP repeats in a header",
        schema(&header),
        async |arguments: Raw| format!("got {}", arguments.text()),
    );
    handle.offer(address.build())?;
    handle.offer(custom_header.build())?;
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
