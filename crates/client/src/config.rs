//! Who we are, and the limits.

use std::sync::Arc;
use std::time::Duration;

use sabir_wire::types::{ClientCapabilities, Implementation};
use sabir_wire::{Era, Raw, Revision, Taps, WriteJson as _};

/// The identity of a client, its capabilities and its limits.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Name and version, as JSON of an `Implementation`.
    pub client: Raw,
    /// The questions that the server may ask. Single calls of the modern era may declare others.
    pub capabilities: ClientCapabilities,
    /// The era of the server, if it is known for certain. `None`: the client finds it.
    pub era: Option<Era>,
    /// The revision to propose in the handshake of the legacy era.
    pub legacy_revision: Revision,
    /// The limits.
    pub limits: Limits,
    /// What happens when the link ends or cannot be opened.
    pub reconnect: Reconnect,
    /// Observes every message, under this name of the server.
    pub tap: Option<(Arc<Taps>, Box<str>)>,
}

/// The limits for one server. Each says what happens when it is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one message. A longer one is dropped; its call fails if its id can be read.
    pub message_size: usize,
    /// Nesting of a message. A deeper one is dropped.
    pub message_depth: usize,
    /// Calls at once. One more fails.
    pub calls: usize,
    /// Questions of the server that wait for an answer. One more is answered with an error.
    pub questions: usize,
    /// Time for an answer to `server/discover`. Then the server is taken for a legacy one.
    pub probe_time: Duration,
    /// Time for the handshake, and for opening the link. Then the attempt has failed.
    pub open_time: Duration,
    /// Time for a call; progress and answered questions restart it. Then the call is cancelled.
    pub call_time: Option<Duration>,
    /// Time for a call, including all progress. Then the call is cancelled.
    pub call_max: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_size: 64 << 20,
            message_depth: 128,
            calls: 4096,
            questions: 256,
            probe_time: Duration::from_secs(5),
            open_time: Duration::from_secs(60),
            call_time: Some(Duration::from_secs(60)),
            call_max: Some(Duration::from_secs(3600)),
        }
    }
}

/// What happens when the link ends or cannot be opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reconnect {
    /// Open the link at once and whenever it has ended, instead of with the next call.
    pub eager: bool,
    /// Wait before the second attempt; it doubles with each further one. Up to half of it, at
    /// random, is left out.
    pub first_wait: Duration,
    /// The longest wait.
    pub max_wait: Duration,
    /// Failures in a row after which the server is down: calls fail at once.
    pub attempts: u32,
    /// Time after which a call to a server that is down tries again.
    pub down_time: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            eager: false,
            first_wait: Duration::from_millis(250),
            max_wait: Duration::from_secs(30),
            attempts: 5,
            down_time: Duration::from_secs(30),
        }
    }
}

impl ClientConfig {
    /// A client of that name and version that can answer no questions.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let (name, version) = (name.into(), version.into());
        let client = Implementation { name, version, ..Implementation::default() };
        Self {
            client: client.to_raw(Revision::NEWEST),
            capabilities: ClientCapabilities::default(),
            era: None,
            legacy_revision: Revision::NEWEST_LEGACY,
            limits: Limits::default(),
            reconnect: Reconnect::default(),
            tap: None,
        }
    }
}

impl Default for ClientConfig {
    /// Sabir itself.
    fn default() -> Self {
        Self::new("sabir", env!("CARGO_PKG_VERSION"))
    }
}

impl Reconnect {
    /// The wait after this many failures in a row.
    pub(crate) fn wait(&self, failures: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let longest = doubled.min(self.max_wait);
        // The clients of a server that failed should not all reconnect at once.
        longest - longest.mul_f64(0.5 * random())
    }
}

/// A number from 0 to 1.
fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
