//! `sabir serve`: serves the sources of a configuration.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sabir::{HttpServer, HttpSettings};
use sabir_budget::{files_for_connections, raise_file_limit};
use sabir_engine::Engine;
use tokio::runtime::{self, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{Opened, secrets};
use crate::args::Serve;
use crate::config::{self, Settings};
use crate::escape::escaped;
use crate::report::{Failure, say};
use crate::shell;

/// How long sources may take to become ready before clients are served. Many clients list the tools
/// only once. Sources that are not ready by then are served as far as they are.
const HEAD_START: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Serve) -> Result<(), Failure> {
    let settings = config::read(args.path.as_deref(), args.no_config)?;
    settings.process.apply();
    let mut transports = Transports::choose(args, &settings)?;
    transports.fit_file_limit();
    let notes = notes(args, &settings, &transports);
    let runtime = runtime(&transports)?;
    let served = runtime.block_on(async {
        let opened = Opened::new(settings).await?;
        let engine = opened.engine.clone();
        let starting = tokio::spawn(async move { engine.start().await });
        // A task that is not awaited any more goes on.
        let _ = tokio::time::timeout(HEAD_START, starting).await;
        let served = serve(&opened.engine, transports, &notes).await;
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
    /// The environment variable with a token for HTTP clients.
    token_env: Option<String>,
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
        let token = secrets::token(args)?;
        secrets::protect(settings, token.as_ref())?;
        let has_token = token.is_some();
        if let Some(token) = token
            && !http.tokens.iter().any(|known| known.token.is_same_as(&token.token))
        {
            http.tokens.push(token);
        }
        let token_env = match has_token {
            true => Some(secrets::VARIABLE.to_owned()),
            false => settings.token_env.clone(),
        };
        Ok(Self { stdio, http: listens_http.then_some(http), token_env })
    }
}

/// How many programs are named. The others are counted.
const NAMED_PROGRAMS: usize = 16;

/// What the user may not know: the file that was found, the programs that it runs, and a token that
/// others can see.
fn notes(args: &Serve, settings: &Settings, transports: &Transports) -> Vec<String> {
    let mut notes = Vec::new();
    // On stdio alone, in the current folder, these lines would only be noise in a client's log.
    if let Some(file) = &settings.found
        && (args.path.is_some() || transports.http.is_some())
    {
        notes.push(format!("using {}", escaped(&file.display().to_string())));
        let programs: Vec<_> = settings.sources.iter().filter_map(|s| s.program()).collect();
        let named = programs.iter().take(NAMED_PROGRAMS);
        notes.extend(named.map(|program| format!("  runs {}", escaped(program))));
        if let Some(more) = programs.len().checked_sub(NAMED_PROGRAMS).filter(|more| *more > 0) {
            notes.push(format!("  and {more} more programs"));
        }
    }
    if args.token.is_some() {
        notes.push("warning: --token is visible in the list of processes".to_owned());
        notes.push("  hint: use --token-file, or the environment variable SABIR_TOKEN".to_owned());
    }
    notes
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

async fn serve(
    engine: &Arc<Engine>,
    transports: Transports,
    notes: &[String],
) -> Result<(), Failure> {
    // A signal or the end of standard input stops everything.
    let stop = watch::Sender::new(false);
    tokio::spawn(stop_on_signal(engine.clone(), stop.clone()));
    let http = match transports.http {
        Some(settings) => Some(bind(engine, settings, transports.token_env).await?),
        None => None,
    };
    notes.iter().for_each(|note| say(note));
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
async fn bind(
    engine: &Arc<Engine>,
    settings: HttpSettings,
    token_env: Option<String>,
) -> Result<HttpServer, Failure> {
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
    say(&format!("  {}", client_line(name, address, &endpoint, token_env.as_deref())));
    Ok(server)
}

/// The command that adds this server to a client. A token is named by its variable, never shown.
fn client_line(
    name: &str,
    mut address: SocketAddr,
    endpoint: &str,
    token_env: Option<&str>,
) -> String {
    if address.ip().is_unspecified() {
        // An address for this machine; for others the user has to write its name.
        address.set_ip(if address.is_ipv6() {
            Ipv6Addr::LOCALHOST.into()
        } else {
            Ipv4Addr::LOCALHOST.into()
        });
    }
    let url = shell::quoted(&format!("http://{address}{endpoint}"));
    let header = match token_env {
        Some(variable) => format!(" --header \"Authorization: Bearer ${{{variable}}}\""),
        None => String::new(),
    };
    format!("claude mcp add --transport http {} {url}{header}", config::plain(name))
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
