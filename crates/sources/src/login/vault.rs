//! Where credentials are kept: one sealed file for each user of each server, or a record of the store
//! that the nodes of a cluster share.
//!
//! A file is bound to its user, its server and the server's address: it does not open in the place
//! of another. Several processes may share the folder; they take turns at a file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sabir_client::{Keep, Keeping, Kept, Locked};
use sabir_cluster::Cluster;
use sha2::{Digest as _, Sha256};

use super::shared_slot::SharedSlot;

/// A place for sealed credentials.
#[derive(Clone, Debug)]
pub struct Vault(Place);

#[derive(Clone, Debug)]
enum Place {
    Folder(Folder),
    Shared(Cluster),
}

/// A folder of sealed credentials.
#[derive(Clone)]
struct Folder {
    path: PathBuf,
    cipher: Arc<XChaCha20Poly1305>,
}

/// The name of the file with the key, if the configuration has none.
const KEY_FILE: &str = "key";
const NONCE: usize = 24;
/// Bytes of a file. A longer one is neither read nor written.
const MAX_SIZE: u64 = 1 << 20;

impl Vault {
    /// The vault in `folder`. Without a key, one is made and kept in the folder, readable by its
    /// owner only.
    pub fn open(folder: &Path, key: Option<[u8; 32]>) -> io::Result<Self> {
        create_private(folder)?;
        let key = match key {
            Some(key) => key,
            None => own_key(folder)?,
        };
        // The key of the configuration seals other things as well.
        let key: [u8; 32] =
            Sha256::new().chain_update("sabir vault\0").chain_update(key).finalize().into();
        let cipher = Arc::new(XChaCha20Poly1305::new(&Key::from(key)));
        Ok(Self(Place::Folder(Folder { path: folder.to_owned(), cipher })))
    }

    /// The vault in the store of a cluster: all its nodes have the same credentials, and one of them
    /// renews a token for all.
    pub fn shared(cluster: Cluster) -> Self {
        Self(Place::Shared(cluster))
    }

    /// The place for the credentials of a user at a server.
    pub(super) fn slot(&self, user: (&str, &str), server: &str, target: &str) -> Arc<dyn Keep> {
        let parts = [user.0, user.1, server, target];
        match &self.0 {
            Place::Folder(folder) => Arc::new(folder.slot(parts)),
            Place::Shared(cluster) => Arc::new(SharedSlot::new(cluster, parts)),
        }
    }
}

impl Folder {
    fn slot(&self, parts: [&str; 4]) -> Slot {
        let mut binding = Vec::new();
        for part in parts {
            binding.extend_from_slice(&(part.len() as u64).to_le_bytes());
            binding.extend_from_slice(part.as_bytes());
        }
        let name: String =
            Sha256::digest(&binding).iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        Slot { folder: self.clone(), path: self.path.join(name), binding }
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Folder").field(&self.path).finish()
    }
}

/// The credentials of one user at one server.
#[derive(Debug)]
struct Slot {
    folder: Folder,
    path: PathBuf,
    /// The data that the seal is bound to.
    binding: Vec<u8>,
}

impl Slot {
    fn read(&self) -> io::Result<Kept> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
            Err(error) => return Err(error),
        };
        let invalid = || io::Error::other("the file was sealed with another key, or is damaged");
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or_else(invalid)?;
        let payload = Payload { msg: sealed, aad: &self.binding };
        let text = self.folder.cipher.decrypt(&XNonce::from(*nonce), payload);
        Ok(serde_json::from_slice(&text.map_err(|_| invalid())?)?)
    }

    fn write(&self, kept: &Kept) -> io::Result<()> {
        let text = serde_json::to_vec(kept)?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let payload = Payload { msg: &text, aad: &self.binding };
        let sealed = self.folder.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| io::Error::other("cannot seal"))?;
        if sealed.len() as u64 > MAX_SIZE {
            return Err(io::Error::other(format!("too large (limit {MAX_SIZE} bytes)")));
        }
        // A temporary file is readable by its owner only.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder.path)?;
        file.write_all(&nonce)?;
        file.write_all(&sealed)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    fn describe(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.path.display())
    }
}

