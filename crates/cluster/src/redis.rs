//! A store and a bus on a Redis or Valkey server (6.2 or later) that all nodes reach.
//!
//! A record is a string with a time to live. A node's inbox is a stream that lives as long as the
//! node renews it: so a sender learns that a node is gone. Messages for all nodes are in one
//! stream, which each node reads from its last position. Neither loses anything in a short
//! interruption.

mod link; // connections to one server, to a master, or to a cluster
mod reader; // the messages for a node

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::{Cmd, ErrorKind, FromRedisValue, RedisError, Script, ServerErrorKind, cmd, pipe};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::link::{Link, Server};
use self::reader::Reader;
use crate::bus::{Bus, Received, To, WAITING, check_length};
use crate::status::Counts;
use crate::store::{Append, Away, Bound, Count, Pending, Store, Swap, micros};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_millis(500);

/// How long a request waits in all, connecting included.
const PATIENCE: Duration = Duration::from_secs(1);

/// After a failure no requests are sent for so long: they must not queue up for the server.
const PAUSE: Duration = Duration::from_millis(500);

/// How often a refused command is worth a warning.
const WARN: Duration = Duration::from_secs(60);

/// How long one read waits for a message, and how long a node counts as alive after the last.
const BLOCK: Duration = Duration::from_secs(2);
const ALIVE: Duration = Duration::from_secs(10);

/// The messages that are kept of one inbox and of the stream for all; the oldest are dropped.
const INBOX: usize = 4096;
const FOR_ALL: usize = 1024;

/// The stream for all. Its braces keep it and the inboxes on one shard.
const ALL: &str = "sabir:{bus}:all";

/// How long the stream for all is kept after the last message.
const KEPT: Duration = Duration::from_secs(3600);

