//! Why a request fails.

use std::net::IpAddr;
use std::time::Duration;

/// Why a request got no response, or its body could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL cannot be requested.
    #[error("invalid URL `{url}`: {reason}")]
    Url {
        /// The URL, without credentials.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The policy does not allow the host.
    #[error("host `{0}` is not allowed")]
    Host(String),
    /// The policy does not allow the address.
    #[error("address {address} of host `{host}` is not allowed ({reason})")]
    Address {
        /// The host of the URL.
        host: String,
        /// Its address.
        address: IpAddr,
        /// The rule that forbids it.
        reason: &'static str,
    },
    /// The policy demands `https`.
    #[error("plain http to `{0}` is not allowed (expected https)")]
    PlainHttp(String),
    /// The policy does not allow the redirect, or there were too many.
    #[error("redirect to `{to}` is not followed ({reason})")]
    Redirect {
        /// Where the response pointed.
        to: String,
        /// The rule that forbids it.
        reason: &'static str,
    },
    /// No connection could be made. Nothing was sent.
    #[error("cannot connect to `{host}`: {reason}")]
    Connect {
        /// The host of the URL.
        host: String,
        /// What failed, such as name resolution or the certificate.
        reason: String,
    },
    /// A time limit was reached.
    #[error("no {what} within {} ms", limit.as_millis())]
    Timeout {
        /// What did not come: `response`, `data` or `end of the response`.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The body is longer than the limit, after decompression.
    #[error("response body is too long (limit {limit} bytes)")]
    TooLong {
        /// The limit in bytes.
        limit: u64,
    },
    /// The reader of the body refused it for lack of memory.
    #[error("{0}")]
    Refused(String),
    /// The body is not in the encoding that the response names.
    #[error("cannot decompress the response body: {0}")]
    Encoding(String),
    /// The connection failed after the request was, at least partly, sent.
    #[error("connection failed: {0}")]
    Transfer(String),
}

impl Error {
    /// Whether the request certainly never reached the server, so that it may be repeated.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Url { .. }
            | Self::Host(_)
            | Self::Address { .. }
            | Self::PlainHttp(_)
            | Self::Connect { .. } => true,
            Self::Redirect { .. }
            | Self::Timeout { .. }
            | Self::TooLong { .. }
            | Self::Refused(_)
            | Self::Encoding(_)
            | Self::Transfer(_) => false,
        }
    }
}

impl Error {
    /// Whether another attempt would fail in the same way.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Url { .. } | Self::Host(_) | Self::Address { .. } | Self::PlainHttp(_))
    }
}

/// The messages of an error and its sources, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

/// The error of a connection that could not be made. An error of our resolver is one of its
/// sources.
pub(crate) fn connect_failure(host: &str, error: &(dyn std::error::Error + 'static)) -> Error {
    let causes = std::iter::successors(Some(error), |error| error.source());
    for cause in causes {
        if let Some(Error::Address { host, address, reason }) = cause.downcast_ref() {
            return Error::Address { host: host.clone(), address: *address, reason };
        }
    }
    Error::Connect { host: host.to_owned(), reason: chain(error) }
}
