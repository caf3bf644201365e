//! The files of certificates and accounts, readable by their owner only.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use instant_acme::AccountCredentials;

/// The files of one certificate and of the account that obtains it.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    account: PathBuf,
    certificate: PathBuf,
}

impl Store {
    /// The files in `folder` of the account at a directory, and of the certificate for these names.
    pub(super) fn new(folder: &Path, directory: &str, names: &[String]) -> Self {
        let account = folder.join(format!("account-{}.json", hash(directory)));
        let names = hash(&format!("{directory}\n{}", names.join("\n")));
        let certificate = folder.join(format!("certificate-{names}.pem"));
        Self { folder: folder.to_owned(), account, certificate }
    }

    /// The account; `None` if there is none yet.
    pub(super) fn account(&self) -> Result<Option<AccountCredentials>, String> {
        let Some(text) = read(&self.account)? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).map_err(|error| describe(&self.account, &error))
    }

    pub(super) fn save_account(&self, account: &AccountCredentials) -> Result<(), String> {
        let text = serde_json::to_vec(account).map_err(|error| describe(&self.account, &error))?;
        self.write(&self.account, &text)
    }

    /// Forgets an account that its authority no longer knows.
    pub(super) fn forget_account(&self) -> Result<(), String> {
        fs::remove_file(&self.account).map_err(|error| describe(&self.account, &error))
    }

    /// The key and the certificates in PEM; `None` if there are none yet.
    pub(super) fn certificate(&self) -> Result<Option<Vec<u8>>, String> {
        read(&self.certificate)
    }

    pub(super) fn save_certificate(&self, pem: &[u8]) -> Result<(), String> {
        self.write(&self.certificate, pem)
    }

    fn write(&self, path: &Path, text: &[u8]) -> Result<(), String> {
        let write = || {
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(&self.folder)?;
            // A named temporary file is readable by its owner only.
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(text)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error: io::Error| describe(path, &error))
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(describe(path, &error)),
    }
}

fn describe(path: &Path, error: &dyn std::error::Error) -> String {
    format!("{}: {error}", path.display())
}

/// A name for a file, the same for the same text.
fn hash(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}
