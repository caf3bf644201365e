//! The dated revisions of the protocol, and the features of each.
//!
//! The dates appear only here.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A revision of the protocol. Later ones compare greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: the first.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches, audio, tool annotations.
    V2025_03_26,
    /// 2025-06-18: structured output, resource links, elicitation, titles.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, sampling with tools.
    V2025_11_25,
    /// 2026-07-28: no handshake and no session; every request describes itself.
    #[default]
    V2026_07_28,
}

/// How a server learns who its client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake opens a session, which remembers the client.
    Legacy,
    /// Every request describes its client.
    Modern,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision, whose shape all values in memory have.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The newest revision of the legacy era.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision of an HTTP client that names none.
    pub const UNNAMED: Self = Self::V2025_03_26;

    /// The revision of a date; `None` if there is none.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.date() == date)
    }

    /// The date, its name on the wire.
    pub fn date(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of the revision.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    /// The index in [`Revision::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The features of the revision.
    pub fn features(self) -> &'static Features {
        &FEATURES[self.index()]
    }
}

/// As its date.
impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.date())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let date = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let unknown = || serde::de::Error::custom(format!("unknown protocol revision `{date}`"));
        Self::parse(&date).ok_or_else(unknown)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.date())
    }
}

/// The features of a revision. Values are written without what it does not have.
#[derive(Debug)]
pub struct Features {
    /// JSON-RPC batches.
    pub batches: bool,
    /// Audio content, tool annotations, `message` in progress, the `completions` capability.
    pub audio: bool,
    /// `title`, `_meta` on items, resource links, `structuredContent`, `outputSchema`,
    /// `lastModified`.
    pub structured: bool,
    /// Elicitation by form.
    pub elicitation: bool,
    /// Icons, descriptions of implementations, defaults and multiple choice in forms, questions
    /// by URL, sampling with tools; an error without an id is written without one; arguments that
    /// break the schema are a result of the tool, not an error of the protocol.
    pub icons: bool,
    /// Tasks of the core: `execution` of a tool, `tasks/result`, `tasks/list`. The next revision has
    /// them as an extension, in another form.
    pub core_tasks: bool,
    /// `resultType`, cache hints, structured content of any type, `serverInfo` in every result,
    /// no code of its own for a missing resource.
    pub stateless: bool,
}

/// The first revision has none of the features.
const NONE: Features = Features {
    batches: false,
    audio: false,
    structured: false,
    elicitation: false,
    icons: false,
    core_tasks: false,
    stateless: false,
};

/// The features of all revisions since 2025-06-18.
const STRUCTURED: Features = Features { audio: true, structured: true, elicitation: true, ..NONE };

/// In the order of the revisions.
const FEATURES: [Features; 5] = [
    NONE,
    Features { batches: true, audio: true, ..NONE },
    STRUCTURED,
    Features { icons: true, core_tasks: true, ..STRUCTURED },
    Features { icons: true, stateless: true, ..STRUCTURED },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_date_reads_back() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.date()), Some(revision));
        }
        assert_eq!(Revision::parse("2025-11-26"), None);
    }

    #[test]
    fn only_the_newest_is_modern() {
        let modern: Vec<_> = Revision::ALL.into_iter().filter(|r| r.era() == Era::Modern).collect();
        assert_eq!(modern, [Revision::NEWEST]);
        assert_eq!(Revision::NEWEST_LEGACY.era(), Era::Legacy);
    }
}
