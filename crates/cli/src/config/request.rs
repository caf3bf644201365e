//! `[[http]]`, also written `[[request]]`: an HTTP request as a tool.

use std::ops::Range;
use std::time::Duration;

use sabir_openapi::Method;
use sabir_sources::command::{DefinitionError, MimeType, Place, TextTemplate};
use sabir_sources::http::{
    BodyForm, Folder, JsonTemplate, ReplyLimits, RequestSource, Selection, Sender, SenderSettings,
    SingleOutput, SingleRequest, UrlTemplate,
};
use serde::Deserialize;
use toml::Spanned;

use super::file::Seal;
use super::input::{input, read_schema};
use super::json::{Entries, json};
use super::mistake::{Mistake, Text};
use super::openapi::texts;
use super::reach::{ApiLogin, Auth, Reach, SettledReach};
use super::sources::SourceDescription;
use super::values::size;

/// An `[[http]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    name: Spanned<String>,
    title: Option<String>,
    description: Option<String>,
    method: Option<Spanned<String>>,
    url: Spanned<String>,
    headers: Option<Entries>,
    body: Option<Spanned<toml::Value>>,
    input: Option<Entries>,
    input_schema: Option<Spanned<toml::Value>>,
    output: Option<Spanned<String>>,
    output_schema: Option<Spanned<toml::Value>>,
    select: Option<Spanned<String>>,
    auth: Option<Vec<Auth>>,
    timeout: Option<Spanned<String>>,
    hosts: Option<Vec<Spanned<String>>>,
    private: Option<bool>,
    files: Option<Spanned<String>>,
    concurrency: Option<Spanned<usize>>,
    max_answer: Option<Spanned<String>>,
    max_response: Option<Spanned<String>>,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
}

/// Settles a request. Its timeout must not be longer than `call_time`.
pub(super) fn settle(
    file: &Request,
    seal: &Seal,
    text: &Text<'_>,
    call_time: Option<Duration>,
) -> Result<SourceDescription, Mistake> {
    let owner = format!("request `{}`", file.name.get_ref());
    let wrong =
        |place: Range<usize>, error: &DefinitionError| text.wrong_definition(place, &owner, error);
    let described = input(file.input.as_ref(), file.input_schema.as_ref(), &owner, text);
    let described = text.checked(described);
    let method = text.checked(method(file, text));
    let url = UrlTemplate::parse(file.url.get_ref());
    let url = text.checked(url.map_err(|error| wrong(file.url.span(), &error)));
    let origin = url.as_ref().map(UrlTemplate::origin);
    let reach = Reach {
        owner: &owner,
        urls: origin.into_iter().collect(),
        auth: file.auth.as_ref(),
        timeout: file.timeout.as_ref(),
        call_time,
        hosts: file.hosts.as_ref(),
        private: file.private,
        concurrency: file.concurrency.as_ref(),
        max_response: file.max_response.as_ref(),
        // Requests to one host share the logins of their users.
        login_at: origin.and_then(|origin| Some((origin.split_once("://")?.1, origin))),
        seal,
    };
    let reached = match origin {
        Some(origin) => text.checked(sender(&reach, origin, file, text)),
        None => {
            reach.limit(&mut SenderSettings::default(), text);
            None
        }
    };
    let headers = text.checked(headers(file, &owner, text));
    let body = text.checked(body(file, &owner, text));
    let output = text.checked(output(file, &owner, text));
    let select = text.checked(select(file, &owner, text));
    let folder = text.checked(folder(file, &owner, text));
    let mut limits = ReplyLimits::default();
    text.set(&mut limits.text, size(file.max_answer.as_ref(), text));
    let reported = || text.reported();
    let (sender, login) = reached.ok_or_else(reported)?;
    let (described, method) = (described.ok_or_else(reported)?, method.ok_or_else(reported)?);
    let mut annotations = SingleRequest::annotations_of(method);
    annotations.read_only_hint = file.read_only.or(annotations.read_only_hint);
    annotations.destructive_hint = file.destructive.or(annotations.destructive_hint);
    annotations.idempotent_hint = file.idempotent.or(annotations.idempotent_hint);
    let mut request = SingleRequest {
        name: file.name.get_ref().clone(),
        title: file.title.clone(),
        description: file.description.clone(),
        annotations,
        input: described.input.clone(),
        method,
        url: url.ok_or_else(reported)?,
        headers: headers.ok_or_else(reported)?,
        body: body.ok_or_else(reported)?,
        output: output.ok_or_else(reported)?,
        select: select.ok_or_else(reported)?,
        sender,
        limits,
        folder: folder.ok_or_else(reported)?,
    };
    described.report(&request.mismatches(), &owner, text, |place| match (place, &file.body) {
        (Some(Place::Key("body")), Some(body)) => body.span(),
        _ => file.url.span(),
    });
    let place = text.place(file.name.span());
    let known = login.as_ref().map(|login| login.login.clone());
    let described = SourceDescription::new(place, |context| async move {
        if let Some(login) = login {
            request.sender.add_auth(login.open(&context)?);
        }
        Ok(RequestSource::new(request))
    });
    Ok(described.logs_in(known))
}

