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
    if let Some(written) = &listen.http {
        http.address = address(written, text)?;
    }
    if let Some(endpoint) = &file.endpoint {
        if !endpoint.get_ref().starts_with('/') {
            let what = format!("invalid path `{}` (expected e.g. \"/mcp\")", endpoint.get_ref());
            return Err(text.mistake(endpoint.span(), what));
        }
        http.endpoint.clone_from(endpoint.get_ref());
    }
    http.old_sse = file.old_sse.unwrap_or(http.old_sse);
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

fn address(written: &Spanned<String>, text: &Text<'_>) -> Result<SocketAddr, Mistake> {
    written.get_ref().parse().map_err(|_| {
        let what =
            format!("invalid address `{}` (expected e.g. \"127.0.0.1:7331\")", written.get_ref());
        text.mistake(written.span(), what)
    })
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
        let words = scopes.get_ref().iter().map(|scope| ("scope", scope, scopes.span()));
        for (kind, word, place) in
            std::iter::once(("name", name.get_ref(), name.span())).chain(words)
        {
            if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
                let what = format!("invalid {kind} `{word}` of a token ({TOKEN_CHARACTERS})");
                return Err(text.mistake(place, what));
            }
        }
        let token = token(env, text)?;
        for known in &tokens {
            let (known, same) = (&known.name, known.token.is_same_as(&token));
            if **known == **name.get_ref() {
                let what = format!("duplicate token name `{known}`");
                return Err(text.mistake(name.span(), what).hint("give each token its own name"));
            }
            if same {
                let what = format!("token `{}` is the same as token `{known}`", name.get_ref());
                let hint = "callers are told apart by their tokens; set each variable to its own";
                return Err(text.mistake(env.span(), what).hint(hint));
            }
        }
        let scopes = scopes.get_ref().iter().map(|scope| scope.as_str().into()).collect();
        tokens.push(NamedToken { name: name.get_ref().as_str().into(), token, scopes });
    }
    Ok(tokens)
}

/// What a token, its name and its scopes consist of.
pub(crate) const TOKEN_CHARACTERS: &str = "expected printable ASCII characters without spaces";

fn token(env: &Spanned<String>, text: &Text<'_>) -> Result<Token, Mistake> {
    let hint = "`openssl rand -hex 32` prints a token";
    let secret = variable(env, text).map_err(|mistake| mistake.hint(hint))?;
    Token::new(&secret).ok_or_else(|| {
        let what = format!("invalid token in `{}` ({TOKEN_CHARACTERS})", env.get_ref());
        text.mistake(env.span(), what).hint(hint)
    })
}
