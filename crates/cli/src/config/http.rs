//! `[listen] http`, `[http]` and `[[token]]`.

use std::net::SocketAddr;

use sabir::{HttpSettings, NamedToken, Token};
use toml::Spanned;

use super::file::{self, File, Http};
use super::mistake::{Mistake, Text};
use super::values::{duration, positive, size, variable};

/// Settles how HTTP clients are served, and whether the file contains an address for them.
pub(super) fn settle(
    File { listen, http: file, token, .. }: &File,
    text: &Text<'_>,
) -> Result<(HttpSettings, bool), Mistake> {
    let mut http = HttpSettings::default();
    http.address = address(listen.http.as_ref(), text)?.unwrap_or(http.address);
    if let Some(endpoint) = &file.endpoint {
        if !endpoint.get_ref().starts_with('/') {
            return Err(text.invalid(endpoint, "path", "e.g. \"/mcp\""));
        }
        http.endpoint.clone_from(endpoint.get_ref());
    }
    http.old_sse = file.old_sse.unwrap_or(http.old_sse);
    http.websocket = file.websocket.unwrap_or(http.websocket);
    http.ping = duration(file.ping.as_ref(), text)?.unwrap_or(http.ping);
    http.allow_public = file.allow_public.unwrap_or(http.allow_public);
    http.origins = file.origins.clone().unwrap_or_default();
    http.hosts = file.hosts.clone().unwrap_or_default();
    http.tokens = tokens(file.token_env.as_ref(), token, text)?;
    http.keep_alive = duration(file.keep_alive.as_ref(), text)?.unwrap_or(http.keep_alive);
    http.poll_after = duration(file.poll_after.as_ref(), text)?;
    http.retry = duration(file.retry.as_ref(), text)?.unwrap_or(http.retry);
    limit(&mut http, file, text)?;
    Ok((http, listen.http.is_some()))
}

/// An address to listen on.
pub(super) fn address(
    written: Option<&Spanned<String>>,
    text: &Text<'_>,
) -> Result<Option<SocketAddr>, Mistake> {
    let Some(written) = written else { return Ok(None) };
    let address = written.get_ref().parse();
    address.map(Some).map_err(|_| text.invalid(written, "address", "e.g. \"127.0.0.1:7331\""))
}

fn limit(http: &mut HttpSettings, file: &Http, text: &Text<'_>) -> Result<(), Mistake> {
    let limits = &mut http.limits;
    limits.connections = positive(file.connections.as_ref(), text)?.unwrap_or(limits.connections);
    limits.idle = duration(file.idle.as_ref(), text)?.unwrap_or(limits.idle);
    limits.head = size(file.head_size.as_ref(), text)?.unwrap_or(limits.head);
    limits.body_time = duration(file.body_time.as_ref(), text)?.unwrap_or(limits.body_time);
    limits.stall = duration(file.stall.as_ref(), text)?.unwrap_or(limits.stall);
    limits.sessions = positive(file.sessions.as_ref(), text)?.unwrap_or(limits.sessions);
    limits.session_idle =
        duration(file.session_idle.as_ref(), text)?.unwrap_or(limits.session_idle);
    limits.streams = positive(file.streams.as_ref(), text)?.unwrap_or(limits.streams);
    limits.replay = positive(file.replay.as_ref(), text)?.unwrap_or(limits.replay);
    limits.replay_bytes = size(file.replay_size.as_ref(), text)?.unwrap_or(limits.replay_bytes);
    limits.replay_time = duration(file.replay_time.as_ref(), text)?.unwrap_or(limits.replay_time);
    Ok(())
}

/// The token of `token_env`, which is named `token`, and those of `[[token]]`.
fn tokens(
    env: Option<&Spanned<String>>,
    named: &[file::Token],
    text: &Text<'_>,
) -> Result<Vec<NamedToken>, Mistake> {
    let mut tokens = Vec::new();
    if let Some(env) = env {
        tokens.push(NamedToken::new("token", token(env, text)?));
    }
    for file::Token { name, env, scopes } in named {
        let mut words = std::iter::once(name).chain(scopes);
        let is_plain = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_graphic());
        if let Some(word) = words.find(|word| !is_plain(word.get_ref())) {
            return Err(text.invalid(word, "name or scope", TOKEN_CHARACTERS));
        }
        let mut added = NamedToken::new(name.get_ref().as_str(), token(env, text)?);
        added.scopes = scopes.iter().map(|scope| scope.get_ref().as_str().into()).collect();
        if let Some(known) = tokens.iter().find(|known| known.name == added.name) {
            let what = format!("duplicate token name `{}`", known.name);
            return Err(text.mistake(name.span(), what).hint("give each token its own name"));
        }
        if let Some(known) = tokens.iter().find(|known| known.token.is_same_as(&added.token)) {
            let what = format!("token `{}` is the same as token `{}`", added.name, known.name);
            return Err(text.mistake(env.span(), what).hint("set each variable to its own token"));
        }
        tokens.push(added);
    }
    Ok(tokens)
}

/// What a token, its name and its scopes consist of.
pub(crate) const TOKEN_CHARACTERS: &str = "printable ASCII characters without spaces";

fn token(env: &Spanned<String>, text: &Text<'_>) -> Result<Token, Mistake> {
    let hint = "`openssl rand -hex 32` prints a token";
    let secret = variable(env, text).map_err(|mistake| mistake.hint(hint))?;
    Token::new(&secret).ok_or_else(|| {
        let what = format!("invalid token in `{}` (expected {TOKEN_CHARACTERS})", env.get_ref());
        text.mistake(env.span(), what).hint(hint)
    })
}
