//! `sabir serve`: serves the sources of a configuration.

pub(crate) mod certificates; // the certificates of `[tls]`
pub(super) mod cluster; // sessions that survive this process
mod connect; // the page on which callers log in at upstreams
mod host; // the process that started us, as a source
pub(super) mod ide; // how Claude Code finds an editor
mod listen; // listening, and what is printed about it
mod operator; // metrics and the console
mod reload; // a configuration that changes

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sabir::{Authenticate, DiskStore, HttpServer, HttpSettings};
use sabir_auth::{Overseer, ResourceServer};
use sabir_budget::{files_for_connections, raise_file_limit};
use sabir_engine::{Engine, Observer, Oversee};
use sabir_registry::Registry;
use sabir_sources::host::{Host, HostSource};
use sabir_sources::login::Connect;
use tokio::runtime::{self, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use self::certificates::scheme;
use self::connect::ConnectPages;
use self::ide::{Ide, LockFile};
use self::listen::{TokenOrigin, bind};
use self::operator::Operator;
use self::reload::{Reloader, WatchedFiles};
use super::{Opened, secrets};
use crate::args::Serve;
use crate::config::{self, EMPTY, IDLE_CLUSTER, Login, NO_SOURCE, Oversight, Settings};
use crate::escape::escaped;
use crate::logging::Log;
use crate::report::{Failure, say};

/// How long sources may take to become ready before clients are served. Many clients list the tools
/// only once. Sources that are not ready by then are served as far as they are.
const HEAD_START: Duration = Duration::from_secs(2);
/// How often the server checks whether a source is still worth waiting for.
const HEAD_START_CHECK: Duration = Duration::from_millis(5);

/// Opens the file in which tasks survive the process. Only a server does: one process has it open.
fn with_task_store(mut settings: Settings) -> Result<Settings, Failure> {
    if let Some(path) = settings.task_store.take() {
        let store = DiskStore::open(&path).map_err(|error| Failure::new(error.to_string()))?;
        settings.engine.tasks.store = Some(Arc::new(store));
    }
    Ok(settings)
}

pub(crate) fn run(args: &Serve, log: &Log) -> Result<(), Failure> {
    let mut settings = config::read_all(&args.paths, args.no_config)?;
    let overseer = overseer(&settings)?;
    settings.process.apply();
    let mut transports = Transports::choose(args, &settings)?;
    log.start(transports.has_many());
    transports.fit_file_limit();
    let notes = notes(args, &settings, &transports);
    let connect = transports.http.as_ref().map(|http| ConnectPages::new(&settings, http));
    let connect = connect.transpose()?.flatten();
    settings.connect = connect.clone().map(|pages| pages as Arc<dyn Connect>);
    let server = &settings.engine.server.name;
    let mut operator = Operator::new(args, transports.http.as_mut(), server)?;
    // On stdio, the client starts a new process instead.
    let reloads =
        transports.ide.is_none() && (transports.http.is_some() || transports.ws.is_some());
    let recorder = operator::record(args, &mut settings, reloads, operator.as_mut())?;
    let (tables, file) = (settings.tables.clone(), settings.file.as_deref());
    let file = file.map(|file| WatchedFiles::new([file]));
    let runtime = runtime(&transports)?;
    let served = runtime.block_on(async {
        let host = args.host.then(host::connect);
        let told = host.clone();
        let told =
            told.map(|host| Arc::new(move |event| host::tell(&host, event)) as Arc<dyn Observer>);
        let operating = operator.iter().flat_map(Operator::observers);
        let recording = recorder.clone().map(|recorder| recorder as Arc<dyn Observer>);
        let observers = told.into_iter().chain(operating).chain(recording).collect();
        let mut settings = with_task_store(settings)?;
        let cluster = match &transports.http {
            Some(_) => cluster::open(&mut settings)?,
            None => None,
        };
        settings.engine.overseer =
            overseer.map(|overseer| Arc::new(overseer.among(cluster.clone())) as Arc<dyn Oversee>);
        transports.http.iter_mut().for_each(|http| http.cluster.clone_from(&cluster));
        let opened = Opened::observed(settings, observers).await?;
        let engine = opened.engine.clone();
        recorder.iter().for_each(|recorder| recorder.watch(&engine));
        if let Some(host) = host.clone() {
            let added = engine.registry().add(Arc::new(HostSource(host)));
            added.map_err(|error| Failure::new(error.to_string()))?;
        }
        operator.iter().for_each(|operator| operator.watch_programs(&opened.context));
        let exporting = operator.as_ref().map(|operator| operator.export(&engine));
        let registry = engine.registry().clone();
        let starting = tokio::spawn(async move { engine.start().await }).map(drop).shared();
        // After the timeout the task goes on.
        let _ = tokio::time::timeout(HEAD_START, async {
            tokio::select! {
                () = starting.clone() => {}
                () = settled(&registry) => {}
            }
        })
        .await;
        if let Some(what) = collision(&opened.engine) {
            opened.close().await;
            return Err(Failure::Other { what, hint: Some(config::COLLISION) });
        }
        let reloader = reloads.then(|| Reloader::new(args, tables, file, &opened));
        let reloading = reloader.map(|reloader| tokio::spawn(reloader.run()));
        let served = serve(
            &opened.engine,
            transports,
            host,
            (operator.as_ref(), connect),
            (&notes[..], starting),
        )
        .await;
        if let Some(reloading) = reloading {
            reloading.abort();
        }
        opened.close().await;
        if let Some(exporting) = exporting {
            exporting.finish().await;
        }
        served
    });
    // A thread may be blocked in a read; the process does not wait for it.
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

/// Waits until the sources are ready that are worth waiting for.
async fn settled(registry: &Registry) {
    loop {
        tokio::time::sleep(HEAD_START_CHECK).await;
        if registry.is_settled() {
            return;
        }
    }
}

/// How many collisions are named.
const NAMED_COLLISIONS: usize = 5;

/// Two upstreams that turned out to offer the same name. One that does so later loses it, and the
/// server goes on.
fn collision(engine: &Engine) -> Option<String> {
    let collisions = engine.registry().status();
    let collisions = collisions.iter().flat_map(super::check::collisions);
    let collisions: Vec<_> = collisions.take(NAMED_COLLISIONS).collect();
    (!collisions.is_empty()).then(|| collisions.join("\nerror: "))
}

/// The transports that are served.
struct Transports {
    stdio: bool,
    http: Option<HttpSettings>,
    /// On a port of its own.
    ws: Option<HttpSettings>,
    ide: Option<Ide>,
    token: Option<TokenOrigin>,
}

impl Transports {
    /// The command line overrides the file. HTTP is the default.
    fn choose(args: &Serve, settings: &Settings) -> Result<Self, Failure> {
        let typed = args.stdio || args.http.is_some() || args.ws.is_some() || args.ide.is_some();
        let stdio = args.stdio || (!typed && settings.stdio);
        let ws_address = args.ws.or(settings.ws.filter(|_| !typed));
        let listens_http = args.http.is_some() || (!typed && settings.serves_http());
        let mut http = settings.http.clone();
        http.address = args.http.unwrap_or(http.address);
        http.allow_public |= args.allow_public;
        http.behind_proxy |= args.behind_proxy || !http.trusted_proxies.is_empty();
        let token = secrets::token(args)?;
        secrets::protect(settings, token.as_ref())?;
        let has_token = token.is_some();
        if let Some(token) = token
            && !http.tokens.iter().any(|known| known.token.is_same_as(&token.token))
        {
            http.tokens.push(token);
        }
        let origin = match (&args.token, &args.token_file) {
            (Some(_), _) => Some(TokenOrigin::CommandLine),
            (None, Some(path)) => Some(TokenOrigin::File(path.clone())),
            _ if has_token => Some(TokenOrigin::Variable(secrets::VARIABLE.to_owned())),
            _ => settings.token_env.clone().map(TokenOrigin::Variable),
        };
        // The client checks whether the editor is alive, which is our parent if that is the host.
        let pid = match (args.host, rustix::process::getppid()) {
            (true, Some(parent)) => parent.as_raw_nonzero().get().unsigned_abs(),
            _ => std::process::id(),
        };
        if listens_http || ws_address.is_some() {
            http.tls = certificates::load(settings)?;
            http.authenticate = authenticator(settings, &http)?;
        }
        let ide = args.ide.as_deref().map(|name| Ide::new(name, &args.workspace, pid));
        let ide = ide.transpose()?;
        let any_port = ide.as_ref().map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut ws = ws_address.or(any_port).map(|address| {
            let mut settings = http.clone();
            (settings.address, settings.only_websocket) = (address, true);
            settings
        });
        if let (Some(ide), Some(settings)) = (&ide, &mut ws) {
            ide.guard(settings)?;
        }
        Ok(Self { stdio, http: listens_http.then_some(http), ws, ide, token: origin })
    }
}

/// Limits calls and logs them, if the file says so.
fn overseer(settings: &Settings) -> Result<Option<Overseer>, Failure> {
    let Oversight { limits, audit } = &settings.oversight;
    if limits.is_empty() && audit.is_none() {
        return Ok(None);
    }
    let overseer = Overseer::new(limits.clone(), audit.as_ref());
    let failed = |error| Failure::new(format!("cannot open the audit log: {error}"));
    Ok(Some(overseer.map_err(failed)?))
}

/// Establishes callers by the access tokens of the issuers that the file names.
fn authenticator(
    settings: &Settings,
    http: &HttpSettings,
) -> Result<Option<Arc<dyn Authenticate>>, Failure> {
    let Some(mut tokens) = settings.auth.tokens.clone() else { return Ok(None) };
    if tokens.resource.is_empty() {
        let HttpSettings { address, endpoint, .. } = http;
        if address.port() == 0 || !address.ip().is_loopback() {
            let what = format!("[auth]: no `resource` for {address} (expected the server's URL)");
            let hint = Some("add e.g. `resource = \"https://mcp.example.com/mcp\"` to [auth]");
            return Err(Failure::Other { what, hint });
        }
        tokens.resource = format!("{}://{address}{endpoint}", scheme(http));
    }
    let mut logins = settings.sources.iter().filter_map(|source| source.login());
    tokens.lends_tokens = logins.any(Login::exchanges);
    let server =
        ResourceServer::new(&tokens).map_err(|bad| Failure::new(format!("auth: {bad}")))?;
    Ok(Some(Arc::new(server)))
}

/// How many programs are named. The others are counted.
const NAMED_PROGRAMS: usize = 16;

/// Notes for the user: the file that was found, the programs that it runs, a `[cluster]` without
/// effect, and a token that other users can see.
fn notes(args: &Serve, settings: &Settings, transports: &Transports) -> Vec<String> {
    let mut notes = Vec::new();
    // On stdio alone, in the current folder, these lines would only be noise in a client's log.
    if let Some(file) = &settings.found
        && (!args.paths.is_empty() || transports.http.is_some() || transports.ws.is_some())
    {
        notes.push(format!("using {}", escaped(&file.display().to_string())));
        let programs: Vec<_> = settings.sources.iter().filter_map(|s| s.program()).collect();
        let named = programs.iter().take(NAMED_PROGRAMS);
        notes.extend(named.map(|program| format!("  runs {}", escaped(program))));
        if let Some(more) = programs.len().checked_sub(NAMED_PROGRAMS).filter(|more| *more > 0) {
            notes.push(format!("  and {more} more programs"));
        }
    }
    let is_empty = args.paths.is_empty() && settings.is_empty();
    if settings.sources.is_empty() && !args.host && transports.http.is_some() {
        notes.push(if is_empty { EMPTY } else { NO_SOURCE }.to_owned());
    }
    if settings.cluster.is_some() && transports.http.is_none() {
        notes.push(format!("warning: {}\n  hint: {}", IDLE_CLUSTER.0, IDLE_CLUSTER.1));
    }
    if args.token.is_some() {
        notes.push("warning: --token is visible in the list of processes".to_owned());
        notes.push("  hint: use --token-file, or the environment variable SABIR_TOKEN".to_owned());
    }
    notes
}

impl Transports {
    /// Whether clients connect by themselves: not the one on stdio, nor that of an editor's user.
    fn has_many(&self) -> bool {
        self.http.is_some() || (self.ws.is_some() && self.ide.is_none())
    }

    /// Raises the limit of open files, and leaves some of them for programs.
    fn fit_file_limit(&mut self) {
        let files = raise_file_limit();
        let most = files_for_connections(files);
        for http in self.http.iter_mut().chain(&mut self.ws) {
            if http.limits.connections <= most {
                continue;
            }
            http.limits.connections = most;
            say(&format!("connections: at most {most} (the limit of open files is {files})"));
        }
    }
}

/// How many threads read files. A file is read when one of them is free.
const MAX_BLOCKING_THREADS: usize = 64;

/// One thread for the one client on stdio or the user of an editor, one per core for others.
fn runtime(transports: &Transports) -> std::io::Result<Runtime> {
    let mut builder = match transports.has_many() {
        true => runtime::Builder::new_multi_thread(),
        false => runtime::Builder::new_current_thread(),
    };
    builder.max_blocking_threads(MAX_BLOCKING_THREADS).enable_all().build()
}

async fn serve(
    engine: &Arc<Engine>,
    transports: Transports,
    host: Option<Arc<Host>>,
    (operator, connect): (Option<&Operator>, Option<Arc<ConnectPages>>),
    (notes, started): (&[String], impl Future<Output = ()> + Send + 'static),
) -> Result<(), Failure> {
    // A signal or the end of standard input stops everything.
    let stop = watch::Sender::new(false);
    let mut servers = Vec::new();
    let mut tls = None;
    let (http, mut url) = (transports.http.clone(), None);
    let token = transports.token.as_ref();
    let token_env = token.map(TokenOrigin::variable);
    for mut settings in transports.http.into_iter().chain(transports.ws) {
        let operator = operator.filter(|_| !settings.only_websocket);
        if let Some(operator) = operator {
            operator.attach(engine, &mut settings, token_env);
        }
        if let Some(connect) = connect.as_ref().filter(|_| !settings.only_websocket) {
            settings.pages = Some(Arc::new(connect.clone().beside(settings.pages.take())));
        }
        let has_page = !settings.only_websocket;
        let scheme = scheme(&settings);
        tls = tls.or(settings.tls.clone());
        let server = bind(engine, settings, token).await?;
        if let Some(connect) = connect.as_ref().filter(|_| has_page) {
            connect.set_address(scheme, server.address());
        }
        if has_page {
            url = http
                .as_ref()
                .map(|http| format!("{scheme}://{}{}", server.address(), http.endpoint));
        }
        if let Some(operator) = operator {
            operator.watch(&server);
            let console = operator.address(scheme, server.address());
            console.iter().for_each(|address| say(&format!("  console: {address}")));
        }
        servers.push(server);
    }
    let console = match operator {
        Some(operator) => serve_console(engine, operator, http.as_ref(), url, token_env).await?,
        None => None,
    };
    notes.iter().for_each(|note| say(note));
    let (reading, many) = (engine.clone(), !servers.is_empty());
    tokio::spawn(async move {
        started.await;
        say_summaries(&reading, many);
    });
    if let Some(tls) = tls {
        tokio::spawn(certificates::maintain(tls.clone()));
        tokio::spawn(certificates::watch(tls));
    }
    // The last server is that of the editor, if there is one.
    let port = servers.last().map(|server| server.address().port());
    let lock = transports.ide.zip(port).map(|(ide, port)| ide.lock(port)).transpose()?;
    let lock = lock.map(Arc::new);
    tokio::spawn(stop_on_signal(engine.clone(), stop.clone(), lock.clone()));
    if let Some(host) = host {
        let url = servers.last().map(|server| format!("ws://{}", server.address()));
        host::introduce(&host, &url.unwrap_or_default(), lock.as_ref());
        tokio::spawn(stop_with_host(engine.clone(), stop.clone(), host));
    }
    let listening = async {
        let running = servers.into_iter().chain(console).map(|server| {
            let mut stopped = stop.subscribe();
            server.run(async move { drop(stopped.wait_for(|stop| *stop).await) })
        });
        futures_util::future::join_all(running).await;
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
    if let Some(lock) = lock {
        lock.remove();
    }
    piped
}

/// Binds the listener of the console, where it has one of its own.
async fn serve_console(
    engine: &Arc<Engine>,
    operator: &Operator,
    http: Option<&HttpSettings>,
    url: Option<String>,
    token_env: Option<&str>,
) -> Result<Option<HttpServer>, Failure> {
    let Some(settings) = operator.own_server(engine, http, url, token_env)? else {
        return Ok(None);
    };
    let server = HttpServer::bind(engine.clone(), settings).await;
    let server = server.map_err(|error| Failure::new(format!("console: {error}")))?;
    if let Some(address) = operator.own_address(server.address()) {
        say(&format!("console: {address}"));
    }
    Ok(Some(server))
}

/// Says what each source serves and what it leaves out. On stdio alone it would only be noise in a
/// client's log, so it is logged at `info`.
fn say_summaries(engine: &Engine, aloud: bool) {
    for source in engine.registry().status() {
        let Some(summary) = &source.summary else { continue };
        let text = format!("{}: {summary}", source.name);
        match aloud {
            true => say(&escaped(&text)),
            false => tracing::info!("{text}"),
        }
    }
}

/// The end of the host stops the server.
async fn stop_with_host(engine: Arc<Engine>, stop: watch::Sender<bool>, host: Arc<Host>) {
    host.ended().await;
    engine.stop();
    stop.send_replace(true);
}

/// The first signal stops the server, with the grace period for running calls. The second exits.
async fn stop_on_signal(
    engine: Arc<Engine>,
    stop: watch::Sender<bool>,
    lock: Option<Arc<LockFile>>,
) {
    // An editor's terminal may be closed. Other servers may be started with `nohup`.
    let with_hangup = lock.is_some();
    if stop_signal(with_hangup).await.is_err() {
        return;
    }
    say("stopping");
    engine.stop();
    stop.send_replace(true);
    if stop_signal(with_hangup).await.is_ok() {
        if let Some(lock) = lock {
            lock.remove();
        }
        #[expect(clippy::exit, reason = "the second signal does not wait for anything")]
        std::process::exit(1);
    }
}

/// Waits for SIGINT or SIGTERM, or for SIGHUP.
async fn stop_signal(with_hangup: bool) -> std::io::Result<()> {
    let mut hangup = with_hangup.then(|| signal(SignalKind::hangup())).transpose()?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = received(&mut hangup) => {}
    }
    Ok(())
}

/// Waits for a signal; never returns without one.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
