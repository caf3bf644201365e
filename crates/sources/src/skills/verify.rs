//! The checks that a host must make before it uses a file of a skill.

use sabir_wire::types::{Skill, SkillFiles};
use serde_json::Value;

use super::folder::digest;
use super::frontmatter;

/// Why the contents of a file must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSkillFile {
    /// The skill does not list it.
    #[error("the skill has no file {0}")]
    Unlisted(String),
    /// It has another size than listed.
    #[error("{uri} has {found} bytes (expected {expected})")]
    Size {
        /// Which file.
        uri: String,
        /// The listed size.
        expected: u64,
        /// Its size.
        found: u64,
    },
    /// It has other contents than listed.
    #[error("{0} has another digest than its entry")]
    Digest(String),
    /// The fields of its `SKILL.md` are not those of the entry.
    #[error("the fields of SKILL.md are not those of the entry of the skill: {0}")]
    Fields(String),
}

/// Checks the contents of a file of a skill against the entry that was listed: its size, its
/// digest, and the fields of `SKILL.md`. Contents that fail must not be used.
pub fn verify(skill: &Skill, uri: &str, contents: &[u8]) -> Result<(), BadSkillFile> {
    if let SkillFiles::Listed(files) = &skill.files {
        let listed = files.iter().find(|file| file.uri == uri);
        let listed = listed.ok_or_else(|| BadSkillFile::Unlisted(uri.to_owned()))?;
        let (expected, found) = (listed.size, contents.len() as u64);
        if expected != found {
            return Err(BadSkillFile::Size { uri: uri.to_owned(), expected, found });
        }
        if !listed.digest.eq_ignore_ascii_case(&digest(contents)) {
            return Err(BadSkillFile::Digest(uri.to_owned()));
        }
    }
    if uri == skill.uri { verify_fields(skill, contents) } else { Ok(()) }
}

fn verify_fields(skill: &Skill, contents: &[u8]) -> Result<(), BadSkillFile> {
    let wrong = |reason: &str| BadSkillFile::Fields(reason.to_owned());
    let text = std::str::from_utf8(contents).map_err(|_| wrong("it is not UTF-8"))?;
    let parsed = frontmatter::parse(text).map_err(|reason| wrong(&reason))?;
    let read = |json: &sabir_wire::Raw| json.read::<Value>().map_err(|e| wrong(&e.to_string()));
    match read(&parsed.fields)? == read(&skill.frontmatter)? {
        true => Ok(()),
        false => Err(wrong("they differ")),
    }
}

#[cfg(test)]
mod tests {
    use sabir_wire::types::SkillFile;
    use sabir_wire::{Extra, Raw};
    use serde_json::json;

    use super::*;

    const MAIN: &str = "---\nname: a\ndescription: b\n---\nText.\n";

    fn skill(contents: &str) -> Skill {
        let file = SkillFile {
            uri: "skill://a/SKILL.md".into(),
            digest: digest(contents.as_bytes()),
            size: contents.len() as u64,
            extra: Extra::NONE,
        };
        Skill {
            uri: file.uri.clone(),
            frontmatter: Raw::of(&json!({ "description": "b", "name": "a" })).unwrap(),
            files: SkillFiles::Listed(vec![file]),
            extra: Extra::NONE,
        }
    }

    #[test]
    fn only_what_was_listed_may_be_used() {
        let uri = "skill://a/SKILL.md";
        assert_eq!(verify(&skill(MAIN), uri, MAIN.as_bytes()), Ok(()));
        let changed = MAIN.replace("Text", "Evil");
        let found = verify(&skill(MAIN), uri, changed.as_bytes());
        assert_eq!(found, Err(BadSkillFile::Digest(uri.into())));
        let longer = format!("{MAIN}more");
        assert!(matches!(
            verify(&skill(MAIN), uri, longer.as_bytes()),
            Err(BadSkillFile::Size { expected: 37, found: 41, .. })
        ));
        // The digest fits, but the entry says something else.
        let other = MAIN.replace("description: b", "description: c");
        let found = verify(&skill(&other), uri, other.as_bytes());
        assert_eq!(found, Err(BadSkillFile::Fields("they differ".into())));
        let unlisted = verify(&skill(MAIN), "skill://a/x", b"");
        assert_eq!(unlisted, Err(BadSkillFile::Unlisted("skill://a/x".into())));
        let generated = Skill { files: SkillFiles::Dynamic, ..skill(MAIN) };
        assert_eq!(verify(&generated, uri, MAIN.as_bytes()), Ok(()));
        assert!(verify(&generated, uri, other.as_bytes()).is_err());
    }
}
