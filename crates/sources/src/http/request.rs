//! One request as a tool.

use std::sync::Arc;

use sabir_openapi::{Answer, Content as Body, Files as _, Method, Request};
use sabir_registry::{Offer, Outcome, Pending, ResourceCall, Source, ToolCall};
use sabir_wire::types::{
    Content, ResourceReply, ResourceTemplate, Tool, ToolAnnotations, ToolReply,
};
use sabir_wire::{Caller, Problem, Raw};
use serde_json::Value;

use super::folder::Folder;
use super::reply::{ReplyLimits, reply};
use super::sender::{Sender, Sent};
use super::stored::Stored;
use super::template::{JsonTemplate, UrlTemplate, render_form, render_header};
use crate::command::{
    DefinitionError, Input, Location, MimeType, RenderError, TextTemplate, Values,
};

/// The body of a request.
#[derive(Clone, Debug)]
pub enum BodyForm {
    /// None.
    Empty,
    /// The arguments, as a JSON object.
    Arguments,
    /// JSON with placeholders.
    Json(JsonTemplate),
    /// A form with placeholders.
    Form(Vec<(String, TextTemplate)>),
    /// A text with placeholders, and its media type.
    Text(TextTemplate, String),
    /// A file of the folder, by its path, and its media type.
    File(TextTemplate, String),
}

/// A part of a JSON answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// By JSON Pointer (RFC 6901).
    Pointer(String),
    /// By JMESPath.
    JmesPath(String),
}

impl Selection {
    /// Parses a selection: a JSON Pointer starts with `/`, anything else is JMESPath.
    pub fn parse(written: &str) -> Result<Self, String> {
        if written.starts_with('/') {
            return Ok(Self::Pointer(written.to_owned()));
        }
        match jmespath::compile(written) {
            Ok(_) => Ok(Self::JmesPath(written.to_owned())),
            Err(error) => Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
        }
    }

    /// The selected part of a JSON text.
    fn select(&self, json: &str) -> Result<String, String> {
        match self {
            Self::Pointer(pointer) => {
                let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
                let found = value.pointer(pointer);
                found.map(ToString::to_string).ok_or_else(|| format!("there is no `{pointer}`"))
            }
            Self::JmesPath(expression) => {
                let compiled = jmespath::compile(expression).map_err(|error| error.to_string())?;
                let value = jmespath::Variable::from_json(json)?;
                let found = compiled.search(value).map_err(|error| error.to_string())?;
                serde_json::to_string(&*found).map_err(|error| error.to_string())
            }
        }
    }
}

/// The form of the result.
#[derive(Clone, Debug)]
pub enum SingleOutput {
    /// By the type of the answer.
    Auto,
    /// Text.
    Text,
    /// JSON as structured content, and its schema.
    Json(Option<Value>),
    /// Bytes of this media type.
    Bytes(MimeType),
    /// An image of any type.
    Image,
    /// A link to the answer.
    Link,
}

/// The definition of a request.
#[derive(Debug)]
pub struct SingleRequest {
    /// The name of the tool.
    pub name: String,
    /// The title for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The annotations of the tool.
    pub annotations: ToolAnnotations,
    /// The arguments of the tool.
    pub input: Input,
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: UrlTemplate,
    /// The headers.
    pub headers: Vec<(String, TextTemplate)>,
    /// The body.
    pub body: BodyForm,
    /// The form of the result.
    pub output: SingleOutput,
    /// The part of a JSON answer that is the result.
    pub select: Option<Selection>,
    /// Sends the request.
    pub sender: Sender,
    /// How much of an answer a result contains.
    pub limits: ReplyLimits,
    /// Files that callers may send by their path.
    pub folder: Folder,
}

impl SingleRequest {
    /// The hints that a method gives.
    pub fn annotations_of(method: Method) -> ToolAnnotations {
        super::api::annotations(method)
    }

    /// All mismatches between the input and the placeholders.
    pub fn mismatches(&self) -> Vec<DefinitionError> {
        let mut texts: Vec<&TextTemplate> = self.url.texts().collect();
        texts.extend(self.headers.iter().map(|(_, value)| value));
        match &self.body {
            BodyForm::Empty | BodyForm::Arguments => {}
            BodyForm::Json(json) => texts.extend(json.texts()),
            BodyForm::Form(fields) => texts.extend(fields.iter().map(|(_, value)| value)),
            BodyForm::Text(text, _) | BodyForm::File(text, _) => texts.push(text),
        }
        let mut found = self.input.mismatches_in_texts(&texts);
        if matches!(self.body, BodyForm::Arguments) {
            // All arguments are in the body.
            found.retain(|error| !matches!(error.location, Location::Argument(..)));
        }
        found
    }

