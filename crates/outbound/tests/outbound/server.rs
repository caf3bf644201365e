//! Servers on this machine.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sabir_outbound::{Addresses, Error, HttpClient, Limits, PlainHttp, Policy, Redirects};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that answers with a function, and counts its connections.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start(
        answer: impl Fn(Request<Incoming>) -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                let service = service_fn(move |request| {
                    let response = answer(request);
                    async move { Ok::<_, Infallible>(response) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service);
                tokio::spawn(connection);
            }
        });
        Self { port, connections }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// Answers every connection with these bytes, and keeps it open.
pub(crate) async fn raw_server(bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let bytes = bytes.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = socket.read(&mut request).await;
                let _ = socket.write_all(&bytes).await;
                while socket.read(&mut request).await.is_ok_and(|n| n > 0) {}
            });
        }
    });
    port
}

/// A client that may reach this machine over plain http.
pub(crate) fn local(redirects: Redirects) -> HttpClient {
    HttpClient::new(Policy {
        addresses: Addresses::PublicAndLoopback,
        plain_http: PlainHttp::Loopback,
        redirects,
        ..Policy::default()
    })
    .unwrap()
}

pub(crate) async fn get(client: &HttpClient, url: &str, limits: &Limits) -> Result<Bytes, Error> {
    let request = Request::get(url).body(Bytes::new()).unwrap();
    client.send(request, limits).await?.into_body().read().await
}

pub(crate) fn text(body: &str) -> Response<Full<Bytes>> {
    Response::new(Full::new(body.to_owned().into()))
}
