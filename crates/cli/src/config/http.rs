//! `[listen] http`, `[http]` and `[[token]]`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;
use sabir::{HttpSettings, NamedToken, Token};
use sabir_auth::Grants;
use sabir_budget::Rate;
use sabir_transports::http::is_reserved;
use toml::Spanned;

use super::auth::is_plain;
use super::file::{self, File, Http};
use super::mistake::{Mistake, Text};
use super::values::{duration, positive, rate, size, variable};

/// Settles how HTTP clients are served, and whether the file contains an address for them.
pub(super) fn settle(
    File { listen, http: file, token, .. }: &File,
    grants: &Grants,
    text: &Text<'_>,
) -> (HttpSettings, bool) {
    let mut http = HttpSettings::default();
    text.set(&mut http.address, address(listen.http.as_ref(), text));
    if let Some(endpoint) = &file.endpoint {
        if !endpoint.get_ref().starts_with('/') {
            text.report(text.invalid(endpoint, "path", "e.g. \"/mcp\""));
        }
        let old_sse = file.old_sse.unwrap_or(http.old_sse);
        if is_reserved(endpoint.get_ref(), old_sse) {
            let what = format!("the path `{}` is taken (expected another)", endpoint.get_ref());
            text.report(text.mistake(endpoint.span(), what).hint("\"/mcp\" is the default"));
        }
        http.endpoint.clone_from(endpoint.get_ref());
    }
    http.old_sse = file.old_sse.unwrap_or(http.old_sse);
    http.websocket = file.websocket.unwrap_or(http.websocket);
    text.set(&mut http.ping, duration(file.ping.as_ref(), text));
    http.allow_public = file.allow_public.as_ref().is_some_and(|allowed| *allowed.get_ref());
    http.behind_proxy = file.behind_proxy.as_ref().is_some_and(|behind| *behind.get_ref());
    http.trusted_proxies = proxies(file, text);
    http.origins = file.origins.as_ref().map(|list| list.get_ref().clone()).unwrap_or_default();
    http.hosts = file.hosts.as_ref().map(|list| list.get_ref().clone()).unwrap_or_default();
    http.tokens = tokens(file.token_env.as_ref(), token, grants, text);
    text.set(&mut http.keep_alive, duration(file.keep_alive.as_ref(), text));
    text.set(&mut http.retry, duration(file.retry.as_ref(), text));
    http.poll_after = text.checked(duration(file.poll_after.as_ref(), text)).flatten();
    limit(&mut http, file, text);
    (http, listen.http.is_some())
}

/// The forms of an address to listen on.
pub(crate) const ADDRESSES: &str = "e.g. \"127.0.0.1:7331\", \"localhost:7331\" or \"7331\"";

/// An address to listen on.
pub(super) fn address(
    written: Option<&Spanned<String>>,
    text: &Text<'_>,
) -> Result<Option<SocketAddr>, Mistake> {
    let Some(written) = written else { return Ok(None) };
    let address = parse_address(written.get_ref());
    address.map(Some).ok_or_else(|| text.invalid(written, "address", ADDRESSES))
}

/// Parses an address to listen on. A port alone is one of this machine; so is `localhost`.
pub(crate) fn parse_address(written: &str) -> Option<SocketAddr> {
    let port = written.strip_prefix("localhost").unwrap_or(written);
    let is_port_only = port.len() == written.len();
    let port = match port.strip_prefix(':') {
        None if !is_port_only => return None,
        port => port.unwrap_or(written),
    };
    match port.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()),
        false => written.parse().ok(),
    }
}

fn limit(http: &mut HttpSettings, file: &Http, text: &Text<'_>) {
    let limits = &mut http.limits;
    text.set(&mut limits.connections, positive(file.connections.as_ref(), text));
    text.set(&mut limits.idle, duration(file.idle.as_ref(), text));
    text.set(&mut limits.head, size(file.head_size.as_ref(), text));
    text.set(&mut limits.body_time, duration(file.body_time.as_ref(), text));
    text.set(&mut limits.stall, duration(file.stall.as_ref(), text));
    text.set(&mut limits.sessions, positive(file.sessions.as_ref(), text));
    text.set(&mut limits.session_idle, duration(file.session_idle.as_ref(), text));
    text.set(&mut limits.streams, positive(file.streams.as_ref(), text));
    text.set(&mut limits.replay, positive(file.replay.as_ref(), text));
    text.set(&mut limits.replay_bytes, size(file.replay_size.as_ref(), text));
    text.set(&mut limits.replay_time, duration(file.replay_time.as_ref(), text));
    text.set(&mut limits.handshake_time, duration(file.handshake_time.as_ref(), text));
    text.set(&mut limits.unsent, size(file.unsent_size.as_ref(), text));
    let limited = |written: &Option<Spanned<String>>, burst: u32| match written {
        None => Ok(None),
        Some(none) if none.get_ref() == "none" => Ok(Some(None)),
        Some(written) => rate(written, text).map(|(calls, period)| {
            let burst = calls.saturating_mul(burst);
            Some(Some(Rate { calls, period, burst }))
        }),
    };
    text.set(&mut limits.requests, limited(&file.requests, 1));
    text.set(&mut limits.refusals, limited(&file.refusals, REFUSALS_AT_ONCE));
}

