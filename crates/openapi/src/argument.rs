//! The flat arguments of an operation: parameters and fields of the body side by side.

use serde_json::{Map, Value, json};

use crate::body::{DescribedBody, Shape};
use crate::description::Node;
use crate::media::{BodyKind, essence};
use crate::name::argument_names;
use crate::parameter::DescribedParameter;
use crate::schema::Converter;

/// An argument, and where its value goes.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The parameter of this number.
    Parameter(usize),
    /// The field of this number.
    Field(usize),
    /// The whole body.
    Body,
}

/// An argument, and what the description says of it.
struct Described<'a, 'd> {
    name: &'a str,
    place: &'static str,
    target: Target,
    schema: Option<Node<'d>>,
    about: Option<&'d str>,
    required: bool,
    file: bool,
    /// The value is XML, which the caller writes as text.
    xml: bool,
}

/// The arguments of an operation, and their schema.
pub(crate) fn arguments<'d>(
    parameters: &[DescribedParameter<'d>],
    body: Option<&DescribedBody<'d>>,
    converter: &mut Converter<'d>,
) -> (Vec<Argument>, Map<String, Value>) {
    let described = describe(parameters, body, converter);
    let wanted: Vec<_> = described.iter().map(|one| (one.name, one.place)).collect();
    let names = argument_names(&wanted);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut arguments = Vec::new();
    for (one, name) in described.iter().zip(names) {
        let schema = if one.file {
            file_schema(one, converter)
        } else if one.xml {
            xml_schema(one, converter)
        } else {
            match one.schema {
                Some(schema) => converter.argument(schema, one.about),
                None => converter.argument(EMPTY, one.about),
            }
        };
        properties.insert(name.clone(), schema);
        if one.required {
            required.push(name.clone());
        }
        arguments.push(Argument { name, target: one.target });
    }
    let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
    schema.insert("properties".into(), properties.into());
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    if !body.is_some_and(|body| body.body.open) {
        schema.insert("additionalProperties".into(), false.into());
    }
    if let Some(together) = body.and_then(|body| together(body, &arguments)) {
        schema.insert("dependentRequired".into(), together);
    }
    (arguments, schema)
}

/// The limit of entries of `dependentRequired`. With more, the API checks its body itself.
const MAX_TOGETHER: usize = 200;

/// Fields of an optional body that are required as soon as there is a body.
fn together(body: &DescribedBody<'_>, arguments: &[Argument]) -> Option<Value> {
    let Shape::Fields(fields) = &body.shape else { return None };
    let given = |is_required: bool| {
        arguments.iter().filter(move |argument| match argument.target {
            Target::Field(number) => !is_required || fields[number].required,
            _ => false,
        })
    };
    let (all, required) = (given(false).count(), given(true).count());
    if body.body.required || required == 0 || all * required > MAX_TOGETHER {
        return None;
    }
    let mut rules = Map::new();
    for argument in given(false) {
        let others = given(true).filter(|other| other.name != argument.name);
        let others: Vec<Value> = others.map(|other| other.name.as_str().into()).collect();
        if !others.is_empty() {
            rules.insert(argument.name.clone(), others.into());
        }
    }
    (!rules.is_empty()).then(|| rules.into())
}

/// The schema of a placeholder without a parameter.
const EMPTY: Node<'static> = Node { file: 0, value: &Value::Null };

fn describe<'a, 'd>(
    parameters: &'a [DescribedParameter<'d>],
    body: Option<&'a DescribedBody<'d>>,
    converter: &Converter<'d>,
) -> Vec<Described<'a, 'd>> {
    let mut list = Vec::new();
    for (number, one) in parameters.iter().enumerate() {
        let parameter = &one.parameter;
        list.push(Described {
            name: &parameter.name,
            place: parameter.place.as_str(),
            target: Target::Parameter(number),
            schema: one.schema,
            about: one.about,
            required: parameter.required && parameter.default.is_none(),
            file: false,
            xml: false,
        });
    }
    let Some(body) = body else { return list };
    match &body.shape {
        Shape::Whole(schema) => list.push(Described {
            name: "body",
            place: "body",
            target: Target::Body,
            schema: *schema,
            about: body.about,
            required: body.body.required,
            file: body.body.kind == BodyKind::Bytes,
            xml: body.body.kind == BodyKind::Text && essence(&body.body.media).ends_with("xml"),
        }),
        Shape::Fields(fields) => {
            let shown = fields.iter().enumerate();
            for (number, one) in shown.filter(|(_, one)| !converter.is_hidden(one.schema)) {
                list.push(Described {
                    name: &one.field.name,
                    place: "body",
                    target: Target::Field(number),
                    schema: Some(one.schema),
                    about: None,
                    required: body.body.required && one.required,
                    file: one.field.file,
                    xml: false,
                });
            }
        }
    }
    list
}

/// The limit of elements that the description of an XML body names.
const MAX_ELEMENTS: usize = 30;

/// The schema of XML: a text, even if its elements are described.
fn xml_schema<'d>(one: &Described<'_, 'd>, converter: &mut Converter<'d>) -> Value {
    let described = converter.argument(one.schema.unwrap_or(EMPTY), one.about);
    let about = described.get("description").and_then(Value::as_str);
    let elements = described.get("properties").and_then(Value::as_object);
    let elements: Vec<_> = elements.into_iter().flat_map(Map::keys).take(MAX_ELEMENTS).collect();
    let elements: Vec<_> = elements.iter().map(|name| format!("`{name}`")).collect();
    let mut how = "XML, as text".to_owned();
    if !elements.is_empty() {
        how += &format!(", with the elements {}", elements.join(", "));
    }
    let about = about.map_or_else(|| format!("{how}."), |about| format!("{about} ({how}.)"));
    json!({ "type": "string", "description": about })
}

/// The schema of a file: its text, its bytes or its path.
fn file_schema<'d>(one: &Described<'_, 'd>, converter: &mut Converter<'d>) -> Value {
    let described = match one.schema {
        Some(schema) => converter.argument(schema, one.about),
        None => json!({}),
    };
    let file = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "base64": { "type": "string" },
            "path": { "type": "string" },
            "filename": { "type": "string" },
            "type": { "type": "string" },
        },
        "additionalProperties": false,
    });
    let is_list = described.get("type").is_some_and(|kind| kind == "array");
    let mut schema = if is_list { json!({ "type": "array", "items": file }) } else { file };
    let about = described.get("description").and_then(Value::as_str);
    let how = "A file: give `text`, `base64` or `path`.";
    schema["description"] = match about {
        Some(about) => format!("{about} ({how})").into(),
        None => how.into(),
    };
    schema
}
