//! Reads the messages for a node from the server.

use std::sync::Arc;

use ::redis::aio::ConnectionLike;
use ::redis::streams::StreamReadReply;
use ::redis::{RedisError, Value, cmd, pipe};
use tokio::sync::mpsc;

use super::link::Server;
use super::{ALIVE, ALL, ANSWER, BLOCK, Connected, INBOX, PAUSE, millis, trimmed};
use crate::bus::Received;
use crate::status::Counts;

/// The messages that are read at once. Each may have megabytes.
const BATCH: usize = 8;

/// Reads the messages for a node, until the receiver is dropped.
pub(super) struct Reader {
    pub(super) server: Server,
    pub(super) inbox: String,
    /// The last messages that were read, of the inbox and of the stream for all; `None` before the
    /// first connection.
    pub(super) seen: Option<[String; 2]>,
    /// Whether the connection has failed since the last read.
    pub(super) is_interrupted: bool,
    pub(super) connected: Arc<Connected>,
    pub(super) send: mpsc::Sender<Received>,
    pub(super) counts: Arc<Counts>,
}

impl Reader {
    pub(super) async fn run(mut self) {
        while !self.send.is_closed() {
            let error = match self.server.connect(BLOCK + ANSWER).await {
                Ok(mut connection) => {
                    self.connected.begin();
                    // After a reconnect, messages may have been trimmed.
                    if self.seen.is_some() && self.send.send(Received::Gap).await.is_err() {
                        return;
                    }
                    match self.read(&mut connection).await {
                        Ok(()) => {
                            let left: Result<i64, _> =
                                cmd("DEL").arg(&self.inbox).query_async(&mut connection).await;
                            drop(left);
                            return;
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.connected.end();
            match std::mem::replace(&mut self.is_interrupted, true) {
                false => tracing::warn!("the bus is interrupted: {error}"),
                true => tracing::debug!("the bus is interrupted: {error}"),
            }
            self.counts.gap();
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads until the receiver is dropped, or the connection fails.
    async fn read(&mut self, connection: &mut impl ConnectionLike) -> Result<(), RedisError> {
        if self.seen.is_none() {
            let newest: Vec<(String, Value)> = cmd("XREVRANGE")
                .arg(ALL)
                .arg(&["+", "-", "COUNT", "1"])
                .query_async(connection)
                .await?;
            let newest = newest.into_iter().next().map_or_else(beginning, |(id, _)| id);
            self.seen = Some([beginning(), newest]);
        }
        loop {
            self.keep_inbox(connection).await?;
            let Some([inbox, all]) = &mut self.seen else { return Ok(()) };
            let mut read = cmd("XREAD");
            read.arg("COUNT").arg(BATCH).arg("BLOCK").arg(millis(BLOCK)).arg("STREAMS");
            read.arg(&self.inbox).arg(ALL).arg(&*inbox).arg(&*all);
            let reply: Option<StreamReadReply> = tokio::select! {
                reply = read.query_async(connection) => reply?,
                () = self.send.closed() => return Ok(()),
            };
            if std::mem::take(&mut self.is_interrupted) {
                tracing::info!("the bus is there again");
            }
            for stream in reply.into_iter().flat_map(|reply| reply.keys) {
                // A full batch: older messages may have been trimmed.
                let is_late = stream.key == ALL && stream.ids.len() >= BATCH;
                if is_late
                    && oldest(connection).await?.as_ref()
                        == stream.ids.first().map(|first| &first.id)
                {
                    self.counts.gap();
                    if self.send.send(Received::Gap).await.is_err() {
                        return Ok(());
                    }
                }
                let seen = if stream.key == ALL { &mut *all } else { &mut *inbox };
                let mut remove = cmd("XDEL");
                remove.arg(&self.inbox);
                for mut entry in stream.ids {
                    *seen = entry.id;
                    remove.arg(&*seen);
                    let Some(Value::BulkString(message)) = entry.map.remove("m") else { continue };
                    self.counts.heard();
                    let message = Received::Message(message.into());
                    if self.send.send(message).await.is_err() {
                        return Ok(());
                    }
                }
                if stream.key != ALL {
                    let _: i64 = remove.query_async(connection).await?;
                }
            }
        }
    }

    /// Renews the inbox, or creates it. Other nodes can write to it only while it exists.
    async fn keep_inbox(&mut self, connection: &mut impl ConnectionLike) -> Result<(), RedisError> {
        let renew = || cmd("PEXPIRE").arg(&self.inbox).arg(millis(ALIVE)).clone();
        let is_renewed: i64 = renew().query_async(connection).await?;
        if is_renewed == 0 {
            // Atomically: a node that is killed between the two would leave its inbox for ever.
            let mut open = pipe();
            open.atomic().cmd("XADD").arg(&self.inbox).arg(&trimmed(INBOX));
            open.arg(&["*", "opened", ""]).ignore().add_command(renew()).ignore();
            let _: () = open.query_async(connection).await?;
            if let Some([inbox, _]) = &mut self.seen {
                *inbox = beginning();
            }
        }
        Ok(())
    }
}

/// The first message that the stream for all still has. A reader for whom it is the next has missed
/// the messages before, or has read all of them.
async fn oldest(connection: &mut impl ConnectionLike) -> Result<Option<String>, RedisError> {
    let mut range = cmd("XRANGE");
    range.arg(ALL).arg(&["-", "+", "COUNT", "1"]);
    let first: Vec<(String, Value)> = range.query_async(connection).await?;
    Ok(first.into_iter().next().map(|(id, _)| id))
}

/// Before the first message of a stream.
fn beginning() -> String {
    "0-0".to_owned()
}
