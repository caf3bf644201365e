//! `sabir serve`: serves the sources of a configuration.

use std::sync::Arc;
use std::time::Duration;

use sabir::{HttpServer, HttpSettings, NamedToken, Token};
use sabir_budget::{files_for_connections, raise_file_limit};
use sabir_engine::Engine;
use tokio::runtime::{self, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Opened;
use crate::args::Serve;
use crate::config::{self, Settings, TOKEN_CHARACTERS};
use crate::report::{Failure, say};

/// How long sources may take to become ready before clients are served. Many clients list the tools
/// only once. Sources that are not ready by then are served as far as they are.
const HEAD_START: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Serve) -> Result<(), Failure> {
    let settings = config::read(args.path.as_deref())?;
    settings.process.apply();
    let mut transports = Transports::choose(args, &settings)?;
    transports.fit_file_limit();
    let runtime = runtime(&transports)?;
    let served = runtime.block_on(async {
        let opened = Opened::new(settings).await?;
        let engine = opened.engine.clone();
        let starting = tokio::spawn(async move { engine.start().await });
        // A task that is not awaited any more goes on.
        let _ = tokio::time::timeout(HEAD_START, starting).await;
        let served = serve(&opened.engine, transports).await;
        opened.close().await;
        served
    });
    // A thread may be blocked in a read; the process does not wait for it.
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

/// The transports that are served.
struct Transports {
    stdio: bool,
    http: Option<HttpSettings>,
}

impl Transports {
    /// The command line overrides the file. HTTP is the default.
    fn choose(args: &Serve, settings: &Settings) -> Result<Self, Failure> {
        let typed = args.stdio || args.http.is_some();
        let stdio = args.stdio || (!typed && settings.stdio);
        let listens_http =
            args.http.is_some() || (!typed && (settings.listens_http || !settings.stdio));
        let mut http = settings.http.clone();
        http.address = args.http.unwrap_or(http.address);
        http.allow_public |= args.allow_public;
        if let Some(secret) = &args.token {
            let token = Token::new(secret).ok_or_else(|| {
                Failure::new(format!("invalid value of --token (expected {TOKEN_CHARACTERS})"))
            })?;
            if !http.tokens.iter().any(|known| known.token.is_same_as(&token)) {
                http.tokens.push(NamedToken::new("token", token));
            }
        }
        Ok(Self { stdio, http: listens_http.then_some(http) })
    }
}

impl Transports {
    /// Raises the limit of open files, and leaves some of them for programs.
    fn fit_file_limit(&mut self) {
        let files = raise_file_limit();
        let Some(http) = &mut self.http else { return };
        let most = files_for_connections(files);
        if http.limits.connections > most {
            http.limits.connections = most;
            say(&format!("connections: at most {most} (the limit of open files is {files})"));
        }
    }
}

/// How many threads read files. A file is read when one of them is free.
const MAX_BLOCKING_THREADS: usize = 64;

/// One thread for the one client on stdio, one per core for HTTP clients.
fn runtime(transports: &Transports) -> std::io::Result<Runtime> {
    let mut builder = match transports.http {
        Some(_) => runtime::Builder::new_multi_thread(),
        None => runtime::Builder::new_current_thread(),
    };
    builder.max_blocking_threads(MAX_BLOCKING_THREADS).enable_all().build()
}

async fn serve(engine: &Arc<Engine>, transports: Transports) -> Result<(), Failure> {
    // A signal or the end of standard input stops everything.
    let stop = watch::Sender::new(false);
    tokio::spawn(stop_on_signal(engine.clone(), stop.clone()));
    let http = match transports.http {
        Some(settings) => Some(bind(engine, settings).await?),
        None => None,
    };
    let mut stopped = stop.subscribe();
    let listening = async {
        if let Some(server) = http {
            server.run(async { drop(stopped.wait_for(|stop| *stop).await) }).await;
        }
    };
    let piping = async {
        if !transports.stdio {
            return Ok(());
        }
        let served = sabir_transports::stdio::serve(engine).await;
        stop.send_replace(true);
        served.map_err(|error| {
            Failure::new(format!("cannot serve standard input and output: {error}"))
        })
    };
    let ((), piped) = tokio::join!(listening, piping);
    piped
}

/// Listens, and prints the URL and a command that adds it to a client.
async fn bind(engine: &Arc<Engine>, settings: HttpSettings) -> Result<HttpServer, Failure> {
    let (endpoint, is_open) = (settings.endpoint.clone(), settings.tokens.is_empty());
    let server = HttpServer::bind(engine.clone(), settings).await.map_err(|error| {
        let hint = match error {
            sabir::BindError::Public(_) => Some("require a --token, or add --allow-public"),
            sabir::BindError::System { .. } => None,
        };
        Failure::Other { what: error.to_string(), hint }
    })?;
    let address = server.address();
    if is_open && !address.ip().is_loopback() {
        say("warning: other hosts can use this server without authentication");
    }
    let name = &engine.settings().server.name;
    say(&format!("serving `{name}` on http://{address}{endpoint}"));
    say(&format!("  claude mcp add --transport http {name} http://{address}{endpoint}"));
    Ok(server)
}

/// The first signal stops the server, with the grace period for running calls. The second exits.
async fn stop_on_signal(engine: Arc<Engine>, stop: watch::Sender<bool>) {
    if stop_signal().await.is_err() {
        return;
    }
    say("stopping");
    engine.stop();
    stop.send_replace(true);
    if stop_signal().await.is_ok() {
        #[expect(clippy::exit, reason = "the second signal does not wait for anything")]
        std::process::exit(1);
    }
}

/// Waits for SIGINT or SIGTERM.
async fn stop_signal() -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
