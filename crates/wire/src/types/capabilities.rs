//! Identity and capabilities of clients and servers. Spec: basic, "Capabilities"; server/discover.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{deserialize, object, with_members};
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{Icon, SKILLS, TASKS, Topic, UI};

/// The abilities of a client that a server may ask for. Others, such as `extensions`, are unknown
/// members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// The client can list its roots.
    pub roots: bool,
    /// The client can ask a model.
    pub sampling: bool,
    /// The client can ask a model that uses tools.
    pub sampling_tools: bool,
    /// The client can show a form to its user.
    pub elicitation_form: bool,
    /// The client can send its user to a web page.
    pub elicitation_url: bool,
    /// Unknown members.
    pub extra: Extra,
}

impl ClientCapabilities {
    /// A client that answers every question of the specification.
    pub fn everything() -> Self {
        Self {
            roots: true,
            sampling: true,
            sampling_tools: true,
            elicitation_form: true,
            elicitation_url: true,
            ..Self::default()
        }
    }

    /// A client that knows one extension, and nothing else.
    pub fn extension(name: &str) -> Self {
        Self::default().with_extension(name, "{}")
    }

    /// The same, which knows an extension with these settings, a JSON object.
    #[must_use]
    pub fn with_extension(mut self, name: &str, settings: &str) -> Self {
        let known = self.extra.get("extensions").cloned().unwrap_or_default();
        self.extra.set("extensions", known.with_members(&[(name, Some(settings))]));
        self
    }

    /// Whether the client has declared this extension.
    pub fn has_extension(&self, name: &str) -> bool {
        has_extension(&self.extra, name)
    }

    /// The abilities of `needed` that are missing here, if any.
    pub fn lacks(&self, needed: &Self) -> Option<Self> {
        let missing = Self {
            roots: needed.roots && !self.roots,
            sampling: needed.sampling && !self.sampling,
            sampling_tools: needed.sampling_tools && !self.sampling_tools,
            elicitation_form: needed.elicitation_form && !self.elicitation_form,
            elicitation_url: needed.elicitation_url && !self.elicitation_url,
            extra: Extra::NONE,
        };
        (missing != Self::default()).then_some(missing)
    }

    /// The abilities that either has.
    #[must_use]
    pub fn union(self, other: &Self) -> Self {
        Self {
            roots: self.roots || other.roots,
            sampling: self.sampling || other.sampling,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            elicitation_form: self.elicitation_form || other.elicitation_form,
            elicitation_url: self.elicitation_url || other.elicitation_url,
            extra: self.extra,
        }
    }

    /// Their names for people, as `sampling, elicitation (url)`.
    pub fn names(&self) -> String {
        let all = [
            (self.roots, "roots"),
            (self.sampling, "sampling"),
            (self.sampling_tools, "sampling (tools)"),
            (self.elicitation_form, "elicitation"),
            (self.elicitation_url, "elicitation (url)"),
        ];
        let known = all.iter().filter(|(has, _)| *has).map(|(_, name)| (*name).to_owned());
        let extensions = self.extra.get("extensions").map(Raw::members).unwrap_or_default();
        let extensions = extensions.into_iter().map(|(name, _)| format!("the extension {name}"));
        known.chain(extensions).collect::<Vec<_>>().join(", ")
    }
}

