//! Objects with known and unknown members, in any order.

use proptest::prelude::*;
use sabir_wire::Revision;

/// A member that a type knows: its name, the first revision that has it, and its value.
pub(crate) type Known = (&'static str, Revision, Value);

/// How to make a value.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// One of these texts.
    Text(&'static [&'static str]),
    /// An object.
    Object(fn() -> Vec<Known>),
    /// An array of objects.
    List(fn() -> Vec<Known>),
}

use Value::{List, Object, Text};

pub(crate) const UNKNOWN: &[&str] =
    &["null", "1.0", "-0", "1e400", "12345678901234567890123", r#"{"z":[1.50,{}],"a":"\u00e9"}"#];

/// An object with all `known` members of `revision` in any order, and unknown ones between them.
pub(crate) fn object(known: Vec<Known>, revision: Revision) -> BoxedStrategy<String> {
    let known = known.into_iter().filter(|(_, since, _)| *since <= revision);
    let known: Vec<_> = known
        .map(|(name, _, value)| value.texts(revision).prop_map(move |text| (name.to_owned(), text)))
        .collect();
    let unknown = ("(x-[a-c]{1,2}|é)", prop::sample::select(UNKNOWN));
    let unknown = prop::collection::vec(unknown, 0..3);
    (known, unknown, any::<u64>())
        .prop_map(|(mut members, unknown, seed)| {
            for (name, value) in unknown {
                if members.iter().all(|(known, _)| *known != name) {
                    members.push((name, value.to_owned()));
                }
            }
            shuffle(&mut members, seed);
            let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
        .boxed()
}

fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        items.swap(at, (seed >> 33) as usize % (at + 1));
    }
}

impl Value {
    fn texts(self, revision: Revision) -> BoxedStrategy<String> {
        match self {
            Text(texts) => prop::sample::select(texts).prop_map(str::to_owned).boxed(),
            Object(known) => object(known(), revision),
            List(known) => prop::collection::vec(object(known(), revision), 0..3)
                .prop_map(|items| format!("[{}]", items.join(",")))
                .boxed(),
        }
    }
}
