//! Questions to the client, from one handler for both eras.

use sabir_wire::{Era, Revision};

use crate::{ABLE, after_greeting, after_hello, transcript};

const FORM: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}"#;
const PAGE: &str = r#"{"method":"elicitation/create","params":{"mode":"url","message":"go","url":"https://example.com"}}"#;
const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9}}"#;
const SAMPLE_TOOLS: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9,"tools":[{"name":"t","description":"d","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;

const CALL: &str = r#"> {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t","arguments":{"a":1}}}
        ! start c"#;
const DONE: &str = r#"= c {"content":[]}
        < {"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#;

/// The params of a question as a legacy request carries them.
fn params(question: &str) -> &str {
    question.split_once(r#""params":"#).map_or("", |(_, params)| &params[..params.len() - 1])
}

#[test]
fn a_legacy_client_is_asked_by_a_request_and_the_call_begins_again_with_the_answer() {
    let form = params(FORM);
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        = c asks {{"inputRequests":{{"who":{FORM}}},"requestState":"sealed"}}
        < {{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{form}}}
        > {{"jsonrpc":"2.0","id":1,"result":{{"action":"accept","content":{{"name":"Ada"}}}}}}
        ! start c
        {DONE}
    "#
    )));
}

#[test]
fn the_call_that_begins_again_has_its_answers_and_its_state() {
    use sabir_testkit::{Event, Player as _, SessionPlayer, play};
    use sabir_wire::Request;
    let mut player = SessionPlayer::new(crate::rules());
    play(&mut player, &after_hello(""));
    let call =
        br#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t","arguments":{"z":1,"a":12345678901234567890}}}"#;
    player.say(call);
    let Some(Event::Start(number)) = player.event() else { panic!("no call") };
    let ask =
        format!(r#"{{"inputRequests":{{"who":{FORM},"where":{ROOTS}}},"requestState":"kept"}}"#);
    player.finish(number, sabir_testkit::Ending::Asks(sabir_wire::Raw::parse(ask).unwrap()));
    assert!(player.hear().is_some() && player.hear().is_some() && player.hear().is_none());
    player.say(br#"{"jsonrpc":"2.0","id":2,"result":{"roots":[],"n":12345678901234567890}}"#);
    assert_eq!(player.event(), None, "one answer is missing");
    player.say(br#"{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}"#);
    assert_eq!(player.event(), Some(Event::Start(number)));
    let Request::CallTool(again) = &player.call(number).unwrap().request else { panic!("no tool") };
    assert_eq!(again.arguments.as_ref().unwrap().text(), r#"{"z":1,"a":12345678901234567890}"#);
    assert_eq!(again.resume.state.as_deref(), Some("kept"));
    let mut answers = again.resume.answers.clone();
    answers.sort_by(|(a, _), (b, _)| a.cmp(b));
    let answers: Vec<_> = answers.iter().map(|(key, raw)| (key.as_str(), raw.text())).collect();
    assert_eq!(
        answers,
        [("where", r#"{"roots":[],"n":12345678901234567890}"#), ("who", r#"{"action":"decline"}"#)]
    );
}

#[test]
fn a_modern_client_gets_the_questions_as_a_result_and_is_never_sent_a_request() {
    transcript(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":@able}}}}
        ! start 1
        = 1 asks {{"inputRequests":{{"who":{FORM},"page":{PAGE},"model":{SAMPLE_TOOLS},"where":{ROOTS}}},"requestState":"sealed"}}
        < {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required","inputRequests":{{"who":{FORM},"page":{PAGE},"model":{SAMPLE_TOOLS},"where":{ROOTS}}},"requestState":"sealed","_meta":@server}}}}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t","inputResponses":{{"who":{{"action":"cancel"}}}},"requestState":"sealed","_meta":@able}}}}
        ! start 2
        = 2 {{"content":[]}}
        < {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"complete","content":[],"_meta":@server}}}}
    "#
    ));
}

#[test]
fn prompts_and_resources_may_ask_too() {
    for (method, params, result) in [
        ("prompts/get", r#""name":"p""#, r#"{"messages":[]}"#),
        ("resources/read", r#""uri":"a:b""#, r#"{"contents":[]}"#),
    ] {
        transcript(&after_hello(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}
            ! start 1
            = 1 asks {{"inputRequests":{{"where":{ROOTS}}}}}
            < {{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
            > {{"jsonrpc":"2.0","id":1,"result":{{"roots":[]}}}}
            ! start 1
            = 1 {result}
            < {{"jsonrpc":"2.0","id":1,"result":{result}}}
            > {{"jsonrpc":"2.0","id":2,"method":"{method}","params":{{{params},"_meta":@able}}}}
            ! start 2
            = 2 asks {{"inputRequests":{{"where":{ROOTS}}}}}
            < {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"input_required","inputRequests":{{"where":{ROOTS}}},"_meta":@server}}}}
        "#
        )));
    }
}

