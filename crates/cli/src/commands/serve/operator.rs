//! What operators see of an HTTP server: `/metrics`, and the console.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::ValueEnum as _;
use nanoid::nanoid;
use sabir::{HttpServer, HttpSettings, NamedToken, Token};
use sabir_engine::{Engine, Observer};
use sabir_observe::{Bounds, ConsoleToken, Metrics, OperatorPages, Timeline};

use crate::args::When;
use crate::clients::{Client, Entry};
use crate::config::TOKEN_CHARACTERS;
use crate::report::Failure;

/// The environment variable with the token of the console. Without it one is drawn.
const VARIABLE: &str = "SABIR_CONSOLE_TOKEN";

/// What observes an engine for its operators.
pub(super) struct Operator {
    metrics: Arc<Metrics>,
    console: Option<(Arc<Timeline>, ConsoleToken)>,
}

impl Operator {
    /// The console is for loopback addresses only, and by default for a person at a terminal.
    pub(super) fn new(when: When, http: &mut HttpSettings) -> Result<Self, Failure> {
        let is_loopback = http.address.ip().is_loopback();
        let is_wanted = match when {
            When::Always if !is_loopback => {
                let what = format!(
                    "cannot serve the console on {} (expected a loopback address)",
                    http.address
                );
                return Err(Failure::usage(what));
            }
            When::Always => true,
            When::Auto => is_loopback && std::io::stderr().is_terminal(),
            When::Never => false,
        };
        let console = is_wanted.then(|| open(http)).transpose()?;
        Ok(Self { metrics: Metrics::new(), console })
    }

    pub(super) fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let mut observers: Vec<Arc<dyn Observer>> = vec![self.metrics.clone()];
        if let Some((timeline, _)) = &self.console {
            observers.push(timeline.clone());
        }
        observers
    }

    /// Adds the pages to a server that is not bound yet.
    pub(super) fn attach(
        &self,
        engine: &Arc<Engine>,
        http: &mut HttpSettings,
        token_env: Option<&str>,
    ) {
        self.metrics.watch(engine);
        let mut pages = OperatorPages::new(self.metrics.clone());
        if let Some((timeline, token)) = &self.console {
            let connect = commands(&engine.settings().server.name, token_env);
            let (timeline, token) = (timeline.clone(), token.clone());
            pages = pages.with_console(engine, timeline, token, &http.endpoint, connect);
        }
        http.pages = Some(Arc::new(pages));
    }

    /// Counts the connections of a server.
    pub(super) fn watch(&self, server: &HttpServer) {
        self.metrics.watch_server(server.watcher());
    }

    /// Where the console is. The token is in the part of the address that browsers keep to
    /// themselves.
    pub(super) fn address(&self, server: SocketAddr) -> Option<String> {
        let (_, token) = self.console.as_ref()?;
        Some(format!("http://{server}/#token={}", token.0))
    }
}

fn open(http: &mut HttpSettings) -> Result<(Arc<Timeline>, ConsoleToken), Failure> {
    let secret = match std::env::var(VARIABLE) {
        Ok(secret) if !secret.is_empty() => secret,
        _ => nanoid!(32),
    };
    let token = Token::new(&secret).ok_or_else(|| {
        Failure::new(format!("invalid token in {VARIABLE} (expected {TOKEN_CHARACTERS})"))
    })?;
    // Where the endpoint demands a token, that of the console opens it for the console.
    if !http.tokens.is_empty() {
        http.tokens.push(NamedToken::new("console", token));
    }
    Ok((Timeline::new(Bounds::default()), ConsoleToken(secret)))
}

/// The clients that can have a URL, and the commands that add this one to them.
fn commands(name: &str, token_env: Option<&str>) -> Vec<(String, String)> {
    let entry = Entry::Remote("http://localhost".into(), token_env.map(str::to_owned));
    let can_have = Client::value_variants().iter().filter(|c| c.value(name, &entry).is_ok());
    let of_client = can_have.map(|client| {
        let token = token_env.map(|env| format!(" --token-env {env}")).unwrap_or_default();
        (client.name(), format!("sabir install {} {{url}}{token}", client.name()))
    });
    of_client.collect()
}
