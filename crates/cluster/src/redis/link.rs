//! Connections to one Redis server, to the master that Sentinels name, or to a Redis Cluster.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use ::redis::cluster::ClusterClientBuilder;
use ::redis::cluster_async::ClusterConnection;
use ::redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use ::redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind};
use ::redis::{Pipeline, RedisError, RedisFuture, ServerErrorKind, TlsMode, Value};
use tokio::net::UdpSocket;

/// How long a connection to one server may take, and finding the right server as well.
const CONNECT: Duration = Duration::from_secs(1);
const FIND: Duration = Duration::from_secs(5);

/// How often a Redis Cluster is asked again: a shard may have moved.
const RETRIES: u32 = 3;

/// The port of Sentinels, unless another one is given.
const SENTINEL_PORT: u16 = 26379;

/// The target of a connection.
#[derive(Clone)]
pub(super) enum Server {
    One(Client),
    /// The master of that name, which one of the Sentinels knows.
    Master(Vec<ConnectionInfo>, String, SentinelNodeConnectionInfo),
    /// A Redis Cluster, of which these nodes are known.
    Cluster(Vec<ConnectionInfo>),
}

impl Server {
    /// Parses `redis://`, `redis+sentinel://HOST,HOST/MASTER/DB` and `redis+cluster://HOST,HOST`,
    /// each also with `rediss`.
    pub(super) fn parse(url: &str) -> Result<Self, RedisError> {
        let many = url.split_once("://").and_then(|(scheme, rest)| {
            let (scheme, kind) = scheme.split_once('+')?;
            Some((scheme, kind, rest))
        });
        match many {
            Some((scheme, "sentinel", rest)) => Self::parse_master(scheme, rest),
            Some((scheme, "cluster", rest)) => {
                let (login, hosts, _) = parts(rest);
                let node = |host| format!("{scheme}://{login}{host}").parse();
                Ok(Self::Cluster(hosts.split(',').map(node).collect::<Result<_, _>>()?))
            }
            _ => Client::open(url).map(Self::One),
        }
    }

    fn parse_master(scheme: &str, rest: &str) -> Result<Self, RedisError> {
        let (login, hosts, path) = parts(rest);
        let (name, database) = path.split_once('/').unwrap_or((path, "0"));
        if name.is_empty() {
            let what = "no name of a master (expected redis+sentinel://HOST/MASTER)";
            return Err((ErrorKind::InvalidClientConfig, what).into());
        }
        let sentinel = |host: &str| {
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
            let port = if has_port { String::new() } else { format!(":{SENTINEL_PORT}") };
            format!("{scheme}://{host}{port}").parse()
        };
        let sentinels: Vec<ConnectionInfo> =
            hosts.split(',').map(sentinel).collect::<Result<_, _>>()?;
        let master: ConnectionInfo = format!("{scheme}://{login}master/{database}").parse()?;
        let mut node = SentinelNodeConnectionInfo::default()
            .set_redis_connection_info(master.redis_settings().clone());
        if is_encrypted(master.addr()) {
            node = node.set_tls_mode(TlsMode::Secure);
        }
        Ok(Self::Master(sentinels, name.to_owned(), node))
    }

    /// Connects. `answer` is the time limit of each answer.
    pub(super) async fn connect(&self, answer: Duration) -> Result<Connection, RedisError> {
        // Without it rustls panics if a program has a second provider beside this one.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(answer));
        let connecting = async {
            let client = match self {
                Self::One(client) => client.clone(),
                Self::Master(sentinels, name, node) => {
                    let (sentinels, kind) = (sentinels.clone(), SentinelServerType::Master);
                    let node = Some(node.clone());
                    SentinelClient::build(sentinels, name, node, kind)?.async_get_client().await?
                }
                Self::Cluster(nodes) => {
                    let client = ClusterClientBuilder::new(nodes.clone())
                        .retries(RETRIES)
                        .connection_timeout(CONNECT)
                        .response_timeout(answer)
                        .build()?;
                    return client.get_async_connection().await.map(Connection::Cluster);
                }
            };
            let connected = client.get_multiplexed_async_connection_with_config(&config).await;
            connected.map(Connection::One)
        };
        let found = tokio::time::timeout(FIND, connecting).await;
        found.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }
}

impl Server {
    /// The address by which this machine reaches the server. Nothing is sent.
    pub(super) async fn own_address(&self) -> io::Result<Option<IpAddr>> {
        let server = match self {
            Self::One(client) => Some(client.get_connection_info()),
            Self::Master(known, ..) | Self::Cluster(known) => known.first(),
        };
        let (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) =
            (match server {
                Some(server) => server.addr(),
                None => return Ok(None),
            })
        else {
            return Ok(None);
        };
        let mut found = tokio::net::lookup_host((host.as_str(), *port)).await?;
        let Some(server) = found.next() else { return Ok(None) };
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(server).await?;
        Ok(Some(socket.local_addr()?.ip()))
    }
}

