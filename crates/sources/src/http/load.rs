//! Reads a description and the files that it refers to.
//!
//! A file may refer to files of its own folder and below. A URL may be fetched from the hosts of the
//! policy only; a description from the network never reads a file of this machine.

use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sabir_openapi::Description;
use sabir_outbound::{HttpClient, Limits};
use xxhash_rust::xxh3::xxh3_128;

/// The bytes of a description, all its files together. Larger ones are refused.
const MAX_BYTES: usize = 96 << 20;

/// The number of its files. Further ones are not read, and reported.
const MAX_FILES: usize = 300;

/// Where a description is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file.
    File(PathBuf),
    /// A URL.
    Url(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url.split('?').next().unwrap_or(url)),
        }
    }
}

/// Reads descriptions.
#[derive(Clone, Debug)]
pub struct Loader {
    /// Where the description is.
    pub location: Location,
    /// Fetches URLs. `None`: nothing is fetched.
    pub client: Option<HttpClient>,
    /// The folder for copies of what was fetched.
    pub cache: Option<PathBuf>,
}

/// Where bytes are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Their own place. Copies are written.
    Origin,
    /// The copies of an earlier time.
    Cache,
}

/// A description, and a hash of all its bytes.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) description: Description,
    pub(super) hash: u128,
}

impl Loader {
    /// Reads the description and its files.
    pub async fn load(&self) -> Result<Description, String> {
        self.load_from(From::Origin).await.map(|loaded| loaded.description)
    }

    /// Whether copies are kept.
    pub(super) fn has_cache(&self) -> bool {
        self.cache.is_some() && matches!(self.location, Location::Url(_))
    }

    pub(super) async fn load_from(&self, from: From) -> Result<Loaded, String> {
        let (uri, folder) = self.base()?;
        let bytes = self.read(&uri, folder.as_deref(), from).await?;
        let (mut total, mut hash) = (bytes.len(), xxh3_128(&bytes));
        let mut description = parse(uri, bytes).await?;
        loop {
            let missing = description.missing();
            if missing.is_empty() {
                return Ok(Loaded { description, hash });
            }
            for uri in missing {
                if description.file_count() >= MAX_FILES {
                    description.give_up(&uri, format!("too many files (limit {MAX_FILES})"));
                    continue;
                }
                match self.read(&uri, folder.as_deref(), from).await {
                    Ok(bytes) if total + bytes.len() > MAX_BYTES => {
                        let limit = format!("the files are too large (limit {MAX_BYTES} bytes)");
                        description.give_up(&uri, limit);
                    }
                    Ok(bytes) => {
                        total += bytes.len();
                        hash ^= xxh3_128(&bytes).rotate_left(1);
                        if let Err(error) = description.add(&uri, &bytes) {
                            description.give_up(&uri, error.to_string());
                        }
                    }
                    Err(reason) => description.give_up(&uri, reason),
                }
            }
        }
    }

    /// The URI of the description, and the folder whose files it may refer to.
    fn base(&self) -> Result<(String, Option<PathBuf>), String> {
        match &self.location {
            Location::Url(url) => Ok((url.clone(), None)),
            Location::File(path) => {
                let path = path
                    .canonicalize()
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                Ok((file_uri(&path), path.parent().map(Path::to_owned)))
            }
        }
    }

    async fn read(&self, uri: &str, folder: Option<&Path>, from: From) -> Result<Vec<u8>, String> {
        if let Some(encoded) = uri.strip_prefix("file://") {
            let folder = folder.ok_or("a file of this machine is not read for a URL")?;
            let path = percent_encoding::percent_decode_str(encoded).decode_utf8_lossy();
            let path = PathBuf::from(&*path);
            let folder = folder.to_owned();
            return spawn(move || read_file(&path, &folder)).await;
        }
        let copy = self
            .cache
            .as_ref()
            .map(|cache| cache.join(format!("{:032x}", xxh3_128(uri.as_bytes()))));
        match (from, copy) {
            (From::Cache, Some(copy)) => {
                spawn(move || std::fs::read(&copy).map_err(|error| error.to_string())).await
            }
            (From::Cache, None) => Err("there is no copy".to_owned()),
            (From::Origin, copy) => {
                let bytes = self.fetch(uri).await?;
                if let Some(copy) = copy {
                    let bytes = bytes.clone();
                    // Without a copy the next start is slower, no more.
                    let _ = spawn(move || write_copy(&copy, &bytes)).await;
                }
                Ok(bytes)
            }
        }
    }

    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        let client = self.client.as_ref().ok_or("URLs are not fetched here")?;
        let request = http::Request::get(url).body(Bytes::new());
        let request = request.map_err(|error| error.to_string())?;
        let limits = Limits { body: MAX_BYTES as u64, ..Limits::default() };
        let response = client.send(request, &limits).await.map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("HTTP {}", response.status()));
        }
        let body = response.into_body().read().await.map_err(|error| error.to_string())?;
        Ok(body.into())
    }
}

/// Parsing takes up to a second, so it has a thread of its own.
async fn parse(uri: String, bytes: Vec<u8>) -> Result<Description, String> {
    spawn(move || Description::parse(&uri, &bytes).map_err(|error| error.to_string())).await
}

async fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err("it could not be read".to_owned()))
}

fn read_file(path: &Path, folder: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let whole = path.canonicalize().map_err(unreadable)?;
    if !whole.starts_with(folder) {
        return Err(format!("it is outside of the folder {}", folder.display()));
    }
    let size = std::fs::metadata(&whole).map_err(unreadable)?.len();
    if size > MAX_BYTES as u64 {
        return Err(format!("{} is too large (limit {MAX_BYTES} bytes)", path.display()));
    }
    std::fs::read(&whole).map_err(unreadable)
}

/// Writes a copy at once, so that a reader never sees half of it.
fn write_copy(copy: &Path, bytes: &[u8]) -> Result<(), String> {
    let write = || {
        std::fs::create_dir_all(copy.parent().unwrap_or(Path::new(".")))?;
        let part = copy.with_extension(format!("{}.part", std::process::id()));
        std::fs::write(&part, bytes)?;
        std::fs::rename(&part, copy)
    };
    write().map_err(|error: std::io::Error| error.to_string())
}

fn file_uri(path: &Path) -> String {
    let encoded: Vec<_> = path
        .to_string_lossy()
        .split('/')
        .map(|segment| sabir_openapi::encode_query(segment).into_owned())
        .collect();
    format!("file://{}", encoded.join("/"))
}
