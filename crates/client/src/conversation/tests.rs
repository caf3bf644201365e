//! The rules of one link, as transcripts against the state machine alone.
//!
//! ```text
//! : call t {"name":"x"}        the caller begins tools/call, as call `t`; also `list t`, `listen t`
//! : cancel t                   the caller cancels it
//! : answer "q" {…}             a question is answered
//! > {…}                        we send, compared as JSON; "…" matches any value
//! < {…}                        the server sends; `<t {…}` in the exchange of call `t`
//! x t status 404               the exchange of `t` ended without an answer; also `x t lost`
//! ! ready legacy               any other output
//! + 5s                         time passes
//! ```

mod ended; // messages of calls that have ended

use std::collections::{HashMap, VecDeque};

use sabir_testkit::difference;
use sabir_wire::types::ClientCapabilities;
use sabir_wire::{CallTool, Era, Listen, Page, decode};

use super::*;
use crate::request::CallOptions;

struct Player {
    conversation: Conversation,
    now: Instant,
    calls: HashMap<String, CallKey>,
    sent: VecDeque<Outgoing>,
    events: VecDeque<String>,
}

#[track_caller]
fn play(link: LinkKind, beginning: Beginning, script: &str) -> Conversation {
    let mut config = ClientConfig::new("c", "1");
    config.capabilities =
        ClientCapabilities { roots: true, elicitation_form: true, ..ClientCapabilities::default() };
    config.limits.calls = 3;
    config.limits.questions = 2;
    config.limits.call_max = Some(Duration::from_secs(100));
    let mut player = Player {
        conversation: Conversation::new(Arc::new(config), link, beginning),
        now: Instant::now(),
        calls: HashMap::new(),
        sent: VecDeque::new(),
        events: VecDeque::new(),
    };
    player.handle(Input::Open);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.replace("@modern", Revision::NEWEST.date());
        let line = line.replace("@legacy", Revision::NEWEST_LEGACY.date());
        player.step(&line);
    }
    assert_eq!(player.events, [""; 0], "at the end");
    assert!(player.sent.is_empty(), "at the end: {:?}", player.sent);
    player.conversation
}

impl Player {
    #[track_caller]
    fn step(&mut self, line: &str) {
        let (mark, rest) = line.split_once(' ').unwrap();
        match mark {
            ":" => self.command(rest),
            ">" => {
                let sent = self.sent.pop_front().unwrap_or_else(|| panic!("not said: {line}"));
                let found: serde_json::Value = serde_json::from_slice(&sent.frame).unwrap();
                let expected = serde_json::from_str(rest).unwrap();
                if let Some(difference) = difference(&expected, &found) {
                    panic!("{line}\n{found}\n{difference}");
                }
            }
            "!" => assert_eq!(self.events.pop_front().as_deref(), Some(rest), "{line}"),
            "+" => {
                let seconds = rest.strip_suffix('s').unwrap().parse().unwrap();
                self.now += Duration::from_secs(seconds);
                let is_due = self.conversation.wake_at().is_some_and(|at| at <= self.now);
                if is_due {
                    self.handle(Input::Tick);
                }
            }
            "x" => {
                let (call, what) = rest.split_once(' ').unwrap();
                let failure = match what.strip_prefix("status ") {
                    Some(status) => {
                        let status = status.parse().unwrap();
                        CallError::Status { status, body: String::new() }
                    }
                    None => CallError::Lost("gone".into()),
                };
                let exchange = self.calls.get(call).copied();
                let exchange = exchange.unwrap_or(CallKey(call.parse().unwrap_or(0)));
                self.handle(Input::Failed { exchange, failure, challenge: None });
            }
            _ => {
                let call = mark.strip_prefix('<').unwrap_or_else(|| panic!("{line}"));
                let exchange = self.calls.get(call).copied();
                let frame = decode(&bytes::Bytes::copy_from_slice(rest.as_bytes()), 32);
                self.handle(Input::Received { exchange, frame });
            }
        }
    }

