//! Traces and metrics for a collector of OpenTelemetry, by the standard environment variables.
//!
//! The format is OTLP over HTTP as JSON, written by serde_json: the SDK of OpenTelemetry would add
//! some thirty crates.

mod context; // the position of a request in a trace
mod encode; // OTLP as JSON
mod settings; // the environment variables
mod tracer; // spans

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request};
use sabir_outbound::{Addresses, HttpClient, Limits, PlainHttp, Policy, Redirects};
use serde_json::Value;
use tokio::sync::watch;

pub use self::settings::OtlpSettings;
use self::settings::Signal;
pub use self::tracer::Tracer;
use crate::metrics::Metrics;

/// Sends telemetry until it is stopped.
#[derive(Debug)]
pub struct Exporter {
    settings: OtlpSettings,
    http: HttpClient,
    tracer: Option<Arc<Tracer>>,
    metrics: Option<Arc<Metrics>>,
}

/// The pause between two attempts to send.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The limit of attempts to send one document.
const ATTEMPTS: usize = 3;

impl Exporter {
    /// An exporter of the telemetry that the settings enable. It must be used inside a tokio
    /// runtime.
    pub fn new(
        settings: OtlpSettings,
        tracer: Option<Arc<Tracer>>,
        metrics: Option<Arc<Metrics>>,
    ) -> Result<Self, sabir_outbound::Error> {
        // The address is the operator's own choice.
        let policy = Policy {
            addresses: Addresses::Any,
            plain_http: PlainHttp::Allowed,
            redirects: Redirects::SameOrigin,
            ..Policy::default()
        };
        let http = HttpClient::new(policy)?;
        let metrics = metrics.filter(|_| settings.metrics.is_some());
        Ok(Self { settings, http, tracer, metrics })
    }

    /// Sends until `stop` is `true`, and then the rest.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut traces = tokio::time::interval(self.settings.trace_interval);
        let mut metrics = tokio::time::interval(self.settings.metric_interval);
        loop {
            tokio::select! {
                _ = traces.tick() => self.send_traces().await,
                _ = metrics.tick() => self.send_metrics().await,
                () = stopped(&mut stop) => break,
            }
        }
        self.send_traces().await;
        self.send_metrics().await;
    }

    async fn send_traces(&self) {
        let Some((tracer, signal)) = self.tracer.as_ref().zip(self.settings.traces.as_ref()) else {
            return;
        };
        loop {
            let spans = tracer.take();
            if spans.is_empty() {
                return;
            }
            self.send(signal, &encode::traces(&self.settings.resource, &spans)).await;
        }
    }

    async fn send_metrics(&self) {
        if let Some((metrics, signal)) = self.metrics.as_ref().zip(self.settings.metrics.as_ref()) {
            let families = metrics.families();
            let (resource, started) = (&self.settings.resource, metrics.started());
            self.send(signal, &encode::metrics(resource, &families, started)).await;
        }
    }

    /// Sends a document, again if the collector asks for it. A document that it refuses is lost.
    async fn send(&self, signal: &Signal, document: &Value) {
        let body = Bytes::from(document.to_string());
        for attempt in 1..=ATTEMPTS {
            let failure = match self.http.send(self.request(signal, &body), &self.limits()).await {
                Ok(response) if response.status().is_success() => return,
                Ok(response) => {
                    let status = response.status();
                    let is_retryable = matches!(status.as_u16(), 429 | 502..=504);
                    (format!("status {status}"), is_retryable)
                }
                Err(error) => (error.to_string(), true),
            };
            let (reason, is_retryable) = failure;
            if !is_retryable || attempt == ATTEMPTS {
                tracing::warn!("cannot send telemetry to {}: {reason}", signal.shown);
                return;
            }
            tokio::time::sleep(RETRY_PAUSE * u32::try_from(attempt).unwrap_or(1)).await;
        }
    }

    fn limits(&self) -> Limits {
        Limits { head: self.settings.timeout, ..Limits::default() }
    }

    fn request(&self, signal: &Signal, body: &Bytes) -> Request<Bytes> {
        let mut request = Request::new(body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = signal.url.clone();
        *request.headers_mut() = signal.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request
    }
}

/// Completes when `stop` is `true`, or its sender is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}
