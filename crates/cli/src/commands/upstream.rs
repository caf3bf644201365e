//! `sabir upstream login` and `logout`: the credentials of the user at the terminal for an upstream
//! or an API.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sabir_cluster::Cluster;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::block_on;
use crate::args::Upstream;
use crate::config::{self, ClusterStore};
use crate::report::{Failure, say};

/// How long a person may take to log in.
const LOGIN_TIME: Duration = Duration::from_secs(600);
/// The head of a browser's request. A longer one is refused.
const MAX_HEAD: usize = 16 << 10;
/// How long a browser may take to send it.
const HEAD_TIME: Duration = Duration::from_secs(10);
const CALLBACK: &str = "/callback";

pub(crate) fn run(command: &Upstream) -> Result<(), Failure> {
    match command {
        Upstream::Login { name, path, port, no_browser } => {
            block_on(login(name, path.as_deref(), port.unwrap_or(0), !no_browser))
        }
        Upstream::Logout { name, path } => block_on(logout(name, path.as_deref())),
    }
}

async fn login(name: &str, path: Option<&Path>, port: u16, browser: bool) -> Result<(), Failure> {
    let settings = config::read(path, false)?;
    let upstream = find(&settings, name)?;
    if !upstream.needs_person() {
        return Err(Failure::new(format!(
            "`{name}` needs no login: it has credentials of its own"
        )));
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let port = listener.local_addr()?.port();
    let redirect_uri = format!("http://127.0.0.1:{port}{CALLBACK}");
    let credentials = upstream.open(&redirect_uri, nodes(&settings)?.as_ref())?;
    let failed = |error: sabir_client::AuthError| Failure::new(format!("`{name}`: {error}"));
    let login = credentials.begin_login().await.map_err(failed)?;
    say("open this link in a browser on this machine, and log in:");
    say(&format!("  {}", login.url));
    if browser {
        open_browser(login.url.as_str());
    }
    let answering = answer(&listener, &login.state);
    let (query, mut stream) = tokio::time::timeout(LOGIN_TIME, answering)
        .await
        .map_err(|_| Failure::new("no login within 10 minutes"))?;
    let done = credentials.finish_login(&login, &query).await;
    let text = match &done {
        Ok(()) => format!("You are logged in to {name}. You can close this window."),
        Err(error) => format!("Not logged in to {name}: {error}."),
    };
    // The browser may be gone; the login is complete.
    let _ = respond(&mut stream, "200 OK", &text).await;
    done.map_err(failed)?;
    let tokens = credentials.kept().await.map_err(failed)?;
    let issuer = tokens.as_ref().map(|tokens| tokens.issuer()).unwrap_or_default();
    say(&format!("logged in to `{name}` at {issuer}"));
    if tokens.is_some_and(|tokens| !tokens.is_renewable()) {
        say("the authorization server gave no refresh token: the login ends with the access token");
    }
    Ok(())
}

async fn logout(name: &str, path: Option<&Path>) -> Result<(), Failure> {
    let settings = config::read(path, false)?;
    let credentials = find(&settings, name)?.open("", nodes(&settings)?.as_ref())?;
    credentials.forget().await.map_err(|error| Failure::new(error.to_string()))?;
    say(&format!("the credentials for `{name}` are forgotten"));
    Ok(())
}

/// The nodes that share credentials, if there are several.
fn nodes(settings: &config::Settings) -> Result<Option<Cluster>, Failure> {
    let (Some(store @ ClusterStore::Redis(..)), Some(key)) =
        (&settings.cluster, &settings.engine.seal_key)
    else {
        return Ok(None);
    };
    let opened = store.clone().open(key.bytes());
    opened.map(Some).map_err(|error| Failure::new(format!("cluster: {error}")))
}

fn find<'s>(settings: &'s config::Settings, name: &str) -> Result<&'s config::Login, Failure> {
    let mut known = settings.sources.iter().filter_map(|source| source.login());
    known.find(|login| login.name() == name).ok_or_else(|| {
        let what = "no upstream or API with a login has the name";
        Failure::new(format!("{what} `{name}` (expected one of the sabir.toml)"))
    })
}

/// Waits for the redirect of this login, and gives its query. Other requests are refused.
async fn answer(listener: &TcpListener, state: &str) -> (String, TcpStream) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let target = tokio::time::timeout(HEAD_TIME, request_target(&mut stream)).await;
        let target = target.ok().flatten().unwrap_or_default();
        let query = target.strip_prefix(CALLBACK).and_then(|rest| rest.strip_prefix('?'));
        let expected = format!("state={state}");
        match query.filter(|query| query.split('&').any(|pair| pair == expected)) {
            Some(query) => return (query.to_owned(), stream),
            None => drop(respond(&mut stream, "404 Not Found", "Not found.").await),
        }
    }
}

/// The path and the query of a request.
async fn request_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

async fn respond(stream: &mut TcpStream, status: &str, text: &str) -> std::io::Result<()> {
    let body = format!("{text}\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

/// Opens a browser, if there is a screen. The link is an argument: no shell sees it.
fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if has_screen {
        let mut command = std::process::Command::new(program);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The link was printed, too.
        let _ = command.spawn();
    }
}