#[test]
fn several_questions_are_asked_at_once_and_answered_in_any_order() {
    let (sample, form) = (params(SAMPLE), params(FORM));
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        = c asks {{"inputRequests":{{"model":{SAMPLE},"where":{ROOTS},"who":{FORM}}}}}
        < {{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{sample}}}
        < {{"jsonrpc":"2.0","id":2,"method":"roots/list"}}
        < {{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{form}}}
        > {{"jsonrpc":"2.0","id":3,"result":{{"action":"cancel"}}}}
        > {{"jsonrpc":"2.0","id":1,"result":{{"role":"assistant","content":{{"type":"text","text":"hi"}},"model":"m"}}}}
        > {{"jsonrpc":"2.0","id":2,"result":{{"roots":[]}}}}
        ! start c
        {DONE}
    "#
    )));
}

#[test]
fn a_call_may_ask_again_and_again_with_new_ids() {
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        = c asks {{"inputRequests":{{"where":{ROOTS}}}}}
        < {{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
        > {{"jsonrpc":"2.0","id":1,"result":{{"roots":[]}}}}
        ! start c
        = c asks {{"inputRequests":{{"where":{ROOTS}}},"requestState":"second"}}
        < {{"jsonrpc":"2.0","id":2,"method":"roots/list"}}
        > {{"jsonrpc":"2.0","id":1,"result":{{"roots":[]}}}}
        > {{"jsonrpc":"2.0","id":2,"result":{{"roots":[]}}}}
        ! start c
        {DONE}
    "#
    )));
}

#[test]
fn two_calls_ask_at_once_and_each_gets_its_own_answer() {
    transcript(&after_hello(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"name":"t"}}}}
        ! start a
        > {{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{{"name":"t"}}}}
        ! start b
        = a asks {{"inputRequests":{{"where":{ROOTS}}}}}
        < {{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
        = b asks {{"inputRequests":{{"where":{ROOTS}}}}}
        < {{"jsonrpc":"2.0","id":2,"method":"roots/list"}}
        > {{"jsonrpc":"2.0","id":2,"result":{{"roots":[]}}}}
        ! start b
        > {{"jsonrpc":"2.0","id":"1","result":{{"roots":[]}}}}
        > {{"jsonrpc":"2.0","id":1,"result":{{"roots":[]}}}}
        ! start a
    "#
    )));
}

#[test]
fn a_call_that_only_wants_to_begin_again_does_so_in_either_era() {
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        = c asks {{"requestState":"later"}}
        ! start c
        {DONE}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t","_meta":@modern}}}}
        ! start 2
        = 2 asks {{"requestState":"later"}}
        < {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"input_required","requestState":"later","_meta":@server}}}}
    "#
    )));
}

#[test]
fn a_question_that_is_refused_fails_the_tool_and_withdraws_the_others() {
    let form = params(FORM);
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        = c asks {{"inputRequests":{{"who":{FORM},"where":{ROOTS}}}}}
        < {{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{form}}}
        < {{"jsonrpc":"2.0","id":2,"method":"roots/list"}}
        > {{"jsonrpc":"2.0","id":1,"error":{{"code":-1,"message":"User rejected sampling request"}}}}
        < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2,"reason":"…"}}}}
        < {{"jsonrpc":"2.0","id":"c","result":{{"content":[{{"type":"text","text":"…"}}],"isError":true}}}}
        > {{"jsonrpc":"2.0","id":2,"result":{{"roots":[]}}}}
    "#
    )));
}

#[test]
fn a_call_that_takes_refusals_begins_again_with_the_answers_and_the_errors() {
    use sabir_testkit::{Ending, Event, Player as _, SessionPlayer, play};
    let mut player = SessionPlayer::new(crate::rules()).resumed();
    play(&mut player, &after_hello(""));
    player.say(br#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}"#);
    let Some(Event::Start(number)) = player.event() else { panic!("no call") };
    let ask = format!(
        r#"{{"inputRequests":{{"who":{FORM},"where":{ROOTS}}},"requestState":"kept","takesRefusals":true}}"#
    );
    player.finish(number, Ending::Asks(sabir_wire::Raw::parse(ask).unwrap()));
    assert!(player.hear().is_some() && player.hear().is_some());
    let error = r#"{"code":-1,"message":"User rejected","data":{"n":12345678901234567890}}"#;
    player.say(format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#).as_bytes());
    assert_eq!((player.hear(), player.event()), (None, None), "one answer is missing");
    player.say(br#"{"jsonrpc":"2.0","id":2,"result":{"roots":[]}}"#);
    assert_eq!(player.event(), Some(Event::Start(number)));
    let mut request = player.call(number).unwrap().request.clone();
    let resume = request.resume_mut().unwrap();
    assert_eq!(resume.state.as_deref(), Some("kept"));
    assert_eq!((&*resume.answers[0].0, resume.answers[0].1.text()), ("where", r#"{"roots":[]}"#));
    let [(key, refusal)] = &resume.refusals[..] else { panic!("{:?}", resume.refusals) };
    assert_eq!((&**key, &*serde_json::to_string(refusal).unwrap()), ("who", error));
}

#[test]
fn a_question_that_is_refused_is_an_error_where_a_result_cannot_say_so() {
    for (method, params) in [("prompts/get", r#""name":"p""#), ("resources/read", r#""uri":"a:b""#)]
    {
        transcript(&after_hello(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}
            ! start 1
            = 1 asks {{"inputRequests":{{"where":{ROOTS}}}}}
            < {{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
            > {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"no roots here"}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32603,"message":"the client refused roots/list: no roots here"}}}}
            > {{"jsonrpc":"2.0","id":2,"method":"{method}","params":{{{params}}}}}
            ! start 2
            = 2 fails for some reason
            < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32603,"message":"for some reason"}}}}
        "#
        )));
    }
}

