use super::*;

fn stems(text: &str) -> String {
    let mut tokenizer = StemTokenizer::new();
    let mut stream = tokenizer.token_stream(text);
    let mut out = Vec::new();
    while stream.advance() {
        out.push(format!("{}@{}", stream.token().text, stream.token().position));
    }
    out.join(" ")
}

#[test]
fn english_is_stemmed_and_numbers_are_kept() {
    assert_eq!(stems("Designing 2 tools, designed"), "design@0 2@1 tool@2 design@3");
    assert_eq!(stems("2025-11-25 v1.2"), "2025@0 11@1 25@2 v1@3 2@4");
}

#[test]
fn scripts_without_spaces_are_split_into_characters_and_pairs() {
    assert_eq!(stems("上下文"), "上@0 上下@0 下@1 下文@1 文@2");
    assert_eq!(stems("MCP工具 x"), "mcp@0 工@1 工具@1 具@2 x@3");
    assert_eq!(stems("上。下"), "上@0 下@1");
}

#[test]
fn camel_case_is_split_and_kept_whole() {
    assert_eq!(stems("structuredContent is"), "structuredcont@0 structur@0 content@1 is@2");
    assert_eq!(stems("HTTPServer"), "httpserver@0 http@0 server@1");
    assert_eq!(stems("MCPs iPhone URL"), "mcp@0 iphon@1 url@2");
    assert_eq!(stems("list_articles"), "list@0 articl@1");
}

#[test]
fn an_apostrophe_joins_short_endings_only() {
    assert_eq!(stems("don't server’s l'article ''x'"), "dont@0 server@1 l@2 articl@3 x@4");
}

#[test]
fn a_long_run_of_letters_takes_a_position_and_is_not_a_word() {
    let longest = "a".repeat(LONGEST_WORD);
    assert_eq!(stems(&format!("x {longest} y")).split(' ').count(), 3);
    assert_eq!(stems(&format!("x {longest}a y")), "x@0 y@2");
}

#[test]
fn punctuation_has_no_words() {
    assert_eq!(stems("&& || +- \"\" \u{0}\u{1b} 🙂 -- '"), "");
}

#[test]
fn a_text_is_stemmed_in_its_language() {
    let german = Language::of_tag("de").unwrap();
    assert_eq!(stems(&in_language("Die Häuser", german)), "die@0 haus@1");
    assert_eq!(stems(&in_language("the tools", Language::ENGLISH)), "the@0 tool@1");
    // A mark without a language is ignored.
    assert_eq!(stems("\u{1d}\u{1d} tools"), "tool@0");
}

#[test]
fn the_dictionary_has_words_as_written() {
    let mut tokenizer = SpellingTokenizer::default();
    let mut stream = tokenizer.token_stream("Engineering 工具 Ünits ENGINEERING");
    let mut words = Vec::new();
    while stream.advance() {
        words.push(stream.token().text.clone());
    }
    assert_eq!(words, ["engineering", "units"]);
}

#[test]
fn marks_of_indic_scripts_do_not_split_words() {
    assert_eq!(Splitter::new("हिन्दी भाषा").count(), 2);
}
