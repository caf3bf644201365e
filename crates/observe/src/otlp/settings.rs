//! The environment variables of OpenTelemetry that are understood. `docs/operations.md` lists them.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use super::context::Sampler;

/// Which telemetry is sent, and where.
#[derive(Clone, Debug)]
pub struct OtlpSettings {
    pub(super) traces: Option<Signal>,
    pub(super) metrics: Option<Signal>,
    pub(super) sampler: Sampler,
    pub(super) resource: Vec<(String, String)>,
    pub(super) timeout: Duration,
    pub(super) trace_interval: Duration,
    pub(super) metric_interval: Duration,
}

/// Where one kind of telemetry is sent.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    pub(super) url: Uri,
    /// The URL without parts that may be secret.
    pub(super) shown: String,
    pub(super) headers: HeaderMap,
}

impl OtlpSettings {
    /// Reads the variables, as `variable` gives them. `None` without an endpoint: nothing is sent.
    /// `server` is the name of the service where no variable names it.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
        server: &str,
    ) -> Result<Option<Self>, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let traces = signal(&variable, "TRACES", "v1/traces")?;
        let metrics = signal(&variable, "METRICS", "v1/metrics")?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let (name, argument) =
            (variable("OTEL_TRACES_SAMPLER"), variable("OTEL_TRACES_SAMPLER_ARG"));
        let sampler = Sampler::parse(name.as_deref(), argument.as_deref()).ok_or_else(|| {
            "OTEL_TRACES_SAMPLER: unknown sampler or argument (expected always_on, always_off, \
             traceidratio, or one of them after parentbased_)"
                .to_owned()
        })?;
        let millis = |name: &str, default: u64| match variable(name) {
            None => Ok(Duration::from_millis(default)),
            Some(value) => match value.parse::<u64>() {
                Ok(millis @ 1..) => Ok(Duration::from_millis(millis)),
                _ => Err(format!("{name}: `{value}` (expected milliseconds)")),
            },
        };
        Ok(Some(Self {
            traces,
            metrics,
            sampler,
            resource: resource(&variable, server)?,
            timeout: millis("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)?,
            trace_interval: millis("OTEL_BSP_SCHEDULE_DELAY", 5_000)?,
            metric_interval: millis("OTEL_METRIC_EXPORT_INTERVAL", 60_000)?,
        }))
    }

    /// Whether spans are sent.
    pub fn has_traces(&self) -> bool {
        self.traces.is_some()
    }

    /// Whether metrics are sent.
    pub fn has_metrics(&self) -> bool {
        self.metrics.is_some()
    }
}

/// Where one kind of telemetry is sent; its own variable overrides the common one.
fn signal(
    variable: &impl Fn(&str) -> Option<String>,
    kind: &str,
    path: &str,
) -> Result<Option<Signal>, String> {
    match variable(&format!("OTEL_{kind}_EXPORTER")).as_deref() {
        None | Some("otlp") => {}
        Some("none") => return Ok(None),
        Some(other) => {
            return Err(format!("OTEL_{kind}_EXPORTER: `{other}` (expected otlp or none)"));
        }
    }
    let either = |name: &str| {
        variable(&format!("OTEL_EXPORTER_OTLP_{kind}_{name}"))
            .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    };
    let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    let base = base.map(|base| format!("{}/{path}", base.trim_end_matches('/')));
    let Some(url) = variable(&format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT")).or(base) else {
        return Ok(None);
    };
    // Both are accepted: collectors tell JSON from protobuf by the content type.
    if let Some(protocol) =
        either("PROTOCOL").filter(|it| it != "http/json" && it != "http/protobuf")
    {
        let what = format!("OTEL_EXPORTER_OTLP_PROTOCOL: `{protocol}`");
        return Err(format!("{what} (expected http/json)"));
    }
    let uri = url
        .parse::<Uri>()
        .ok()
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    let uri = uri.ok_or_else(|| {
        "OTEL_EXPORTER_OTLP_ENDPOINT: invalid URL (expected e.g. http://localhost:4318)".to_owned()
    })?;
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let shown = format!("{}://{host}{}", uri.scheme_str().unwrap_or_default(), uri.path());
    let headers = either("HEADERS").map_or_else(|| Ok(HeaderMap::new()), |text| headers(&text))?;
    Ok(Some(Signal { url: uri, shown, headers }))
}

/// Reads `name=value,name=value`; values are percent-encoded.
fn pairs(text: &str) -> impl Iterator<Item = Option<(&str, String)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim(), value.into_owned()))
    })
}

fn headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for pair in pairs(text) {
        // The invalid part is not shown: it may be a secret.
        let invalid = || "OTEL_EXPORTER_OTLP_HEADERS: invalid (expected NAME=VALUE,…)".to_owned();
        let (name, value) = pair.ok_or_else(invalid)?;
        let name = HeaderName::try_from(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn resource(
    variable: &impl Fn(&str) -> Option<String>,
    server: &str,
) -> Result<Vec<(String, String)>, String> {
    let mut resource = vec![
        ("service.name".to_owned(), server.to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("telemetry.sdk.language".to_owned(), "rust".to_owned()),
        ("telemetry.sdk.name".to_owned(), "sabir".to_owned()),
    ];
    let mut set = |name: &str, value: String| {
        resource.retain(|(known, _)| known != name);
        resource.push((name.to_owned(), value));
    };
    for pair in pairs(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()) {
        let invalid = || "OTEL_RESOURCE_ATTRIBUTES: invalid (expected NAME=VALUE,…)".to_owned();
        let (name, value) = pair.ok_or_else(invalid)?;
        set(name, value);
    }
    if let Some(name) = variable("OTEL_SERVICE_NAME") {
        set("service.name", name);
    }
    Ok(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, String> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        OtlpSettings::read(|name| find(name).map(|(_, value)| (*value).to_owned()), "demo")
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:p@collector:4318/");

    #[test]
    fn without_an_endpoint_nothing_is_sent() {
        assert!(read(&[]).unwrap().is_none());
        assert!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
        let off = [ENDPOINT, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
        assert!(read(&off).unwrap().is_none());
    }

    #[test]
    fn each_kind_has_its_place_and_its_headers() {
        let settings = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://other/m"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=y"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=no,deployment.environment.name=test"),
        ]);
        let settings = settings.unwrap().unwrap();
        let (traces, metrics) = (settings.traces.unwrap(), settings.metrics.unwrap());
        assert_eq!(traces.url, "http://u:p@collector:4318/v1/traces");
        assert_eq!(traces.shown, "http://collector:4318/v1/traces");
        assert_eq!(metrics.url, "https://other/m");
        assert_eq!(traces.headers["api-key"], "a b");
        let has = |name: &str, value: &str| {
            settings.resource.iter().any(|(known, is)| known == name && is == value)
        };
        assert!(has("service.name", "mine") && has("deployment.environment.name", "test"));
    }

    #[test]
    fn what_cannot_be_done_is_an_error() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_TRACES_SAMPLER", "xray"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_BSP_SCHEDULE_DELAY", "0"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318"),
        ] {
            let refused = read(&[ENDPOINT, (name, value)]).unwrap_err();
            assert!(refused.starts_with("OTEL_") && !refused.contains("secret"), "{refused}");
        }
    }
}