    /// The request of a call.
    fn request(&self, arguments: &Raw) -> Result<Request, String> {
        let raw = arguments.read().map_err(|_| RenderError::NotAnObject.to_string())?;
        let values = Values::parse(raw, &self.input).map_err(|error| error.to_string())?;
        let mut headers = vec![("accept".to_owned(), "application/json, */*;q=0.5".to_owned())];
        for (name, template) in &self.headers {
            if let Some(value) = render_header(name, template, &values)? {
                headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                headers.push((name.clone(), value));
            }
        }
        let body = self.body(&values)?.map(|(media, bytes)| {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("content-type".to_owned(), media));
            }
            bytes
        });
        Ok(Request { method: self.method, url: self.url.render(&values)?, headers, body })
    }

    fn body(&self, values: &Values<'_>) -> Result<Option<(String, Vec<u8>)>, String> {
        let json = "application/json".to_owned();
        let message = |error: RenderError| error.to_string();
        Ok(match &self.body {
            BodyForm::Empty => None,
            BodyForm::Arguments => Some((json, values.json().map_err(message)?)),
            BodyForm::Json(template) => {
                template.render(values)?.map(|text| (json, text.into_bytes()))
            }
            BodyForm::Form(fields) => {
                let media = "application/x-www-form-urlencoded".to_owned();
                Some((media, render_form(fields, values)?.into_bytes()))
            }
            BodyForm::Text(template, media) => {
                Some((media.clone(), template.render(values).map_err(message)?.into_bytes()))
            }
            BodyForm::File(path, media) => {
                let path = path.render(values).map_err(message)?;
                Some((media.clone(), self.folder.read(&path)?))
            }
        })
    }

    /// The result of an answer.
    fn reply(&self, mut answer: Answer, caller: &Caller, stored: &Stored) -> ToolReply {
        if answer.error.is_some() {
            return reply(answer, caller, self.limits, stored, false);
        }
        if let Some(selection) = &self.select {
            let selected = match &answer.content {
                Body::Json(json) => selection.select(json),
                _ => Err("the answer is not JSON".to_owned()),
            };
            match selected {
                Ok(selected) => answer.content = Body::Json(selected),
                Err(reason) => return ToolReply::failed(format!("cannot select: {reason}")),
            }
        }
        let bytes = |content: Body| match content {
            Body::Empty => Vec::new(),
            Body::Json(text) | Body::Text(text, _) => text.into_bytes(),
            Body::Bytes(bytes, _) => bytes,
        };
        match &self.output {
            SingleOutput::Auto => {}
            SingleOutput::Text => {
                let text = String::from_utf8_lossy(&bytes(answer.content)).into_owned();
                answer.content = Body::Text(text, "text/plain".to_owned());
            }
            SingleOutput::Json(_) if !matches!(answer.content, Body::Json(_)) => {
                return ToolReply::failed("the answer is not JSON");
            }
            SingleOutput::Json(_) => {}
            SingleOutput::Image => match &answer.content {
                Body::Bytes(_, media) if media.starts_with("image/") => {}
                // Drawings are text, and still images.
                Body::Text(_, media) if media.starts_with("image/") => {
                    let media = media.clone();
                    answer.content = Body::Bytes(bytes(answer.content), media);
                }
                _ => return ToolReply::failed("the answer is not an image"),
            },
            SingleOutput::Bytes(media) => {
                answer.content = Body::Bytes(bytes(answer.content), media.as_str().to_owned());
            }
            SingleOutput::Link => {
                let media = match &answer.content {
                    Body::Json(_) => "application/json".to_owned(),
                    Body::Text(_, media) | Body::Bytes(_, media) => media.clone(),
                    Body::Empty => "text/plain".to_owned(),
                };
                let link = stored.keep(caller, &media, bytes(answer.content));
                return ToolReply::default().and(Content::link(link));
            }
        }
        let is_structured = matches!(self.output, SingleOutput::Json(_));
        reply(answer, caller, self.limits, stored, is_structured)
    }
}

/// Serves a request.
#[derive(Clone, Debug)]
pub struct RequestSource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    request: SingleRequest,
    stored: Stored,
}

impl RequestSource {
    /// Serves a request.
    pub fn new(request: SingleRequest) -> Self {
        let stored = Stored::new(&request.name);
        Self(Arc::new(Inner { request, stored }))
    }
}

impl Source for RequestSource {
    fn offer(&self) -> Offer {
        let request = &self.0.request;
        // A `Value` can always be written as JSON.
        let raw = |schema| Raw::of(schema).unwrap_or_else(|_| Raw::empty_object());
        let output_schema = match &request.output {
            SingleOutput::Json(Some(schema)) => Some(raw(schema)),
            _ => None,
        };
        let tool = Tool {
            title: request.title.clone(),
            description: request.description.clone(),
            output_schema,
            annotations: Some(request.annotations.clone()),
            ..Tool::new(&request.name, "", raw(request.input.schema()))
        };
        let template = ResourceTemplate {
            uri_template: self.0.stored.template(),
            name: format!("{} answers", request.name),
            description: Some("Answers that were too long for a result".to_owned()),
            ..ResourceTemplate::default()
        };
        Offer { tools: vec![tool], templates: vec![template], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let inner = self.0.clone();
        Box::pin(async move {
            let Inner { request, stored } = &*inner;
            let built = request.request(&call.arguments);
            let built = built.map_err(|what| Problem::Arguments(what.into()))?;
            let (is_repeatable, context) = (built.method.is_idempotent(), &call.context);
            let sent = request.sender.send(&built, None, is_repeatable, context).await;
            Ok(match sent.map_err(|what| Problem::ToolFailed(what.into()))? {
                Sent::Answered(answer) => {
                    Outcome::Done(request.reply(answer, &context.caller, stored))
                }
                Sent::Asks(ask) => Outcome::NeedInput(ask),
            })
        })
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let found = self.0.stored.read(&call.context.caller, &call.uri);
        Box::pin(async move {
            let contents = found.ok_or_else(|| Problem::UnknownResource(call.uri.clone()))?;
            Ok(Outcome::Done(contents.into()))
        })
    }
}
