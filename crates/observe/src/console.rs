//! The pages that operators look at: `/metrics`, and the console.
//!
//! The console calls tools as a client of the endpoint, from the browser. The pages here only show
//! state; their only actions are to begin and to end a recording. They demand a token, so that
//! pages of other sites, other users of this machine and names that were rebound to it get nothing.

mod api; // answers to the console
mod assets; // the files of the console

use std::sync::{Arc, Weak};

use http::header::{AUTHORIZATION, CACHE_CONTROL, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sabir_engine::Engine;
use sabir_transports::http::{Access, Page, PageRequest, Pages};
use subtle::ConstantTimeEq as _;

use crate::metrics::{MEDIA_TYPE, Metrics};
use crate::recorder::Recorder;
use crate::timeline::Timeline;

/// The secret of a console, drawn at every launch.
#[derive(Clone)]
pub struct ConsoleToken(pub String);

/// `/metrics` for callers, and the console at `/` for holders of the token.
pub struct OperatorPages {
    metrics: Arc<Metrics>,
    console: Option<Console>,
}

struct Console {
    settings: ConsoleSettings,
    metrics: Arc<Metrics>,
}

/// The settings of a console.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// The server.
    pub engine: Weak<Engine>,
    /// The last calls.
    pub timeline: Arc<Timeline>,
    /// Switched on and off by the console.
    pub recorder: Option<Arc<Recorder>>,
    /// The token that every request must have.
    pub token: ConsoleToken,
    /// The path of the endpoint on this server.
    pub endpoint: String,
    /// The URL of the endpoint for clients, if it is on another server.
    pub url: Option<String>,
    /// Clients, and the commands that connect them. `{url}` stands for the URL of the endpoint.
    pub connect: Vec<(String, String)>,
}

impl OperatorPages {
    /// `/metrics` alone.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, console: None }
    }

    /// The same with a console.
    #[must_use]
    pub fn with_console(mut self, settings: ConsoleSettings) -> Self {
        self.console = Some(Console { settings, metrics: self.metrics.clone() });
        self
    }
}

const METRICS: &str = "/metrics";
const API: &str = "/console/api/";

impl Pages for OperatorPages {
    fn access(&self, path: &str) -> Option<Access> {
        match path {
            METRICS => Some(Access::Callers),
            _ if self.console.is_none() => None,
            _ if path.starts_with(API) || assets::find(path).is_some() => Some(Access::Everyone),
            _ => None,
        }
    }

    fn takes_post(&self, path: &str) -> bool {
        self.console.is_some() && path.strip_prefix(API).is_some_and(api::is_action)
    }

    fn get(&self, request: &PageRequest<'_>) -> Page {
        let page = match (&self.console, request.path.strip_prefix(API)) {
            (Some(console), Some(what)) => match console.admits(request.headers, request.host) {
                Ok(()) => {
                    console.settings.timeline.switch_on();
                    console.answer(what, request.query)
                }
                Err(page) => page,
            },
            (Some(_), None) if request.path != METRICS => asset(request.path),
            _ => Page::new(StatusCode::OK, MEDIA_TYPE, self.metrics.text()),
        };
        HEADERS.iter().fold(page, |page, (name, value)| {
            page.with(HeaderName::from_static(name), HeaderValue::from_static(value))
        })
    }
}

/// Only our own files are run and loaded, and no page may frame them.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src \
         'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

fn asset(path: &str) -> Page {
    match assets::find(path) {
        Some((media_type, text)) => Page::new(StatusCode::OK, media_type, text)
            .with(CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        None => problem(StatusCode::NOT_FOUND, "not found"),
    }
}

fn problem(status: StatusCode, what: &str) -> Page {
    json(status, &serde_json::json!({ "error": what }))
}

fn json(status: StatusCode, value: &serde_json::Value) -> Page {
    Page::new(status, "application/json", value.to_string())
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

impl Console {
    /// Whether a request comes from the console and brings the token. `named` is the host that it
    /// names.
    fn admits(&self, headers: &HeaderMap, named: Option<&str>) -> Result<(), Page> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        // The scheme is not compared: whether the server has a certificate is unknown here.
        let origin = text(ORIGIN).and_then(|origin| origin.split_once("://"));
        let is_own = |(scheme, host): (&str, &str)| {
            matches!(scheme, "http" | "https") && Some(host) == named
        };
        let is_foreign = headers.get(ORIGIN).is_some() && !origin.is_some_and(is_own);
        let site = text(HeaderName::from_static("sec-fetch-site"));
        if is_foreign || site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            let what = "pages of other origins may not use the console";
            return Err(problem(StatusCode::FORBIDDEN, what));
        }
        let given = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let is_right = given
            .is_some_and(|given| given.as_bytes().ct_eq(self.settings.token.0.as_bytes()).into());
        match is_right {
            true => Ok(()),
            false => Err(problem(
                StatusCode::UNAUTHORIZED,
                "the token of the console is missing or wrong (expected the one that was printed \
                 at the start)",
            )),
        }
    }
}

impl std::fmt::Debug for OperatorPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorPages").field("console", &self.console.is_some()).finish()
    }
}

impl std::fmt::Debug for ConsoleToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConsoleToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Bounds;

    #[test]
    fn the_origin_must_be_the_host_that_the_request_names() {
        let settings = ConsoleSettings {
            engine: Weak::new(),
            timeline: Timeline::new(Bounds::default()),
            recorder: None,
            token: ConsoleToken("secret".into()),
            endpoint: "/mcp".into(),
            url: None,
            connect: Vec::new(),
        };
        let console = Console { settings, metrics: Metrics::new() };
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
        headers.insert(ORIGIN, HeaderValue::from_static("https://localhost:7331"));
        // In HTTP/2 the host is not among the headers.
        assert!(console.admits(&headers, Some("localhost:7331")).is_ok());
        assert!(console.admits(&headers, Some("localhost:7332")).is_err());
        assert!(console.admits(&headers, None).is_err());
    }
}
