//! Messages that may belong to calls that have ended.

use super::*;

const CANCELLED: &str = r#"> {"jsonrpc":"2.0","method":"notifications/cancelled","params":"…"}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
const GONE: &str = r#"> {"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"the call that asks has ended"}}"#;

#[test]
fn a_cancelled_call_may_have_asked_until_it_is_answered() {
    let begin = format!(
        r#": call a
        > "…"
        : cancel a
        {CANCELLED}
        < {ASK}
        {GONE}
        : call b
        > "…""#
    );
    let log = r#"< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let both = format!("{begin}\n< {ASK}\n! ask \"q\" roots/list of a b\n{log}\n! log of a b");
    pipe(&legacy(&both));
    let answered = r#"< {"jsonrpc":"2.0","id":3,"result":{}}"#;
    let alone = format!("< {ASK}\n! ask \"q\" roots/list of b\n{log}\n! log of b");
    pipe(&legacy(&format!("{begin}\n{answered}\n{alone}")));
    // Another call of the same client may get its messages.
    let same = begin.replace("call b", "call same");
    let same = format!("{same}\n< {ASK}\n! ask \"q\" roots/list of same\n{log}\n! log of same");
    pipe(&legacy(&same));
    // A list asks nothing.
    let listed = ": list l\n> \"…\"\n: cancel l\n".to_owned() + CANCELLED;
    pipe(&legacy(&format!("{listed}\n: call b\n> \"…\"\n{alone}")));
}

#[test]
fn a_call_that_took_too_long_may_still_ask() {
    pipe(&legacy(&format!(
        r#": call a
        > "…"
        + 10s
        {CANCELLED}
        ! failed a no answer within 10000 ms
        < {ASK}
        {GONE}
        + 600s
        < {ASK}
        ! ask "q" roots/list of"#
    )));
}

#[test]
fn a_message_in_the_exchange_of_an_ended_call_belongs_to_no_other() {
    let other = r#"{"jsonrpc":"2.0","method":"notifications/other"}"#;
    let log =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    http(&legacy(&format!(
        r#": call a
        > "…"
        : call b
        > "…"
        : cancel a
        {CANCELLED}
        ! abort a
        <a {ASK}
        {GONE}
        <a {log}
        <a {other}
        <b {log}
        ! log of b"#
    )));
}