/// Replaces a record if it is still the expected one.
const SWAP: &str = "local known = redis.call('GET', KEYS[1])
if (known or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1";

/// Counts one of each key, or none if there are too many of one: `Bound::count`, with the clock of
/// the server. Returns the index of the refused key and the wait in microseconds; nothing if all
/// were counted.
const COUNT: &str = "local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local longest, which, next, life = 0, 0, {}, {}
for i, key in ipairs(KEYS) do
  local a, b = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local state = tonumber(redis.call('GET', key) or '0')
  local wait = 0
  if ARGV[3 * i - 2] == 'rate' then
    wait = state - now - a * (b - 1)
    next[i] = math.max(state, now) + a
    life[i] = next[i] - now
  else
    if state >= a then wait = math.max(b, 1) end
    next[i], life[i] = state + 1, b
  end
  if wait > longest then longest, which = wait, i end
end
if which > 0 then return {which, longest} end
for i, key in ipairs(KEYS) do
  local millis = math.max(math.ceil(life[i] / 1000), 1)
  redis.call('SET', key, string.format('%.0f', next[i]), 'PX', millis)
end
return {}";

/// A Redis server, the master of a group of them, or a Redis Cluster, as one node uses it.
pub struct Redis {
    server: Server,
    manager: Link,
    swap: Script,
    count: Script,
    node: Arc<str>,
    began: Instant,
    /// No requests are sent before this time, in milliseconds since `began`.
    pause_until: AtomicU64,
    /// The server did not answer the last request.
    is_away: AtomicBool,
    connected: Arc<Connected>,
    /// When to warn again of a refused command, in milliseconds since `began`.
    warn_at: AtomicU64,
    counts: Arc<Counts>,
}

impl Redis {
    /// The server at `url`, for the node of that name. Connects when it is needed first. The URL is
    /// `redis://HOST:PORT`, `redis+sentinel://HOST,HOST/MASTER` or `redis+cluster://HOST,HOST`, or
    /// begins with `rediss` for TLS.
    pub fn new(url: &str, node: impl Into<Arc<str>>) -> Result<Self, Away> {
        let server = Server::parse(url).map_err(Away::new)?;
        Ok(Self {
            manager: Link::new(server.clone(), ANSWER),
            server,
            swap: Script::new(SWAP),
            count: Script::new(COUNT),
            node: node.into(),
            began: Instant::now(),
            pause_until: AtomicU64::new(0),
            is_away: AtomicBool::new(false),
            connected: Arc::default(),
            warn_at: AtomicU64::new(0),
            counts: Arc::default(),
        })
    }

    /// The counts of requests to the server and of messages from other nodes.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Checks that `url` has a supported form.
    pub fn check_url(url: &str) -> Result<(), Away> {
        Server::parse(url).map(drop).map_err(Away::new)
    }

    /// Whether the server answers.
    pub async fn ping(&self) -> Result<(), Away> {
        self.ask(&cmd("PING")).await
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Away> {
        let mut connection = self.manager.clone();
        self.answered(command.query_async(&mut connection)).await
    }

    /// Waits for an answer, unless the server failed a moment ago.
    async fn answered<T>(
        &self,
        asking: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, Away> {
        let now = || u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now() < self.pause_until.load(Ordering::Relaxed) {
            return Err(Away::new("Redis did not answer a moment ago"));
        }
        let asked = Instant::now();
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        self.counts.asked(matches!(answer, Ok(Ok(_))), asked.elapsed());
        let answer = match answer {
            Ok(Ok(answer)) => {
                if self.is_away.swap(false, Ordering::Relaxed) {
                    tracing::info!("Redis answers again");
                    self.connected.restart();
                }
                return Ok(answer);
            }
            Ok(Err(error)) if !is_away(&error) => {
                self.refused(&error, now());
                return Err(Away::new(error));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "Redis does not answer".to_owned(),
        };
        let pause = u64::try_from(PAUSE.as_millis()).unwrap_or(u64::MAX);
        self.pause_until.store(now().saturating_add(pause), Ordering::Relaxed);
        // Warn once: requests may fail twice a second for hours.
        match self.is_away.swap(true, Ordering::Relaxed) {
            false => tracing::warn!("Redis: {answer}"),
            true => tracing::debug!("Redis: {answer}"),
        }
        Err(Away::new(answer))
    }

    /// The server has refused one command, as when it has no memory. Others may succeed.
    fn refused(&self, error: &RedisError, now: u64) {
        let next = now.saturating_add(millis(WARN));
        // Warn sometimes: each request may be refused.
        match self.warn_at.fetch_max(next, Ordering::Relaxed) <= now {
            true => tracing::warn!("Redis: {error}"),
            false => tracing::debug!("Redis: {error}"),
        }
    }
}

/// Whether the server cannot be used now, so that other commands fail as well.
fn is_away(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly, TryAgain};
    match error.kind() {
        ErrorKind::Server(kind) => {
            matches!(kind, BusyLoading | ClusterDown | MasterDown | ReadOnly | TryAgain)
        }
        // A script that takes too long.
        ErrorKind::Extension => error.code() == Some("BUSY"),
        ErrorKind::UnexpectedReturnType => false,
        _ => true,
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the URL, which may hold a password.
        f.debug_struct("Redis").field("node", &self.node).finish_non_exhaustive()
    }
}

fn record_key(name: &str) -> String {
    format!("sabir:{{{name}}}:s")
}

fn list_key(name: &str) -> String {
    format!("sabir:{{{name}}}:l")
}

/// All counts are on one shard, as one script reads several of them.
fn count_key(name: &str) -> String {
    format!("sabir:{{counts}}:{name}")
}

fn inbox_key(node: &str) -> String {
    format!("sabir:{{bus}}:in:{node}")
}

fn millis(time: Duration) -> u64 {
    // Redis refuses times that its clock cannot hold; a century is enough.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, 100 * 365 * 86_400_000)
}

impl Store for Redis {
    fn get<'a>(&'a self, name: &'a str, renew: Option<Duration>) -> Pending<'a, Option<Bytes>> {
        Box::pin(async move {
            let mut command = match renew {
                None => cmd("GET"),
                Some(_) => cmd("GETEX"),
            };
            command.arg(record_key(name));
            if let Some(life) = renew {
                command.arg("PX").arg(millis(life));
            }
            let record: Option<Vec<u8>> = self.ask(&command).await?;
            Ok(record.map(Bytes::from))
        })
    }

    fn swap<'a>(&'a self, name: &'a str, swap: Swap<'a>) -> Pending<'a, bool> {
        Box::pin(async move {
            let Swap { old, new, life } = swap;
            let mut swap = self.swap.prepare_invoke();
            // Records are never empty: an empty value means no record.
            swap.key(record_key(name)).arg(old.unwrap_or_default()).arg(new).arg(millis(life));
            let mut connection = self.manager.clone();
            let swapped: i64 = self.answered(swap.invoke_async(&mut connection)).await?;
            Ok(swapped == 1)
        })
    }

    fn append<'a>(&'a self, name: &'a str, list: Append<'a>) -> Pending<'a, ()> {
        Box::pin(async move {
            let Append { items, most, life } = list;
            let key = list_key(name);
            let oldest = -i64::try_from(most).unwrap_or(i64::MAX);
            let mut all = pipe();
            all.atomic().cmd("RPUSH").arg(&key).arg(items).ignore();
            all.cmd("LTRIM").arg(&key).arg(oldest).arg(-1).ignore();
            all.cmd("PEXPIRE").arg(&key).arg(millis(life)).ignore();
            let mut connection = self.manager.clone();
            self.answered(all.query_async(&mut connection)).await
        })
    }

    fn items<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<Bytes>> {
        Box::pin(async move {
            let items: Vec<Vec<u8>> =
                self.ask(cmd("LRANGE").arg(list_key(name)).arg(&["0", "-1"])).await?;
            Ok(items.into_iter().map(Bytes::from).collect())
        })
    }

    fn last<'a>(&'a self, name: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async move {
            let last: Option<Vec<u8>> = self.ask(cmd("LINDEX").arg(list_key(name)).arg(-1)).await?;
            Ok(last.map(Bytes::from))
        })
    }

    fn count<'a>(&'a self, counts: &'a [Count<'a>]) -> Pending<'a, Option<(usize, Duration)>> {
        Box::pin(async move {
            if counts.is_empty() {
                return Ok(None);
            }
            let mut script = self.count.prepare_invoke();
            for Count { name, bound } in counts {
                let (kind, a, b) = match *bound {
                    Bound::Rate { each, burst } => {
                        ("rate", micros(each).max(1), u64::from(burst.max(1)))
                    }
                    Bound::Quota { most, left } => ("quota", most, micros(left)),
                };
                script.key(count_key(name)).arg(kind).arg(a).arg(b);
            }
            let mut connection = self.manager.clone();
            let refused: Vec<u64> = self.answered(script.invoke_async(&mut connection)).await?;
            Ok(match refused[..] {
                [which, wait] => Some((
                    usize::try_from(which).unwrap_or(1).saturating_sub(1),
                    Duration::from_micros(wait),
                )),
                _ => None,
            })
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> Pending<'a, ()> {
        Box::pin(async move { self.ask(cmd("DEL").arg(record_key(name))).await })
    }
}