#[test]
fn a_client_that_does_not_answer_in_time_loses_the_call_and_is_told_to_forget_the_question() {
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        + 29s
        = c asks {{"inputRequests":{{"where":{ROOTS}}}}}
        < {{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
        + 59s
        + 1s
        < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"…"}}}}
        ! abort c
        < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32603,"message":"…"}}}}
        > {{"jsonrpc":"2.0","id":1,"result":{{"roots":[]}}}}
    "#
    )));
}

#[test]
fn a_call_that_begins_again_without_a_question_has_the_time_of_a_call() {
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        = c asks {{"requestState":"later"}}
        ! start c
        + 30s
        ! abort c
        < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32603,"message":"the call took too long"}}}}
    "#
    )));
}

#[test]
fn a_call_that_begins_again_has_all_its_time_again() {
    transcript(&after_hello(&format!(
        r#"
        {CALL}
        + 29s
        = c asks {{"inputRequests":{{"where":{ROOTS}}}}}
        < {{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
        + 59s
        > {{"jsonrpc":"2.0","id":1,"result":{{"roots":[]}}}}
        ! start c
        + 29s
        + 1s
        ! abort c
        < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32603,"message":"…"}}}}
    "#
    )));
}

/// The required capabilities of each kind of question, and those that the error names as missing.
const NEEDS: [(&str, &str, &str); 5] = [
    (FORM, r#"{"elicitation":{}}"#, r#"{"elicitation":{"url":{}}}"#),
    (PAGE, r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{}}"#),
    (SAMPLE, r#"{"sampling":{}}"#, r#"{"elicitation":{}}"#),
    (SAMPLE_TOOLS, r#"{"sampling":{"tools":{}}}"#, r#"{"sampling":{}}"#),
    (ROOTS, r#"{"roots":{}}"#, "{}"),
];

#[test]
fn a_modern_client_is_asked_only_what_it_declared() {
    let meta = |capabilities: &str| {
        format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
        )
    };
    for (question, needed, other) in NEEDS {
        for method in [r#""tools/call""#, r#""prompts/get""#] {
            let ask = format!(r#"= 1 asks {{"inputRequests":{{"q":{question}}}}}"#);
            let call = |capabilities| {
                let meta = meta(capabilities);
                format!(
                    r#"> {{"jsonrpc":"2.0","id":1,"method":{method},"params":{{"name":"t","_meta":{meta}}}}}"#
                )
            };
            let may =
                r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","…":"…"}}"#;
            transcript(&format!("{}\n! start 1\n{ask}\n< {may}", call(needed)));
            for lacking in [other, "{}"] {
                let may_not = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32021,"message":"…","data":{{"requiredCapabilities":{needed}}}}}}}"#
                );
                transcript(&format!("{}\n! start 1\n{ask}\n< {may_not}", call(lacking)));
            }
        }
    }
}

#[test]
fn all_that_is_missing_is_named() {
    transcript(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":@modern}}}}
        ! start 1
        = 1 asks {{"inputRequests":{{"a":{FORM},"b":{PAGE},"c":{SAMPLE_TOOLS},"d":{ROOTS}}}}}
        < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32021,"message":"…","data":{{"requiredCapabilities":{{"roots":{{}},"sampling":{{"tools":{{}}}},"elicitation":{{"form":{{}},"url":{{}}}}}}}}}}}}
    "#
    ));
}

