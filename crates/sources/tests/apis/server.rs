//! An HTTP server whose answers are written by a test.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request, as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The path and the query.
    pub(crate) fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// The answer of the server.
pub(crate) enum Answer {
    /// A status, headers and a body.
    Plain(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// A body that never ends.
    Endless,
    /// Nothing: the connection is closed.
    Close,
}

pub(crate) fn json(text: &str) -> Answer {
    Answer::Plain(200, vec![("content-type", "application/json".into())], text.into())
}

pub(crate) fn status(status: u16) -> Answer {
    Answer::Plain(status, Vec::new(), Vec::new())
}

type Handler = dyn Fn(&Received, usize) -> Answer + Send + Sync;

/// A running server.
pub(crate) struct Server {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    /// The handler gets a request and the number of those before it.
    pub(crate) async fn start(
        handler: impl Fn(&Received, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, handler): (_, Arc<Handler>) = (received.clone(), Arc::new(handler));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, log.clone(), handler.clone()));
            }
        });
        Self { url, received }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve(
    stream: TcpStream,
    log: Arc<Mutex<Vec<Received>>>,
    handler: Arc<Handler>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = Received::default();
        stream.read_line(&mut request.line).await.ok().filter(|read| *read > 0)?;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        request.body = String::from_utf8_lossy(&body).into_owned();
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            log.len() - 1
        };
        match handler(&request, number) {
            Answer::Close => return None,
            Answer::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
                loop {
                    stream.write_all(&[b'x'; 65536]).await.ok()?;
                }
            }
            Answer::Plain(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head += &format!("{name}: {value}\r\n");
                }
                stream.write_all((head + "\r\n").as_bytes()).await.ok()?;
                stream.write_all(&body).await.ok()?;
            }
        }
    }
}