/// What sends the request, and the logins of users.
fn sender(
    reach: &Reach<'_>,
    origin: &str,
    file: &Request,
    text: &Text<'_>,
) -> Result<(Sender, Option<ApiLogin>), Mistake> {
    let SettledReach { sender, login } = reach.settle(text)?;
    let sender = Sender::new(sender).and_then(|sender| sender.check(origin).map(|()| sender));
    let wrong = |error| text.mistake(file.url.span(), format!("{}: {error}", reach.owner));
    Ok((sender.map_err(wrong)?, login))
}

/// The headers, with placeholders.
fn headers(
    file: &Request,
    owner: &str,
    text: &Text<'_>,
) -> Result<Vec<(String, TextTemplate)>, Mistake> {
    check_headers(file, owner, text)?;
    let parse = |(name, value): (String, String)| {
        let template = TextTemplate::parse_at(Place::Key("headers"), &value);
        let wrong = |error| text.wrong_definition(file.url.span(), owner, &error);
        Ok((name, template.map_err(wrong)?))
    };
    texts(file.headers.as_ref(), text)?.into_iter().map(parse).collect()
}

/// Names that cannot be sent, and secrets that are written into the file.
fn check_headers(file: &Request, owner: &str, text: &Text<'_>) -> Result<(), Mistake> {
    for (key, value) in file.headers.iter().flat_map(|headers| &headers.0) {
        let name = key.get_ref().to_ascii_lowercase();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            let what = format!("{owner}: headers: invalid name `{}`", key.get_ref());
            let hint = "write e.g. `headers = { Accept = \"application/json\" }`";
            return Err(text.mistake(key.span(), what).hint(hint));
        }
        let is_secret = ["authorization", "proxy-authorization", "cookie"].contains(&&*name)
            || ["api-key", "apikey", "-token"].iter().any(|end| name.ends_with(end));
        if is_secret && value.as_str().is_some_and(|value| !value.contains('{')) {
            let what = format!("{owner}: headers: `{}` is a secret in the file", key.get_ref());
            let hint = match &*name {
                "authorization" => "{ type = \"bearer\", env = \"API_TOKEN\" }".to_owned(),
                _ => format!(
                    "{{ type = \"api_key\", in = \"header\", name = \"{}\", env = \"API_KEY\" }}",
                    key.get_ref()
                ),
            };
            let hint = format!("write `auth = [{hint}]`, and set that variable");
            return Err(text.mistake(key.span(), what).hint(hint));
        }
    }
    Ok(())
}

fn method(file: &Request, text: &Text<'_>) -> Result<Method, Mistake> {
    let Some(written) = &file.method else {
        return Ok(if file.body.is_some() { Method::Post } else { Method::Get });
    };
    let method = Method::parse(written.get_ref());
    method.ok_or_else(|| text.invalid(written, "method", "e.g. \"GET\", \"POST\""))
}

