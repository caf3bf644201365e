//! The credentials of one user at one server, in the store that the nodes of a cluster share.

use std::time::Duration;

use sabir_client::{Keep, Keeping, Kept, Locked};
use sabir_cluster::{Away, Cluster, Swap};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long credentials are kept without being used.
const LIFE: Duration = Duration::from_secs(90 * 86_400);

/// The time after which the lock of a lost node expires, and how often a live node renews it.
const LOCK_LIFE: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(5);

/// How often to check whether a lock is free, and for how long.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);

/// The place of the credentials.
#[derive(Debug)]
pub(super) struct SharedSlot {
    cluster: Cluster,
    name: String,
    lock_name: String,
}

impl SharedSlot {
    /// The place that these parts name: an issuer, a subject, a server and its address.
    pub(super) fn new(cluster: &Cluster, parts: [&str; 4]) -> Self {
        let [a, b, c, d] = parts.map(str::as_bytes);
        let name = |kind: &str| cluster.seal.name(&[kind.as_bytes(), a, b, c, d]);
        let (name, lock_name) = (name("credentials"), name("credentials: lock"));
        Self { cluster: cluster.clone(), name, lock_name }
    }

    async fn read(&self) -> Result<Kept, String> {
        let Cluster { store, seal, .. } = &self.cluster;
        let Some(sealed) = store.get(&self.name, Some(LIFE)).await.map_err(away)? else {
            return Ok(Kept::default());
        };
        let text = seal.open(&self.name, &sealed).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }

    /// Must be called with the lock held.
    async fn write(&self, kept: &Kept) -> Result<(), String> {
        let Cluster { store, seal, .. } = &self.cluster;
        let text = serde_json::to_vec(kept).map_err(|error| error.to_string())?;
        let sealed = seal.seal(&self.name, &text);
        let old = store.get(&self.name, None).await.map_err(away)?;
        let swap = Swap { old: old.as_deref(), new: &sealed, life: LIFE };
        match store.swap(&self.name, swap).await.map_err(away)? {
            true => Ok(()),
            false => Err("another node has changed the credentials; try again".to_owned()),
        }
    }

    async fn take(&self) -> Result<Locked, String> {
        let Cluster { store, seal, .. } = &self.cluster;
        // Every seal is different, so this one identifies our lock.
        let held = seal.seal(&self.lock_name, b"lock");
        let end = Instant::now() + PATIENCE;
        loop {
            let swap = Swap { old: None, new: &held, life: LOCK_LIFE };
            if store.swap(&self.lock_name, swap).await.map_err(away)? {
                break;
            }
            if Instant::now() >= end {
                return Err("the credentials are locked by another node; try again".to_owned());
            }
            tokio::time::sleep(LOOK).await;
        }
        let (cluster, name) = (self.cluster.clone(), self.lock_name.clone());
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEW).await;
                // Without the store nothing can be written either.
                let _ = cluster.store.get(&name, Some(LOCK_LIFE)).await;
            }
        });
        let (cluster, name) = (self.cluster.clone(), self.lock_name.clone());
        Ok(Locked::new(Held { cluster, name, held, renewing }))
    }
}

fn away(error: Away) -> String {
    format!("the store of credentials cannot be reached: {error}")
}

/// A held lock. Dropping it releases the lock.
struct Held {
    cluster: Cluster,
    name: String,
    held: Vec<u8>,
    renewing: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewing.abort();
        let (cluster, name) = (self.cluster.clone(), std::mem::take(&mut self.name));
        let held = std::mem::take(&mut self.held);
        // Outside of a runtime it expires.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // If it is still ours: it may have expired.
                let swap = Swap { old: Some(&held), new: &held, life: Duration::from_millis(1) };
                let _ = cluster.store.swap(&name, swap).await;
            });
        }
    }
}

impl Keep for SharedSlot {
    fn lock(&self) -> Keeping<'_, Locked> {
        Box::pin(self.take())
    }

    fn load(&self) -> Keeping<'_, Kept> {
        Box::pin(self.read())
    }

    fn save<'a>(&'a self, kept: &'a Kept) -> Keeping<'a, ()> {
        Box::pin(self.write(kept))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sabir_cluster::{DiskStore, Hub, Store};

    use super::*;

    const ANN: [&str; 4] = ["https://as", "ann", "wiki", "https://wiki/mcp"];

    fn slot(store: &Arc<dyn Store>, parts: [&str; 4]) -> SharedSlot {
        SharedSlot::new(&Cluster::alone(store.clone(), &[7; 32]), parts)
    }

    fn kept(wanted: &str) -> Kept {
        serde_json::from_value(serde_json::json!({ "wanted": [wanted] })).unwrap()
    }

    fn shown(kept: &Kept) -> String {
        serde_json::to_value(kept).unwrap()["wanted"].to_string()
    }

    async fn all_nodes_have_the_same_credentials(store: Arc<dyn Store>) {
        let [one, other] = [slot(&store, ANN), slot(&store, ANN)];
        assert_eq!(shown(&other.load().await.unwrap()), "[]");
        one.save(&kept("secret")).await.unwrap();
        assert_eq!(shown(&other.load().await.unwrap()), "[\"secret\"]");
        for nth in 0..4 {
            let mut parts = ANN;
            parts[nth] = "x";
            assert_eq!(shown(&slot(&store, parts).load().await.unwrap()), "[]");
        }
        // Ten tasks hold the lock, one after the other.
        let (inside, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counting = (0..10).map(|_| {
            let (slot, inside, turns) = (slot(&store, ANN), inside.clone(), turns.clone());
            tokio::spawn(async move {
                let locked = slot.lock().await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::time::sleep(Duration::from_millis(2)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                turns.fetch_add(1, Ordering::SeqCst);
                drop(locked);
            })
        });
        for one in counting.collect::<Vec<_>>() {
            one.await.unwrap();
        }
        assert_eq!(turns.load(Ordering::SeqCst), 10);
    }

    #[tokio::test]
    async fn credentials_and_locks_are_shared_in_memory_and_in_a_file() {
        all_nodes_have_the_same_credentials(Arc::new(Hub::default())).await;
        let folder = tempfile::tempdir().unwrap();
        let file = DiskStore::open(&folder.path().join("state.redb")).unwrap();
        all_nodes_have_the_same_credentials(Arc::new(file)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_is_kept_as_long_as_its_node_lives_and_free_soon_after() {
        let hub = Arc::new(Hub::default());
        let store: Arc<dyn Store> = hub.clone();
        let held = slot(&store, ANN).lock().await.unwrap();
        let waiting = slot(&store, ANN);
        let waiting = tokio::spawn(async move { waiting.lock().await.map(drop) });
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert!(!waiting.is_finished(), "the lock is renewed");
        drop(held);
        waiting.await.unwrap().unwrap();
        let dead = slot(&store, ANN);
        let sealed = dead.cluster.seal.seal(&dead.lock_name, b"lock");
        let swap = Swap { old: None, new: &sealed, life: LOCK_LIFE };
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(store.swap(&dead.lock_name, swap).await.unwrap());
        let began = Instant::now();
        slot(&store, ANN).lock().await.unwrap();
        assert!(began.elapsed() <= LOCK_LIFE + LOOK, "the lock of a lost node expires");
        hub.set_away(true);
        assert!(slot(&store, ANN).load().await.unwrap_err().contains("cannot be reached"));
    }
}
