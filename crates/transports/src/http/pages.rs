//! Pages beside the endpoint, for operators and their programs.

use std::pin::Pin;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::guard;
use super::reply::{self, Content, EventStream, Refusal, Reply};
use super::state::{InFlight, OpenStream};

/// Pages that are served beside the endpoint. Requests reach them after the checks of `Host` and
/// `Origin`; pages of other origins may not read them.
pub trait Pages: Send + Sync {
    /// Who may see the page at `path`; `None` if there is no page.
    fn access(&self, path: &str) -> Option<Access>;

    /// Whether `path` takes POST. Otherwise it takes only GET and HEAD.
    fn takes_post(&self, _path: &str) -> bool {
        false
    }

    /// The page. The body of a POST is not read.
    fn get(&self, request: &PageRequest<'_>) -> Page;
}

/// Who may see a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone who reaches the server; the page may have checks of its own.
    Everyone,
    /// Callers of the endpoint.
    Callers,
}

/// A request for a page.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PageRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path.
    pub path: &'a str,
    /// What follows the `?`.
    pub query: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The host that the client has named: `Host`, or `:authority` in HTTP/2.
    pub host: Option<&'a str>,
}

/// A page.
pub struct Page {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    content: PageContent,
}

enum PageContent {
    Whole(Bytes),
    Events(EventStream),
    Later(Pin<Box<dyn Future<Output = Page> + Send>>),
}

impl Page {
    /// A page of that media type.
    pub fn new(status: StatusCode, media_type: &'static str, text: impl Into<Bytes>) -> Self {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(media_type))];
        Self { status, headers, content: PageContent::Whole(text.into()) }
    }

    /// Server-sent events, as they happen. The stream must end when the server stops.
    pub fn events(events: EventStream) -> Self {
        let content = PageContent::Events(events);
        Self { status: StatusCode::OK, headers: Vec::new(), content }
    }

    /// A page that is computed asynchronously.
    pub fn later(page: impl Future<Output = Self> + Send + 'static) -> Self {
        let content = PageContent::Later(Box::pin(page));
        Self { status: StatusCode::OK, headers: Vec::new(), content }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Answers a request for a page.
pub(crate) async fn answer(
    pages: &dyn Pages,
    in_flight: InFlight,
    request: &PageRequest<'_>,
) -> Result<Reply, Refusal> {
    let method = request.method;
    match pages.takes_post(request.path) {
        true if *method != Method::POST => return Err(guard::wrong_method(method, "POST")),
        false if !matches!(*method, Method::GET | Method::HEAD) => {
            return Err(guard::wrong_method(method, "GET, HEAD"));
        }
        _ => {}
    }
    let Page { mut status, mut headers, mut content } = pages.get(request);
    while let PageContent::Later(later) = content {
        let page = later.await;
        (status, content) = (page.status, page.content);
        headers.extend(page.headers);
    }
    let body = match content {
        PageContent::Whole(text) => Content::Whole(text),
        PageContent::Events(events) if *method == Method::GET => {
            let open = OpenStream::open(in_flight);
            Content::Stream(reply::holding(events, open))
        }
        PageContent::Events(_) | PageContent::Later(_) => Content::Empty,
    };
    Ok(Reply { status, headers, body })
}
