//! Skills: folders of instructions and files. Spec: the extension `io.modelcontextprotocol/skills`.

use std::collections::BTreeMap;

use crate::json::{Invalid, ReadJson, WriteJson, object};
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{CacheHint, Resource};

/// The name of the extension.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

/// The media type of a folder.
pub const FOLDER: &str = "inode/directory";

object! {
    /// A skill, as a list has it.
    #[derive(Clone, Debug, PartialEq)]
    Skill {
        /// URI of its `SKILL.md`.
        uri: String = required "uri";
        /// The fields at the top of its `SKILL.md`, an object.
        frontmatter: Raw = required "frontmatter";
        /// Its files.
        files: SkillFiles = required "resources";
    }
}

/// The files of a skill.
#[derive(Clone, Debug, PartialEq)]
pub enum SkillFiles {
    /// All of them, its `SKILL.md` included.
    Listed(Vec<SkillFile>),
    /// They are generated when they are read.
    Dynamic,
}

object! {
    /// A file of a skill.
    #[derive(Clone, Debug, Default, PartialEq)]
    SkillFile {
        /// URI of the file.
        uri: String = required "uri";
        /// `sha256:` and the digest of its bytes in hexadecimal.
        digest: String = required "digest";
        /// Number of its bytes.
        size: u64 = required "size";
    }
}

impl ReadJson for SkillFiles {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        match json.text() {
            r#""dynamic""# => Ok(Self::Dynamic),
            _ => Vec::read_json(json).map(Self::Listed),
        }
    }
}

impl WriteJson for SkillFiles {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        match self {
            Self::Listed(files) => files.write_json(to, out),
            Self::Dynamic => "dynamic".write_json(to, out),
        }
    }
}

impl Skill {
    /// The result of `skills/get`.
    pub fn got(&self, cache: CacheHint, revision: Revision) -> Raw {
        let skill = self.to_raw(revision);
        Raw::empty_object().with_members(&[
            ("skill", Some(skill.text())),
            ("ttlMs", Some(&cache.ttl_ms.to_string())),
            ("cacheScope", Some(&format!("\"{}\"", cache.scope.name()))),
        ])
    }

    /// The folders of skills by URI, each with its direct children. `kind` gives the media type of
    /// a file.
    pub fn folders(
        skills: &[Self],
        kind: impl Fn(&str) -> Option<String>,
    ) -> Vec<(String, Vec<Resource>)> {
        let mut folders: BTreeMap<&str, BTreeMap<&str, Option<String>>> = BTreeMap::new();
        for skill in skills {
            let Some(folder) = skill.uri.strip_suffix("/SKILL.md") else { continue };
            folders.entry(folder).or_default();
            let files: Vec<&str> = match &skill.files {
                SkillFiles::Listed(files) => files.iter().map(|file| &*file.uri).collect(),
                SkillFiles::Dynamic => vec![&skill.uri],
            };
            for file in files {
                let (mut child, mut kind) = (file, kind(file));
                while let Some((parent, _)) = child.rsplit_once('/')
                    && parent.len() >= folder.len()
                    && parent.starts_with(folder)
                {
                    folders.entry(parent).or_default().insert(child, kind);
                    (child, kind) = (parent, Some(FOLDER.to_owned()));
                }
            }
        }
        let resource = |(uri, mime_type): (&str, Option<String>)| Resource {
            name: uri.rsplit('/').next().unwrap_or_default().to_owned(),
            uri: uri.to_owned(),
            mime_type,
            ..Resource::default()
        };
        let listed = folders.into_iter().map(|(folder, children)| {
            (folder.to_owned(), children.into_iter().map(resource).collect())
        });
        listed.collect()
    }

    /// A page of the contents of a folder: the result of `resources/directory/read`.
    pub fn folder(children: &[Resource], next: Option<&str>, revision: Revision) -> Raw {
        let children: Vec<Raw> = children.iter().map(|child| child.to_raw(revision)).collect();
        let children = Raw::of(&children).ok();
        let next = next.and_then(|cursor| Raw::of(cursor).ok());
        Raw::empty_object().with_members(&[
            ("resources", children.as_ref().map(Raw::text)),
            ("nextCursor", next.as_ref().map(Raw::text)),
        ])
    }
}
