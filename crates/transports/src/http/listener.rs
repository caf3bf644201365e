//! Where connections come from.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

/// Something that accepts connections: TCP, a Unix socket, a socket that systemd has opened
/// (`TcpListener::from_std`), TLS on top of any of them.
pub trait Listener: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection. Dropping the future loses none.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // A response is written in one piece; waiting for more of it would only delay it.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Io = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }
}
