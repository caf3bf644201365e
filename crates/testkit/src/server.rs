//! The stand-in as a server for clients under test: over a pipe in memory, and over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use sabir_engine::{Engine, Settings};
use sabir_registry::SourceId;
use sabir_transports::{http, stream};
use sabir_wire::Caller;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::oneshot;

use crate::source::lock;
use crate::stand_in::StandIn;

/// A server that offers [`StandIn`]. Dropping it stops its HTTP server.
pub struct StandInServer {
    /// The engine, whose registry may be changed.
    pub engine: Arc<Engine>,
    source: Mutex<SourceId>,
    stop: Vec<oneshot::Sender<()>>,
}

/// The client's end of a pipe.
pub type ClientPipe = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

impl StandInServer {
    /// A server inside the current runtime.
    ///
    /// # Panics
    /// If the offer is refused.
    pub async fn start() -> Self {
        let engine = Engine::new(Settings::default());
        engine.registry().allow_changes();
        let source = engine.registry().add(Arc::new(StandIn)).expect("a good offer");
        engine.start().await;
        Self { engine, source: Mutex::new(source), stop: Vec::new() }
    }

    /// Removes everything that is offered, and offers it again.
    ///
    /// # Panics
    /// If the offer is refused.
    pub fn change(&self) {
        let mut source = lock(&self.source);
        self.engine.registry().remove(*source);
        *source = self.engine.registry().add(Arc::new(StandIn)).expect("a good offer");
    }

    /// Serves one client over a pipe in memory.
    pub fn pipe(&self) -> ClientPipe {
        let (client, server) = tokio::io::duplex(64 << 10);
        let engine = self.engine.clone();
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(server);
            stream::serve(&engine, Caller::local(), reader, writer).await
        });
        tokio::io::split(client)
    }

    /// Serves HTTP for clients with this token. Returns the address.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn token(&mut self, secret: &str) -> SocketAddr {
        let token = http::Token::new(secret).map(|token| http::NamedToken::new("token", token));
        self.http(|settings| settings.tokens.extend(token)).await
    }

    /// Serves HTTP on this machine. Returns the address.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn http(&mut self, change: impl FnOnce(&mut http::Settings)) -> SocketAddr {
        let mut settings = http::Settings::new((Ipv4Addr::LOCALHOST, 0).into());
        change(&mut settings);
        let bound = http::Server::bind(self.engine.clone(), settings).await;
        let server = bound.expect("a free port");
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        self.stop.push(stop);
        tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        address
    }
}
