//! Files that may be sent: those of one folder. A path or a link cannot leave it.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use sabir_openapi::{Files, NoFiles};

/// The largest file in bytes. A larger one is refused.
const MAX_FILE: u64 = 32 << 20;

/// The folder of the files that callers may send by their path, or none.
#[derive(Clone, Debug, Default)]
pub struct Folder(Option<Arc<Dir>>);

impl Folder {
    /// Opens a folder.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self(Some(Arc::new(Dir::open_ambient_dir(path, ambient_authority())?))))
    }

    /// Whether there is one.
    pub(super) fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let Some(folder) = &self.0 else { return NoFiles.read(path) };
        let unreadable = |error: std::io::Error| format!("cannot read the file `{path}`: {error}");
        let file = folder.open(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(format!("`{path}` is not a file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(format!("the file `{path}` is too large (limit {MAX_FILE} bytes)"));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_are_read() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let inside = outside.path().join("in");
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::write(inside.join("sub/a"), "abc").unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
        let folder = Folder::open(&inside).unwrap();
        assert_eq!(folder.read("sub/a").unwrap(), b"abc");
        let secret = outside.path().join("secret");
        for path in ["../secret", "link", secret.to_str().unwrap(), "sub", "none", ""] {
            assert!(folder.read(path).is_err(), "{path}");
        }
        let big = std::fs::File::create(inside.join("big")).unwrap();
        big.set_len(MAX_FILE).unwrap();
        assert!(folder.read("big").is_ok());
        big.set_len(MAX_FILE + 1).unwrap();
        assert!(folder.read("big").is_err());
        assert!(Folder::default().read("sub/a").is_err());
    }
}