#[test]
fn a_legacy_client_is_asked_only_what_it_declared() {
    for (question, needed, other) in NEEDS {
        let ask = format!(r#"= c asks {{"inputRequests":{{"q":{question}}}}}"#);
        let newest = Revision::V2025_11_25;
        let may = r#"{"jsonrpc":"2.0","id":1,"method":"…","…":"…"}"#;
        transcript(&after_greeting(newest, needed, &format!("{CALL}\n{ask}\n< {may}")));
        for lacking in [other, "{}"] {
            let may_not =
                r#"{"jsonrpc":"2.0","id":"c","error":{"code":-32600,"message":"…","data":"…"}}"#;
            transcript(&after_greeting(newest, lacking, &format!("{CALL}\n{ask}\n< {may_not}")));
        }
    }
}

/// A client may declare capabilities that its revision does not have.
#[test]
fn a_legacy_client_is_asked_only_what_its_revision_can_say() {
    let older = |than| {
        let legacy = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy);
        legacy.filter(move |revision| *revision < than)
    };
    let unsayable = older(Revision::V2025_06_18).map(|revision| (revision, FORM));
    let unsayable = unsayable.chain(older(Revision::V2025_11_25).map(|r| (r, PAGE)));
    let unsayable = unsayable.chain(older(Revision::V2025_11_25).map(|r| (r, SAMPLE_TOOLS)));
    for (revision, question) in unsayable {
        let script = format!(
            r#"
            {CALL}
            = c asks {{"inputRequests":{{"q":{question}}}}}
            < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32600,"message":"…"}}}}
        "#
        );
        transcript(&after_greeting(revision, ABLE, &script));
    }
}

#[test]
fn what_a_model_is_asked_is_said_as_the_revision_can() {
    let several = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}],"maxTokens":9}}"#;
    let audio = r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#;
    let text = r#"{"type":"text","text":"a"}"#;
    for (revision, messages) in [
        (
            Revision::V2025_03_26,
            format!(r#"[{{"role":"user","content":{text}}},{{"role":"user","content":{audio}}}]"#),
        ),
        (Revision::V2025_11_25, format!(r#"[{{"role":"user","content":[{text},{audio}]}}]"#)),
    ] {
        let script = format!(
            r#"
            {CALL}
            = c asks {{"inputRequests":{{"q":{several}}}}}
            < {{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{{"messages":{messages},"maxTokens":9}}}}
        "#
        );
        transcript(&after_greeting(revision, ABLE, &script));
    }
    // The first revision has no audio, and a resource is not sampling content.
    let script = format!(
        r#"
        {CALL}
        = c asks {{"inputRequests":{{"q":{several}}}}}
        < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32600,"message":"…"}}}}
    "#
    );
    transcript(&after_greeting(Revision::V2024_11_05, ABLE, &script));
}

#[test]
fn the_results_of_tools_are_shown_only_to_models_that_may_use_tools() {
    let history = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"1","name":"t","input":{}}},{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[]}}],"maxTokens":9}}"#;
    let asked = params(history);
    let script = |answer: &str| {
        format!("{CALL}\n= c asks {{\"inputRequests\":{{\"q\":{history}}}}}\n< {answer}")
    };
    let newest = Revision::V2025_11_25;
    let may =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{asked}}}"#);
    transcript(&after_greeting(newest, ABLE, &script(&may)));
    let may_not = r#"{"jsonrpc":"2.0","id":"c","error":{"code":-32600,"message":"…","…":"…"}}"#;
    transcript(&after_greeting(newest, r#"{"sampling":{}}"#, &script(may_not)));
    transcript(&after_greeting(Revision::V2025_06_18, ABLE, &script(may_not)));
}

/// "must be unique within the context of the server": two clients of one server.
#[test]
fn a_page_to_visit_has_a_name_that_no_other_client_is_given() {
    use std::sync::Arc;

    use sabir_session::{Session, SessionKind};
    use sabir_testkit::{Player as _, SessionPlayer, play};
    use serde_json::Value;
    let rules = Arc::new(crate::rules());
    let mut named = std::collections::HashSet::new();
    for _ in 0..2 {
        let mut player = SessionPlayer::new(crate::rules());
        player.session =
            Session::new(rules.clone(), SessionKind::Stream, sabir_wire::Caller::local());
        play(&mut player, &after_hello(CALL));
        for _ in 0..2 {
            let ask = format!(r#"{{"inputRequests":{{"a":{PAGE},"b":{PAGE}}}}}"#);
            let ask = sabir_testkit::Ending::Asks(sabir_wire::Raw::parse(ask).unwrap());
            player.finish(sabir_testkit::CallNumber(2), ask);
            for _ in 0..2 {
                let asked: Value = serde_json::from_slice(&player.hear().unwrap()).unwrap();
                let name = asked["params"]["elicitationId"].as_str().unwrap().to_owned();
                assert!(named.insert(name.clone()), "{name} was given twice");
                let id = &asked["id"];
                let answer =
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept"}}}}"#);
                player.say(answer.as_bytes());
            }
        }
    }
    assert_eq!(named.len(), 8);
}
