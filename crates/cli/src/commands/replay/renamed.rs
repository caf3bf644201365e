//! Ids that a server generates at random. They differ from those of the recording: where a client
//! repeated the recorded id, the new one is sent.

use std::collections::HashMap;

use serde_json::Value;

/// The members that hold such ids.
pub(super) const VOLATILE: &[&str] = &["elicitationId", "nextCursor", "requestState", "taskId"];

/// The shortest id that is looked for inside of other texts.
const LEAST_LENGTH: usize = 8;

/// The new ids, by those of the recording.
#[derive(Debug, Default)]
pub(super) struct Renamed(HashMap<String, String>);

impl Renamed {
    /// Learns the ids in which two messages differ.
    pub(super) fn learn(&mut self, recorded: &Value, now: &Value) {
        match (recorded, now) {
            (Value::Object(recorded), Value::Object(now)) => {
                for (name, old) in recorded {
                    match (old, now.get(name)) {
                        (Value::String(old), Some(Value::String(new)))
                            if old != new && VOLATILE.contains(&&**name) =>
                        {
                            self.0.insert(old.clone(), new.clone());
                        }
                        (old, Some(new)) => self.learn(old, new),
                        (_, None) => {}
                    }
                }
            }
            (Value::Array(recorded), Value::Array(now)) => {
                recorded.iter().zip(now).for_each(|(old, new)| self.learn(old, new));
            }
            _ => {}
        }
    }

    /// Replaces ids of the recording by the new ones. Returns whether there were any.
    pub(super) fn apply(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                if let Some(new) = self.0.get(text) {
                    text.clone_from(new);
                    return true;
                }
                let mut is_changed = false;
                for (old, new) in self.0.iter().filter(|(old, _)| old.len() >= LEAST_LENGTH) {
                    if text.contains(old) {
                        *text = text.replace(old, new);
                        is_changed = true;
                    }
                }
                is_changed
            }
            Value::Array(items) => items.iter_mut().fold(false, |any, item| any | self.apply(item)),
            Value::Object(members) => {
                members.values_mut().fold(false, |any, member| any | self.apply(member))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_repeats_the_ids_of_now() {
        let mut renamed = Renamed::default();
        let recorded =
            json!({ "result": { "taskId": "old-task-1", "items": [{ "requestState": "s" }] } });
        let now =
            json!({ "result": { "taskId": "new-task-2", "items": [{ "requestState": "t" }] } });
        renamed.learn(&recorded, &now);
        let mut next =
            json!({ "taskId": "old-task-1", "text": "about old-task-1, s", "requestState": "s" });
        assert!(renamed.apply(&mut next));
        let expected =
            json!({ "taskId": "new-task-2", "text": "about new-task-2, s", "requestState": "t" });
        assert_eq!(next, expected);
        assert!(!renamed.apply(&mut json!({ "other": 1 })));
    }
}
