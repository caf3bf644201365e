//! The file formats of articles.

/// A file format, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    Markdown,
    Mdx,
    /// Its headings are underlined.
    ReStructured,
    /// Its headings begin with `=`, or are underlined.
    AsciiDoc,
    /// Converted to Markdown when it is read.
    Notebook,
    Text,
    /// Converted to Markdown when it is read.
    Html,
    /// Its text is extracted by a program.
    Pdf,
}

impl Format {
    /// The format of a file with this name.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let (stem, ending) = path.rsplit_once('.')?;
        if stem.is_empty() || stem.ends_with('/') {
            return None;
        }
        match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Some(Self::Markdown),
            "mdx" => Some(Self::Mdx),
            "rst" => Some(Self::ReStructured),
            "adoc" | "asciidoc" => Some(Self::AsciiDoc),
            "ipynb" => Some(Self::Notebook),
            "txt" => Some(Self::Text),
            "html" | "htm" => Some(Self::Html),
            "pdf" => Some(Self::Pdf),
            _ => None,
        }
    }

    /// Whether its links are those of Markdown.
    pub(crate) fn is_markdown(self) -> bool {
        matches!(self, Self::Markdown | Self::Mdx | Self::Notebook | Self::Html)
    }
}

/// The media type of a file that articles refer to. Other files are not served.
pub(crate) fn media_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "bmp" => "image/bmp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "csv" => "text/csv",
        // A canvas and a base of Obsidian are JSON and YAML.
        "json" | "canvas" => "application/json",
        "yaml" | "yml" | "base" => "application/yaml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "m4a" => "audio/mp4",
        "flac" => "audio/flac",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "ogv" => "video/ogg",
        "mov" => "video/quicktime",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_extensions() {
        assert_eq!(Format::of("a/b.MD"), Some(Format::Markdown));
        assert_eq!(Format::of("a.b.mdx"), Some(Format::Mdx));
        assert_eq!(Format::of("a.txt"), Some(Format::Text));
        assert_eq!(Format::of("a.markdown"), Some(Format::Markdown));
        assert_eq!(Format::of("a.rst"), Some(Format::ReStructured));
        assert_eq!(Format::of("a.htm"), Some(Format::Html));
        for path in ["a", "a.htmlx", ".md", "a/.md", "a.md~", "md"] {
            assert_eq!(Format::of(path), None, "{path}");
        }
    }
}
