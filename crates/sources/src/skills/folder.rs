//! Reads a folder of skills into a snapshot.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read as _};
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sabir_wire::Extra;
use sabir_wire::types::{Resource, Skill, SkillFile, SkillFiles};
use sha2::{Digest as _, Sha256};

use super::frontmatter;

/// The limits of one skill in files and bytes. A larger one is not served.
const SKILL_FILES: usize = 512;
const SKILL_BYTES: usize = 16 << 20;

/// The limits of all skills together in files, bytes and folder depth. Files beyond them are not
/// read.
const ALL_FILES: usize = 20_000;
const ALL_BYTES: usize = 256 << 20;
const DEEPEST: usize = 16;

/// The characters that are not encoded in a path segment.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Everything in a folder of skills, at one moment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    /// In the order of their URIs.
    pub(super) skills: Vec<Loaded>,
    /// The files of all of them, by URI.
    pub(super) files: BTreeMap<String, File>,
    /// The folders of all of them, by URI, with their direct contents.
    pub(super) folders: Vec<(String, Vec<Resource>)>,
    /// The skills and files that are not served, and why.
    pub(super) problems: Vec<String>,
}

/// A skill.
#[derive(Debug, PartialEq)]
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) description: String,
    /// The URI of its folder.
    pub(super) folder: String,
    pub(super) entry: Skill,
    /// The text of its `SKILL.md`, without the fields.
    pub(super) body: String,
}

/// A file of a skill.
#[derive(Debug, PartialEq)]
pub(super) struct File {
    pub(super) mime_type: String,
    pub(super) bytes: Vec<u8>,
    digest: String,
}

/// All files below a folder, by their paths with `/`.
#[derive(Default)]
struct Found {
    files: BTreeMap<String, Vec<u8>>,
    bytes: usize,
    problems: Vec<String>,
    /// The paths that could not be read. Their skills are incomplete, so they are not served.
    lost: Vec<String>,
}

impl Snapshot {
    /// Reads a folder. Only a root that cannot be read is an error.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut found = Found::default();
        found.walk(root, "", 0)?;
        let own_name = root.file_name().map(|name| name.to_string_lossy().into_owned());
        let problems = std::mem::take(&mut found.problems);
        let mut snapshot = Self { problems, ..Self::default() };
        let mains = found.files.keys().filter_map(|path| match path.strip_suffix("SKILL.md") {
            Some("") => Some(""),
            Some(folder) => folder.strip_suffix('/'),
            None => None,
        });
        let mains: Vec<String> = mains.map(str::to_owned).collect();
        for folder in mains {
            // A root that is a skill itself has no path: its name is shown.
            let shown = if folder.is_empty() { own_name.as_deref().unwrap_or("") } else { &folder };
            if let Err(reason) = snapshot.add(&folder, shown, &found) {
                snapshot.problems.push(format!("{shown}: {reason}"));
            }
        }
        let skills: Vec<_> = snapshot.skills.iter().map(|skill| skill.entry.clone()).collect();
        let kind = |uri: &str| snapshot.files.get(uri).map(|file| file.mime_type.clone());
        snapshot.folders = Skill::folders(&skills, kind);
        Ok(snapshot)
    }

    /// The number of bytes of all files.
    pub(super) fn size(&self) -> usize {
        self.files.values().map(|file| file.bytes.len()).sum()
    }

    /// The URIs whose contents differ from those in `before`.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<String> {
        let is_changed =
            |(uri, file): &(&String, &File)| before.files.get(*uri).is_some_and(|old| old != *file);
        self.files.iter().filter(is_changed).map(|(uri, _)| uri.clone()).collect()
    }

    fn add(&mut self, folder: &str, shown: &str, found: &Found) -> Result<(), String> {
        let Found { files, lost, .. } = found;
        let beginning = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        if let Some(path) = lost.iter().find(|path| path.starts_with(&beginning) || *path == folder)
        {
            return Err(format!("the skill is not complete without {path}"));
        }
        let own = files
            .iter()
            .filter_map(|(path, bytes)| path.strip_prefix(&beginning).map(|rest| (rest, bytes)));
        let own: Vec<_> = own.collect();
        let size: usize = own.iter().map(|(_, bytes)| bytes.len()).sum();
        if own.len() > SKILL_FILES || size > SKILL_BYTES {
            let limit = format!("limit {SKILL_FILES} files and {SKILL_BYTES} bytes");
            return Err(format!("the skill is too large ({limit})"));
        }
        let main = files.get(&format!("{beginning}SKILL.md")).map_or(&[][..], Vec::as_slice);
        let text = std::str::from_utf8(main).map_err(|_| "SKILL.md is not UTF-8".to_owned())?;
        let parsed = frontmatter::parse(text)?;
        let last = shown.rsplit('/').next().unwrap_or_default();
        if parsed.name != last {
            let name = &parsed.name;
            return Err(format!("the folder must have the name of the skill (expected `{name}`)"));
        }
        if self.skills.iter().any(|known| known.name == parsed.name) {
            return Err(format!("there is a skill `{}` already", parsed.name));
        }
        let folder = format!("skill://{}", encoded(shown));
        let mut listed = Vec::with_capacity(own.len());
        for (path, bytes) in own {
            let uri = format!("{folder}/{}", encoded(path));
            let file = self.files.entry(uri.clone()).or_insert_with(|| File::new(path, bytes));
            let (digest, size) = (file.digest.clone(), bytes.len() as u64);
            listed.push(SkillFile { uri, digest, size, extra: Extra::NONE });
        }
        let entry = Skill {
            uri: format!("{folder}/SKILL.md"),
            frontmatter: parsed.fields,
            files: SkillFiles::Listed(listed),
            extra: Extra::NONE,
        };
        let (name, description, body) = (parsed.name, parsed.description, parsed.body);
        self.skills.push(Loaded { name, description, folder, entry, body });
        Ok(())
    }
}

