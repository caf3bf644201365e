//! Arbitrary operations on a session, as the fuzzer runs them.

use proptest::prelude::*;
use sabir_testkit::fuzz;

/// So many cases, unless `PROPTEST_CASES` says otherwise.
fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_given = std::env::var_os("PROPTEST_CASES").is_some();
    if is_given { default } else { ProptestConfig { cases, ..default } }
}

proptest! {
    #![proptest_config(cases(500))]

    /// It never panics, answers neither a response nor a notification, answers each request at most
    /// once, keeps its limits, and wants to be woken only when there is something to do.
    #[test]
    fn whatever_happens_the_rules_of_json_rpc_hold(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        fuzz::session(&bytes);
    }
}
