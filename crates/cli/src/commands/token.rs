//! `sabir token new`: a token for an HTTP client, of which the file gets only the digest.

use sabir::Token;

use crate::config::{TOKEN_CHARACTERS, is_plain};
use crate::report::{Failure, print_text, say};

/// Prints a new token, and the lines that make it known to a server.
pub(crate) fn new(name: &str, scopes: &[String]) -> Result<(), Failure> {
    let words = std::iter::once(name).chain(scopes.iter().map(String::as_str));
    if let Some(word) = words.into_iter().find(|word| !is_plain(word)) {
        let what = format!("invalid name or scope `{word}` (expected {TOKEN_CHARACTERS})");
        return Err(Failure::new(what));
    }
    let secret = format!("sabir_{}", nanoid::nanoid!(43));
    let failed = || Failure::new("the new token is not valid");
    let hash = Token::new(&secret).ok_or_else(failed)?.hash();
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let mut lines = vec![
        "[[token]]".to_owned(),
        format!("name = {}", quoted(name)),
        format!("hash = {}", quoted(&hash)),
    ];
    if !scopes.is_empty() {
        let scopes: Vec<_> = scopes.iter().map(|scope| quoted(scope)).collect();
        lines.push(format!("scopes = [{}]", scopes.join(", ")));
    }
    say("add these lines to sabir.toml; the token is printed only now:");
    lines.iter().for_each(|line| say(line));
    print_text(&format!("{secret}\n"));
    Ok(())
}