/// `LOGIN@HOSTS/PATH`; the login ends with `@`.
fn parts(rest: &str) -> (&str, &str, &str) {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    (login, hosts, path)
}

fn is_encrypted(address: &ConnectionAddr) -> bool {
    matches!(address, ConnectionAddr::TcpTls { .. })
}

/// An open connection, which several requests can use at once.
#[derive(Clone)]
pub(super) enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(connection) => connection.req_packed_commands(commands, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

/// A connection that is opened when it is first needed, and again after a failure: the master may
/// be another one by then. No command is repeated.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    server: Server,
    answer: Duration,
    /// The connection and its number.
    current: Mutex<(u64, Option<Connection>)>,
    /// Held while connecting.
    connecting: tokio::sync::Mutex<()>,
}

impl Link {
    pub(super) fn new(server: Server, answer: Duration) -> Self {
        let (current, connecting) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Shared { server, answer, current, connecting }))
    }

    async fn connection(&self) -> Result<(u64, Connection), RedisError> {
        if let Some(known) = self.current() {
            return Ok(known);
        }
        let link = self.clone();
        // A task goes on if its request is dropped: the next request uses the connection.
        let connecting = tokio::spawn(async move {
            let Ok(_only) = link.0.connecting.try_lock() else {
                drop(link.0.connecting.lock().await);
                let failed = || io::Error::from(io::ErrorKind::NotConnected);
                return link.current().ok_or_else(|| failed().into());
            };
            let connection = link.0.server.connect(link.0.answer).await?;
            let (number, current) = &mut *link.lock();
            *number += 1;
            *current = Some(connection.clone());
            Ok((*number, connection))
        });
        connecting.await.map_err(io::Error::other)?
    }

    fn current(&self) -> Option<(u64, Connection)> {
        let (number, connection) = &*self.lock();
        Some((*number, connection.clone()?))
    }

    /// After a failure of the connection of that number the next command gets another one.
    fn forget(&self, failed: u64) {
        let (number, connection) = &mut *self.lock();
        if *number == failed {
            *connection = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (u64, Option<Connection>)> {
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether another server is the master by now.
fn is_demoted(answer: &Value) -> bool {
    let readonly = Some(ServerErrorKind::ReadOnly);
    matches!(answer, Value::ServerError(error) if error.kind() == readonly)
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let (number, mut connection) = self.connection().await?;
            let answer = connection.req_packed_command(command).await;
            if answer.as_ref().map_or(true, is_demoted) {
                self.forget(number);
            }
            answer
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let (number, mut connection) = self.connection().await?;
            let answers = connection.req_packed_commands(pipeline, offset, count).await;
            if answers.as_ref().map_or(true, |answers| answers.iter().any(is_demoted)) {
                self.forget(number);
            }
            answers
        })
    }

    fn get_db(&self) -> i64 {
        self.current().map_or(0, |(_, connection)| connection.get_db())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(nodes: &[ConnectionInfo]) -> Vec<String> {
        nodes.iter().map(|node| node.addr().to_string()).collect()
    }

    #[test]
    fn a_url_names_one_server_sentinels_or_a_cluster() {
        assert!(matches!(Server::parse("redis://:pw@h:1/2"), Ok(Server::One(_))));
        assert!(matches!(Server::parse("rediss://h"), Ok(Server::One(_))));
        let Ok(Server::Cluster(nodes)) = Server::parse("rediss+cluster://u:p%40w@a:1,b:2") else {
            panic!("expected a cluster")
        };
        assert_eq!(addresses(&nodes), ["a:1", "b:2"]);
        assert!(nodes.iter().all(|node| is_encrypted(node.addr())));
        assert_eq!(nodes[1].redis_settings().password(), Some("p@w"));
        let url = "redis+sentinel://:pw@a,[::1],b:7/main/3";
        let Ok(Server::Master(sentinels, name, _)) = Server::parse(url) else {
            panic!("expected Sentinels")
        };
        assert_eq!(addresses(&sentinels), ["a:26379", "::1:26379", "b:7"]);
        assert!(sentinels.iter().all(|sentinel| sentinel.redis_settings().password().is_none()));
        assert_eq!(name, "main");
        for wrong in [
            "http://h",
            "redis+sentinel://h",
            "redis+sentinel://h/",
            "redis+sentinel:///main",
            "redis+sentinel://h/main/x",
            "redis+cluster://",
            "redis+cluster://a,",
            "http+cluster://a",
            "redis+other://a",
            "",
        ] {
            assert!(Server::parse(wrong).is_err(), "{wrong}");
        }
    }
}
