//! What operators see of a server: `/metrics` and the console over HTTP, OpenTelemetry, recordings.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum as _;
use nanoid::nanoid;
use sabir::{HttpServer, HttpSettings, NamedToken, Token};
use sabir_engine::{Engine, Observer};
use sabir_observe::{
    Bounds, ConsoleSettings, ConsoleToken, Exporter, Metrics, OperatorPages, OtlpSettings,
    Recorder, Timeline, Tracer,
};
use sabir_wire::{Tap, Taps};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::listen::is_open;
use crate::args::{ConsolePlace, Serve};
use crate::clients::{Client, Entry};
use crate::commands::secrets::CONSOLE_VARIABLE;
use crate::config::{OpenContext, Settings, TOKEN_CHARACTERS};
use crate::report::{Failure, say};

/// Begins a recording if one is wanted, and lets the console begin one. Without either there is no
/// recorder.
pub(super) fn record(
    args: &Serve,
    settings: &mut Settings,
    reloads: bool,
    operator: Option<&mut Operator>,
) -> Result<Option<Arc<Recorder>>, Failure> {
    let console = operator.and_then(|operator| operator.console.as_mut());
    if args.record.is_none() && console.is_none() {
        return Ok(None);
    }
    let (server, reloads) = (&settings.engine.server.name, reloads && settings.file.is_some());
    let recorder = Recorder::new(server, reloads, args.record_limit);
    if let Some(path) = &args.record {
        let failed = |error| Failure::new(format!("cannot write {}: {error}", path.display()));
        recorder.begin(path).map_err(failed)?;
    }
    let mut taps: Vec<Arc<dyn Tap>> = vec![recorder.clone()];
    if let Some(console) = console {
        console.recorder = Some(recorder.clone());
        taps.push(console.timeline.clone());
    }
    settings.engine.tap = Some(Taps::new(taps));
    Ok(Some(recorder))
}

/// What observes an engine for its operators.
pub(super) struct Operator {
    metrics: Arc<Metrics>,
    console: Option<Console>,
    otlp: Option<OtlpSettings>,
    tracer: Option<Arc<Tracer>>,
    metrics_file: Option<PathBuf>,
}

/// The console that is served.
struct Console {
    timeline: Arc<Timeline>,
    token: ConsoleToken,
    recorder: Option<Arc<Recorder>>,
    /// The address that it has for itself.
    own: Option<SocketAddr>,
}

/// The tasks that send or write what is observed.
pub(super) struct Exporting {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Exporting {
    /// How long the last of it may take.
    const LAST: Duration = Duration::from_secs(3);

    /// Sends what is left.
    pub(super) async fn finish(self) {
        self.stop.send_replace(true);
        let _ = tokio::time::timeout(Self::LAST, self.tasks.join_all()).await;
    }
}

impl Operator {
    /// What the operators of this server want to see; `None` if nothing.
    pub(super) fn new(
        args: &Serve,
        http: Option<&mut HttpSettings>,
        server: &str,
    ) -> Result<Option<Self>, Failure> {
        let (metrics_file, has_http) = (args.metrics_file.clone(), http.is_some());
        let read = OtlpSettings::read(|name| std::env::var(name).ok(), server);
        // The variables are for every program of the user: a mistake in them stops none.
        let otlp = read.unwrap_or_else(|reason| {
            say(&format!("warning: no telemetry is sent: {reason}"));
            None
        });
        let console = Self::console(args.console, http)?;
        if !has_http && otlp.is_none() && metrics_file.is_none() && console.is_none() {
            return Ok(None);
        }
        let tracer = otlp.as_ref().and_then(Tracer::new);
        Ok(Some(Self { metrics: Metrics::new(), console, otlp, tracer, metrics_file }))
    }

    /// The console is for loopback addresses only. By default, at a terminal it keeps calls from the
    /// start. Without one it keeps calls from when it is first opened, so that a service does not pay
    /// for a console that is not used; and a server that demands authentication does not serve it,
    /// because the token of the console would be in the log.
    fn console(
        place: ConsolePlace,
        http: Option<&mut HttpSettings>,
    ) -> Result<Option<Console>, Failure> {
        if let ConsolePlace::At(own) = place {
            let console = open(None, Some(own))?;
            console.timeline.switch_on();
            return Ok(Some(console));
        }
        let Some(http) = http else { return Ok(None) };
        let is_loopback = http.address.ip().is_loopback();
        let is_terminal = std::io::stderr().is_terminal();
        let is_wanted = match place {
            ConsolePlace::Always if !is_loopback => {
                let what = format!(
                    "cannot serve the console on {} (expected a loopback address)",
                    http.address
                );
                return Err(Failure::usage(what));
            }
            ConsolePlace::Always => true,
            ConsolePlace::Auto => is_loopback && (is_terminal || is_open(http)),
            ConsolePlace::Never | ConsolePlace::At(_) => false,
        };
        let console = is_wanted.then(|| open(Some(http), None)).transpose()?;
        let is_remembered = is_terminal || place == ConsolePlace::Always;
        console.iter().filter(|_| is_remembered).for_each(|console| console.timeline.switch_on());
        Ok(console)
    }

