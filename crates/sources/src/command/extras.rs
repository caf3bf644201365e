//! Optional parts of a call besides its arguments: files that the client sends, a file for the
//! result, a working directory that depends on an argument, and progress from its output.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use sabir_wire::Raw;
use serde_json::value::{RawValue, to_raw_value};
use tempfile::TempDir;

use super::input::Input;
use super::program::Program;
use super::template::TextTemplate;
use super::values::{RenderError, Values};

/// The name of the placeholder for the file with the result.
pub const OUTPUT_FILE: &str = "output_file";

/// Parts of a command that most commands do not have.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// The name of the file that the program writes its result to, in a folder of the call.
    pub output_file: Option<String>,
    /// The working directory, relative to that of the program and confined to it.
    pub folder: Option<TextTemplate>,
    /// Finds the progress in a line of output: a number, and the total if there is a second group.
    pub progress: Option<Regex>,
}

/// The temporary folder of a call. It is removed when the call has ended.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: TempDir,
    /// Files to be written before the program starts.
    files: Vec<(PathBuf, Vec<u8>)>,
    output: Option<PathBuf>,
}

impl Scratch {
    /// Replaces the files in the arguments of a call by their paths. `None` if nothing needs a
    /// folder.
    pub(super) fn new(
        arguments: &RawValue,
        input: &Input,
        extras: &Extras,
    ) -> Result<Option<(Self, Raw)>, RenderError> {
        let given: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(arguments.get()).map_err(|_| RenderError::NotAnObject)?;
        let sent = |name: &&str| given.get(*name).is_some_and(|value| value.get() != "null");
        let sent: Vec<&str> = input.files().filter(sent).collect();
        if sent.is_empty() && extras.output_file.is_none() {
            return Ok(None);
        }
        let folder = TempDir::with_prefix("sabir-").map_err(RenderError::no_folder)?;
        let mut files = Vec::new();
        let mut replaced = given.clone();
        for name in sent {
            let (bytes, extension) = decode(name, &given[name])?;
            let path = folder.path().join(format!("{name}{extension}"));
            replaced.insert(name.to_owned(), path_value(&path)?);
            files.push((path, bytes));
        }
        let output = extras.output_file.as_ref().map(|name| folder.path().join(name));
        if let Some(output) = &output {
            replaced.insert(OUTPUT_FILE.to_owned(), path_value(output)?);
        }
        let arguments = Raw::of(&replaced).map_err(|_| RenderError::NotAnObject)?;
        Ok(Some((Self { folder, files, output }, arguments)))
    }

    /// Writes the files of the client. Blocks.
    pub(super) fn write(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.files)
            .into_iter()
            .try_for_each(|(path, bytes)| fs::write(path, bytes))
    }

    /// Lets a program in a sandbox use the folder.
    pub(super) fn open_to(&self, program: &mut Program) {
        if let Some(files) = program.sandbox.as_mut().and_then(|sandbox| sandbox.files.as_mut()) {
            files.write.push(self.folder.path().to_owned());
        }
    }

    /// The result that the program wrote, if it writes one to a file. Blocks.
    pub(super) fn result(&self, max_bytes: usize) -> Option<Result<Vec<u8>, String>> {
        let path = self.output.as_ref()?;
        let mut bytes = Vec::new();
        let read = open_regular(path)
            .and_then(|file| file.take(max_bytes as u64 + 1).read_to_end(&mut bytes));
        Some(match read {
            Ok(_) if bytes.len() > max_bytes => {
                Err(format!("it wrote more than {max_bytes} bytes to its output file"))
            }
            Ok(_) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err("it did not write its output file".to_owned())
            }
            Err(error) => Err(format!("its output file cannot be read: {error}")),
        })
    }
}

impl Extras {
    /// The working directory of a call: a folder inside of `root`.
    pub(super) fn folder(
        &self,
        root: &Path,
        values: &Values<'_>,
    ) -> Result<Option<PathBuf>, RenderError> {
        let Some(template) = &self.folder else { return Ok(None) };
        let written = template.render(values)?;
        let refused = || RenderError::OutsideFolder(written.clone());
        let root = root.canonicalize().map_err(|_| refused())?;
        // Symbolic links are resolved before the comparison.
        let folder = root.join(&written).canonicalize().map_err(|_| refused())?;
        match folder.starts_with(&root) && folder.is_dir() {
            true => Ok(Some(folder)),
            false => Err(refused()),
        }
    }

    /// The progress and the total in a line of output.
    pub(super) fn progress(&self, line: &str) -> Option<(f64, Option<f64>)> {
        // A bar that is redrawn on one line: the last state counts.
        let line = line.rsplit('\r').find(|part| !part.trim().is_empty())?;
        let found = self.progress.as_ref()?.captures(line)?;
        let number = |group: usize| found.get(group)?.as_str().parse::<f64>().ok();
        Some((number(1)?, number(2)))
    }
}

/// Opens the file that a program has written. A symbolic link is refused: it would read a file that
/// the program itself may not. So is a pipe, which would block.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let refused = || io::Error::other("not a regular file");
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(refused()),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Err(refused()),
        Err(error) => Err(error),
    }
}

fn path_value(path: &Path) -> Result<Box<RawValue>, RenderError> {
    to_raw_value(path).map_err(|_| RenderError::NotText(path.display().to_string()))
}

/// The bytes of a file in Base64 or in a `data:` URI, and the extension for its media type.
fn decode(name: &str, value: &RawValue) -> Result<(Vec<u8>, String), RenderError> {
    let bad = || RenderError::NotBase64(name.to_owned());
    let text: String = serde_json::from_str(value.get()).map_err(|_| bad())?;
    let (mime, data) = match text.strip_prefix("data:") {
        Some(uri) => uri.split_once(";base64,").ok_or_else(bad)?,
        None => ("", text.as_str()),
    };
    let data: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(data).map_err(|_| bad())?;
    // `image/svg+xml` is .svg; programs often choose a format by the extension.
    let subtype = mime.split('/').nth(1).and_then(|subtype| subtype.split(['+', ';']).next());
    let is_plain = |subtype: &&str| subtype.chars().all(|c| c.is_ascii_alphanumeric());
    let extension = match subtype.filter(is_plain) {
        Some("jpeg") => ".jpg".to_owned(),
        Some("plain") => ".txt".to_owned(),
        Some(subtype) => format!(".{subtype}"),
        None => String::new(),
    };
    Ok((bytes, extension))
}