impl File {
    fn new(path: &str, bytes: &[u8]) -> Self {
        let is_text = std::str::from_utf8(bytes).is_ok();
        let unknown = if is_text { "text/plain" } else { "application/octet-stream" };
        let mime_type = match path.ends_with(".md") {
            true => "text/markdown",
            false => mime_guess::from_path(path).first_raw().unwrap_or(unknown),
        };
        let digest = digest(bytes);
        Self { mime_type: mime_type.to_owned(), bytes: bytes.to_vec(), digest }
    }
}

impl Found {
    /// Reads the files of a folder and of its subfolders. Hidden files and symbolic links are
    /// skipped.
    fn walk(&mut self, folder: &Path, path: &str, depth: usize) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            let shown = name.to_string_lossy();
            if shown.starts_with('.') || kind.is_symlink() {
                continue;
            }
            let path = match path.is_empty() {
                true => shown.clone().into_owned(),
                false => format!("{path}/{shown}"),
            };
            if name.to_str().is_none() {
                self.lose(path, "the name is not UTF-8");
            } else if kind.is_dir() && depth >= DEEPEST {
                self.lose(path, format!("too deep (limit {DEEPEST} folders)"));
            } else if kind.is_dir() {
                if let Err(error) = self.walk(&entry.path(), &path, depth + 1) {
                    self.lose(path, error);
                }
            } else if kind.is_file() {
                self.read(&entry.path(), path);
            }
        }
        Ok(())
    }

    fn read(&mut self, file: &Path, path: String) {
        let left = ALL_BYTES.saturating_sub(self.bytes);
        let mut bytes = Vec::new();
        let read = std::fs::File::open(file)
            .and_then(|file| file.take(left as u64 + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes.len() > left || self.files.len() >= ALL_FILES => {
                let limit = format!("limit {ALL_FILES} files and {ALL_BYTES} bytes");
                self.lose(path, format!("too many skills ({limit})"));
            }
            Ok(_) => {
                self.bytes += bytes.len();
                self.files.insert(path, bytes);
            }
            Err(error) => self.lose(path, error),
        }
    }

    fn lose(&mut self, path: String, reason: impl Display) {
        self.problems.push(format!("{path}: {reason}"));
        self.lost.push(path);
    }
}

/// The digest of bytes, as a skill lists it.
pub(super) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digest}")
}

fn encoded(path: &str) -> String {
    let segments = path.split('/').map(|part| utf8_percent_encode(part, PLAIN).to_string());
    segments.collect::<Vec<_>>().join("/")
}
