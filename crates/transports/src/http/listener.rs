//! Where connections come from.

use std::io;
use std::net::IpAddr;

use sabir_wire::Caller;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

/// Accepts connections: TCP, a Unix socket, a socket that systemd has opened
/// (`TcpListener::from_std`), or TLS on top of any of them ([`TlsListener`](super::TlsListener)).
pub trait Listener: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection. Cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, Peer)>> + Send;
}

/// The other end of a connection.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Peer {
    /// Its address; `None` for a Unix socket.
    pub address: Option<IpAddr>,
    /// The caller whom its certificate identifies.
    pub caller: Option<Caller>,
}

impl Peer {
    /// A peer at this address, without a certificate.
    pub fn at(address: IpAddr) -> Self {
        // An IPv6 socket accepts IPv4 clients under mapped addresses.
        Self { address: Some(address.to_canonical()), caller: None }
    }
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, Peer)> {
        let (stream, address) = Self::accept(self).await?;
        // A response is written in one piece; Nagle's algorithm would only delay it.
        stream.set_nodelay(true)?;
        Ok((stream, Peer::at(address.ip())))
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Io = UnixStream;

    async fn accept(&mut self) -> io::Result<(UnixStream, Peer)> {
        Self::accept(self).await.map(|(stream, _)| (stream, Peer::default()))
    }
}
