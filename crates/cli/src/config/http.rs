//! `[http]` and `[listen] http`, settled.

use std::net::SocketAddr;

use sabir::{HttpSettings, NamedToken, Token};
use toml::Spanned;

use super::file::{Http, Listen};
use super::mistake::{Mistake, Text};
use super::values::{duration, positive, size};

/// How HTTP clients are served, and whether the file says where.
pub(crate) fn settle(
    listen: &Listen,
    file: &Http,
    text: &Text<'_>,
) -> Result<(HttpSettings, bool), Mistake> {
    let mut http = HttpSettings::default();
    if let Some(written) = &listen.http {
        http.address = address(written, text)?;
    }
    if let Some(endpoint) = &file.endpoint {
        if !endpoint.get_ref().starts_with('/') {
            let what = format!("`{}` is no path", endpoint.get_ref());
            return Err(text.mistake(endpoint.span(), what).hint("begin it with `/`"));
        }
        http.endpoint.clone_from(endpoint.get_ref());
    }
    http.old_sse = file.old_sse.unwrap_or(http.old_sse);
    http.allow_public = file.allow_public.unwrap_or(http.allow_public);
    http.origins = file.origins.clone().unwrap_or_default();
    http.hosts = file.hosts.clone().unwrap_or_default();
    if let Some(name) = &file.token_env {
        http.tokens.push(NamedToken::new("token", token(name, text)?));
    }
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
        text.mistake(written.span(), format!("`{}` is no address", written.get_ref()))
            .hint("write it like \"127.0.0.1:7331\"")
    })
}

fn token(name: &Spanned<String>, text: &Text<'_>) -> Result<Token, Mistake> {
    let hint = "set it to a long random word of printable characters";
    let secret = std::env::var(name.get_ref()).map_err(|_| {
        let what = format!("the environment has no `{}`", name.get_ref());
        text.mistake(name.span(), what).hint(hint)
    })?;
    Token::new(&secret).ok_or_else(|| {
        let what = format!("`{}` holds no token that a header could carry", name.get_ref());
        text.mistake(name.span(), what).hint(hint)
    })
}
