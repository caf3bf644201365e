//! The last known catalog of an upstream, kept on disk: its tools are listed while it is not
//! running.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_wire::types::{Prompt, Resource, ResourceTemplate, Skill, Tool};
use sabir_wire::{Raw, ReadJson, Revision, WriteJson};
use serde::{Deserialize, Serialize};

/// The catalog of an upstream, under its own names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UpstreamCatalog {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) skills: Vec<Skill>,
    /// It reads the folders of its skills.
    pub(super) reads_folders: bool,
    pub(super) tasks: bool,
    pub(super) has_resources: bool,
    pub(super) completes: bool,
    pub(super) logs: bool,
    pub(super) subscribes: bool,
}

/// Where the catalog of one upstream is kept.
#[derive(Clone, Debug)]
pub struct Memory {
    path: PathBuf,
}

/// The file.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Stored {
    /// When it was written, in seconds since 1970.
    at: u64,
    tools: Vec<Raw>,
    prompts: Vec<Raw>,
    resources: Vec<Raw>,
    templates: Vec<Raw>,
    skills: Vec<Raw>,
    reads_folders: bool,
    tasks: bool,
    has_resources: bool,
    completes: bool,
    logs: bool,
    subscribes: bool,
}

impl Memory {
    /// A longer file is not read, and not written.
    const MAX_SIZE: u64 = 32 << 20;

    /// The memory of the upstream `name` in `folder`. `target` says how it is reached: the same
    /// name with another target has another file.
    pub fn new(folder: &Path, name: &str, target: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let plain: String = name.chars().take(64).map(plain).collect();
        let hash = xxhash_rust::xxh3::xxh3_64(format!("{name}\0{target}").as_bytes());
        Self { path: folder.join(format!("{plain}-{hash:016x}.json")) }
    }

    /// The catalog and its age; `None` if there is none that can be read.
    pub(super) fn load(&self, now: SystemTime) -> Option<(UpstreamCatalog, Duration)> {
        let mut text = Vec::new();
        let file = fs::File::open(&self.path).ok()?;
        file.take(Self::MAX_SIZE + 1).read_to_end(&mut text).ok()?;
        let is_whole = text.len() as u64 <= Self::MAX_SIZE;
        let stored: Stored = serde_json::from_slice(&text).ok().filter(|_| is_whole)?;
        let age = now.duration_since(UNIX_EPOCH + Duration::from_secs(stored.at));
        Some((stored.read(), age.unwrap_or_default()))
    }

    /// Records an attempt to list the upstream; `false` if an earlier attempt has not succeeded.
    pub(super) fn note_attempt(&self) -> bool {
        let note = self.path.with_extension("tried");
        let _ = note.parent().map(fs::create_dir_all);
        match fs::File::create_new(note) {
            Err(error) => error.kind() != io::ErrorKind::AlreadyExists,
            Ok(_) => true,
        }
    }

    /// Replaces the catalog, whole or not at all.
    pub(super) fn save(&self, catalog: &UpstreamCatalog, now: SystemTime) -> io::Result<()> {
        let at = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let text = serde_json::to_vec(&Stored::of(catalog, at))?;
        if text.len() as u64 > Self::MAX_SIZE {
            return Err(io::Error::other(format!("too large (limit {} bytes)", Self::MAX_SIZE)));
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.persist(&self.path)?;
        // The upstream answers: a later start without a catalog waits for it again.
        let _ = fs::remove_file(self.path.with_extension("tried"));
        Ok(())
    }
}

impl Stored {
    fn of(catalog: &UpstreamCatalog, at: u64) -> Self {
        Self {
            at,
            tools: write(&catalog.tools),
            prompts: write(&catalog.prompts),
            resources: write(&catalog.resources),
            templates: write(&catalog.templates),
            skills: write(&catalog.skills),
            reads_folders: catalog.reads_folders,
            tasks: catalog.tasks,
            has_resources: catalog.has_resources,
            completes: catalog.completes,
            logs: catalog.logs,
            subscribes: catalog.subscribes,
        }
    }

    fn read(&self) -> UpstreamCatalog {
        UpstreamCatalog {
            tools: read(&self.tools),
            prompts: read(&self.prompts),
            resources: read(&self.resources),
            templates: read(&self.templates),
            skills: read(&self.skills),
            reads_folders: self.reads_folders,
            tasks: self.tasks,
            has_resources: self.has_resources,
            completes: self.completes,
            logs: self.logs,
            subscribes: self.subscribes,
        }
    }
}

fn write<T: WriteJson>(items: &[T]) -> Vec<Raw> {
    items.iter().map(|item| item.to_raw(Revision::NEWEST)).collect()
}

fn read<T: ReadJson>(items: &[Raw]) -> Vec<T> {
    items.iter().filter_map(|item| T::read_json(item).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::age::age;

    #[test]
    fn a_catalog_is_remembered_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(&folder.path().join("new"), "a/b", "https://x");
        let then = UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert!(memory.load(then).is_none());
        let json = r#"{"inputSchema":{"type":"object","x":1.0},"name":"t","x-unknown":18446744073709551616}"#;
        let catalog = UpstreamCatalog {
            tools: vec![Tool::read_json(&Raw::parse(json).unwrap()).unwrap()],
            logs: true,
            ..UpstreamCatalog::default()
        };
        memory.save(&catalog, then).unwrap();
        let (loaded, old) = memory.load(then + Duration::from_secs(7200)).unwrap();
        assert_eq!(loaded, catalog);
        assert_eq!(loaded.tools[0].to_raw(Revision::NEWEST).text(), json);
        assert_eq!(age(old), "2 hours");
        let other = Memory::new(&folder.path().join("new"), "a/b", "https://y");
        assert!(other.load(then).is_none(), "another target");
    }

    #[test]
    fn only_the_first_attempt_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(&folder.path().join("new"), "a", "b");
        assert_eq!([memory.note_attempt(), memory.note_attempt()], [true, false]);
        assert!(Memory::new(&folder.path().join("new"), "a", "c").note_attempt());
    }

    #[test]
    fn a_broken_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path(), "a", "b");
        for text in ["", "{", "[]", "{\"tools\":[{}]}"] {
            fs::write(&memory.path, text).unwrap();
            let loaded = memory.load(SystemTime::now());
            assert!(loaded.is_none_or(|(catalog, _)| catalog.tools.is_empty()), "{text}");
        }
    }
}