    /// Begins to send and to write what is observed, as far as that is wanted.
    pub(super) fn export(&self, engine: &Arc<Engine>) -> Exporting {
        self.metrics.watch(engine);
        let (stop, mut tasks) = (watch::Sender::new(false), JoinSet::new());
        if let Some(otlp) = self.otlp.clone() {
            match Exporter::new(otlp, self.tracer.clone(), Some(self.metrics.clone())) {
                Ok(exporter) => drop(tasks.spawn(exporter.run(stop.subscribe()))),
                Err(error) => say(&format!("warning: no telemetry is sent: {error}")),
            }
        }
        if let Some(path) = self.metrics_file.clone() {
            tasks.spawn(write_metrics(self.metrics.clone(), path, stop.subscribe()));
        }
        Exporting { stop, tasks }
    }

    pub(super) fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let mut observers: Vec<Arc<dyn Observer>> = vec![self.metrics.clone()];
        if let Some(console) = &self.console {
            observers.push(console.timeline.clone());
        }
        if let Some(tracer) = &self.tracer {
            observers.push(tracer.clone());
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
        if let Some(console) = self.console.as_ref().filter(|console| console.own.is_none()) {
            let connect = commands(&engine.settings().server.name, token_env);
            pages = pages.with_console(console.settings(engine, http, None, connect));
        }
        http.pages = Some(Arc::new(pages));
    }

    /// The server that the console has for itself, if it has one: for its token only. `url` is where
    /// HTTP clients are served, as `http` says.
    pub(super) fn own_server(
        &self,
        engine: &Arc<Engine>,
        http: Option<&HttpSettings>,
        url: Option<String>,
        token_env: Option<&str>,
    ) -> Result<Option<HttpSettings>, Failure> {
        let Some(console) = &self.console else { return Ok(None) };
        let Some(address) = console.own else { return Ok(None) };
        let mut settings = HttpSettings::default();
        settings.address = address;
        if let Some(http) = http {
            settings.endpoint.clone_from(&http.endpoint);
            settings.limits = http.limits.clone();
        }
        settings.tokens.push(NamedToken::new("console", console_token(&console.token.0)?));
        let connect = match url {
            Some(_) => commands(&engine.settings().server.name, token_env),
            None => Vec::new(),
        };
        self.metrics.watch(engine);
        let pages = OperatorPages::new(self.metrics.clone());
        let shown = console.settings(engine, &settings, url, connect);
        settings.pages = Some(Arc::new(pages.with_console(shown)));
        Ok(Some(settings))
    }

    /// Counts the programs that run.
    pub(super) fn watch_programs(&self, context: &Arc<OpenContext>) {
        let context = Arc::downgrade(context);
        self.metrics.watch_number(
            "sabir.programs.running",
            "Programs that run: commands and upstreams.",
            move || context.upgrade().map_or(0, |context| context.running_programs()),
        );
    }

    /// Counts the connections of a server.
    pub(super) fn watch(&self, server: &HttpServer) {
        self.metrics.watch_server(server.watcher());
    }

    /// Where the console is. The token is in the part of the address that browsers do not send.
    pub(super) fn address(&self, scheme: &str, server: SocketAddr) -> Option<String> {
        let console = self.console.as_ref().filter(|console| console.own.is_none())?;
        Some(console.address(scheme, server))
    }

    /// Where the console is on the server that it has for itself.
    pub(super) fn own_address(&self, server: SocketAddr) -> Option<String> {
        Some(self.console.as_ref()?.address("http", server))
    }
}

impl Console {
    fn address(&self, scheme: &str, server: SocketAddr) -> String {
        format!("{scheme}://{server}/#token={}", self.token.0)
    }

    fn settings(
        &self,
        engine: &Arc<Engine>,
        http: &HttpSettings,
        url: Option<String>,
        connect: Vec<(String, String)>,
    ) -> ConsoleSettings {
        ConsoleSettings {
            engine: Arc::downgrade(engine),
            timeline: self.timeline.clone(),
            recorder: self.recorder.clone(),
            token: self.token.clone(),
            endpoint: http.endpoint.clone(),
            url,
            connect,
        }
    }
}

/// Writes the metrics to a file at an interval, and at the end. The file is always complete.
async fn write_metrics(metrics: Arc<Metrics>, path: PathBuf, mut stop: watch::Receiver<bool>) {
    const PAUSE: Duration = Duration::from_secs(15);
    let mut new = path.clone().into_os_string();
    new.push(".new");
    let mut is_over = false;
    while !is_over {
        is_over = tokio::time::timeout(PAUSE, stop.wait_for(|stop| *stop)).await.is_ok();
        let written = std::fs::write(&new, metrics.text());
        if let Err(error) = written.and_then(|()| std::fs::rename(&new, &path)) {
            tracing::warn!("cannot write the metrics to {}: {error}", path.display());
        }
    }
}

fn console_token(secret: &str) -> Result<Token, Failure> {
    Token::new(secret).ok_or_else(|| {
        Failure::new(format!("invalid token in {CONSOLE_VARIABLE} (expected {TOKEN_CHARACTERS})"))
    })
}

/// Creates the token of a console on the server of the HTTP clients, or on one of its own. Without
/// the variable, a random one is used.
fn open(http: Option<&mut HttpSettings>, own: Option<SocketAddr>) -> Result<Console, Failure> {
    let secret = match std::env::var(CONSOLE_VARIABLE) {
        Ok(secret) if !secret.is_empty() => secret,
        _ => nanoid!(32),
    };
    let token = console_token(&secret)?;
    // Where the endpoint demands a token, that of the console opens it for the console.
    if let Some(http) = http.filter(|http| !is_open(http)) {
        http.tokens.push(NamedToken::new("console", token));
    }
    let (timeline, token) = (Timeline::new(Bounds::default()), ConsoleToken(secret));
    Ok(Console { timeline, token, recorder: None, own })
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
