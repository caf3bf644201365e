//! Names of tools and arguments.
//!
//! A name is made of letters, digits, `_` and `-`, which every model's provider accepts. A name that
//! was cut, or that two operations share, ends in a hash of the operation's method and path. So a
//! name depends neither on the order of the operations nor on those that were chosen.

use std::collections::{BTreeMap, HashMap};

use xxhash_rust::xxh3::xxh3_64;

use crate::entry::Entry;

/// The longest name of a tool in bytes: the limit of the providers. Longer ones are cut.
pub const MAX_NAME: usize = 64;

/// The names of all operations, in their order. `renamed` gives names by operationId or key
/// (`GET /pets`), which are used as they are.
pub fn names(entries: &[Entry], prefix: &str, renamed: &BTreeMap<String, String>) -> Vec<String> {
    let given = |entry: &Entry| {
        let by_id = entry.id.as_ref().and_then(|id| renamed.get(id));
        by_id.or_else(|| renamed.get(&entry.key()))
    };
    let wanted: Vec<_> = entries
        .iter()
        .map(|entry| match given(entry) {
            Some(name) => name.clone(),
            None => format!("{prefix}{}", base(entry)),
        })
        .collect();
    // Names that differ in case only are confused by people and by some clients.
    let mut uses: HashMap<String, usize> = HashMap::new();
    for name in &wanted {
        *uses.entry(name.to_ascii_lowercase()).or_default() += 1;
    }
    let named = entries.iter().zip(wanted).map(|(entry, name)| {
        let is_given = given(entry).is_some();
        let is_shared = uses[&name.to_ascii_lowercase()] > 1;
        if is_given || (!is_shared && name.len() <= MAX_NAME) {
            name
        } else {
            with_hash(&name, &entry.key())
        }
    });
    named.collect()
}

/// The name without a prefix.
fn base(entry: &Entry) -> String {
    let id = entry.id.as_deref().map(|id| clean(id, "")).filter(|id| !id.is_empty());
    id.unwrap_or_else(|| {
        let path = clean(&entry.path, "");
        let method = entry.method.as_str().to_ascii_lowercase();
        if path.is_empty() { method } else { format!("{method}_{path}") }
    })
}

/// The text with other characters than letters, digits, `_`, `-` and `also` replaced by one `_`.
fn clean(text: &str, also: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '-' || also.contains(c) {
            out.push(c);
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.trim_matches('_').to_owned()
}

/// A name of at most [`MAX_NAME`] bytes that ends in a hash of `identity`.
fn with_hash(name: &str, identity: &str) -> String {
    // Six hexadecimal digits: enough to tell those operations apart that share a name.
    let hash = format!("_{:06x}", xxh3_64(identity.as_bytes()) & 0xff_ffff);
    let end = name.len().min(MAX_NAME - hash.len());
    let end = (0..=end).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{hash}", name[..end].trim_end_matches('_'))
}

/// The names of arguments, in their order. `wanted` has the name and the place of each, such as
/// `query`: the first argument of a name keeps it, a later one gets its place as a suffix. Names that
/// a provider would refuse are cleaned.
pub(crate) fn argument_names(wanted: &[(&str, &str)]) -> Vec<String> {
    let mut taken: HashMap<String, ()> = HashMap::new();
    let mut names = Vec::with_capacity(wanted.len());
    for (name, place) in wanted {
        let mut plain = clean_argument(name);
        if plain.is_empty() {
            plain = format!("argument_{:06x}", xxh3_64(name.as_bytes()) & 0xff_ffff);
        }
        if plain.len() > MAX_NAME {
            plain = with_hash(&plain, name);
        }
        let mut free = plain.clone();
        for attempt in 1.. {
            if taken.insert(free.clone(), ()).is_none() {
                break;
            }
            let suffix =
                if attempt == 1 { format!("_{place}") } else { format!("_{place}{attempt}") };
            let mut end = plain.len().min(MAX_NAME - suffix.len());
            while !plain.is_char_boundary(end) {
                end -= 1;
            }
            free = format!("{}{suffix}", &plain[..end]);
        }
        names.push(free);
    }
    names
}

/// Unlike the name of a tool, an argument keeps `_` at its ends and several in a row.
fn clean_argument(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { clean(name, "_.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Method;

    fn entry(method: Method, path: &str, id: Option<&str>) -> Entry {
        Entry {
            method,
            path: path.into(),
            id: id.map(Into::into),
            summary: None,
            tags: Vec::new(),
            deprecated: false,
        }
    }

    #[test]
    fn names_are_cleaned_cut_unique_and_independent_of_order() {
        let mut entries = vec![
            entry(Method::Get, "/", Some("meta/root")),
            entry(Method::Get, "/pets/{petId}.json", None),
            entry(Method::Post, "/", None),
            entry(Method::Get, "/a", Some("twice")),
            entry(Method::Get, "/b", Some("Twice")),
            entry(Method::Get, "/c", Some(&"long".repeat(30))),
            entry(Method::Get, "/d", Some("äöü")),
        ];
        let renamed = BTreeMap::from([("POST /".to_owned(), "create".to_owned())]);
        let named = names(&entries, "x_", &renamed);
        assert_eq!(named[0], "x_meta_root");
        assert_eq!(named[1], "x_get_pets_petId_json");
        assert_eq!(named[2], "create");
        assert!(named[3].starts_with("x_twice_") && named[4].starts_with("x_Twice_"));
        assert_ne!(named[3].to_lowercase(), named[4].to_lowercase());
        assert_eq!(named[5].len(), MAX_NAME);
        assert_eq!(named[6], "x_get_d");
        entries.reverse();
        let mut reversed = names(&entries, "x_", &renamed);
        reversed.reverse();
        assert_eq!(named, reversed);
    }

    #[test]
    fn a_name_of_exactly_the_limit_is_kept() {
        let long = "a".repeat(MAX_NAME);
        let named = |id: &str| names(&[entry(Method::Get, "/", Some(id))], "", &BTreeMap::new());
        assert_eq!(named(&long)[0], long);
        assert_ne!(named(&(long.clone() + "a")), [long + "a"]);
    }

    #[test]
    fn a_later_argument_of_the_same_name_gets_its_place_as_suffix() {
        let wanted = [
            ("id", "path"),
            ("id", "query"),
            ("id", "body"),
            ("filter[a]", "query"),
            ("_x__y", "query"),
            ("$", "query"),
        ];
        let names = argument_names(&wanted);
        assert_eq!(names[..5], ["id", "id_query", "id_body", "filter_a", "_x__y"]);
        assert!(names[5].starts_with("argument_"), "{names:?}");
        let long = "é".repeat(80);
        let twice = argument_names(&[("a", "body"), ("a", "body"), ("a", "body"), (&long, "body")]);
        assert_eq!(twice[..3], ["a", "a_body", "a_body2"]);
        assert!(twice[3].len() <= MAX_NAME);
    }
}