impl Object for ClientCapabilities {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let [roots, sampling, elicitation] =
            ["roots", "sampling", "elicitation"].map(|name| members.take::<Option<Ability>>(name));
        let (sampling, elicitation) = (sampling?, elicitation?);
        Ok(Self {
            roots: roots?.is_some(),
            sampling: sampling.is_some(),
            sampling_tools: has(&sampling, "tools"),
            // An empty object has always meant forms.
            elicitation_form: elicitation.is_some()
                && (has(&elicitation, "form") || !has(&elicitation, "url")),
            elicitation_url: has(&elicitation, "url"),
            extra: members.rest(),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let to = writer.to;
        let (tools, url) = (self.sampling_tools && to.icons, self.elicitation_url && to.icons);
        let form = self.elicitation_form;
        writer.maybe("roots", self.roots.then_some(&Flags::<0>([], "{}")));
        let sampling = Flags([("tools", tools, false)], "{}");
        writer.maybe("sampling", (self.sampling || tools).then_some(&sampling));
        let modes = Flags([("form", form, !url), ("url", url, false)], "{}");
        writer.maybe("elicitation", (to.elicitation && (form || url)).then_some(&modes));
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

impl Serialize for ClientCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_raw(Revision::NEWEST).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ClientCapabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}

/// The abilities of a server. A method of an ability that is absent here is answered "method not
/// found". Others, such as `extensions`, are unknown members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// The server has tools.
    pub tools: bool,
    /// The server has prompts.
    pub prompts: bool,
    /// The server has resources or resource templates.
    pub resources: bool,
    /// The server completes arguments.
    pub completions: bool,
    /// The server sends log messages.
    pub logging: bool,
    /// Clients can subscribe to single resources.
    pub subscribe: bool,
    /// Clients are notified of changes in the list of tools.
    pub tools_list_changed: bool,
    /// Clients are notified of changes in the list of prompts.
    pub prompts_list_changed: bool,
    /// Clients are notified of changes in the list of resources.
    pub resources_list_changed: bool,
    /// Calls of tools can be tasks: a capability in 2025-11-25, an extension in the newest
    /// revision. Not read: from another server it is an unknown member.
    pub tasks: bool,
    /// The server has skills, and lists their folders: an extension. Not read, either.
    pub skills: bool,
    /// Tools have views: an extension. Not read, either.
    pub ui: bool,
    /// Unknown members.
    pub extra: Extra,
}

impl ServerCapabilities {
    /// Whether another server has declared this extension.
    pub fn has_extension(&self, name: &str) -> bool {
        has_extension(&self.extra, name)
    }

    /// A setting of an extension that another server has declared.
    pub fn extension_setting(&self, name: &str, setting: &str) -> Option<bool> {
        self.extra.get("extensions")?.member(name)?.member(setting)?.read().ok()
    }

    /// Whether a client of this server may expect to be notified of `topic`.
    pub fn announces(&self, topic: &Topic) -> bool {
        match topic {
            Topic::Tools => self.tools && self.tools_list_changed,
            Topic::Prompts => self.prompts && self.prompts_list_changed,
            Topic::Resources => self.resources && self.resources_list_changed,
            Topic::Resource(_) => self.resources && self.subscribe,
        }
    }

