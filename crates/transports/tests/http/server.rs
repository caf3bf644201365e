//! A server under test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sabir_engine::Engine;
use sabir_transports::http::{NamedToken, Server, Settings, Stats, Token, Watcher};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::sources::{Bazaar, Signals};

/// A server that runs until it is stopped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Arc<Engine>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) watcher: Watcher,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The settings of a server under test.
pub(crate) struct Wish {
    pub(crate) engine: sabir_engine::Settings,
    pub(crate) http: Settings,
}

impl Default for Wish {
    fn default() -> Self {
        let mut engine = sabir_engine::Settings::default();
        // A test does not wait for calls that it leaves running.
        engine.limits.grace = Duration::from_millis(500);
        Self { engine, http: Settings::default() }
    }
}

impl Wish {
    pub(crate) fn http(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.http);
        self
    }

    pub(crate) fn engine(mut self, change: impl FnOnce(&mut sabir_engine::Settings)) -> Self {
        change(&mut self.engine);
        self
    }

    pub(crate) async fn start(mut self) -> Running {
        let engine = Engine::new(self.engine);
        let signals = Arc::new(Signals::default());
        engine.registry().add(Arc::new(Bazaar { signals: signals.clone() })).unwrap();
        engine.start().await;
        self.http.address.set_port(0);
        let server = Server::bind(engine.clone(), self.http).await.unwrap();
        let (address, watcher) = (server.address(), server.watcher());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async { drop(stopped.await) }));
        Running { address, engine, signals, watcher, stop, task }
    }
}

/// A server with all defaults.
pub(crate) async fn start() -> Running {
    Wish::default().start().await
}

impl Running {
    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Begins to stop.
    pub(crate) fn stopping(self) -> JoinHandle<()> {
        drop(self.stop);
        self.task
    }

    /// Stops the server, and waits for its end.
    pub(crate) async fn stop(self) {
        let watcher = self.watcher.clone();
        in_time(self.stopping()).await.unwrap();
        let nothing = Stats { connections: 0, requests: 0, streams: 0, sessions: 0 };
        assert_eq!(watcher.stats(), nothing);
    }

    /// Waits until the counts are as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(Stats) -> bool) {
        until(&self.watcher, wanted).await;
    }
}

pub(crate) async fn until(watcher: &Watcher, wanted: impl Fn(Stats) -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(15);
    while !wanted(watcher.stats()) {
        assert!(tokio::time::Instant::now() < deadline, "stuck at {:?}", watcher.stats());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Nothing in these tests takes longer.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it took too long")
}

/// One token, by the name `token`.
pub(crate) fn token(secret: &str) -> Vec<NamedToken> {
    vec![NamedToken::new("token", Token::new(secret).unwrap())]
}
