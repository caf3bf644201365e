//! PDF files as Markdown: a section for each page.

use std::fmt;
use std::sync::Arc;

use crate::article::{self, Hidden, ParsedArticle};
use crate::listing::Listing;
use crate::problem::Problem;

/// The largest PDF file in bytes: most of it is not text.
pub(crate) const LARGEST_PDF: u64 = 32 * 1024 * 1024;

/// Gives the text of a PDF file, with a form feed after each page, or the reason why it has none.
/// It runs a program, so it is implemented outside of this crate. Cheap to clone.
#[derive(Clone)]
pub struct PdfReader(Arc<dyn Fn(Vec<u8>) -> Result<String, String> + Send + Sync>);

impl PdfReader {
    /// A reader that is called with the bytes of each file, from several threads, which wait for it.
    pub fn new(read: impl Fn(Vec<u8>) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Reads a file.
    pub fn read(&self, file: Vec<u8>) -> Result<String, String> {
        (self.0)(file)
    }
}

impl fmt::Debug for PdfReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PdfReader")
    }
}

impl PartialEq for PdfReader {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Reads a PDF file.
pub(crate) fn read(path: &str, bytes: Vec<u8>, reader: Option<&PdfReader>) -> ParsedArticle {
    let Some(reader) = reader else {
        return ParsedArticle { hidden: Some(Hidden::NoPdfReader), ..ParsedArticle::default() };
    };
    let failed = |reason: &str| {
        let problem = Problem::of(path, format!("not served: {reason}"));
        article::unread(problem, Hidden::Unreadable)
    };
    match reader.read(bytes).map(|text| markdown(&text)) {
        Err(reason) => failed(&reason),
        Ok(text) if text.is_empty() => failed("the PDF has no text (it may be scanned)"),
        Ok(text) => article::read(path, text.as_bytes(), None),
    }
}

/// The pages as sections. Nothing in them is markup.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for (number, page) in (1..).zip(text.split('\u{c}')) {
        if page.trim().is_empty() {
            continue;
        }
        out.push_str(&format!("## Page {number}\n\n"));
        for line in page.trim().lines().map(|line| line.trim().replace('\0', "")) {
            // Escaped: the line would be a heading, or make one of the line above.
            if line.starts_with(['#', '=', '-', '~', '`']) {
                out.push('\\');
            }
            out.push_str(&line);
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// The problem of PDF files that are not served, with a hint for the operator.
pub(crate) fn unread(listing: &Listing) -> Option<Problem> {
    let is_unread = |hidden: Option<Hidden>| hidden == Some(Hidden::NoPdfReader);
    let count = listing.files().iter().filter(|file| is_unread(file.hidden)).count();
    let noun = if count == 1 { "file is" } else { "files are" };
    let message = format!(
        "{count} PDF {noun} not served: `pdftotext` is not installed (hint: the package is called \
         poppler-utils, or poppler)"
    );
    (count > 0).then(|| Problem::of("", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_sections_and_have_no_markup() {
        let reader = PdfReader::new(|bytes| String::from_utf8(bytes).map_err(|e| e.to_string()));
        let text = b"Report\n# 1 of 2\n\nOne\n---\n\x0c \n\x0cThree\n\x0c".to_vec();
        let read = read("a/b.pdf", text, Some(&reader));
        assert_eq!(
            read.text,
            "## Page 1\n\nReport\n\\# 1 of 2\n\nOne\n\\---\n\n## Page 3\n\nThree\n\n"
        );
        let ids: Vec<&str> = read.outline.sections.iter().map(|it| it.id.as_str()).collect();
        assert_eq!((read.title.as_str(), &ids[..]), ("B", &["page-1", "page-3"][..]));
    }

    #[test]
    fn a_file_without_text_or_without_a_reader_is_hidden() {
        let blank = PdfReader::new(|_| Ok("\u{c}\u{c}".to_owned()));
        let broken = PdfReader::new(|_| Err("it is broken".to_owned()));
        for (reader, hidden, problem) in [
            (Some(&blank), Hidden::Unreadable, Some("not served: the PDF has no text")),
            (Some(&broken), Hidden::Unreadable, Some("not served: it is broken")),
            (None, Hidden::NoPdfReader, None),
        ] {
            let read = read("a.pdf", Vec::new(), reader);
            assert_eq!(read.hidden, Some(hidden));
            let told = read.problems.first().map(|problem| problem.message.as_str());
            assert!(told.zip(problem).is_none_or(|(told, it)| told.starts_with(it)), "{told:?}");
            assert_eq!(told.is_some(), problem.is_some());
        }
    }
}