/// `body`: `"json"` for the arguments, or a table with `json`, `form`, `text` or `file`.
fn body(file: &Request, owner: &str, text: &Text<'_>) -> Result<BodyForm, Mistake> {
    let Some(written) = &file.body else { return Ok(BodyForm::Empty) };
    let wrong = |what: &str| text.mistake(written.span(), format!("{owner}: body: {what}"));
    let bad = |error: DefinitionError| text.wrong_definition(written.span(), owner, &error);
    let expected = "expected \"json\", or a table with one of `json`, `form`, `text` and `file`, \
                    e.g. { json = { name = \"{name}\" } }";
    let template = |value: &toml::Value| match value {
        toml::Value::String(value) => {
            TextTemplate::parse_at(Place::Key("body"), value).map_err(bad)
        }
        other => TextTemplate::parse_at(Place::Key("body"), &other.to_string()).map_err(bad),
    };
    let table = match written.get_ref() {
        toml::Value::String(word) if word == "json" => return Ok(BodyForm::Arguments),
        toml::Value::Table(table) => table,
        _ => return Err(wrong(expected)),
    };
    let media = |usual: &str| match table.get("type") {
        None => Ok(usual.to_owned()),
        Some(toml::Value::String(media)) => match MimeType::try_from(media.as_str()) {
            Ok(_) => Ok(media.clone()),
            Err(error) => Err(wrong(&error.to_string())),
        },
        Some(_) => Err(wrong("`type` must be a media type")),
    };
    let kinds: Vec<_> = table.iter().filter(|(key, _)| *key != "type").collect();
    match &kinds[..] {
        [(key, value)] => match (key.as_str(), value) {
            ("json", value) => {
                let value = json(value).ok_or_else(|| wrong("a number is not valid in JSON"))?;
                JsonTemplate::parse(value).map(BodyForm::Json).map_err(bad)
            }
            ("form", toml::Value::Table(fields)) => {
                let fields =
                    fields.iter().map(|(name, value)| Ok((name.clone(), template(value)?)));
                fields.collect::<Result<_, Mistake>>().map(BodyForm::Form)
            }
            ("text", value) => {
                Ok(BodyForm::Text(template(value)?, media("text/plain; charset=utf-8")?))
            }
            ("file", value) if file.files.is_some() => {
                Ok(BodyForm::File(template(value)?, media("application/octet-stream")?))
            }
            ("file", _) => Err(wrong("a file needs `files`, the folder that it is in")),
            _ => Err(wrong(expected)),
        },
        _ => Err(wrong(expected)),
    }
}

fn output(file: &Request, owner: &str, text: &Text<'_>) -> Result<SingleOutput, Mistake> {
    let schema = match &file.output_schema {
        Some(schema) => Some(read_schema("output_schema", schema, owner, text)?),
        None => None,
    };
    Ok(match (&file.output, schema) {
        (None, Some(schema)) => SingleOutput::Json(Some(schema)),
        (None, None) => SingleOutput::Auto,
        (Some(written), schema) => match (written.get_ref().as_str(), schema) {
            ("json", schema) => SingleOutput::Json(schema),
            (_, Some(_)) => {
                let what = format!("{owner}: `output_schema` requires JSON output");
                return Err(text.mistake(written.span(), what).hint("set output = \"json\""));
            }
            ("auto", None) => SingleOutput::Auto,
            ("text", None) => SingleOutput::Text,
            ("link", None) => SingleOutput::Link,
            ("image", None) => SingleOutput::Image,
            (other, None) => SingleOutput::Bytes(MimeType::try_from(other).map_err(|error| {
                let hint = "use \"auto\", \"text\", \"json\", \"image\", \"link\" or a media type";
                text.mistake(written.span(), format!("{owner}: {error}")).hint(hint)
            })?),
        },
    })
}

fn select(file: &Request, owner: &str, text: &Text<'_>) -> Result<Option<Selection>, Mistake> {
    let Some(written) = &file.select else { return Ok(None) };
    let parsed = Selection::parse(written.get_ref()).map_err(|error| {
        let hint = "a JSON Pointer starts with `/`, anything else is JMESPath";
        text.mistake(written.span(), format!("{owner}: select: {error}")).hint(hint)
    });
    parsed.map(Some)
}

fn folder(file: &Request, owner: &str, text: &Text<'_>) -> Result<Folder, Mistake> {
    let Some(files) = &file.files else { return Ok(Folder::default()) };
    super::openapi::open_folder(files, owner, text)
}
