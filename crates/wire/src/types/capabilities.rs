//! Who the two sides are and what they can do. Spec: basic, "Capabilities"; server/discover.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{Extra, Invalid, MemberReader, MemberWriter, Object, ReadJson, WriteJson};
use crate::json::{deserialize, object};
use crate::raw::Raw;
use crate::revision::{Features, Revision};
use crate::types::{Icon, Topic};

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
        let names: Vec<_> = all.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        names.join(", ")
    }
}

impl Object for ClientCapabilities {
    fn read_members(members: &mut MemberReader) -> Result<Self, Invalid> {
        let roots: Option<Flags<Roots>> = members.take("roots")?;
        let sampling: Option<Flags<Sampling>> = members.take("sampling")?;
        let elicitation: Option<Flags<Elicitation>> = members.take("elicitation")?;
        Ok(Self {
            roots: roots.is_some(),
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(|sampling| sampling.first),
            elicitation_form: elicitation.as_ref().is_some_and(|modes| modes.first),
            elicitation_url: elicitation.is_some_and(|modes| modes.second),
            extra: members.rest(),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let to = writer.to;
        writer.optional("roots", &self.roots.then(|| Flags::<Roots>::new(false, false)));
        let tools = self.sampling_tools && to.icons;
        let sampling = self.sampling || tools;
        writer.optional("sampling", &sampling.then(|| Flags::<Sampling>::new(tools, false)));
        let (form, url) = (self.elicitation_form, self.elicitation_url && to.icons);
        if to.elicitation {
            let modes = (form || url).then(|| Flags::<Elicitation>::new(form, url));
            writer.optional("elicitation", &modes);
        }
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
    /// Clients are told of a change in the list of tools.
    pub tools_list_changed: bool,
    /// Clients are told of a change in the list of prompts.
    pub prompts_list_changed: bool,
    /// Clients are told of a change in the list of resources.
    pub resources_list_changed: bool,
    /// Unknown members.
    pub extra: Extra,
}

impl ServerCapabilities {
    /// Whether a client of this server may expect to be told of `topic`.
    pub fn announces(&self, topic: &Topic) -> bool {
        match topic {
            Topic::Tools => self.tools && self.tools_list_changed,
            Topic::Prompts => self.prompts && self.prompts_list_changed,
            Topic::Resources => self.resources && self.resources_list_changed,
            Topic::Resource(_) => self.resources && self.subscribe,
        }
    }

    /// The same, with whether clients are told of changes in the lists that there are.
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
        let mut take = |name| members.take::<Option<Flags<List>>>(name);
        let (logging, completions) = (take("logging")?, take("completions")?);
        let (prompts, resources, tools) = (take("prompts")?, take("resources")?, take("tools")?);
        let changes = |list: &Option<Flags<List>>| list.as_ref().is_some_and(|list| list.second);
        Ok(Self {
            logging: logging.is_some(),
            completions: completions.is_some(),
            prompts_list_changed: changes(&prompts),
            prompts: prompts.is_some(),
            resources_list_changed: changes(&resources),
            tools_list_changed: changes(&tools),
            tools: tools.is_some(),
            subscribe: resources.as_ref().is_some_and(|list| list.first),
            resources: resources.is_some(),
            extra: members.rest(),
        })
    }

    fn write_members(&self, writer: &mut MemberWriter<'_>) {
        let flags = |has: bool, subscribe, list_changed| {
            has.then(|| Flags::<List>::new(subscribe, list_changed))
        };
        writer.optional("logging", &flags(self.logging, false, false));
        // 2024-11-05 has the method, but no capability for it.
        if writer.to.audio {
            writer.optional("completions", &flags(self.completions, false, false));
        }
        writer.optional("prompts", &flags(self.prompts, false, self.prompts_list_changed));
        let resources = flags(self.resources, self.subscribe, self.resources_list_changed);
        writer.optional("resources", &resources);
        writer.optional("tools", &flags(self.tools, false, self.tools_list_changed));
    }

    fn extra(&self, _: &Features) -> &Extra {
        &self.extra
    }
}

/// An ability with up to two flags. Its text is kept, for what else it may hold.
#[derive(PartialEq)]
struct Flags<T> {
    first: bool,
    second: bool,
    of: std::marker::PhantomData<T>,
}

/// The names of the flags of an ability.
trait Named {
    const NAMES: [&'static str; 2];
    /// What is written for a flag that is set.
    const SET: &'static str = "{}";
    /// Whether an object without a flag sets the first, which then is not written.
    const FIRST_IS_IMPLIED: bool = false;
}

struct Roots;
struct Sampling;
struct Elicitation;
struct List;

impl Named for Roots {
    const NAMES: [&'static str; 2] = [""; 2];
}

impl Named for Sampling {
    const NAMES: [&'static str; 2] = ["tools", ""];
}

/// An empty object has always meant forms.
impl Named for Elicitation {
    const NAMES: [&'static str; 2] = ["form", "url"];
    const FIRST_IS_IMPLIED: bool = true;
}

impl Named for List {
    const NAMES: [&'static str; 2] = ["subscribe", "listChanged"];
    const SET: &'static str = "true";
}

impl<T: Named> Flags<T> {
    fn new(first: bool, second: bool) -> Self {
        Self { first, second, of: std::marker::PhantomData }
    }
}

impl<T: Named> ReadJson for Flags<T> {
    fn read_json(json: &Raw) -> Result<Self, Invalid> {
        let members = MemberReader::new(json)?;
        let is_set = |name| {
            let value: Option<&Raw> = members.peek(name);
            value.is_some_and(|value| !matches!(value.text(), "null" | "false"))
        };
        let [first, second] = T::NAMES.map(is_set);
        Ok(Self::new(first || (T::FIRST_IS_IMPLIED && !second), second))
    }

    fn keeps_text() -> bool {
        true
    }
}

impl<T: Named> WriteJson for Flags<T> {
    fn write_json(&self, to: &'static Features, out: &mut Vec<u8>) {
        // Before 2025-11-25 the one mode of elicitation has no name.
        let is_implied = T::FIRST_IS_IMPLIED && (!self.second || !to.icons);
        let set = [self.first && !is_implied, self.second];
        let named = T::NAMES.iter().zip(set).filter(|(_, is_set)| *is_set);
        let members: Vec<_> = named.map(|(name, _)| format!("\"{name}\":{}", T::SET)).collect();
        out.extend_from_slice(format!("{{{}}}", members.join(",")).as_bytes());
    }

    fn still_says(&self, text: &Raw) -> bool {
        let said = Self::read_json(text).ok();
        said.is_some_and(|said| (said.first, said.second) == (self.first, self.second))
    }
}

/// The name and version of a client or a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Implementation {
    /// Name for programs.
    pub name: String,
    /// Version, in any format.
    pub version: String,
    /// Display name.
    pub title: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Address of its web site.
    pub website_url: Option<String>,
    /// Images for a user interface, best first.
    pub icons: Vec<Icon>,
    /// Unknown members.
    pub extra: Extra,
}

object!(Implementation, implementation, to {
    required "name": name;
    required "version": version;
    optional "title": title if to.structured;
    optional "description": description if to.icons;
    optional "websiteUrl": website_url if to.icons;
    optional "icons": icons if to.icons;
});
