//! The position of a request in a trace, by W3C Trace Context, and whether it is recorded.

/// A span, as `traceparent` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanContext {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    pub(crate) is_sampled: bool,
}

impl SpanContext {
    /// Reads a `traceparent`. `None` if it is invalid: then it counts as absent.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        let version = bytes::<1>(version)?;
        // Later versions may have more parts.
        if version == [0xff] || (version == [0] && parts.next().is_some()) {
            return None;
        }
        let (trace, span) = (bytes::<16>(trace)?, bytes::<8>(span)?);
        let is_sampled = bytes::<1>(flags)?[0] & 1 == 1;
        (trace != [0; 16] && span != [0; 8]).then_some(Self { trace, span, is_sampled })
    }

    /// The `traceparent` of this span.
    pub(crate) fn text(&self) -> String {
        format!("00-{}-{}-0{}", hex(&self.trace), hex(&self.span), u8::from(self.is_sampled))
    }

    /// A span of the same trace.
    pub(crate) fn child(&self) -> Self {
        Self { span: random(), ..*self }
    }
}

/// Lower case only, as the specification demands.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 2 * N || !is_hex {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// An id that is not zero, which means none.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without random numbers of the system, ids are not unique; the process would not run long.
    let _ = getrandom::fill(&mut bytes);
    bytes[N - 1] |= 1;
    bytes
}

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampler {
    /// Follow the decision of the caller, if it has made one.
    pub(crate) follows_parent: bool,
    /// The share of other traces that is recorded, from 0 to 1.
    pub(crate) ratio: f64,
}

impl Sampler {
    /// Reads `OTEL_TRACES_SAMPLER` and its argument; `None` if it is not known.
    pub(crate) fn parse(name: Option<&str>, argument: Option<&str>) -> Option<Self> {
        let name = name.unwrap_or("parentbased_always_on");
        let (follows_parent, own) = match name.strip_prefix("parentbased_") {
            Some(own) => (true, own),
            None => (false, name),
        };
        let ratio = match own {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => argument.unwrap_or("1").parse().ok()?,
            _ => return None,
        };
        (0.0..=1.0).contains(&ratio).then_some(Self { follows_parent, ratio })
    }

    /// The span of a request whose caller has this span.
    pub(crate) fn begin(&self, parent: Option<SpanContext>) -> SpanContext {
        let trace = parent.map_or_else(random, |parent| parent.trace);
        let is_sampled = match parent.filter(|_| self.follows_parent) {
            Some(parent) => parent.is_sampled,
            None => self.takes(&trace),
        };
        SpanContext { trace, span: random(), is_sampled }
    }

    /// The same traces are recorded wherever the ratio is the same: the id decides.
    fn takes(&self, trace: &[u8; 16]) -> bool {
        let mut last = [0; 8];
        last.copy_from_slice(&trace[8..]);
        // As the SDKs of OpenTelemetry do it, with 63 bits.
        let bound = self.ratio * (1_u64 << 63) as f64;
        self.ratio >= 1.0 || ((u64::from_be_bytes(last) >> 1) as f64) < bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context = SpanContext::parse(PARENT).unwrap();
        assert_eq!(context.text(), PARENT);
        assert!(context.is_sampled);
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        ] {
            assert_eq!(SpanContext::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_sampler_follows_the_caller_or_the_ratio() {
        let parsed = |name: &str, argument| Sampler::parse(Some(name), argument);
        let parent = SpanContext::parse(PARENT);
        let begun = |sampler: Option<Sampler>, parent| sampler.unwrap().begin(parent);
        assert!(begun(parsed("parentbased_always_off", None), parent).is_sampled);
        assert!(!begun(parsed("parentbased_always_off", None), None).is_sampled);
        assert!(!begun(parsed("always_off", None), parent).is_sampled);
        assert_eq!(begun(parsed("always_on", None), parent).trace, parent.unwrap().trace);
        // The largest id is not below any bound.
        let last = "00-0af7651916cd43ddffffffffffffffff-b7ad6b7169203331-00";
        assert!(begun(parsed("always_on", None), SpanContext::parse(last)).is_sampled);
        assert_eq!(parsed("traceidratio", Some("2")), None);
        assert_eq!(parsed("jaeger_remote", None), None);
        let half = parsed("traceidratio", Some("0.5"));
        let taken = (0..2_000).filter(|_| begun(half, None).is_sampled).count();
        assert!((600..1_400).contains(&taken), "{taken}");
    }
}
