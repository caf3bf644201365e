//! The body of a response: streamed, decompressed, bounded.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use flate2::write::GzDecoder;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::{Error, chain};
use crate::policy::Limits;
use crate::pool::Lease;

/// The body of a response. Dropping it before its end closes the connection.
#[derive(Debug)]
pub struct Body {
    incoming: Incoming,
    /// The connection that the body must drive; `None` if a task does, or if it has ended.
    lease: Option<Lease>,
    /// Present if the body is compressed.
    decoder: Option<GzDecoder<Bounded>>,
    /// Bytes that may still arrive, after decompression.
    left: u64,
    limit: u64,
    timer: Option<Timer>,
    is_done: bool,
}

#[derive(Debug)]
struct Timer {
    idle: Option<Duration>,
    total: Option<(Instant, Duration)>,
    sleep: Pin<Box<Sleep>>,
}

impl Body {
    pub(crate) fn new(
        incoming: Incoming,
        mut lease: Option<Lease>,
        is_gzip: bool,
        limits: &Limits,
    ) -> Self {
        // An empty body is never polled, so its connection is released now.
        if let Some(lease) = lease.take_if(|_| incoming.is_end_stream()) {
            lease.give_back();
        }
        let decoder = is_gzip.then(|| GzDecoder::new(Bounded::new(limits.body)));
        let timer = Timer::new(limits);
        let (left, limit) = (limits.body, limits.body);
        Self { incoming, lease, decoder, left, limit, timer, is_done: false }
    }

    /// Lowers the limit on the rest of the body. If the body is compressed, call this before the
    /// first piece is read.
    #[must_use]
    pub fn with_limit(mut self, limit: u64) -> Self {
        (self.left, self.limit) = (self.left.min(limit), self.limit.min(limit));
        if let Some(decoder) = &mut self.decoder {
            let bounded = decoder.get_mut();
            bounded.left = bounded.left.min(limit);
        }
        self
    }

    /// The next piece; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The whole body.
    pub async fn read(self) -> Result<Bytes, Error> {
        self.read_with(|_| Ok(())).await
    }

    /// The whole body, unless `admit` refuses the length of one of its pieces.
    pub async fn read_with(
        mut self,
        mut admit: impl FnMut(usize) -> Result<(), String>,
    ) -> Result<Bytes, Error> {
        // Reserved, so that a long body is copied once. Reserved pages cost nothing until written.
        let announced = self.incoming.size_hint().lower().min(self.left);
        let Some(first) = self.admitted(&mut admit).await? else { return Ok(Bytes::new()) };
        let Some(second) = self.admitted(&mut admit).await? else { return Ok(first) };
        let mut all = Vec::with_capacity((announced as usize).max(first.len() + second.len()));
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(chunk) = self.admitted(&mut admit).await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.into())
    }

    async fn admitted(
        &mut self,
        admit: &mut impl FnMut(usize) -> Result<(), String>,
    ) -> Result<Option<Bytes>, Error> {
        let chunk = self.chunk().await?;
        if let Some(chunk) = &chunk {
            admit(chunk.len()).map_err(Error::Refused)?;
        }
        Ok(chunk)
    }

    /// The next frame as it arrives. Drives the connection if no task does.
    fn poll_incoming(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut frame = Pin::new(&mut self.incoming).poll_frame(context);
        if let (Poll::Pending, Some(lease)) = (&frame, &mut self.lease) {
            if lease.drive(context).is_ready() {
                self.lease = None;
            }
            frame = Pin::new(&mut self.incoming).poll_frame(context);
        }
        let is_over = matches!(frame, Poll::Ready(None));
        if let Some(lease) = self.lease.take_if(|_| is_over) {
            lease.give_back();
        }
        frame
    }

    fn decode(&mut self, data: Bytes) -> Result<Bytes, Error> {
        let limit = self.limit;
        let too_long = || Error::TooLong { limit };
        if let Some(decoder) = &mut self.decoder {
            let written = decoder.write_all(&data).and_then(|()| decoder.flush());
            if decoder.get_ref().is_full {
                return Err(too_long());
            }
            written.map_err(|error| Error::Encoding(error.to_string()))?;
            return Ok(decoder.get_mut().take());
        }
        self.left = self.left.checked_sub(data.len() as u64).ok_or_else(too_long)?;
        Ok(data)
    }

    fn finish(&mut self) -> Result<Bytes, Error> {
        let Some(mut decoder) = self.decoder.take() else { return Ok(Bytes::new()) };
        let limit = self.limit;
        match decoder.try_finish() {
            _ if decoder.get_ref().is_full => Err(Error::TooLong { limit }),
            Ok(()) => Ok(decoder.get_mut().take()),
            Err(error) => Err(Error::Encoding(error.to_string())),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        let frame = match self.poll_incoming(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let Some(timer) = &mut self.timer else { return Poll::Pending };
                ready!(timer.sleep.as_mut().poll(context));
                self.is_done = true;
                let error = self.timer.as_ref().map(Timer::error);
                return Poll::Ready(error.map(Err));
            }
        };
        if let Some(timer) = &mut self.timer {
            timer.restart();
        }
        let frame = match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => self.decode(data).map(Frame::data),
                Err(trailers) => Ok(trailers),
            },
            Some(Err(error)) => Err(Error::Transfer(chain(&error))),
            None => {
                self.is_done = true;
                match self.finish() {
                    Ok(rest) if rest.is_empty() => return Poll::Ready(None),
                    rest => rest.map(Frame::data),
                }
            }
        };
        self.is_done |= frame.is_err();
        Poll::Ready(Some(frame))
    }
}

impl Timer {
    fn new(limits: &Limits) -> Option<Self> {
        let total = limits.total.map(|total| (Instant::now() + total, total));
        let end = Self::end(limits.idle, total)?;
        Some(Self { idle: limits.idle, total, sleep: Box::pin(sleep_until(end)) })
    }

    fn end(idle: Option<Duration>, total: Option<(Instant, Duration)>) -> Option<Instant> {
        let idle = idle.map(|idle| Instant::now() + idle);
        idle.into_iter().chain(total.map(|(end, _)| end)).min()
    }

    fn restart(&mut self) {
        if let (Some(end), true) = (Self::end(self.idle, self.total), self.idle.is_some()) {
            self.sleep.as_mut().reset(end);
        }
    }

    fn error(&self) -> Error {
        match (self.total, self.idle) {
            (Some((end, limit)), _) if Instant::now() >= end => {
                Error::Timeout { what: "end of the response", limit }
            }
            (_, idle) => Error::Timeout { what: "data", limit: idle.unwrap_or_default() },
        }
    }
}

/// Decompressed bytes, up to a limit: a short body may expand a thousandfold.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    left: u64,
    is_full: bool,
}

impl Bounded {
    fn new(limit: u64) -> Self {
        Self { bytes: Vec::new(), left: limit, is_full: false }
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.left.checked_sub(bytes.len() as u64) {
            Some(left) => self.left = left,
            None => {
                self.is_full = true;
                return Err(io::Error::other("too long"));
            }
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
