//! One request, with its redirects.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::response::Parts;
use http::uri::Scheme;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use url::Url;

use crate::body::Body;
use crate::connector::{Connector, Versions, connector, tcp_connector};
use crate::error::{Error, chain, connect_failure};
use crate::policy::{Limits, Policy, Redirects, without_credentials};
use crate::pool::{IDLE_TIME, Lease, MAX_HEAD, MAX_IDLE, Pool};

/// Redirects in a row. The next one is an error.
const MAX_REDIRECTS: usize = 10;

/// A connection after an upgrade to another protocol.
pub type Upgraded = TokioIo<hyper::upgrade::Upgraded>;

/// Sends requests to the servers that its policy allows. Clones share the connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    /// For `https`, where the versions of HTTP are negotiated.
    client: legacy::Client<Connector, Full<Bytes>>,
    /// For `http`.
    plain: Pool,
    policy: Arc<Policy>,
}

impl HttpClient {
    /// A client for the policy. It must be used inside a tokio runtime.
    pub fn new(policy: Policy) -> Result<Self, Error> {
        let policy = Arc::new(policy);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(MAX_IDLE)
            .http1_max_buf_size(MAX_HEAD)
            .http2_max_header_list_size(MAX_HEAD as u32)
            .build(connector(&policy, Versions::All)?);
        Ok(Self { client, plain: Pool::new(tcp_connector(&policy)), policy })
    }

    /// The policy of this client.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Checks whether the policy allows the URL, as far as possible before its name is resolved.
    pub fn check(&self, url: &str) -> Result<(), Error> {
        self.policy.check(&parse(url)?)
    }

    /// Sends the request and returns the response when its head has arrived. Any status is a
    /// response.
    ///
    /// A request is never sent twice, except to follow a redirect. The response may be compressed
    /// with gzip, and is decompressed, unless the request has an `Accept-Encoding` of its own.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, Error> {
        let limit = limits.head;
        if limit == Duration::MAX {
            return self.follow(request, limits).await;
        }
        match tokio::time::timeout(limit, self.follow(request, limits)).await {
            Ok(sent) => sent,
            Err(_) => Err(Error::Timeout { what: "response", limit }),
        }
    }

    /// Sends a request for an upgrade, over a connection of its own. Returns the head of the
    /// response, and the connection if the server agrees. Redirects are not followed.
    pub async fn upgrade(
        &self,
        request: Request<Bytes>,
        limit: Duration,
    ) -> Result<(Parts, Option<Upgraded>), Error> {
        let url = parse(&request.uri().to_string())?;
        self.policy.check(&url)?;
        let client = legacy::Client::builder(TokioExecutor::new())
            .http1_max_buf_size(MAX_HEAD)
            .build(connector(&self.policy, Versions::One)?);
        let upgrading = async {
            let sent = client.request(request.map(Full::new)).await;
            let response = sent.map_err(|e| failure(url.host_str().unwrap_or_default(), &e))?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                return Ok((response.into_parts().0, None));
            }
            let (head, body) = response.into_parts();
            let response = Response::from_parts(head.clone(), body);
            let upgraded = hyper::upgrade::on(response).await;
            let upgraded = upgraded.map_err(|error| Error::Transfer(chain(&error)))?;
            Ok((head, Some(TokioIo::new(upgraded))))
        };
        match tokio::time::timeout(limit, upgrading).await {
            Ok(upgraded) => upgraded,
            Err(_) => Err(Error::Timeout { what: "response", limit }),
        }
    }

    async fn follow(
        &self,
        mut request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, Error> {
        let is_decoding = !request.headers().contains_key(header::ACCEPT_ENCODING);
        if is_decoding {
            let gzip = HeaderValue::from_static("gzip");
            request.headers_mut().insert(header::ACCEPT_ENCODING, gzip);
        }
        for _ in 0..=MAX_REDIRECTS {
            let (response, lease) = self.exchange(request.clone().map(Full::new)).await?;
            let Some((from, target)) = self.target(&request, &response)? else {
                return Ok(finish(response, lease, is_decoding, limits));
            };
            redirect(&mut request, &from, &target, response.status())?;
        }
        let to = request.uri().to_string();
        Err(Error::Redirect { to, reason: "too many redirects (limit 10)" })
    }

    /// Sends one request to a server that the policy allows.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Option<Lease>), Error> {
        let uri = request.uri().clone();
        let check = || self.check(&uri.to_string());
        if uri.scheme() == Some(&Scheme::HTTP) {
            return self.plain.send(request, check).await;
        }
        check()?;
        // Boxed, or the future of every request would be as large as that of a TLS connection.
        let response = Box::pin(self.client.request(request)).await;
        let response = response.map_err(|e| failure(uri.host().unwrap_or_default(), &e))?;
        Ok((response, None))
    }

    /// The URL of the request and the one that the response redirects to; `None` if the response is
    /// returned to the caller.
    fn target<B>(
        &self,
        request: &Request<Bytes>,
        response: &Response<B>,
    ) -> Result<Option<(Url, Url)>, Error> {
        let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
        let is_followed = match response.status() {
            // Browsers repeat such a POST as a GET, which a caller of an API does not expect.
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => is_safe,
            StatusCode::SEE_OTHER => true,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            _ => false,
        };
        let location = response.headers().get(header::LOCATION).and_then(|l| l.to_str().ok());
        let (true, Some(location)) = (is_followed, location) else { return Ok(None) };
        let invalid = || Error::Redirect { to: location.to_owned(), reason: "invalid URL" };
        let from = parse(&request.uri().to_string())?;
        let to = from.join(location).map_err(|_| invalid())?;
        let refused = |reason| Error::Redirect { to: without_credentials(&to), reason };
        match self.policy.redirects {
            Redirects::Never => Ok(None),
            Redirects::SameOrigin if from.origin() != to.origin() => {
                Err(refused("it leads to another origin"))
            }
            _ if from.scheme() == "https" && to.scheme() == "http" => {
                Err(refused("it leads from https to http"))
            }
            Redirects::SameOrigin | Redirects::Follow => Ok(Some((from, to))),
        }
    }
}

