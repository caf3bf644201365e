//! Any byte stream, one message a line.

use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use sabir_wire::{Line, LineSplitter};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::error::OpenError;
use crate::io::{CallKey, LinkKind, Order, Outgoing};
use crate::link::{Inbox, Link, Opening, Transport};
use crate::pending::{self, Pending};

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Orders that are carried out together.
const BATCH: usize = 64;

/// An existing byte stream, such as a socket or one half of a pair in memory. It can be opened
/// once.
pub struct PipeTransport(Mutex<Option<Streams>>);

type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

impl PipeTransport {
    /// A transport that reads and writes these streams.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self(Mutex::new(Some((Box::new(reader), Box::new(writer)))))
    }
}

impl std::fmt::Debug for PipeTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PipeTransport")
    }
}

impl Transport for PipeTransport {
    fn kind(&self) -> LinkKind {
        LinkKind::Pipe
    }

    fn open(&self, link: Link) -> Opening<'_> {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            let used = || OpenError::Impossible("the stream has ended".to_owned());
            let (reader, writer) = streams.ok_or_else(used)?;
            tokio::spawn(async move {
                let inbox = link.inbox.clone();
                let (reason, unsent) = carry_lines(reader, writer, link).await;
                inbox.end(OpenError::Ended(reason), &unsent);
            });
            Ok(())
        })
    }
}

/// Carries messages as lines until either side ends. Returns the reason, and the calls that were
/// not sent.
pub async fn carry_lines(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    link: Link,
) -> (String, Vec<CallKey>) {
    let Link { mut orders, inbox } = link;
    let reason = tokio::select! {
        read = read_lines(reader, &inbox) => match read {
            Ok(()) => "the server closed the connection".to_owned(),
            Err(error) => format!("reading failed: {error}"),
        },
        written = write_lines(writer, &mut orders, &inbox) => match written {
            Ok(()) => "closed".to_owned(),
            Err((error, unsent)) => return (format!("writing failed: {error}"), unsent),
        },
    };
    orders.close();
    let mut unsent = Vec::new();
    while let Ok(order) = orders.try_recv() {
        unsent.extend(call_of(&order));
    }
    (reason, unsent)
}

async fn read_lines(mut reader: impl AsyncRead + Unpin, inbox: &Inbox) -> io::Result<()> {
    let mut lines = LineSplitter::new(inbox.limits.message_size);
    let mut pending = Pending::new();
    let take = async |line| match line {
        Line::Message(frame) => inbox.receive(None, pending::count(frame)).await,
        Line::TooLong => inbox.receive_too_long(None),
    };
    loop {
        lines.make_room(CHUNK);
        let read = reader.read_buf(lines.buffer()).await;
        while let Some(line) = lines.next_line() {
            take(line).await;
        }
        // The server cannot be told to wait, so these bytes are counted even beyond the limit.
        pending.resize_anyway(lines.buffer().len());
        if read? == 0 {
            if let Some(line) = lines.finish() {
                take(line).await;
            }
            return Ok(());
        }
    }
}

/// Writes messages until there are no more. An error comes with the calls that were not sent.
async fn write_lines(
    mut writer: impl AsyncWrite + Unpin,
    orders: &mut mpsc::UnboundedReceiver<Order>,
    inbox: &Inbox,
) -> Result<(), (io::Error, Vec<CallKey>)> {
    let mut batch = Vec::with_capacity(BATCH);
    while orders.recv_many(&mut batch, BATCH).await > 0 {
        let mut waiting = batch.drain(..);
        while let Some(order) = waiting.next() {
            let Order::Send(Outgoing { frame, .. }) = order else { continue };
            let written = write_line(&mut writer, &frame).await;
            inbox.sent(frame.len());
            if let Err(error) = written {
                // The server may have read a part of this line; it has not read the later ones.
                let unsent = waiting.filter_map(|order| call_of(&order)).collect();
                return Err((error, unsent));
            }
        }
        drop(waiting);
        if let Err(error) = writer.flush().await {
            return Err((error, Vec::new()));
        }
    }
    Ok(())
}

async fn write_line(writer: &mut (impl AsyncWrite + Unpin), frame: &Bytes) -> io::Result<()> {
    let line = [io::IoSlice::new(frame), io::IoSlice::new(b"\n")];
    let written = writer.write_vectored(&line).await?;
    match frame.get(written..) {
        Some(rest) => {
            writer.write_all(rest).await?;
            writer.write_all(b"\n").await
        }
        None => Ok(()),
    }
}

/// The call that an order begins.
pub(crate) fn call_of(order: &Order) -> Option<CallKey> {
    match order {
        Order::Send(outgoing) => outgoing.call,
        Order::Abort(_) => None,
    }
}