impl Keep for Slot {
    fn lock(&self) -> Keeping<'_, Locked> {
        let path = self.path.with_extension("lock");
        let locking = tokio::task::spawn_blocking(move || {
            let file = File::options().create(true).append(true).open(path)?;
            file.lock()?;
            Ok(Locked::new(file))
        });
        Box::pin(async move {
            let locked: io::Result<Locked> = locking.await.map_err(io::Error::other).flatten();
            locked.map_err(|error| self.describe(&error))
        })
    }

    fn load(&self) -> Keeping<'_, Kept> {
        let read = self.read().map_err(|error| self.describe(&error));
        Box::pin(async { read })
    }

    fn save<'a>(&'a self, kept: &'a Kept) -> Keeping<'a, ()> {
        let written = self.write(kept).map_err(|error| self.describe(&error));
        Box::pin(async { written })
    }
}

fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// The key in the folder; a new one if there is none. Of two processes that make one, the first wins.
fn own_key(folder: &Path) -> io::Result<[u8; 32]> {
    let path = folder.join(KEY_FILE);
    if !path.exists() {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&key)?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(&path) {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error.error);
            }
            _ => {}
        }
    }
    let key = fs::read(&path)?;
    let wrong = |_| io::Error::other(format!("{}: not a key of 32 bytes", path.display()));
    key.try_into().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(wanted: &str) -> Kept {
        serde_json::from_value(serde_json::json!({ "wanted": [wanted] })).unwrap()
    }

    fn folder_at(path: &Path, key: Option<[u8; 32]>) -> Folder {
        match Vault::open(path, key).unwrap().0 {
            Place::Folder(folder) => folder,
            Place::Shared(_) => panic!("not a folder"),
        }
    }

    fn shown(kept: &Kept) -> String {
        serde_json::to_value(kept).unwrap()["wanted"].to_string()
    }

    #[tokio::test]
    async fn credentials_are_sealed_and_bound_to_their_user_and_server() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new");
        let vault = folder_at(&place, None);
        let ann = vault.slot(["https://as", "ann", "wiki", "https://wiki/mcp"]);
        assert_eq!(shown(&ann.load().await.unwrap()), "[]");
        ann.save(&kept("very-secret")).await.unwrap();
        assert_eq!(shown(&ann.load().await.unwrap()), "[\"very-secret\"]");
        // Another process, with the same folder.
        let again = folder_at(&place, None);
        let same = again.slot(["https://as", "ann", "wiki", "https://wiki/mcp"]);
        assert_eq!(shown(&same.load().await.unwrap()), "[\"very-secret\"]");
        let bytes = fs::read(&ann.path).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"secret"));
        for other in [
            vault.slot(["https://as", "bob", "wiki", "https://wiki/mcp"]),
            vault.slot(["https://other", "ann", "wiki", "https://wiki/mcp"]),
            vault.slot(["https://as", "ann", "other", "https://wiki/mcp"]),
            vault.slot(["https://as", "ann", "wiki", "https://evil/mcp"]),
        ] {
            assert_eq!(shown(&other.load().await.unwrap()), "[]");
            fs::copy(&ann.path, &other.path).unwrap();
            assert!(other.load().await.unwrap_err().contains("sealed with another key"));
        }
        let stranger = folder_at(&place, Some([7; 32]));
        assert!(
            stranger.slot(["https://as", "ann", "wiki", "https://wiki/mcp"]).load().await.is_err()
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nobody_else_can_read_the_files() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("vault");
        let vault = folder_at(&place, None);
        let slot = vault.slot(["", "", "", ""]);
        slot.save(&kept("x")).await.unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&place), mode(&place.join(KEY_FILE)), mode(&slot.path)),
            (0o700, 0o600, 0o600)
        );
    }

    #[tokio::test]
    async fn two_processes_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let vault = folder_at(folder.path(), None);
        let (one, other) = (vault.slot(["", "a", "u", ""]), vault.slot(["", "a", "u", ""]));
        let held = one.lock().await.unwrap();
        let waiting = tokio::spawn(async move { other.lock().await.map(drop) });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap().unwrap();
    }
}