    /// Sets whether clients are notified of changes in the lists that the server has.
    #[must_use]
    pub fn with_list_changed(self, list_changed: bool) -> Self {
        Self {
            tools_list_changed: self.tools && list_changed,
            prompts_list_changed: self.prompts && list_changed,
            resources_list_changed: self.resources && list_changed,
            ..self
        }
    }
}

impl Object for ServerCapabilities {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let mut take = |name| members.take::<Option<Ability>>(name);
        let (logging, completions) = (take("logging")?, take("completions")?);
        let (prompts, resources, tools) = (take("prompts")?, take("resources")?, take("tools")?);
        Ok(Self {
            logging: logging.is_some(),
            completions: completions.is_some(),
            prompts: prompts.is_some(),
            prompts_list_changed: has(&prompts, "listChanged"),
            resources: resources.is_some(),
            resources_list_changed: has(&resources, "listChanged"),
            subscribe: has(&resources, "subscribe"),
            tools: tools.is_some(),
            tools_list_changed: has(&tools, "listChanged"),
            tasks: false,
            skills: false,
            ui: false,
            extra: members.rest(),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let list = |changes| Flags([("listChanged", changes, false)], "true");
        writer.maybe("logging", self.logging.then_some(&Flags::<0>([], "")));
        // 2024-11-05 has the method, but no capability for it.
        let completions = self.completions && writer.to.audio;
        writer.maybe("completions", completions.then_some(&Flags::<0>([], "")));
        writer.maybe("prompts", self.prompts.then_some(&list(self.prompts_list_changed)));
        let (subscribe, changes) = (self.subscribe, self.resources_list_changed);
        let flags = [("subscribe", subscribe, false), ("listChanged", changes, false)];
        writer.maybe("resources", self.resources.then_some(&Flags(flags, "true")));
        writer.maybe("tools", self.tools.then_some(&list(self.tools_list_changed)));
        let (is_core, is_extension) = (writer.to.core_tasks, writer.to.stateless);
        writer.maybe("tasks", (self.tasks && is_core).then_some(&CoreTasks));
        let extensions = Extensions([
            (TASKS, self.tasks && is_extension, "{}"),
            // A tool names its view in its metadata.
            (UI, self.ui && writer.to.structured, "{}"),
            (SKILLS, self.skills, r#"{"directoryRead":true}"#),
        ]);
        writer.maybe("extensions", extensions.any().then_some(&extensions));
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

/// An ability: an object whose text is kept for its unknown members.
struct Ability(MemberReader);

impl ReadJson for Ability {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        MemberReader::new(json).map(Self)
    }

    fn keeps_text() -> bool {
        true
    }
}

/// The extensions that we know: the name of each, whether the server has it, and its settings.
struct Extensions([(&'static str, bool, &'static str); 3]);

impl Extensions {
    fn any(&self) -> bool {
        self.0.iter().any(|(_, has, _)| *has)
    }
}

impl WriteJson for Extensions {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        let all = self.0.map(|(name, has, settings)| (name, has.then_some(settings)));
        with_members(&Raw::empty_object(), &all, out);
    }
}

fn has_extension(extra: &Extra, name: &str) -> bool {
    let extensions = extra.get("extensions");
    extensions.and_then(|all| all.member(name)).is_some_and(|settings| settings.is_object())
}

/// The tasks of 2025-11-25, with the one request that can be a task.
struct CoreTasks;

impl WriteJson for CoreTasks {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#);
    }
}

/// Whether the flag `name` is set: `true`, or an object.
fn has(ability: &Option<Ability>, name: &str) -> bool {
    let flag = ability.as_ref().and_then(|ability| ability.0.peek(name));
    flag.is_some_and(|flag| !matches!(flag.text(), "null" | "false"))
}

/// An ability to write: the name of each flag, whether it is set, and whether it is implied and
/// need not be written; then the JSON of a set flag.
struct Flags<const N: usize>([(&'static str, bool, bool); N], &'static str);

impl<const N: usize> WriteJson for Flags<N> {
    fn write_json(&self, _: &'static Features, out: &mut Vec<u8>) {
        let written = self.0.iter().filter(|(_, is_set, is_implied)| *is_set && !is_implied);
        let written: Vec<_> = written.map(|(name, ..)| (*name, Some(self.1))).collect();
        with_members(&Raw::empty_object(), &written, out);
    }

    fn still_says(&self, text: &Raw) -> bool {
        let ability = Ability::read_json(text).ok();
        self.0.iter().all(|(name, is_set, is_implied)| {
            has(&ability, name) == *is_set || (*is_set && *is_implied)
        })
    }
}

object! {
    /// The name and version of a client or a server.
    #[derive(Clone, Debug, Default, PartialEq)]
    Implementation |implementation, to| {
        /// Name for programs.
        name: String = required "name";
        /// Version, in any format.
        version: String = required "version";
        /// Display name.
        title: Option<String> = optional "title" if to.structured;
        /// Description for people.
        description: Option<String> = optional "description" if to.icons;
        /// Address of its web site.
        website_url: Option<String> = optional "websiteUrl" if to.icons;
        /// Images for a user interface, best first.
        icons: Vec<Icon> = optional "icons" if to.icons;
    }
}
