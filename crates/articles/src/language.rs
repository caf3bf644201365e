//! The languages whose words are stemmed, and how a document says which one it is in.

use frostem::Algorithm;

/// The languages by their codes (ISO 639-1). The order is part of the format of the index.
const LANGUAGES: [(&str, Algorithm); 18] = [
    ("en", Algorithm::English),
    ("ar", Algorithm::Arabic),
    ("da", Algorithm::Danish),
    ("de", Algorithm::German),
    ("el", Algorithm::Greek),
    ("es", Algorithm::Spanish),
    ("fi", Algorithm::Finnish),
    ("fr", Algorithm::French),
    ("hu", Algorithm::Hungarian),
    ("it", Algorithm::Italian),
    ("nl", Algorithm::Dutch),
    ("no", Algorithm::Norwegian),
    ("pt", Algorithm::Portuguese),
    ("ro", Algorithm::Romanian),
    ("ru", Algorithm::Russian),
    ("sv", Algorithm::Swedish),
    ("ta", Algorithm::Tamil),
    ("tr", Algorithm::Turkish),
];

/// The number of folders from the top whose names may be codes of languages.
const DEEPEST: usize = 3;

/// A language whose words are stemmed. Words of other languages are found as they are written, or
/// (Chinese, Japanese, Thai, …) by their characters; the Latin words among them count as English.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Language(u8);

impl Language {
    /// The number of languages.
    pub(crate) const COUNT: usize = LANGUAGES.len();

    /// English, the default.
    pub const ENGLISH: Self = Self(0);

    /// The codes of all languages.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        LANGUAGES.iter().map(|(code, _)| *code)
    }

    /// The language of a tag: `de`, `de-AT`, `pt_BR`. `None` if it is not one of these languages.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let code = tag.trim().split(['-', '_']).next()?.to_ascii_lowercase();
        let code = if matches!(code.as_str(), "nb" | "nn") { "no" } else { &code };
        let at = LANGUAGES.iter().position(|(known, _)| *known == code)?;
        u8::try_from(at).ok().map(Self)
    }

    /// The language that a folder of a path is named after: `docs/de/x.md`, `i18n/pt-BR/x.md`. A code
    /// alone may be another word further down (`elements/tr`), and `it` and `no` may be anywhere.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let folders = path.rsplit_once('/')?.0;
        folders.split('/').enumerate().find_map(|(depth, name)| {
            let is_tag = match name.split_once(['-', '_']) {
                None => name.len() == 2 && depth < DEEPEST && !matches!(name, "it" | "no"),
                Some((code, region)) => {
                    code.len() == 2
                        && (2..=4).contains(&region.len())
                        && region.bytes().all(|byte| byte.is_ascii_alphanumeric())
                }
            };
            Self::of_tag(name).filter(|_| is_tag)
        })
    }

    pub(crate) fn algorithm(self) -> Algorithm {
        LANGUAGES.get(usize::from(self.0)).map_or(Algorithm::English, |(_, algorithm)| *algorithm)
    }

    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }

    /// The letter of the language in the index.
    pub(crate) fn letter(self) -> char {
        char::from(b'a' + self.0)
    }

    pub(crate) fn of_letter(letter: char) -> Option<Self> {
        let number = u8::try_from(letter).ok()?.checked_sub(b'a')?;
        (usize::from(number) < LANGUAGES.len()).then_some(Self(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_a_language() {
        let german = Language::of_tag("de").unwrap();
        assert_eq!(german.algorithm(), Algorithm::German);
        assert_eq!([Language::of_tag("DE-at"), Language::of_tag(" de_DE ")], [Some(german); 2]);
        assert_eq!(Language::of_tag("nb"), Language::of_tag("no"));
        for tag in ["", "ja", "german", "d", "-"] {
            assert_eq!(Language::of_tag(tag), None, "{tag}");
        }
        assert_eq!(Language::ENGLISH, Language::of_tag("en").unwrap());
        for code in Language::codes() {
            let language = Language::of_tag(code).unwrap();
            assert_eq!(Language::of_letter(language.letter()), Some(language));
        }
        assert_eq!(Language::of_letter(char::from(b'a' + Language::COUNT as u8)), None);
    }

    #[test]
    fn a_folder_names_a_language() {
        let of = |path: &str| Language::of_path(path);
        assert_eq!(of("de/a.md"), Language::of_tag("de"));
        assert_eq!(of("content/pt-br/deep/a.md"), Language::of_tag("pt"));
        assert_eq!(of("docs/it-IT/a.md"), Language::of_tag("it"));
        assert_eq!(of("a/b/tr/x.md"), Language::of_tag("tr"));
        assert_eq!(of("a/b/c/tr/x.md"), None);
        assert_eq!(of("a/b/c/tr-TR/x.md"), Language::of_tag("tr"));
        for path in ["a.md", "de.md", "it/a.md", "no/a.md", "deep/a.md", "de-facto/a.md", "ja/a.md"]
        {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
