//! Bytes as operations on a session: the messages of a client, and the ends of its calls.

use sabir_session::{CallNotification, Outcome};
use sabir_wire::types::{
    Elicit, Level, Question, Questions, Sample, ServerResult, SubscriptionFilter, ToolReply, Topic,
};
use sabir_wire::{ErrorObject, Problem, Raw};

/// Takes choices from bytes; when they are used up every choice is the first.
pub(super) struct Choices<'a>(pub(super) &'a [u8]);

impl<'a> Choices<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[usize::from(self.byte()) % all.len()]
    }

    fn some_bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }
}

const IDS: [&str; 6] = ["1", "2", "\"1\"", "null", "1.5", "99"];

const METHODS: [&str; 24] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "tools/call",
    "tools/call",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "subscriptions/listen",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "tasks/get",
    "",
];

const VERSIONS: [&str; 6] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "nonsense"];

const ABILITIES: [&str; 4] = [
    "{}",
    r#"{"roots":{}}"#,
    r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}"#,
    "[]",
];

const URIS: [&str; 3] = ["a:1", "a:2", ""];

/// A frame: mostly a good message, sometimes nearly one, seldom nonsense.
pub(super) fn frame(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.byte() % 8 {
        0 => choices.some_bytes().to_vec(),
        1 => {
            let count = choices.byte() % 4;
            let parts: Vec<_> = (0..count).map(|_| message(choices)).collect();
            format!("[{}]", parts.join(",")).into_bytes()
        }
        _ => message(choices).into_bytes(),
    }
}

fn message(choices: &mut Choices<'_>) -> String {
    let id = *choices.of(&IDS);
    match choices.byte() % 6 {
        0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#),
        1 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#),
        2 => {
            let (method, params) = (*choices.of(&METHODS), params(choices));
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
        }
        _ => {
            let (method, params) = (*choices.of(&METHODS), params(choices));
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        }
    }
}

/// Params that fit most methods at once.
fn params(choices: &mut Choices<'_>) -> String {
    let (version, abilities) = (*choices.of(&VERSIONS), *choices.of(&ABILITIES));
    let (uri, id) = (*choices.of(&URIS), *choices.of(&IDS));
    let meta = match choices.byte() % 5 {
        0 => String::new(),
        1 => r#","_meta":{"progressToken":7}"#.to_owned(),
        2 => r#","_meta":7"#.to_owned(),
        _ => format!(
            r#","_meta":{{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{abilities},"io.modelcontextprotocol/logLevel":"info"}}"#
        ),
    };
    format!(
        r#"{{"protocolVersion":"{version}","capabilities":{abilities},"name":"t","uri":"{uri}","level":"debug","requestId":{id},"ref":{{"type":"ref/prompt","name":"p"}},"argument":{{"name":"a","value":""}},"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["{uri}"]}}{meta}}}"#
    )
}

/// How a call ends.
pub(super) fn outcome(choices: &mut Choices<'_>) -> Outcome {
    let problem = |problem| Outcome::Failed(problem);
    match choices.byte() % 10 {
        0 => Outcome::Done(ServerResult::Empty),
        1 => Outcome::Done(ToolReply::text("done").into()),
        2 => Outcome::Done(ToolReply::failed("failed").into()),
        3 => problem(Problem::Internal("broken".into())),
        4 => problem(Problem::UnknownTool("t".into())),
        5 => problem(Problem::ToolFailed("failed".into())),
        6 => problem(Problem::Chosen(ErrorObject::new(7, "chosen"))),
        7 => Outcome::Listening(SubscriptionFilter {
            tools_list_changed: true,
            ..SubscriptionFilter::default()
        }),
        nth => Outcome::NeedInput { questions: questions(choices), takes_refusals: nth == 8 },
    }
}

fn questions(choices: &mut Choices<'_>) -> Questions {
    let count = choices.byte() % 3;
    let schema = Raw::parse(r#"{"type":"object","properties":{}}"#);
    let schema = schema.unwrap_or_else(|_| Raw::empty_object());
    let form = Elicit::form("m", schema);
    let all = [
        Question::roots(),
        Question::Sample(Box::new(Sample::user("hi", 9))),
        Question::Elicit(form),
        Question::Elicit(Elicit::url("m", "https://example.com")),
    ];
    let asked = (0..count).map(|nth| (format!("q{nth}"), choices.of(&all).clone()));
    let questions = asked.collect();
    Questions { questions, state: Some("s".into()), ..Questions::default() }
}

/// A report of a running call.
pub(super) fn note(choices: &mut Choices<'_>) -> CallNotification {
    let levels = [Level::Debug, Level::Info, Level::Emergency];
    match choices.byte() % 2 {
        0 => CallNotification::Progress {
            progress: f64::from(choices.byte()) - 100.0,
            total: None,
            message: None,
        },
        _ => CallNotification::Log {
            level: *choices.of(&levels),
            logger: None,
            data: Raw::empty_object(),
        },
    }
}

/// Something that changed.
pub(super) fn topic(choices: &mut Choices<'_>) -> Topic {
    let all = [Topic::Tools, Topic::Prompts, Topic::Resources, Topic::Resource("a:1".into())];
    choices.of(&all).clone()
}
