//! `[[openapi]]`: an HTTP API as tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sabir_openapi::{Method, ReadOptions};
use sabir_outbound::HttpClient;
use sabir_sources::http::{
    Api, ApiSource, Choice, Filter, Folder, Loader, Location, ReplyLimits, SenderSettings,
};
use serde::Deserialize;
use toml::Spanned;

use super::articles::cache;
use super::file::{File, Seal};
use super::json::Entries;
use super::mistake::{Mistake, Mistakes, RELATIVE, Text};
use super::reach::{ApiLogin, Auth, Reach, SettledReach};
use super::reader;
use super::sources::SourceDescription;
use super::values::{positive, size};

/// An `[[openapi]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenApi {
    name: Spanned<String>,
    path: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
    base_url: Option<Spanned<String>>,
    server_variables: Option<Entries>,
    prefix: Option<Spanned<String>>,
    methods: Option<Vec<Spanned<String>>>,
    include: Option<Pattern>,
    exclude: Option<Pattern>,
    rename: Option<Entries>,
    max_tools: Option<Spanned<usize>>,
    output_schemas: Option<bool>,
    max_answer: Option<Spanned<String>>,
    files: Option<Spanned<String>>,
    cache: Option<String>,
    hosts: Option<Vec<Spanned<String>>>,
    private: Option<bool>,
    auth: Option<Vec<Auth>>,
    timeout: Option<Spanned<String>>,
    max_response: Option<Spanned<String>>,
    concurrency: Option<Spanned<usize>>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) tool_scopes: BTreeMap<String, Vec<Spanned<String>>>,
}

/// `include` or `exclude`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Pattern {
    tags: Vec<String>,
    paths: Vec<String>,
    operations: Vec<String>,
    methods: Vec<Spanned<String>>,
}

/// The bytes of one schema of answers.
const OUTPUT_SCHEMA: usize = 2000;

/// Settles an API.
pub(super) fn settle(
    file: &OpenApi,
    seal: &Seal,
    text: &Text<'_>,
    call_time: Option<Duration>,
) -> Result<SourceDescription, Mistake> {
    let (mut api, login) = api(file, seal, text, call_time)?;
    let known = login.as_ref().map(|login| login.login.clone());
    let described = SourceDescription::new(text.place(file.name.span()), |context| async move {
        api.sender.auth.extend(login.map(|login| login.open(&context)).transpose()?);
        Ok(ApiSource::new(api))
    });
    Ok(described.logs_in(known))
}

/// The APIs of the configuration at `path`, for `sabir openapi`.
pub(crate) fn apis(path: &Path) -> Result<Vec<Api>, Mistakes> {
    let written =
        std::fs::read_to_string(path).map_err(|error| Mistake::unreadable(path, &error))?;
    let text = Text::new(path, &written);
    let file: File = reader::read(&text);
    let apis = file.openapi.iter().map(|api_file| api(api_file, &file.seal, &text, None));
    let apis = apis.filter_map(|api| text.checked(api).map(|(api, _)| api)).collect();
    text.finish()?;
    Ok(apis)
}

/// An API, and the logins of its users, not opened yet.
fn api(
    file: &OpenApi,
    seal: &Seal,
    text: &Text<'_>,
    call_time: Option<Duration>,
) -> Result<(Api, Option<ApiLogin>), Mistake> {
    let name = file.name.get_ref();
    let owner = format!("openapi `{name}`");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() || name.len() > 32 || !name.chars().all(is_plain) {
        let expected = "1 to 32 letters, digits, `_` and `-`";
        text.report(text.invalid(&file.name, "name", expected));
    }
    let location = text.checked(location(file, &owner, text));
    let url = file.url.as_ref().map(|url| url.get_ref().as_str());
    let base_url = file.base_url.as_ref().map(|url| base_url(url, text)).transpose();
    let base_url = text.checked(base_url);
    let choice = choice(file, text);
    let folder = file.files.as_ref().map(|files| open_folder(files, &owner, text)).transpose();
    let folder = text.checked(folder);
    let mut limits = ReplyLimits::default();
    text.set(&mut limits.text, size(file.max_answer.as_ref(), text));
    let is_reachable = location.is_some() && base_url.is_some();
    let base_url = base_url.flatten();
    let reach = |urls| Reach {
        owner: &owner,
        urls,
        hosts: file.hosts.as_ref(),
        private: file.private,
        auth: file.auth.as_ref(),
        timeout: file.timeout.as_ref(),
        max_response: file.max_response.as_ref(),
        concurrency: file.concurrency.as_ref(),
        call_time,
        login_at: base_url.as_deref().map(|url| (name.as_str(), url)),
        seal,
    };
    let failed =
        |error: sabir_outbound::Error| text.mistake(file.name.span(), format!("{owner}: {error}"));
    // A description may be fetched from its own host and the listed ones; a description that is a
    // file may refer to the listed ones only.
    let has_hosts = url.is_some() || file.hosts.is_some();
    let described_at = reach(url.into_iter().collect());
    if !is_reachable {
        described_at.limit(&mut SenderSettings::default(), text);
        return Err(text.reported());
    }
    let policy = described_at.policy(text)?;
    let client = if has_hosts { Some(HttpClient::new(policy).map_err(failed)?) } else { None };
    let is_named = base_url.is_some() || file.hosts.is_some();
    // Credentials go to hosts that the operator named: by a description from the network, or by
    // these keys.
    let trusts_servers = !is_named && (url.is_none() || file.auth.is_none());
    let targets = base_url.as_deref().into_iter().chain(url).collect();
    let SettledReach { sender, login } = reach(targets).settle(text)?;
    let (Some(location), Some(folder)) = (location, folder) else {
        return Err(text.reported());
    };
    let api = Api {
        name: name.clone(),
        loader: Loader { location, client, cache: cache(file.cache.as_deref(), "openapi", text) },
        choice,
        sender,
        trusts_servers,
        base_url: base_url.clone(),
        limits,
        folder: folder.unwrap_or_default(),
    };
    Ok((api, login))
}