/// Turns the request into the one that the redirect asks for.
fn redirect(
    request: &mut Request<Bytes>,
    from: &Url,
    to: &Url,
    status: StatusCode,
) -> Result<(), Error> {
    let invalid = |_| Error::Redirect { to: without_credentials(to), reason: "invalid URL" };
    *request.uri_mut() = to.as_str().parse::<Uri>().map_err(invalid)?;
    if status == StatusCode::SEE_OTHER && *request.method() != Method::HEAD {
        *request.method_mut() = Method::GET;
        *request.body_mut() = Bytes::new();
        request.headers_mut().remove(header::CONTENT_TYPE);
    }
    request.headers_mut().remove(header::HOST);
    if from.origin() != to.origin() {
        remove_secrets(request.headers_mut());
    }
    Ok(())
}

fn remove_secrets(headers: &mut HeaderMap) {
    let is_secret = |name: &header::HeaderName, value: &HeaderValue| {
        value.is_sensitive()
            || [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION].contains(name)
    };
    let secrets = headers.iter().filter(|(name, value)| is_secret(name, value));
    let secrets: Vec<_> = secrets.map(|(name, _)| name.clone()).collect();
    for name in secrets {
        headers.remove(name);
    }
}

fn finish(
    mut response: Response<Incoming>,
    lease: Option<Lease>,
    is_decoding: bool,
    limits: &Limits,
) -> Response<Body> {
    let encoding = response.headers().get(header::CONTENT_ENCODING);
    let is_gzip =
        is_decoding && encoding.is_some_and(|e| e.as_bytes().eq_ignore_ascii_case(b"gzip"));
    if is_gzip {
        response.headers_mut().remove(header::CONTENT_ENCODING);
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response.map(|body| Body::new(body, lease, is_gzip, limits))
}

fn parse(url: &str) -> Result<Url, Error> {
    let invalid = |_| Error::Url { url: url.to_owned(), reason: "expected http:// or https://" };
    Url::parse(url).map_err(invalid)
}

fn failure(host: &str, error: &legacy::Error) -> Error {
    match error.is_connect() {
        true => connect_failure(host, error),
        false => Error::Transfer(chain(error)),
    }
}
