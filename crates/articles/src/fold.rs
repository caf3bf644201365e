//! Folds words, so that spellings that people take for the same are the same.

use unicode_normalization::UnicodeNormalization;

/// Appends the folded `text` to `out`: lower case, without accents and apostrophes.
pub(crate) fn fold_into(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.extend(
            text.bytes().filter(|&b| b != b'\'').map(|b| char::from(b.to_ascii_lowercase())),
        );
        return;
    }
    let plain = text.chars().flat_map(char::to_lowercase).nfkd().filter(|&c| !is_dropped(c));
    let spelt = plain.flat_map(|c| {
        let (first, second) = spelling(c);
        std::iter::once(first).chain(second)
    });
    out.extend(spelt.nfc());
}

/// Folds a text; see [`fold_into`].
pub(crate) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    fold_into(text, &mut out);
    out
}

/// Accents of Latin, Greek and Cyrillic, and points of Hebrew and Arabic, which people leave out. The
/// vowel signs of Indic scripts are kept.
fn is_dropped(c: char) -> bool {
    matches!(c,
        '\'' | '\u{2019}' | '\u{0300}'..='\u{036F}' | '\u{0591}'..='\u{05C7}' | '\u{064B}'..='\u{0652}' | '\u{0670}')
}

/// The plain spelling of letters that Unicode does not decompose.
fn spelling(c: char) -> (char, Option<char>) {
    match c {
        'ß' => ('s', Some('s')),
        'æ' => ('a', Some('e')),
        'œ' => ('o', Some('e')),
        'þ' => ('t', Some('h')),
        'ø' => ('o', None),
        'ł' => ('l', None),
        'đ' | 'ð' => ('d', None),
        'ħ' => ('h', None),
        'ı' => ('i', None),
        'ς' => ('σ', None),
        other => (other, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_are_removed_and_other_letters_are_spelt_out() {
        assert_eq!(
            fold("Ünïcödé STRASSE Straße Ærø Łódź ΛΌΓΟΣ Ёлка"),
            "unicode strasse strasse aero lodz λογοσ елка"
        );
        assert_eq!(fold("e\u{301}"), "e");
        assert_eq!(fold("İstanbul"), "istanbul");
    }

    #[test]
    fn scripts_that_need_their_marks_keep_them() {
        assert_eq!(fold("हिन्दी"), "हिन्दी");
        assert_eq!(fold("한국어"), "한국어");
        assert_eq!(fold("が"), "が");
    }
}