/// The burst of `refusals`, as a multiple of its rate. Clients that log in begin with a request
/// without a token, and many clients may share the address of a proxy.
const REFUSALS_AT_ONCE: u32 = 10;

/// The networks of `trusted_proxies`.
fn proxies(file: &Http, text: &Text<'_>) -> Vec<IpNet> {
    let Some(written) = &file.trusted_proxies else { return Vec::new() };
    let one = |proxy: &String| {
        let address = || proxy.parse::<IpAddr>().ok().map(IpNet::from);
        let network = proxy.parse().ok().or_else(address);
        network.ok_or_else(|| {
            let expected = "an address or a network, e.g. \"10.0.0.0/8\"";
            text.mistake(written.span(), format!("invalid proxy `{proxy}` (expected {expected})"))
        })
    };
    written.get_ref().iter().filter_map(|proxy| text.checked(one(proxy))).collect()
}

/// The token of `token_env`, which is named `token`, and those of `[[token]]`.
fn tokens(
    env: Option<&Spanned<String>>,
    named: &[file::Token],
    grants: &Grants,
    text: &Text<'_>,
) -> Vec<NamedToken> {
    let shared = env.and_then(|env| text.checked(secret(env, text)));
    let mut tokens = Vec::from_iter(shared.map(|token| NamedToken::new("token", token)));
    for file in named {
        let file::Token { name, scopes, .. } = file;
        let mut words = std::iter::once(name).chain(scopes);
        if let Some(word) = words.find(|word| !is_plain(word.get_ref())) {
            text.report(text.invalid(word, "name or scope", TOKEN_CHARACTERS));
        }
        let Some(secret) = text.checked(token(file, text)) else { continue };
        let mut added = NamedToken::new(name.get_ref().as_str(), secret);
        let scopes = scopes.iter().map(|scope| scope.get_ref().as_str());
        added.scopes = grants.with_covered(scopes).into_iter().collect();
        if let Some(known) = tokens.iter().find(|known| known.name == added.name) {
            let what = format!("duplicate token name `{}`", known.name);
            text.report(text.mistake(name.span(), what).hint("give each token its own name"));
        }
        if let Some(known) = tokens.iter().find(|known| known.token.is_same_as(&added.token)) {
            let what = format!("token `{}` is the same as token `{}`", added.name, known.name);
            let place = file.env.as_ref().or(file.hash.as_ref()).unwrap_or(name).span();
            text.report(text.mistake(place, what).hint("give each caller a token of its own"));
        }
        tokens.push(added);
    }
    tokens
}

/// What a token, its name and its scopes consist of.
pub(crate) const TOKEN_CHARACTERS: &str = "printable ASCII characters without spaces";

/// The token of a `[[token]]`, by its digest or in a variable.
fn token(file: &file::Token, text: &Text<'_>) -> Result<Token, Mistake> {
    match (&file.env, &file.hash) {
        (Some(env), None) => secret(env, text),
        (None, Some(hash)) => Token::from_hash(hash.get_ref()).ok_or_else(|| {
            let expected = "\"sha256:…\", as `sabir token new` prints it";
            text.invalid(hash, "hash of a token", expected)
        }),
        _ => {
            let what = format!("token `{}`: expected either `hash` or `env`", file.name.get_ref());
            let hint = "`sabir token new NAME` prints a token and the lines for this file";
            Err(text.lacking(file.name.span(), what).hint(hint))
        }
    }
}

fn secret(env: &Spanned<String>, text: &Text<'_>) -> Result<Token, Mistake> {
    let hint = "`openssl rand -hex 32` prints a token";
    let secret = variable(env, text).map_err(|mistake| mistake.hint(hint))?;
    if Token::from_hash(&secret).is_some() {
        // A hash is not secret: taken as the token, it would admit every reader of the file.
        let what = format!("`{}` has the hash of a token (expected the token)", env.get_ref());
        return Err(text.mistake(env.span(), what).hint("write `hash = \"sha256:…\"` instead"));
    }
    Token::new(&secret).ok_or_else(|| {
        let what = format!("invalid token in `{}` (expected {TOKEN_CHARACTERS})", env.get_ref());
        text.mistake(env.span(), what).hint(hint)
    })
}