    fn command(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        let (what, name) = (words.next().unwrap(), words.next().unwrap());
        let rest = words.next().unwrap_or("{}");
        let request = match what {
            "cancel" => return self.handle(Input::Cancel(self.calls[name])),
            "answer" => {
                let answer = Ok(Raw::parse(rest.to_owned()).unwrap());
                let question = Id::parse(name).unwrap();
                return self.handle(Input::Answer { question, answer });
            }
            "list" => {
                Request::ListTools(Page { cursor: Some(rest.into()).filter(|_| rest != "{}") })
            }
            "listen" => Request::Listen(Listen { filter: Default::default() }),
            "level" => Request::SetLevel(sabir_wire::types::Level::Info),
            _ => {
                let arguments = Some(Raw::parse(rest.to_owned()).unwrap());
                Request::CallTool(CallTool { name: "x".into(), arguments, ..CallTool::default() })
            }
        };
        let options = CallOptions {
            progress: true,
            timeout: Some(Duration::from_secs(10)),
            client_number: self.calls.len() as u64 * u64::from(name != "same"),
            ..CallOptions::default()
        };
        let call = self.conversation.reserve();
        self.calls.insert(name.to_owned(), call);
        let request = Arc::new(CallRequest::new(request).with(options));
        self.handle(Input::Start { call, request });
    }

    fn handle(&mut self, input: Input) {
        let mut out = Vec::new();
        self.conversation.handle(self.now, input, &mut out);
        for output in out {
            let event = match output {
                Output::Order(Order::Send(outgoing)) => {
                    self.sent.push_back(outgoing);
                    continue;
                }
                Output::Order(Order::Abort(call)) => format!("abort {}", self.name(call)),
                Output::Ready(info) => {
                    let era = if info.revision.era() == Era::Modern { "modern" } else { "legacy" };
                    let doubt = if info.is_certain { "" } else { ", in doubt" };
                    format!("ready {era}{doubt}")
                }
                Output::Refused(error) => format!("refused {error}"),
                Output::Finished { call, result: Ok(result) } => {
                    format!("done {} {}", self.name(call), result.text())
                }
                Output::Finished { call, result: Err(error) } => {
                    format!("failed {} {error}", self.name(call))
                }
                Output::Progress { call, progress } => {
                    format!("progress {} {}", self.name(call), progress.progress)
                }
                Output::Listening { call, .. } => format!("listening {}", self.name(call)),
                Output::Ask { question, asked, calls } => {
                    let calls: Vec<_> = calls.into_iter().map(|call| self.name(call)).collect();
                    let of = format!("ask {question} {} of {}", asked.method(), calls.join(" "));
                    of.trim_end().to_owned()
                }
                Output::Withdraw(question) => format!("withdraw {question}"),
                Output::Log { calls, .. } => {
                    let calls: Vec<_> = calls.into_iter().map(|call| self.name(call)).collect();
                    format!("log of {}", calls.join(" ")).trim_end().to_owned()
                }
                Output::Changed(topic) => format!("changed {topic:?}"),
                Output::Notification { method, .. } => format!("notification {}", method.name()),
            };
            self.events.push_back(event);
        }
    }

    fn name(&self, call: CallKey) -> String {
        let name = self.calls.iter().find(|(_, key)| **key == call).map(|(name, _)| name.clone());
        name.unwrap_or_else(|| call.0.to_string())
    }
}

const PROBE: &str =
    r#"> {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":"…"}}"#;
const DISCOVERED: &str = r#"< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["@modern"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}"#;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"@legacy","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
const GREETED: &str = r#"< {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"@legacy","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
const INITIALIZED: &str = r#"> {"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn modern(script: &str) -> String {
    format!("{PROBE}\n{DISCOVERED}\n! ready modern\n{script}")
}

fn legacy(script: &str) -> String {
    let refused = r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    format!("{PROBE}\n{refused}\n> {HELLO}\n{GREETED}\n{INITIALIZED}\n! ready legacy\n{script}")
}

#[track_caller]
fn pipe(script: &str) {
    play(LinkKind::Pipe, Beginning::Probe, script);
}

#[track_caller]
fn http(script: &str) {
    play(LinkKind::Http, Beginning::Probe, script);
}

#[test]
fn silence_is_followed_by_a_handshake_and_a_late_answer_still_counts() {
    pipe(&format!(
        "{PROBE}\n+ 4s\n+ 1s\n> {HELLO}\n{GREETED}\n{INITIALIZED}\n! ready legacy, in doubt"
    ));
    pipe(&format!("{PROBE}\n+ 5s\n> {HELLO}\n{DISCOVERED}\n! abort 2\n! ready modern\n{GREETED}"));
    // A late refusal changes nothing.
    let late = r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    pipe(&format!(
        "{PROBE}\n+ 5s\n> {HELLO}\n{late}\n{GREETED}\n{INITIALIZED}\n! ready legacy, in doubt"
    ));
    pipe(&format!(
        "{PROBE}\n+ 5s\n> {HELLO}\n+ 60s\n! refused no answer to the handshake within 60000 ms"
    ));
}