impl Bus for Redis {
    fn send<'a>(&'a self, to: To<'a>, message: &'a [u8]) -> Pending<'a, bool> {
        Box::pin(async move {
            check_length(to, message)?;
            let mut add = cmd("XADD");
            match to {
                // A node that is gone has no inbox, and gets none.
                To::Node(node) => add.arg(inbox_key(node)).arg("NOMKSTREAM").arg(&trimmed(INBOX)),
                To::All => add.arg(ALL).arg(&trimmed(FOR_ALL)),
            };
            let added: Option<String> = self.ask(add.arg("*").arg("m").arg(message)).await?;
            if to == To::All {
                let _: i64 = self.ask(cmd("PEXPIRE").arg(ALL).arg(millis(KEPT))).await?;
            }
            if added.is_none() && !self.connected.is_long() {
                return Err(Away::new("the node is gone, or has not opened its inbox again yet"));
            }
            Ok(added.is_some())
        })
    }

    fn listen(&self) -> mpsc::Receiver<Received> {
        let (send, receive) = mpsc::channel(WAITING);
        let inbox = inbox_key(&self.node);
        let keeping = keep_inbox(self.manager.clone(), inbox.clone());
        let reader = Reader {
            server: self.server.clone(),
            inbox,
            seen: None,
            is_interrupted: false,
            connected: self.connected.clone(),
            send,
            counts: self.counts.clone(),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = reader.run() => {}
                () = keeping => {}
            }
        });
        receive
    }

    fn own_address(&self) -> Pending<'_, Option<IpAddr>> {
        Box::pin(async {
            let address = tokio::time::timeout(PATIENCE, self.server.own_address()).await;
            address.map_err(Away::new)?.map_err(Away::new)
        })
    }
}

/// Renews an inbox, also while its reader waits for a slow receiver.
async fn keep_inbox(mut link: Link, inbox: String) {
    loop {
        tokio::time::sleep(ALIVE / 4).await;
        // The reader opens it again if it has expired.
        let renewed = cmd("PEXPIRE").arg(&inbox).arg(millis(ALIVE)).query_async(&mut link).await;
        renewed.unwrap_or_else(|error| tracing::debug!("the inbox was not renewed: {error}"));
    }
}

/// Since when this node is connected. While the server is away the inboxes of all nodes may expire,
/// and each node opens its own again when it has connected.
#[derive(Debug, Default)]
struct Connected(Mutex<Option<Instant>>);

impl Connected {
    fn begin(&self) {
        *self.lock() = Some(Instant::now());
    }

    fn end(&self) {
        *self.lock() = None;
    }

    /// The server has answered again after a failure.
    fn restart(&self) {
        if let Some(since) = &mut *self.lock() {
            *since = Instant::now();
        }
    }

    /// Whether all live nodes had the time to open their inboxes.
    fn is_long(&self) -> bool {
        self.lock().is_some_and(|since| since.elapsed() >= ALIVE)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arguments that keep a stream short.
fn trimmed(length: usize) -> [String; 3] {
    ["MAXLEN".to_owned(), "~".to_owned(), length.to_string()]
}

#[cfg(test)]
mod tests;
