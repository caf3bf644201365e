//! How calls become tasks, and how long clients wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sabir_session::RequestMeta;
use sabir_tasks::{TaskLimits, TaskStore};
use sabir_wire::Raw;
use sabir_wire::types::TASKS;

/// How calls become tasks, and where tasks are stored.
#[derive(Clone, Debug)]
pub struct TaskSettings {
    /// The bounds of all tasks together.
    pub limits: TaskLimits,
    /// How long a client waits for a result before it gets a handle, unless the tool has its own
    /// time.
    pub after: Duration,
    /// How long a client that knows no tasks waits for the result of a tool whose calls may become
    /// tasks, before it gets a handle in words and the tool `await_result`. Without it, the client
    /// waits for the result.
    pub in_words: Option<Duration>,
    /// The same for clients whose own name is one of these, or begins with one and a hyphen.
    /// `None`: they wait for the result. The default has clients that are known to give up.
    pub clients: BTreeMap<String, Option<Duration>>,
    /// Where tasks survive the process; `None` if they do not.
    pub store: Option<Arc<dyn TaskStore>>,
}

impl Default for TaskSettings {
    fn default() -> Self {
        let after = Duration::from_secs(10);
        let patience = |(name, time): (&str, _)| (name.to_owned(), Some(Duration::from_secs(time)));
        let clients = IMPATIENT.map(patience).into();
        Self { limits: TaskLimits::default(), after, in_words: None, clients, store: None }
    }
}

/// Clients that give up by themselves, after 300, 600 and 60 seconds (docs/long-work.md), and the
/// seconds after which they get a handle in words.
const IMPATIENT: [(&str, u64); 3] =
    [("codex-mcp-client", 280), ("gemini-cli-mcp-client", 580), ("inspector-cli", 50)];

impl TaskSettings {
    /// The same, with handles in words before `call_time` ends a call.
    pub(crate) fn within(mut self, call_time: Option<Duration>) -> Self {
        let latest = call_time.map_or(Duration::MAX, |time| time * 9 / 10);
        let times = self.in_words.iter_mut().chain(self.clients.values_mut().flatten());
        times.for_each(|time| *time = latest.min(*time));
        self
    }

    /// Whether a client gets a handle in words for a call that takes long.
    pub(crate) fn has_words_for(&self, from: &RequestMeta) -> bool {
        !knows_tasks(from) && self.patience_of(from.client.as_ref()).is_some()
    }

    /// How long a client that knows no tasks waits before it gets a handle in words.
    pub(crate) fn patience_of(&self, client: Option<&Raw>) -> Option<Duration> {
        let name = client.and_then(|client| client.member("name")?.read::<String>().ok());
        let is_it = |known: &str| {
            let rest = name.as_deref().and_then(|name| name.strip_prefix(known));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let known = self.clients.iter().filter(|(known, _)| is_it(known));
        // The longest name is the most exact one.
        known.max_by_key(|(known, _)| known.len()).map_or(self.in_words, |(_, time)| *time)
    }
}

/// Whether a client of the newest revision has declared the extension.
pub(crate) fn knows_tasks(from: &RequestMeta) -> bool {
    from.revision.features().stateless && from.capabilities.has_extension(TASKS)
}
