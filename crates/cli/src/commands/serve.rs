//! `sabir serve`: serves what a configuration describes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir::{HttpServer, HttpSettings, NamedToken, Token};
use sabir_engine::Engine;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;

use super::engine;
use crate::args::Serve;
use crate::config::{self, Settings};
use crate::report::{Failure, say};

/// How long we wait for folders to be read before we serve. Many clients ask once what there is, and
/// never again; a small folder is read by then, and a large one is served while it is read.
const HEAD_START: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Serve) -> Result<(), Failure> {
    let settings = config::read(args.path.as_deref())?;
    let places = Places::decide(args, &settings)?;
    let runtime = runtime(&places).map_err(|error| Failure::Other(error.to_string()))?;
    let start = Instant::now() + HEAD_START;
    for folder in &settings.folders {
        folder.wait_ready(start.saturating_duration_since(Instant::now()));
    }
    let (engine, programs) = engine(settings)?;
    let served = runtime.block_on(async {
        tokio::spawn({
            let engine = engine.clone();
            async move { engine.start().await }
        });
        let served = serve(engine, places).await;
        programs.close().await;
        served
    });
    // A thread may sit in a read that never ends; the process does not wait for it.
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

/// Where clients come in.
struct Places {
    stdio: bool,
    http: Option<HttpSettings>,
}

impl Places {
    /// What is typed counts more than what is written; without either there is HTTP.
    fn decide(args: &Serve, settings: &Settings) -> Result<Self, Failure> {
        let typed = args.stdio || args.http.is_some();
        let stdio = args.stdio || (!typed && settings.stdio);
        let listens_http =
            args.http.is_some() || (!typed && (settings.listens_http || !settings.stdio));
        let mut http = settings.http.clone();
        http.address = args.http.unwrap_or(http.address);
        http.allow_public |= args.allow_public;
        if let Some(secret) = &args.token {
            let token = Token::new(secret).ok_or_else(|| {
                Failure::Other(
                    "invalid token (expected printable characters without spaces)".into(),
                )
            })?;
            http.tokens.push(NamedToken::new("token", token));
        }
        Ok(Self { stdio, http: listens_http.then_some(http) })
    }
}

/// One client needs one thread; many get one for each core. What blocks gets threads of its own.
fn runtime(places: &Places) -> std::io::Result<Runtime> {
    let mut builder = match places.http {
        Some(_) => runtime::Builder::new_multi_thread(),
        None => runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()
}

async fn serve(engine: Arc<Engine>, places: Places) -> Result<(), Failure> {
    // Either the signal or the end of the standard input stops everything.
    let stop = watch::Sender::new(false);
    tokio::spawn(stop_on_signal(engine.clone(), stop.clone()));
    let http = match places.http {
        Some(settings) => Some(bind(&engine, settings).await?),
        None => None,
    };
    let mut stopped = stop.subscribe();
    let listening = async {
        if let Some(server) = http {
            server.run(async { drop(stopped.wait_for(|stop| *stop).await) }).await;
        }
    };
    let piping = async {
        if !places.stdio {
            return Ok(());
        }
        let served = sabir_transports::stdio::serve(&engine).await;
        stop.send_replace(true);
        served.map_err(|error| Failure::Other(format!("the client's pipe broke: {error}")))
    };
    let ((), piped) = tokio::join!(listening, piping);
    piped
}

/// Listens, and says where, with the line to paste into a client.
async fn bind(engine: &Arc<Engine>, settings: HttpSettings) -> Result<HttpServer, Failure> {
    let (endpoint, is_open) = (settings.endpoint.clone(), settings.tokens.is_empty());
    let server = HttpServer::bind(engine.clone(), settings).await.map_err(|error| {
        let hint = match error {
            sabir::BindError::Public(_) => "; demand a --token, or say --allow-public",
            sabir::BindError::System { .. } => "",
        };
        Failure::Other(format!("{error}{hint}"))
    })?;
    let address = server.address();
    if is_open && !address.ip().is_loopback() {
        say("warning: anybody who can reach this machine can use this server");
    }
    let name = &engine.settings().server.name;
    say(&format!("serving `{name}` on http://{address}{endpoint}"));
    say(&format!("  claude mcp add --transport http {name} http://{address}{endpoint}"));
    Ok(server)
}

/// The first signal lets running calls finish within the grace; the second ends the process.
async fn stop_on_signal(engine: Arc<Engine>, stop: watch::Sender<bool>) {
    if signal().await.is_err() {
        return;
    }
    say("stopping");
    engine.stop();
    stop.send_replace(true);
    if signal().await.is_ok() {
        #[expect(clippy::exit, reason = "a second signal means now")]
        std::process::exit(1);
    }
}

async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
