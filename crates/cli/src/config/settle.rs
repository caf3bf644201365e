//! Settles a file: defaults and environment variables are filled in, values are checked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sabir::{
    Dialect, HttpSettings, Implementation, MissingMethod, NullId, RequireReady, Revision, SealKey,
};
use sabir::{ToolFailure, UnknownTool};
use toml::{Spanned, Value};

use super::file::{self, File};
use super::mistake::{Mistake, Mistakes, Text};
use super::sources::SourceDescription;
use super::values::{duration, one_of, positive, size, time, variable};
use super::{articles, command, http, prompt, resource};

/// A configuration, as decided.
#[derive(Debug)]
pub(crate) struct Settings {
    /// How the server behaves.
    pub(crate) engine: sabir_engine::Settings,
    /// How HTTP clients are served.
    pub(crate) http: HttpSettings,
    /// Whether the file contains an address for them.
    pub(crate) listens_http: bool,
    /// Where WebSocket clients are served, if the file contains an address for them.
    pub(crate) ws: Option<SocketAddr>,
    /// Whether the file asks for stdio.
    pub(crate) stdio: bool,
    /// The sources, not opened yet.
    pub(crate) sources: Vec<SourceDescription>,
    /// The folder of the file.
    pub(crate) folder: PathBuf,
}

/// Settles a file.
pub(crate) fn settle(file: &File, text: &Text<'_>) -> Result<Settings, Mistakes> {
    let mut engine = sabir_engine::Settings {
        dialect: dialect(&file.dialect, text)?,
        instructions: file.server.instructions.clone(),
        seal_key: seal_key(&file.seal, text)?,
        ..sabir_engine::Settings::default()
    };
    describe(&mut engine.server, &file.server);
    limit(&mut engine, &file.limits, text)?;
    let (http, listens_http) = http::settle(file, text)?;
    let sources = sources(file, text, engine.limits.call_time)?;
    let ws = http::address(file.listen.ws.as_ref(), text)?;
    let stdio = file.listen.stdio.unwrap_or(false);
    Ok(Settings { engine, http, listens_http, ws, stdio, sources, folder: text.folder() })
}

/// Settles the descriptions of all sources, in the order of the file within each kind.
fn sources(
    file: &File,
    text: &Text<'_>,
    call_time: Option<Duration>,
) -> Result<Vec<SourceDescription>, Mistakes> {
    let is_only = file.articles.len() == 1;
    let articles = file.articles.iter().map(|file| articles::settle(file, text, is_only));
    let commands = file.command.iter().map(|file| command::settle(file, text, call_time));
    let prompts = file.prompt.iter().map(|file| prompt::settle(file, text));
    let resources = file.resource.iter().map(|file| resource::settle(file, text));
    Mistakes::all(articles.chain(commands).chain(prompts).chain(resources))
}

fn describe(server: &mut Implementation, file: &file::Server) {
    if let Some(name) = &file.name {
        server.name.clone_from(name);
    }
    if let Some(version) = &file.version {
        server.version.clone_from(version);
    }
    server.title.clone_from(&file.title);
    server.description.clone_from(&file.description);
    server.website_url.clone_from(&file.website);
}

fn dialect(file: &file::Dialect, text: &Text<'_>) -> Result<Dialect, Mistake> {
    let revision = file.revision.as_ref().map(|date| revision(date, text)).transpose()?;
    let unknown_tool = one_of(
        file.unknown_tool.as_ref(),
        text,
        &[
            ("-32602", UnknownTool::InvalidParams),
            ("-32601", UnknownTool::MethodNotFound),
            ("\"result\"", UnknownTool::Result),
        ],
    )?;
    let tool_failure = one_of(
        file.tool_failure.as_ref(),
        text,
        &[("\"result\"", ToolFailure::Result), ("-32603", ToolFailure::InternalError)],
    )?;
    let missing_method = one_of(
        file.missing_method.as_ref(),
        text,
        &[("-32600", MissingMethod::InvalidRequest), ("-32700", MissingMethod::ParseError)],
    )?;
    let require_ready = one_of(
        as_value(file.require_ready.as_ref()).as_ref(),
        text,
        &[
            ("\"none\"", RequireReady::None),
            ("\"tools\"", RequireReady::Tools),
            ("\"all\"", RequireReady::All),
        ],
    )?;
    let null_id = one_of(
        as_value(file.null_id.as_ref()).as_ref(),
        text,
        &[("\"refuse\"", NullId::Refuse), ("\"answer\"", NullId::Answer)],
    )?;
    Ok(Dialect {
        revision,
        unknown_tool: unknown_tool.unwrap_or_default(),
        tool_failure: tool_failure.unwrap_or_default(),
        require_ready,
        missing_method: missing_method.unwrap_or_default(),
        null_id: null_id.unwrap_or_default(),
        flat_server_info: file.flat_server_info.unwrap_or(false),
    })
}

fn revision(date: &Spanned<String>, text: &Text<'_>) -> Result<Revision, Mistake> {
    Revision::parse(date.get_ref()).ok_or_else(|| {
        let known = Revision::ALL.map(Revision::date).join(", ");
        text.invalid(date, "revision", &format!("one of {known}"))
    })
}

fn as_value(text: Option<&Spanned<String>>) -> Option<Spanned<Value>> {
    text.map(|text| Spanned::new(text.span(), Value::String(text.get_ref().clone())))
}

fn limit(
    engine: &mut sabir_engine::Settings,
    file: &file::Limits,
    text: &Text<'_>,
) -> Result<(), Mistake> {
    let defaults = (engine.limits.clone(), engine.engine_limits.clone());
    let (limits, engine) = (&mut engine.limits, &mut engine.engine_limits);
    limits.calls = positive(file.calls.as_ref(), text)?.unwrap_or(limits.calls);
    limits.call_time = time(file.call_time.as_ref(), text, defaults.0.call_time)?;
    limits.question_time = time(file.question_time.as_ref(), text, defaults.0.question_time)?;
    limits.subscriptions = file.subscriptions.unwrap_or(limits.subscriptions);
    limits.grace = duration(file.grace.as_ref(), text)?.unwrap_or(limits.grace);
    engine.message_size = size(file.message_size.as_ref(), text)?.unwrap_or(engine.message_size);
    engine.depth = positive(file.depth.as_ref(), text)?.unwrap_or(engine.depth);
    engine.questions = file.questions.unwrap_or(engine.questions);
    engine.notifications =
        positive(file.notifications.as_ref(), text)?.unwrap_or(engine.notifications);
    engine.page_size = positive(file.page_size.as_ref(), text)?.unwrap_or(engine.page_size);
    engine.abort_grace = duration(file.abort_grace.as_ref(), text)?.unwrap_or(engine.abort_grace);
    Ok(())
}

fn seal_key(file: &file::Seal, text: &Text<'_>) -> Result<Option<SealKey>, Mistake> {
    let Some(name) = &file.key_env else { return Ok(None) };
    let hint = "`openssl rand -base64 32` prints a key";
    let key = variable(name, text).map_err(|mistake| mistake.hint(hint))?;
    let key = SealKey::parse(&key).ok_or_else(|| {
        let what = format!("invalid key in `{}` (expected 32 bytes in Base64)", name.get_ref());
        text.mistake(name.span(), what).hint(hint)
    })?;
    Ok(Some(key))
}
