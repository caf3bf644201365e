//! OTLP as JSON. See <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>: 64-bit
//! integers are strings, and ids are hexadecimal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::context::{SpanContext, hex};
use super::tracer::Span;
use crate::metrics::{Family, Kind, Sample};

/// The request that sends spans.
pub(super) fn traces(resource: &[(String, String)], spans: &[Span]) -> Value {
    let spans: Vec<_> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": texts(resource) },
        "scopeSpans": [{ "scope": scope(), "spans": spans }],
    }] })
}

fn span(span: &Span) -> Value {
    let end = span.began + span.duration;
    let mut value = json!({
        "traceId": hex(&span.context.trace),
        "spanId": hex(&span.context.span),
        "name": span.name,
        "kind": if span.is_client { 3 } else { 2 },
        "startTimeUnixNano": nanos(span.began),
        "endTimeUnixNano": nanos(end),
        "attributes": span.attributes.iter().map(|(name, value)| attribute(name, value)).collect::<Value>(),
        "flags": 1,
    });
    if let Some(parent) = &span.parent {
        value["parentSpanId"] = hex(parent).into();
    }
    if let Some(SpanContext { trace, span, .. }) = &span.link {
        value["links"] = json!([{ "traceId": hex(trace), "spanId": hex(span) }]);
    }
    if let Some(error) = &span.error {
        value["status"] = json!({ "code": 2, "message": error });
    }
    value
}

/// The request that sends metrics, which count from `started` on.
pub(super) fn metrics(
    resource: &[(String, String)],
    families: &[Family],
    started: SystemTime,
) -> Value {
    let now = SystemTime::now();
    let metrics = families.iter().map(|family| {
        let points = family.samples.iter().map(|(labels, sample)| {
            let labels = labels.iter().filter(|(_, value)| !value.is_empty());
            let labels = labels.map(|(name, value)| attribute(name, value));
            let mut point = json!({
                "attributes": labels.collect::<Value>(),
                "timeUnixNano": nanos(now),
            });
            match sample {
                Sample::Number(number) => {
                    point["asDouble"] = (*number).into();
                    if family.kind == Kind::Counter {
                        point["startTimeUnixNano"] = nanos(started).into();
                    }
                }
                Sample::Histogram(histogram) => {
                    let counts = histogram.buckets.iter().map(ToString::to_string);
                    point["startTimeUnixNano"] = nanos(started).into();
                    point["count"] = histogram.buckets.iter().sum::<u64>().to_string().into();
                    point["sum"] = histogram.sum.as_secs_f64().into();
                    point["bucketCounts"] = counts.collect::<Value>();
                    point["explicitBounds"] = histogram.bounds().collect::<Value>();
                }
            }
            point
        });
        let points = points.collect::<Value>();
        let data = match family.kind {
            Kind::Gauge => ("gauge", json!({ "dataPoints": points })),
            // Cumulative.
            Kind::Counter => {
                let data = json!({ "dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true });
                ("sum", data)
            }
            Kind::Histogram => {
                ("histogram", json!({ "dataPoints": points, "aggregationTemporality": 2 }))
            }
        };
        let mut metric =
            json!({ "name": family.name, "description": family.help, "unit": family.unit });
        metric[data.0] = data.1;
        metric
    });
    json!({ "resourceMetrics": [{
        "resource": { "attributes": texts(resource) },
        "scopeMetrics": [{ "scope": scope(), "metrics": metrics.collect::<Value>() }],
    }] })
}

fn scope() -> Value {
    json!({ "name": "sabir", "version": env!("CARGO_PKG_VERSION") })
}

fn texts(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

fn nanos(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
}
