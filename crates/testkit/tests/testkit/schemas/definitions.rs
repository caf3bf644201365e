//! The definitions of a published schema, and which of them a message must fit.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use jsonschema::{Draft, Validator};
use sabir_wire::Revision;
use serde_json::{Value, json};

/// A published schema, made strict: an object has no members that its definition does not name, so
/// that a word of a later revision is found.
pub(crate) struct Definitions {
    revision: Revision,
    schema: Value,
    compiled: RefCell<HashMap<String, Rc<Validator>>>,
}

/// Definitions that may have further members, by the schema's own words or by their nature.
const OPEN: &[&str] = &[
    // Bases, which everything else extends.
    "Request",
    "Notification",
    "Result",
    "PaginatedResult",
    "JSONRPCRequest",
    "JSONRPCNotification",
    "JSONRPCResponse",
    "JSONRPCResultResponse",
    // For programs.
    "MetaObject",
    "ResultMetaObject",
    "NotificationMetaObject",
    "SubscriptionsListenResultMetaObject",
    "RequestMetaObject",
    // Combined by `allOf`, where each half knows only its own members.
    "Error",
    "HeaderMismatchError",
    "MissingRequiredClientCapabilityError",
    "UnsupportedProtocolVersionError",
];

impl Definitions {
    pub(crate) fn read(folder: &Path, revision: Revision) -> Self {
        let path = folder.join(format!("{revision}.json"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut schema: Value = serde_json::from_str(&text).unwrap();
        let key = Self::key(&schema);
        for (name, definition) in schema[key].as_object_mut().unwrap() {
            if !OPEN.contains(&name.as_str()) {
                close(definition);
            }
        }
        Self { revision, schema, compiled: RefCell::default() }
    }

    /// The names of all definitions, and the definitions.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema[Self::key(&self.schema)].as_object().unwrap().iter()
    }

    /// What is wrong with a message; `asked` is the method of the request that it answers.
    pub(crate) fn complaints(&self, asked: Option<&str>, message: &Value) -> Vec<String> {
        if let Value::Array(answers) = message {
            let mut complaints = self.check("JSONRPCBatchResponse", message);
            complaints.extend(answers.iter().flat_map(|answer| self.complaints(None, answer)));
            return complaints;
        }
        if message.get("error").is_some() {
            return self.error(message);
        }
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(_)) => self.request(method, message),
            (Some(method), None) => self.notification(method, message),
            (None, _) => self.result(asked, message),
        }
    }

    fn error(&self, message: &Value) -> Vec<String> {
        let has_optional_id = self.revision >= Revision::V2025_11_25;
        let name = if has_optional_id { "JSONRPCErrorResponse" } else { "JSONRPCError" };
        // Up to 2025-06-18 the schema cannot express a rule of JSON-RPC: an error that answers no
        // particular request has the id `null`.
        let mut message = message.clone();
        if !has_optional_id && message["id"].is_null() && message.get("id").is_some() {
            message["id"] = json!(0);
        }
        let mut complaints = self.check(name, &message);
        let code = message["error"]["code"].as_i64().unwrap_or_default();
        let is_modern = self.revision == Revision::V2026_07_28;
        let special = match code {
            -32020 => Some("HeaderMismatchError"),
            -32021 => Some("MissingRequiredClientCapabilityError"),
            -32022 => Some("UnsupportedProtocolVersionError"),
            _ => None,
        };
        match (is_modern, special) {
            (true, Some(name)) => complaints.extend(self.check(name, &message)),
            (false, Some(name)) => complaints.push(format!("{name} is of the modern era")),
            (true, None) if (-32099..=-32000).contains(&code) => {
                complaints.push(format!("the code {code} is reserved, or retired"));
            }
            _ => {}
        }
        complaints
    }

    fn request(&self, method: &str, message: &Value) -> Vec<String> {
        if self.revision == Revision::V2026_07_28 {
            return vec!["a modern client is never sent a request".into()];
        }
        let name = match method {
            "elicitation/create" => "ElicitRequest",
            "sampling/createMessage" => "CreateMessageRequest",
            "roots/list" => "ListRootsRequest",
            other => return vec![format!("we do not ask {other}")],
        };
        let mut complaints = self.check("JSONRPCRequest", message);
        complaints.extend(self.check(name, &self.bare(message)));
        complaints
    }

    fn notification(&self, method: &str, message: &Value) -> Vec<String> {
        let name = match method {
            "notifications/cancelled" => "CancelledNotification",
            "notifications/progress" => "ProgressNotification",
            "notifications/message" => "LoggingMessageNotification",
            "notifications/tools/list_changed" => "ToolListChangedNotification",
            "notifications/prompts/list_changed" => "PromptListChangedNotification",
            "notifications/resources/list_changed" => "ResourceListChangedNotification",
            "notifications/resources/updated" => "ResourceUpdatedNotification",
            "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
            other => return vec![format!("we do not notify of {other}")],
        };
        let mut complaints = self.check("JSONRPCNotification", message);
        complaints.extend(self.check("ServerNotification", &self.bare(message)));
        complaints.extend(self.check(name, &self.bare(message)));
        complaints
    }

    fn result(&self, asked: Option<&str>, message: &Value) -> Vec<String> {
        let is_new = self.revision >= Revision::V2025_11_25;
        let mut complaints =
            self.check(if is_new { "JSONRPCResultResponse" } else { "JSONRPCResponse" }, message);
        let is_question = message["result"]["resultType"] == "input_required";
        let name = match asked {
            Some("tools/call" | "prompts/get" | "resources/read") if is_question => {
                "InputRequiredResult"
            }
            Some("initialize") => "InitializeResult",
            Some("server/discover") => "DiscoverResult",
            Some("tools/list") => "ListToolsResult",
            Some("tools/call") => "CallToolResult",
            Some("prompts/list") => "ListPromptsResult",
            Some("prompts/get") => "GetPromptResult",
            Some("resources/list") => "ListResourcesResult",
            Some("resources/templates/list") => "ListResourceTemplatesResult",
            Some("resources/read") => "ReadResourceResult",
            Some("completion/complete") => "CompleteResult",
            Some("subscriptions/listen") => "SubscriptionsListenResult",
            Some("ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe") => {
                if message["result"] != json!({}) {
                    complaints.push("an empty result has no members".into());
                }
                "EmptyResult"
            }
            // A part of a batch.
            None => return complaints,
            Some(other) => return vec![format!("{other} has no result")],
        };
        complaints.extend(self.check(name, &message["result"]));
        complaints
    }

    /// Up to 2025-06-18 requests and notifications are defined without their envelope.
    fn bare(&self, message: &Value) -> Value {
        let mut message = message.clone();
        if self.revision < Revision::V2025_11_25 {
            let members = message.as_object_mut().unwrap();
            members.remove("jsonrpc");
            members.remove("id");
        }
        message
    }

    fn check(&self, name: &str, value: &Value) -> Vec<String> {
        let Some(validator) = self.validator(name) else {
            return vec![format!("{} has no {name}", self.revision)];
        };
        let errors = validator.iter_errors(value);
        errors.map(|error| format!("{name}, {}: {error}", error.instance_path())).collect()
    }

    fn validator(&self, name: &str) -> Option<Rc<Validator>> {
        if let Some(validator) = self.compiled.borrow().get(name) {
            return Some(validator.clone());
        }
        let key = Self::key(&self.schema);
        self.schema[key].get(name)?;
        let schema = json!({ "$ref": format!("#/{key}/{name}"), key: self.schema[key] });
        let draft = if key == "$defs" { Draft::Draft202012 } else { Draft::Draft7 };
        let validator = jsonschema::options().with_draft(draft).build(&schema).unwrap();
        let validator = Rc::new(validator);
        self.compiled.borrow_mut().insert(name.to_owned(), validator.clone());
        Some(validator)
    }

    fn key(schema: &Value) -> &'static str {
        if schema.get("$defs").is_some() { "$defs" } else { "definitions" }
    }
}

/// Forbids members that are not named, in a schema and all inside it.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".into(), json!(false));
            }
            // A schema of a tool may use every keyword there is.
            let is_schema = |key: &str| matches!(key, "inputSchema" | "outputSchema");
            let inner = members.iter_mut().filter(|(key, _)| !is_schema(key));
            inner.for_each(|(_, value)| close(value));
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