#[test]
fn over_http_the_status_decides() {
    for (what, doubt) in [
        ("status 400", ""),
        ("status 404", ""),
        ("status 405", ""),
        ("status 406", ", in doubt"),
        ("status 500", ", in doubt"),
        ("lost", ", in doubt"),
    ] {
        http(&format!(
            "{PROBE}\nx 1 {what}\n> {HELLO}\n{GREETED}\n{INITIALIZED}\n! ready legacy{doubt}"
        ));
    }
    http(&format!(
        "{PROBE}\nx 1 status 401\n! refused the server refused access (HTTP status 401)"
    ));
    http(&format!(
        "{PROBE}\nx 1 status 503\n! refused the server refused the handshake: HTTP status 503"
    ));
    http(&format!(
        "{PROBE}\nx 1 lost\n> {HELLO}\nx 2 status 405\n! refused the server refused the handshake: HTTP status 405"
    ));
}

#[test]
fn a_modern_server_is_not_greeted() {
    let mismatch =
        r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch"}}"#;
    http(&format!(
        "{PROBE}\n{mismatch}\n! refused the server refused the handshake: Header mismatch (code -32020)"
    ));
    let pinned = r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    let expected =
        "! refused invalid answer to the handshake: it does not answer `server/discover`";
    play(LinkKind::Pipe, Beginning::Modern, &format!("{PROBE}\n{pinned}\n{expected}"));
}

#[test]
fn answers_reach_their_calls_in_any_order_and_only_once() {
    pipe(&modern(
        r#"
        : call a {"n":1}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"n":1},"_meta":"…"}}
        : list b
        > {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":"…"}}
        < {"jsonrpc":"2.0","id":3,"result":{"tools":[]}}
        ! done b {"tools":[]}
        < {"jsonrpc":"2.0","id":3,"result":{"tools":[]}}
        < {"jsonrpc":"2.0","id":"2","result":{}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"broken"}}
        ! failed a broken (code -32603)
    "#,
    ));
}

#[test]
fn a_call_is_cancelled_in_the_way_of_its_era_and_transport() {
    let call = r#"
        : call a {}
        > {"jsonrpc":"2.0","id":"…","method":"tools/call","params":"…"}
        : cancel a"#;
    let notice = r#"> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"…","reason":"…"}}"#;
    pipe(&modern(&format!("{call}\n{notice}")));
    pipe(&legacy(&format!("{call}\n{notice}")));
    http(&modern(&format!("{call}\n! abort a")));
    http(&legacy(&format!("{call}\n! abort a\n{notice}")));
    let late = r#"< {"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    pipe(&modern(&format!("{call}\n{notice}\n{late}\n: cancel a")));
}

