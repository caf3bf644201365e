//! JSON of clients and servers: it is read into a type and written again at the same revision.
//! Unknown members, the order of all members and the spelling of numbers stay.

use proptest::prelude::*;
use sabir_wire::types::*;
use sabir_wire::{Meta, Method, ParsedRequest, Raw, Revision};

use crate::members::{FIRST, ICONS, NEWEST, REQUESTS, STRUCTURED, TYPES, again};
use crate::object::object;

fn any_request() -> impl Strategy<Value = (&'static str, Revision, String)> {
    (prop::sample::select(REQUESTS), prop::sample::select(&Revision::ALL[..])).prop_flat_map(
        |((method, known), revision)| {
            object(known(), revision).prop_map(move |params| (method, revision, params))
        },
    )
}

fn any_type() -> impl Strategy<Value = (usize, Revision, String)> {
    (0..TYPES.len(), prop::sample::select(&Revision::ALL[..])).prop_flat_map(|(nth, revision)| {
        let (_, since, known) = TYPES[nth];
        let revision = revision.max(since);
        object(known(), revision).prop_map(move |text| (nth, revision, text))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_is_read_is_written_again_as_it_was((nth, revision, text) in any_type()) {
        let json = Raw::parse(text).unwrap();
        let written = TYPES[nth].0(&json, revision);
        prop_assert_eq!(written.text(), json.text());
    }

    /// The members of the params may change places: they are those of several authors.
    #[test]
    fn a_request_is_written_again_with_all_its_members((method, revision, text) in any_request()) {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{text}}}"#);
        let params = Raw::parse(text).unwrap();
        let careful = ParsedRequest::read(1.into(), Method::named(method), Some(params.clone()));
        let quick = ParsedRequest::decode(&frame.into(), 9).map(|quick| quick.request.unwrap());
        let request = careful.request.unwrap();
        prop_assert_eq!(quick.as_ref().unwrap_or(&request), &request);
        let meta = Meta { raw: Some(Raw::parse(r#"{"a":1}"#).unwrap()), ..Meta::default() };
        let written = request.to_params(&meta, revision).unwrap();
        let (mut written, mut sent) = (written.members(), params.members());
        written.retain(|(name, _)| name != "_meta");
        let order = |(name, _): &(String, Raw)| name.clone();
        written.sort_by_key(order);
        sent.sort_by_key(order);
        prop_assert_eq!(written, sent);
    }

    #[test]
    fn unknown_members_survive_in_every_revision(
        (nth, _, text) in any_type(),
        revision in prop::sample::select(&Revision::ALL[..]),
    ) {
        let json = Raw::parse(text).unwrap();
        let unknown = |json: &Raw| -> Vec<_> {
            let members = json.members().into_iter();
            members.filter(|(name, _)| name.starts_with("x-") || name == "é").collect()
        };
        let written = TYPES[nth].0(&json, revision);
        // In an old revision a link is plain text.
        if json.member("type").is_none() {
            prop_assert_eq!(unknown(&written), unknown(&json));
        }
    }
}

#[test]
fn an_array_of_one_block_is_one_block_in_a_revision_without_arrays() {
    let sample = |content: &str| {
        let message = format!(r#"{{"x":1,"content":{content},"role":"user"}}"#);
        Raw::parse(format!(r#"{{"messages":[{message}],"maxTokens":1}}"#)).unwrap()
    };
    let (one, array) = (r#"{"type":"text","text":"a"}"#, r#"[{"type":"text","text":"a"}]"#);
    for (written, revision) in [(array, NEWEST), (array, ICONS), (one, STRUCTURED), (one, FIRST)] {
        assert_eq!(again::<Sample>(&sample(array), revision), sample(written), "{revision:?}");
    }
}
