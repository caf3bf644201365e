//! The stems of words: the common part of their forms.

use frostem::Stemmer;
use rustc_hash::FxHashMap;

use crate::fold::{fold, fold_into};
use crate::language::Language;

/// The size of the cache of one language. When it is full, it is emptied.
const STEMS_REMEMBERED: usize = 1 << 15;

/// Stemmers for all languages, each made when it is needed, with a cache.
#[derive(Clone, Default)]
pub(crate) struct Stems(Vec<Option<OneLanguage>>);

#[derive(Clone)]
struct OneLanguage {
    stemmer: Stemmer,
    known: FxHashMap<Box<str>, Box<str>>,
}

impl OneLanguage {
    /// Replaces a word by its stem.
    fn stem(&mut self, word: &mut String) {
        if let Some(stem) = self.known.get(word.as_str()) {
            word.replace_range(.., stem);
            return;
        }
        let stem = self.stemmer.stem(word).into_owned();
        if self.known.len() == STEMS_REMEMBERED {
            self.known.clear();
        }
        self.known.insert(word.as_str().into(), stem.as_str().into());
        *word = stem;
    }
}

impl Stems {
    pub(crate) fn new() -> Self {
        Self(vec![None; Language::COUNT])
    }

    fn of_language(&mut self, language: Language) -> &mut OneLanguage {
        let new = || OneLanguage {
            stemmer: Stemmer::new(language.algorithm()),
            known: FxHashMap::default(),
        };
        self.0[language.number()].get_or_insert_with(new)
    }

    /// Writes the folded stem of a word to `out`. Words with digits are not stemmed.
    pub(crate) fn stem_into(&mut self, language: Language, word: &str, out: &mut String) {
        out.clear();
        if language == Language::ENGLISH {
            // Accents are those of foreign words.
            fold_into(word, out);
            if out.len() >= 3 && out.bytes().all(|b| b.is_ascii_lowercase()) {
                self.of_language(language).stem(out);
            }
            return;
        }
        // The rules of other languages are written for words with their accents.
        if word.chars().count() < 3 || !word.chars().all(char::is_alphabetic) {
            return fold_into(word, out);
        }
        let mut stem = word.to_lowercase();
        self.of_language(language).stem(&mut stem);
        fold_into(&stem, out);
        if out.is_empty() {
            fold_into(word, out);
        }
    }

    /// The folded stem of a word.
    pub(crate) fn of(&mut self, language: Language, word: &str) -> String {
        let mut out = String::new();
        self.stem_into(language, word, &mut out);
        out
    }
}

/// Stems of words whose language is unknown: in each language of the articles.
pub(crate) struct Stemming<'a> {
    pub(crate) languages: &'a [Language],
    pub(crate) stems: Stems,
}

impl<'a> Stemming<'a> {
    pub(crate) fn new(languages: &'a [Language]) -> Self {
        Self { languages, stems: Stems::new() }
    }

    /// The different stems of a word, at least one.
    pub(crate) fn all(&mut self, word: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for language in self.languages {
            let stem = self.stems.of(*language, word);
            if !all.contains(&stem) {
                all.push(stem);
            }
        }
        if all.is_empty() { vec![fold(word)] } else { all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded() {
        let mut stems = Stems::new();
        for n in 0..=STEMS_REMEMBERED {
            let letters: String =
                n.to_string().bytes().map(|b| char::from(b - b'0' + b'a')).collect();
            stems.of(Language::ENGLISH, &format!("xx{letters}"));
        }
        let english = stems.0[0].as_ref().unwrap();
        assert!(english.known.len() <= STEMS_REMEMBERED);
        assert_eq!(stems.of(Language::ENGLISH, "tools"), "tool");
    }

    #[test]
    fn each_language_has_its_forms() {
        let mut stems = Stems::new();
        for (language, forms) in [
            ("en", ["designing", "Designed"]),
            ("de", ["Häuser", "Hauses"]),
            ("fr", ["développeurs", "développeur"]),
            ("es", ["configuraciones", "configuración"]),
            ("ru", ["настройки", "настройка"]),
            ("sv", ["bilarna", "bilar"]),
            ("pt", ["configurações", "configuração"]),
            ("it", ["funzioni", "funzione"]),
        ] {
            let language = Language::of_tag(language).unwrap();
            let [a, b] = forms.map(|form| stems.of(language, form));
            assert_eq!(a, b);
        }
        let german = Language::of_tag("de").unwrap();
        assert_eq!(stems.of(german, "hauser"), stems.of(german, "Häuser"));
        assert_eq!(stems.of(german, "v2"), "v2");
        assert_eq!(Stemming::new(&[Language::ENGLISH, german]).all("tool"), ["tool"]);
        assert_eq!(Stemming::new(&[]).all("Tools"), ["tools"]);
    }
}
