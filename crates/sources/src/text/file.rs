//! A file that is read for every request.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sabir_budget::{Hold, MemoryFull, memory};
use sabir_wire::Problem;
use sabir_wire::types::{Content, ResourceContents};

/// The largest file in bytes. A larger one is refused.
const MAX_FILE: u64 = 16 << 20;

/// A file and its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    path: PathBuf,
    mime_type: Option<String>,
}

/// Why a file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BadFile {
    /// It cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, #[source] io::Error),
    /// It is not a regular file.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// It is too large.
    #[error("{} is too large (limit {MAX_FILE} bytes)", .0.display())]
    TooLarge(PathBuf),
    /// The memory budget has no room for it now.
    #[error(transparent)]
    NoMemory(#[from] MemoryFull),
}

/// The contents of a file.
pub(crate) struct Contents {
    mime_type: String,
    /// Text, or bytes that are not UTF-8.
    body: Result<String, Vec<u8>>,
    /// The memory of the contents, held until that of the result is counted.
    _memory: Hold,
}

impl File {
    /// A file that need not exist yet. Its media type is guessed from its name unless given.
    pub fn new(path: PathBuf, mime_type: Option<String>) -> Self {
        Self { path, mime_type }
    }

    /// Checks that the file can be read.
    pub fn check(&self) -> Result<(), BadFile> {
        open(&self.path).map(drop)
    }

    /// The media type, if it is given or can be guessed.
    pub fn mime_type(&self) -> Option<String> {
        self.mime_type.clone().or_else(|| guess(&self.path))
    }

    /// Reads the file.
    pub(crate) async fn read(&self) -> Result<Contents, Problem> {
        let (path, mime_type) = (self.path.clone(), self.mime_type());
        // Reading may block for long, e.g. on a network drive.
        let read = tokio::task::spawn_blocking(move || {
            let (bytes, memory) = read(&path)?;
            Ok((String::from_utf8(bytes).map_err(|error| error.into_bytes()), memory))
        });
        let (body, memory) = match read.await {
            Ok(Ok(read)) => read,
            Ok(Err(BadFile::NoMemory(full))) => {
                return Err(Problem::ToolFailed(full.to_string().into()));
            }
            Ok(Err(error)) => {
                tracing::error!("{error}");
                return Err(Problem::Internal("cannot read a file of this server".into()));
            }
            Err(_) => return Err(Problem::Internal("Internal error".into())),
        };
        let unknown = if body.is_ok() { "text/plain" } else { "application/octet-stream" };
        let mime_type = mime_type.unwrap_or_else(|| unknown.to_owned());
        Ok(Contents { mime_type, body, _memory: memory })
    }
}

impl Contents {
    /// Converts to a resource.
    pub(crate) fn into_resource(self, uri: &str) -> ResourceContents {
        match self.body {
            Ok(text) => ResourceContents::text(uri, self.mime_type, text),
            Err(bytes) => ResourceContents::blob(uri, self.mime_type, &bytes),
        }
    }

    /// Converts to the content of a message: an image, audio, or a resource.
    pub(super) fn into_content(self, uri: &str) -> Content {
        let bytes = match &self.body {
            Ok(text) => text.as_bytes(),
            Err(bytes) => bytes,
        };
        match self.mime_type.split('/').next() {
            Some("image") => Content::image(bytes, self.mime_type),
            Some("audio") => Content::audio(bytes, self.mime_type),
            _ => Content::resource(self.into_resource(uri)),
        }
    }
}

fn guess(path: &Path) -> Option<String> {
    mime_guess::from_path(path).first_raw().map(str::to_owned)
}

fn open(path: &Path) -> Result<std::fs::File, BadFile> {
    let unreadable = |error| BadFile::Unreadable(path.to_owned(), error);
    // Checked before it is opened: opening a pipe would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(BadFile::NotAFile(path.to_owned()));
    }
    if metadata.len() > MAX_FILE {
        return Err(BadFile::TooLarge(path.to_owned()));
    }
    std::fs::File::open(path).map_err(unreadable)
}

fn read(path: &Path) -> Result<(Vec<u8>, Hold), BadFile> {
    let file = open(path)?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let memory = memory().take(length)?;
    // One byte more, so that the end is found without growing.
    let mut bytes = Vec::with_capacity(length.saturating_add(1));
    // The file may grow while it is read.
    let read = file.take(MAX_FILE + 1).read_to_end(&mut bytes);
    match read {
        Ok(read) if read as u64 > MAX_FILE => Err(BadFile::TooLarge(path.to_owned())),
        Ok(_) => Ok((bytes, memory)),
        Err(error) => Err(BadFile::Unreadable(path.to_owned(), error)),
    }
}

#[cfg(test)]
mod tests {
    use sabir_wire::types::ContentKind;
    use tempfile::TempDir;

    use super::*;

    fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    async fn contents(name: &str, bytes: &[u8]) -> Contents {
        let (_folder, path) = file(name, bytes);
        File::new(path, None).read().await.unwrap()
    }

    #[tokio::test]
    async fn the_media_type_is_guessed_from_the_name_or_else_from_the_bytes() {
        for (name, bytes, mime_type) in [
            ("a.md", &b"# a"[..], "text/markdown"),
            ("a.png", b"\x89PNG\xff", "image/png"),
            ("a", b"text", "text/plain"),
            ("a", b"\xff", "application/octet-stream"),
        ] {
            let resource = contents(name, bytes).await.into_resource("x:y");
            assert_eq!(resource.mime_type.as_deref(), Some(mime_type), "{name}");
            assert_eq!(resource.body.as_text().is_some(), bytes.is_ascii(), "{name}");
        }
        let (_folder, path) = file("a.md", b"a");
        let given = File::new(path, Some("text/x-log".into()));
        let resource = given.read().await.unwrap().into_resource("x:y");
        assert_eq!(resource.mime_type.as_deref(), Some("text/x-log"));
    }

    #[tokio::test]
    async fn in_a_message_an_image_is_an_image_whatever_its_bytes() {
        for (name, is_image) in [("a.svg", true), ("a.png", true), ("a.md", false)] {
            let kind = contents(name, b"<svg/>").await.into_content("x:y").kind;
            assert_eq!(matches!(kind, ContentKind::Image { .. }), is_image, "{name}");
        }
    }

    #[tokio::test]
    async fn the_current_contents_are_read() {
        let (_folder, path) = file("a.txt", b"before");
        let served = File::new(path.clone(), None);
        std::fs::write(&path, "after").unwrap();
        let resource = served.read().await.unwrap().into_resource("x:y");
        assert_eq!(resource.body.as_text(), Some("after"));
        std::fs::remove_file(&path).unwrap();
        assert!(served.read().await.is_err());
    }

    #[tokio::test]
    async fn files_over_the_limit_and_other_kinds_are_refused() {
        let (folder, path) = file("a", b"");
        let grow = |size| std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        grow(MAX_FILE);
        let served = File::new(path.clone(), None);
        assert!(served.read().await.is_ok());
        grow(MAX_FILE + 1);
        assert!(served.read().await.is_err());
        assert!(matches!(File::new(path, None).check(), Err(BadFile::TooLarge(_))));
        let nothing = folder.path().join("b");
        assert!(matches!(File::new(nothing, None).check(), Err(BadFile::Unreadable(..))));
        assert!(matches!(File::new(folder.path().into(), None).check(), Err(BadFile::NotAFile(_))));
    }
}
