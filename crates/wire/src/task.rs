//! Tasks: calls whose results are fetched later. Spec: the extension
//! `io.modelcontextprotocol/tasks` of the newest revision; basic/utilities/tasks of 2025-11-25,
//! which has another form.

use bytes::Bytes;

use crate::error::ErrorObject;
use crate::id::Id;
use crate::json::{SERVER, WriteJson as _};
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{Question, Questions, ToolReply, subscription_meta};

/// The metadata key of results and requests that belong to a task, in 2025-11-25.
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A call whose result is fetched later.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The id.
    pub id: Box<str>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When its state last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// How long it is kept, counted from its creation.
    pub ttl_ms: u64,
    /// How long a client should wait before it asks again.
    pub poll_ms: u64,
    /// Its state.
    pub state: TaskState,
}

/// The state of a task. The last three are final.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskState {
    /// It runs.
    Working,
    /// It waits for answers to these questions.
    InputRequired(Vec<(String, Question)>),
    /// It has a result, as JSON of the newest revision. A tool that failed has one, too.
    Completed(Raw),
    /// The call ended with an error of the protocol.
    Failed(ErrorObject),
    /// It was cancelled.
    Cancelled,
}

impl TaskState {
    /// Whether it can no longer change.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }

    /// The word on the wire. In 2025-11-25 a tool that reports a failure has failed.
    fn name(&self, to: &Features) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired(_) => "input_required",
            Self::Completed(result) if to.core_tasks && ToolReply::is_failure(result) => "failed",
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How many characters of a result are repeated as the reason why its task has failed.
const LONGEST_MESSAGE: usize = 500;

/// The beginning of the text of a result.
fn said(result: &Raw) -> Option<String> {
    let first = result.member("content")?.items()?.into_iter().next()?;
    let text: String = first.member("text")?.read().ok()?;
    Some(text.chars().take(LONGEST_MESSAGE).collect())
}

impl Task {
    /// The result of the call that became this task.
    pub fn created(&self, revision: Revision) -> Raw {
        let task = self.members(revision.features());
        match revision.features().stateless {
            true => task.with_members(&[("resultType", Some(r#""task""#))]),
            false => Raw::empty_object().with_members(&[("task", Some(task.text()))]),
        }
    }

    /// The result of `tasks/get`. In the newest revision it has the questions, the result or the
    /// error of the task.
    pub fn detailed(&self, revision: Revision) -> Raw {
        closed(self.details(revision))
    }

    /// The same as it is written in a response, with the name of the server.
    pub fn response(&self, revision: Revision, server: &Raw) -> Bytes {
        let mut json = self.details(revision);
        if revision.features().stateless {
            let server = server.text();
            json += &format!(r#","resultType":"complete","_meta":{{"{SERVER}":{server}}}"#);
        }
        (json + "}").into()
    }

    /// The params of `notifications/tasks` on the stream of a subscription.
    pub(crate) fn notification(&self, subscription: &Id) -> Raw {
        let meta = subscription_meta(subscription);
        self.detailed(Revision::NEWEST).with_members(&[("_meta", Some(meta.text()))])
    }

    /// A page of the list of tasks, in 2025-11-25.
    pub fn page(tasks: &[Self], next: Option<&str>, revision: Revision) -> Raw {
        let tasks: Vec<_> = tasks.iter().map(|task| task.members(revision.features())).collect();
        let next = next.and_then(|cursor| Raw::of(cursor).ok());
        let tasks = Raw::of(&tasks).ok();
        Raw::empty_object().with_members(&[
            ("tasks", tasks.as_ref().map(Raw::text)),
            ("nextCursor", next.as_ref().map(Raw::text)),
        ])
    }

    /// A result or the params of a request that belong to this task, in 2025-11-25.
    pub fn related(&self, json: &Raw) -> Raw {
        let own = json.member("_meta").unwrap_or_else(Raw::empty_object);
        let id = Raw::of(&*self.id).map_or_else(|_| String::new(), |id| id.text().to_owned());
        let related = format!(r#"{{"taskId":{id}}}"#);
        let meta = own.with_members(&[(RELATED, Some(&related))]);
        json.with_members(&[("_meta", Some(meta.text()))])
    }

    fn members(&self, to: &Features) -> Raw {
        closed(self.begin(to))
    }

    /// An object that is not closed yet, with the members of every task.
    fn begin(&self, to: &Features) -> String {
        let (ttl, poll) = match to.stateless {
            true => ("ttlMs", "pollIntervalMs"),
            false => ("ttl", "pollInterval"),
        };
        let (id, status) = (quoted(&self.id), self.state.name(to));
        let [created, updated] = [self.created_ms, self.updated_ms].map(timestamp);
        let Self { ttl_ms, poll_ms, .. } = self;
        let mut json = format!(
            r#"{{"taskId":{id},"status":"{status}","createdAt":"{created}","lastUpdatedAt":"{updated}","{ttl}":{ttl_ms},"{poll}":{poll_ms}"#
        );
        let message = match &self.state {
            TaskState::Failed(error) => Some(error.message.to_string()),
            TaskState::Completed(result) if status == "failed" => said(result),
            _ => None,
        };
        if let Some(message) = message {
            json += &format!(r#","statusMessage":{}"#, quoted(&message));
        }
        json
    }

    /// The same, with the other members of `tasks/get`.
    fn details(&self, revision: Revision) -> String {
        let mut json = self.begin(revision.features());
        if !revision.features().stateless {
            return json;
        }
        let (name, detail) = match &self.state {
            TaskState::Working | TaskState::Cancelled => return json,
            TaskState::InputRequired(questions) => {
                let questions = Questions { questions: questions.clone(), ..Questions::default() };
                ("inputRequests", questions.to_raw(revision).member("inputRequests"))
            }
            TaskState::Completed(result) => ("result", Some(result.clone())),
            TaskState::Failed(error) => ("error", Raw::of(error).ok()),
        };
        if let Some(detail) = detail {
            json.extend([",\"", name, "\":", detail.text()]);
        }
        json
    }
}

fn closed(json: String) -> Raw {
    Raw::written((json + "}").into_bytes())
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// A time as RFC 3339 writes it.
fn timestamp(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    // Years that begin in March, in eras of 400 years: the leap day comes last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    let year = era * 400 + year + u64::from(is_next_year);
    let (seconds, ms) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::Code;
    use crate::types::ToolReply;

    const CORE: Revision = Revision::NEWEST_LEGACY;
    const NEWEST: Revision = Revision::NEWEST;

    fn task(state: TaskState) -> Task {
        let (created_ms, updated_ms) = (1_800_000_000_123, 1_800_000_001_000);
        Task { id: "i".into(), created_ms, updated_ms, ttl_ms: 9000, poll_ms: 500, state }
    }

    fn value(raw: &Raw) -> Value {
        raw.read().unwrap()
    }

    #[test]
    fn times_are_written_as_people_read_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_210_096_007, "2024-02-29T12:34:56.007Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(ms), text);
        }
    }

    #[test]
    fn a_new_task_is_flat_in_one_form_and_nested_in_the_other() {
        let times = |ttl: &str, poll: &str| {
            json!({
                "taskId": "i", "status": "working", "createdAt": "2027-01-15T08:00:00.123Z",
                "lastUpdatedAt": "2027-01-15T08:00:01.000Z", ttl: 9000, poll: 500,
            })
        };
        let new = task(TaskState::Working);
        assert_eq!(value(&new.created(CORE)), json!({ "task": times("ttl", "pollInterval") }));
        let mut flat = times("ttlMs", "pollIntervalMs");
        flat["resultType"] = json!("task");
        assert_eq!(value(&new.created(NEWEST)), flat);
    }

    #[test]
    fn a_tool_that_failed_has_completed_in_one_form_and_failed_in_the_other() {
        let failed = task(TaskState::Completed(ToolReply::failed("no").to_raw(NEWEST)));
        let core = value(&failed.detailed(CORE));
        assert_eq!(core["status"], "failed");
        assert_eq!(core["statusMessage"], "no");
        assert_eq!(core.get("result"), None);
        let newest = value(&failed.detailed(NEWEST));
        assert_eq!(newest["status"], "completed");
        assert_eq!(newest.get("statusMessage"), None);
        assert_eq!(newest["result"]["isError"], true);
    }

    #[test]
    fn a_response_says_the_same_and_names_the_server() {
        let result = ToolReply::text("a").to_raw(NEWEST);
        let server = Raw::parse(r#"{"name":"s"}"#).unwrap();
        for state in [TaskState::Working, TaskState::Completed(result)] {
            let task = task(state);
            let response = |revision| Raw::parse(task.response(revision, &server)).unwrap();
            assert_eq!(response(CORE), task.detailed(CORE));
            let mut newest = value(&task.detailed(NEWEST));
            newest["resultType"] = json!("complete");
            newest["_meta"] = json!({ SERVER: { "name": "s" } });
            assert_eq!(value(&response(NEWEST)), newest);
        }
    }

    #[test]
    fn an_error_is_part_of_a_failed_task() {
        let failed = task(TaskState::Failed(ErrorObject::new(Code::INTERNAL, "gone")));
        let newest = value(&failed.detailed(NEWEST));
        assert_eq!(newest["error"], json!({ "code": -32603, "message": "gone" }));
        assert_eq!(newest["statusMessage"], "gone");
    }

    #[test]
    fn a_result_keeps_its_metadata_beside_its_task() {
        let result = Raw::parse(r#"{"content":[],"_meta":{"a":1}}"#).unwrap();
        assert_eq!(
            value(&task(TaskState::Working).related(&result))["_meta"],
            json!({ "a": 1, "io.modelcontextprotocol/related-task": { "taskId": "i" } })
        );
    }
}