#[test]
fn progress_extends_the_time_up_to_a_maximum() {
    let begin = r#"
        : call a {}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":"…"}"#;
    let cancelled = r#"> {"jsonrpc":"2.0","method":"notifications/cancelled","params":"…"}"#;
    pipe(&modern(&format!(
        "{begin}\n+ 9s\n+ 1s\n{cancelled}\n! failed a no answer within 10000 ms"
    )));
    let progress = |n: u32| {
        format!(
            "+ 9s\n< {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":\
             {{\"progressToken\":2,\"progress\":{n}}}}}\n! progress a {n}\n"
        )
    };
    let all: String = (1..=11).map(progress).collect();
    pipe(&modern(&format!(
        "{begin}\n{all}+ 1s\n{cancelled}\n! failed a no answer within 100000 ms"
    )));
}

#[test]
fn questions_of_a_legacy_server_stop_the_clock_and_are_bound_to_their_call() {
    let ask = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
    pipe(&legacy(&format!(
        r#"
        : call a {{}}
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":"…"}}
        < {ask}
        ! ask "q" roots/list of a
        + 50s
        : answer "q" {{"roots":[]}}
        > {{"jsonrpc":"2.0","id":"q","result":{{"roots":[]}}}}
        : answer "q" {{"roots":[]}}
        + 9s
        < {{"jsonrpc":"2.0","id":3,"result":{{"content":[]}}}}
        ! done a {{"content":[]}}
    "#
    )));
    // Two calls: the pipe does not say which asks; an exchange does.
    let two = r#"
        : call a {}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":"…"}
        : call b {}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":"…"}"#;
    pipe(&legacy(&format!("{two}\n< {ask}\n! ask \"q\" roots/list of a b")));
    http(&legacy(&format!(
        "{two}\n<b {ask}\n! ask \"q\" roots/list of b\n<b {{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\
         {{}}}}\n! withdraw \"q\"\n! done b {{}}"
    )));
}

#[test]
fn questions_that_cannot_be_asked_are_refused() {
    pipe(&legacy(
        r#"
        < {"jsonrpc":"2.0","id":7,"method":"ping"}
        > {"jsonrpc":"2.0","id":7,"result":{}}
        < {"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}
        > {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"…"}}
        < {"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"message":1}}
        > {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"…"}}
        < {"jsonrpc":"2.0","id":10,"method":"roots/list"}
        ! ask 10 roots/list of
        < {"jsonrpc":"2.0","id":10,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":10,"error":{"code":-32600,"message":"…"}}
        < {"jsonrpc":"2.0","id":11,"method":"roots/list"}
        ! ask 11 roots/list of
        < {"jsonrpc":"2.0","id":12,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":12,"error":{"code":-32603,"message":"too many open questions (limit 2)"}}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":11}}
        ! withdraw 11
    "#,
    ));
    // The modern era has no requests of servers.
    pipe(&modern(r#"< {"jsonrpc":"2.0","id":7,"method":"ping"}"#));
}

#[test]
fn the_table_of_calls_has_a_bound_and_methods_belong_to_an_era() {
    let call = |name: &str| {
        format!(
            ": call {name} {{}}\n> {{\"jsonrpc\":\"2.0\",\"id\":\"…\",\"method\":\"tools/call\",\"params\":\"…\"}}\n"
        )
    };
    let three: String = ["a", "b", "c"].map(call).concat();
    pipe(&modern(&format!("{three}: call d {{}}\n! failed d too many calls at once (limit 3)")));
    pipe(&modern(": level a\n! failed a the server's protocol revision has no `logging/setLevel`"));
    pipe(&legacy(
        ": listen a\n! failed a the server's protocol revision has no `subscriptions/listen`",
    ));
}

#[test]
fn notifications_reach_the_owner_and_subscriptions_end() {
    pipe(&modern(
        r#"
        : listen a
        > {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":"…"}
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{}}}
        ! listening a
        + 1000s
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        ! changed Tools
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}
        ! changed Resource("a:b")
        < {"jsonrpc":"2.0","method":"notifications/com.example/new","params":{}}
        ! notification notifications/com.example/new
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}
        ! log of
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        ! failed a the connection ended before the answer came: the server ended it
    "#,
    ));
}

#[test]
fn tools_with_invalid_annotations_are_left_out_over_http() {
    http(&modern(
        r#"
        : list a
        > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":"…"}
        <a {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"bad","inputSchema":{"properties":{"p":{"type":"string","x-mcp-header":"a b"}}}},{"name":"x","inputSchema":{"properties":{"p":{"type":"string","x-mcp-header":"P"}}}}]}}
        ! done a {"tools":[{"name":"x","inputSchema":{"properties":{"p":{"type":"string","x-mcp-header":"P"}}}}]}
    "#,
    ));
}

#[test]
fn tools_that_a_complete_list_no_longer_has_are_forgotten() {
    let tool = |name: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"properties":{{"p":{{"type":"string","x-mcp-header":"P"}}}}}}}}"#
        )
    };
    let [a, b, c] = ["a", "b", "c"].map(tool);
    let mut script = String::new();
    let mut last = 1;
    let mut list = |cursor: &str, tools: &[&String], next: &str| {
        last += 1;
        let tools = tools.iter().map(|tool| tool.as_str()).collect::<Vec<_>>().join(",");
        let result = format!(r#"{{"tools":[{tools}]{next}}}"#);
        script += &format!(
            r#"
            : list l{last} {cursor}
            > {{"jsonrpc":"2.0","id":{last},"method":"tools/list","params":"…"}}
            < {{"jsonrpc":"2.0","id":{last},"result":{result}}}
            ! done l{last} {result}
            "#
        );
    };
    list("{}", &[&a, &b], "");
    // `b` is still there, on the second page; a page that does not follow says nothing.
    list("{}", &[&c], r#","nextCursor":"2""#);
    list("7", &[], "");
    list("2", &[&b], "");
    let conversation = play(LinkKind::Http, Beginning::Probe, &modern(&script));
    let mut names: Vec<_> = conversation.mirrors.into_keys().collect();
    names.sort();
    assert_eq!(names, ["b", "c"]);
}