fn location(file: &OpenApi, owner: &str, text: &Text<'_>) -> Result<Location, Mistake> {
    match (&file.path, &file.url) {
        (Some(path), None) => {
            let whole = text.resolve(path.get_ref());
            if !whole.is_file() {
                let what = format!("{owner}: file not found: {}", whole.display());
                return Err(text.mistake(path.span(), what).hint(RELATIVE));
            }
            Ok(Location::File(whole))
        }
        (None, Some(url)) if is_http(url.get_ref()) => Ok(Location::Url(url.get_ref().clone())),
        (None, Some(url)) => Err(text.invalid(url, "URL", "https://…")),
        _ => {
            let what = format!("{owner}: expected either `path` or `url` of a description");
            let hint = "add e.g. `path = \"openapi.yaml\"`, or `url = \"https://…/openapi.json\"`";
            Err(text.lacking(file.name.span(), what).hint(hint))
        }
    }
}

fn is_http(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
        && sabir_openapi::is_absolute(url)
}

fn base_url(url: &Spanned<String>, text: &Text<'_>) -> Result<String, Mistake> {
    if is_http(url.get_ref()) {
        Ok(url.get_ref().trim_end_matches('/').to_owned())
    } else {
        Err(text.invalid(url, "URL", "https://…"))
    }
}

pub(super) fn open_folder(
    files: &Spanned<String>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Folder, Mistake> {
    let path = text.resolve(files.get_ref());
    Folder::open(&path).map_err(|error| {
        let what = format!("{owner}: cannot open the folder {}: {error}", path.display());
        text.mistake(files.span(), what).hint(RELATIVE)
    })
}

/// Which operations become tools, and their names. Mistakes are reported.
fn choice(file: &OpenApi, text: &Text<'_>) -> Choice {
    let usual = Choice::default();
    let prefix = match &file.prefix {
        None => format!("{}_", file.name.get_ref()),
        Some(prefix) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            if prefix.get_ref().len() > 40 || !prefix.get_ref().chars().all(is_plain) {
                let expected = "at most 40 letters, digits, `_` and `-`";
                text.report(text.invalid(prefix, "prefix", expected));
            }
            prefix.get_ref().clone()
        }
    };
    let methods = file.methods.as_ref().map(|methods| parse_methods(methods, text));
    let pairs = |entries: &Option<Entries>| {
        text.checked(texts(entries.as_ref(), text)).into_iter().flatten().collect()
    };
    let max_tools = text.checked(positive(file.max_tools.as_ref(), text)).flatten();
    Choice {
        prefix,
        methods: methods.unwrap_or(usual.methods),
        include: filter(file.include.as_ref(), text),
        exclude: filter(file.exclude.as_ref(), text),
        rename: pairs(&file.rename),
        max_tools: max_tools.unwrap_or(usual.max_tools),
        read: ReadOptions {
            variables: pairs(&file.server_variables),
            output: file.output_schemas.unwrap_or(false).then_some(OUTPUT_SCHEMA),
        },
    }
}

fn filter(file: Option<&Pattern>, text: &Text<'_>) -> Filter {
    let Some(Pattern { tags, paths, operations, methods }) = file else {
        return Filter::default();
    };
    Filter {
        tags: tags.clone(),
        paths: paths.clone(),
        operations: operations.clone(),
        methods: parse_methods(methods, text),
    }
}

fn parse_methods(methods: &[Spanned<String>], text: &Text<'_>) -> Vec<Method> {
    let mut parsed = Vec::new();
    for method in methods {
        match method.get_ref().as_str() {
            "*" => parsed.extend(Method::ALL),
            name => {
                let expected = "e.g. \"GET\", \"POST\", \"*\" for all";
                let known = Method::parse(name);
                let known = known.ok_or_else(|| text.invalid(method, "method", expected));
                parsed.extend(text.checked(known));
            }
        }
    }
    parsed
}

/// The entries of a table of texts.
pub(super) fn texts(
    entries: Option<&Entries>,
    text: &Text<'_>,
) -> Result<Vec<(String, String)>, Mistake> {
    let mut found = Vec::new();
    for (key, value) in entries.into_iter().flat_map(|entries| &entries.0) {
        let toml::Value::String(value) = value else {
            let what = format!("invalid value of `{}` (expected text)", key.get_ref());
            return Err(text.mistake(key.span(), what));
        };
        found.push((key.get_ref().clone(), value.clone()));
    }
    Ok(found)
}
