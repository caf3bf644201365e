//! Bounds for the client's own data, so that a session stays small.

use sabir_wire::types::ClientCapabilities;
use sabir_wire::{Id, Problem, Raw};

/// The limit in bytes of each: a client's name, its capabilities, an id, a token.
const MAX_WORDS: usize = 1 << 10;

/// The limit in bytes of a name and of a version, where the whole `clientInfo` is too long.
const MAX_NAME: usize = 256;

/// A copy of `clientInfo`, as a session outlives its message. If it is too long, the beginnings of
/// its name and version.
pub(crate) fn kept_name(client: &Raw) -> Option<Raw> {
    if client.text().len() <= MAX_WORDS {
        return Some(client.compact());
    }
    let short = |name| {
        let text: String = client.member(name)?.read().ok()?;
        Some((name, text[..text.floor_char_boundary(MAX_NAME)].to_owned()))
    };
    let kept = ["name", "version"].into_iter().filter_map(short);
    Raw::of(&kept.collect::<std::collections::BTreeMap<_, _>>()).ok()
}

/// A copy of a client's capabilities, without the unknown ones if they are too long.
pub(crate) fn kept_capabilities(capabilities: &ClientCapabilities) -> ClientCapabilities {
    let mut kept = capabilities.clone();
    kept.extra = kept.extra.compact(MAX_WORDS);
    kept
}

/// Refuses an id that is too long to be kept.
pub(crate) fn check_id(id: &Id) -> Result<(), Problem> {
    match id.size() > MAX_WORDS {
        true => Err(Problem::Request(too_long("id").into())),
        false => Ok(()),
    }
}

/// Refuses a progress token that is too long to be kept.
pub(crate) fn check_token(token: Option<&Id>) -> Result<(), Problem> {
    match token.is_some_and(|token| token.size() > MAX_WORDS) {
        true => Err(Problem::Params(too_long("progressToken").into())),
        false => Ok(()),
    }
}

fn too_long(what: &str) -> String {
    format!("`{what}` is too long (expected at most {MAX_WORDS} bytes)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_up_to_its_limit_and_of_a_longer_one_the_beginning() {
        let client = |length: usize| {
            let name = "é".repeat(length / 2);
            let rest = MAX_WORDS - r#"{"name":"","version":"1","x":""}"#.len() - length / 2 * 2;
            let text = format!(r#"{{"name":"{name}","version":"1","x":"{}"}}"#, "x".repeat(rest));
            Raw::parse(text).unwrap()
        };
        let edge = client(600);
        assert_eq!(edge.text().len(), MAX_WORDS);
        assert_eq!(kept_name(&edge).unwrap().text(), edge.text());
        let long = Raw::parse(edge.text().replace("\"x\":\"", "\"x\":\"x")).unwrap();
        let kept = kept_name(&long).unwrap();
        assert_eq!(kept.text(), format!(r#"{{"name":"{}","version":"1"}}"#, "é".repeat(128)));
    }

    #[test]
    fn an_id_or_a_token_may_be_so_long_and_no_longer() {
        for (length, is_kept) in [(MAX_WORDS, true), (MAX_WORDS + 1, false)] {
            let id = Id::from(&*"x".repeat(length));
            assert_eq!(check_id(&id).is_ok(), is_kept, "{length}");
            assert_eq!(check_token(Some(&id)).is_ok(), is_kept, "{length}");
        }
        assert!(check_token(None).is_ok());
    }
}
