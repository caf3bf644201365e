//! Who the two sides are and what they can do. Spec: basic, "Capabilities"; server/discover.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::strict::Strict;
use crate::types::Topic;

/// What a client can do, as far as a server may ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// It can tell its roots.
    pub roots: bool,
    /// It can ask a model.
    pub sampling: bool,
    /// It can ask a model that uses tools.
    pub sampling_tools: bool,
    /// It can show a form to its user.
    pub elicitation_form: bool,
    /// It can send its user to a web page.
    pub elicitation_url: bool,
}

impl ClientCapabilities {
    /// What of `needed` is missing here.
    pub fn lacks(self, needed: Self) -> Option<Self> {
        let missing = Self {
            roots: needed.roots && !self.roots,
            sampling: needed.sampling && !self.sampling,
            sampling_tools: needed.sampling_tools && !self.sampling_tools,
            elicitation_form: needed.elicitation_form && !self.elicitation_form,
            elicitation_url: needed.elicitation_url && !self.elicitation_url,
        };
        (missing != Self::default()).then_some(missing)
    }

    /// What either has.
    pub fn union(self, other: Self) -> Self {
        Self {
            roots: self.roots || other.roots,
            sampling: self.sampling || other.sampling,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            elicitation_form: self.elicitation_form || other.elicitation_form,
            elicitation_url: self.elicitation_url || other.elicitation_url,
        }
    }

    /// For people: `sampling, elicitation (url)`.
    pub fn names(self) -> String {
        let all = [
            (self.roots, "roots"),
            (self.sampling, "sampling"),
            (self.sampling_tools, "sampling (tools)"),
            (self.elicitation_form, "elicitation"),
            (self.elicitation_url, "elicitation (url)"),
        ];
        let names: Vec<_> = all.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        names.join(", ")
    }
}

impl Serialize for ClientCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serde_json::Map::new();
        if self.roots {
            all.insert("roots".into(), json!({}));
        }
        if self.sampling || self.sampling_tools {
            let tools = if self.sampling_tools { json!({ "tools": {} }) } else { json!({}) };
            all.insert("sampling".into(), tools);
        }
        if self.elicitation_form || self.elicitation_url {
            let modes = match (self.elicitation_form, self.elicitation_url) {
                (true, true) => json!({ "form": {}, "url": {} }),
                (false, true) => json!({ "url": {} }),
                _ => json!({}),
            };
            all.insert("elicitation".into(), modes);
        }
        all.serialize(serializer)
    }
}

/// An object whose members do not matter.
#[derive(Deserialize)]
struct Object {}

impl<'de> Deserialize<'de> for ClientCapabilities {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Sampling {
            tools: Option<IgnoredAny>,
        }
        #[derive(Deserialize)]
        struct Elicitation {
            form: Option<IgnoredAny>,
            url: Option<IgnoredAny>,
        }
        #[derive(Deserialize)]
        struct Fields {
            roots: Option<Strict<Object>>,
            sampling: Option<Strict<Sampling>>,
            elicitation: Option<Strict<Elicitation>>,
        }
        let Strict(fields) = Strict::<Fields>::deserialize(deserializer)?;
        Ok(Self {
            roots: fields.roots.is_some(),
            sampling: fields.sampling.is_some(),
            sampling_tools: fields.sampling.is_some_and(|Strict(s)| s.tools.is_some()),
            // An empty object has always meant forms.
            elicitation_form: fields
                .elicitation
                .as_ref()
                .is_some_and(|Strict(modes)| modes.form.is_some() || modes.url.is_none()),
            elicitation_url: fields.elicitation.is_some_and(|Strict(modes)| modes.url.is_some()),
        })
    }
}

/// What a server offers. Declared exactly: what is absent here is answered "method not found".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
    /// Resources or resource templates.
    pub resources: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// Updates of single resources.
    pub subscribe: bool,
    /// The lists may change, and clients are told.
    pub list_changed: bool,
}

impl ServerCapabilities {
    /// Whether who hears of these capabilities may expect to be told of `topic`.
    pub fn announces(self, topic: &Topic) -> bool {
        match topic {
            Topic::Tools => self.tools && self.list_changed,
            Topic::Prompts => self.prompts && self.list_changed,
            Topic::Resources => self.resources && self.list_changed,
            Topic::Resource(_) => self.resources && self.subscribe,
        }
    }
}

/// Who a client or a server is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// Its name, for programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// How it looks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
}

/// A picture for a user interface. Spec: basic, "icons".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// What is found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// `48x48`, `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// `light` or `dark`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
}
