//! A pool of connections, small enough to be read. In your application this is sqlx, deadpool, bb8.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long the database takes for a query.
pub const QUERY_TIME: Duration = Duration::from_millis(30);

/// At most as many connections as it was opened with. Clones are the same pool.
#[derive(Clone, Debug)]
pub struct Pool {
    database: Database,
    free: Arc<Semaphore>,
    usage: Arc<Mutex<Usage>>,
}

/// How many connections are in use, and how many were at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Now.
    pub now: usize,
    /// The most at any time.
    pub peak: usize,
}

/// The articles and how many of each there are.
type Database = Arc<Mutex<BTreeMap<String, u32>>>;

impl Pool {
    /// Opens `size` connections to a database in memory.
    pub fn open(size: usize, stock: impl IntoIterator<Item = (&'static str, u32)>) -> Self {
        let stock = stock.into_iter().map(|(article, count)| (article.to_owned(), count));
        Self {
            database: Arc::new(Mutex::new(stock.collect())),
            free: Arc::new(Semaphore::new(size)),
            usage: Arc::default(),
        }
    }

    /// Takes a connection, and waits until one is free. Dropped, it is free again.
    pub async fn get(&self) -> Result<Connection, Closed> {
        let permit = self.free.clone().acquire_owned().await.map_err(|_| Closed)?;
        let mut usage = lock(&self.usage);
        usage.now += 1;
        usage.peak = usage.peak.max(usage.now);
        Ok(Connection { pool: self.clone(), _permit: permit })
    }

    /// How many connections are in use.
    pub fn usage(&self) -> Usage {
        *lock(&self.usage)
    }

    /// Refuses all further connections.
    pub fn close(&self) {
        self.free.close();
    }
}

/// The pool was closed.
#[derive(Clone, Copy, Debug)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection pool is closed")
    }
}

impl std::error::Error for Closed {}

/// A connection in use.
#[derive(Debug)]
pub struct Connection {
    pool: Pool,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// How many of an article there are; `None` if it is not sold here.
    pub async fn stock(&mut self, article: &str) -> Option<u32> {
        tokio::time::sleep(QUERY_TIME).await;
        lock(&self.pool.database).get(article).copied()
    }

    /// Takes some of an article out of the stock; `None` if there are not so many.
    pub async fn take(&mut self, article: &str, count: u32) -> Option<u32> {
        tokio::time::sleep(QUERY_TIME).await;
        let mut database = lock(&self.pool.database);
        let stock = database.get_mut(article)?;
        *stock = stock.checked_sub(count)?;
        Some(*stock)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.pool.usage).now -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
