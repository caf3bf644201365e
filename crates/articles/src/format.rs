//! The file formats of articles.

/// A file format, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    Markdown,
    Mdx,
    Text,
}

impl Format {
    /// The format of a file with this name.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let (stem, ending) = path.rsplit_once('.')?;
        if stem.is_empty() || stem.ends_with('/') {
            return None;
        }
        match ending.to_ascii_lowercase().as_str() {
            "md" => Some(Self::Markdown),
            "mdx" => Some(Self::Mdx),
            "txt" => Some(Self::Text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_extensions() {
        assert_eq!(Format::of("a/b.MD"), Some(Format::Markdown));
        assert_eq!(Format::of("a.b.mdx"), Some(Format::Mdx));
        assert_eq!(Format::of("a.txt"), Some(Format::Text));
        for path in ["a", "a.html", ".md", "a/.md", "a.md~", "md"] {
            assert_eq!(Format::of(path), None, "{path}");
        }
    }
}
