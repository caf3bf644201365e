//! The offer of an upstream, under the names that our clients see.

use std::collections::{BTreeMap, HashMap};

use sabir_registry::{Offer, TaskMode, TaskPolicy};
use sabir_wire::Raw;
use sabir_wire::types::{CacheHint, CacheScope, Prompt, Resource, ResourceTemplate, Skill};
use sabir_wire::types::{SkillFile, SkillFiles, Tool};

use super::filter::Filter;
use super::memory::UpstreamCatalog;
use super::uris::UriNames;

/// How the names of an upstream appear to our clients.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// Put before the names of tools and prompts.
    pub prefix: String,
    /// Which tools are passed on, by the upstream's names.
    pub tools: Filter,
    /// Which prompts are passed on, by the upstream's names.
    pub prompts: Filter,
    /// Which resources and templates are passed on, by the upstream's URIs.
    pub resources: Filter,
    /// New names of tools and prompts, by the upstream's names. The prefix is put before them.
    pub renames: BTreeMap<String, String>,
    /// New descriptions of tools and prompts, by the upstream's names.
    pub descriptions: BTreeMap<String, String>,
}

/// The names of an upstream in both directions.
#[derive(Debug)]
pub(super) struct Mapping {
    naming: Naming,
    task: Option<TaskPolicy>,
    pub(super) uris: UriNames,
}

/// An offer, and what the upstream calls its tools and prompts.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapped {
    pub(super) offer: Offer,
    tools: HashMap<String, String>,
    prompts: HashMap<String, String>,
}

impl Mapped {
    /// The upstream's name of a tool.
    pub(super) fn tool(&self, name: &str) -> Option<&str> {
        self.tools.get(name).map(String::as_str)
    }

    /// The upstream's name of a prompt.
    pub(super) fn prompt(&self, name: &str) -> Option<&str> {
        self.prompts.get(name).map(String::as_str)
    }
}

impl Mapping {
    /// Without a prefix names and URIs stay as they are.
    pub(super) fn new(upstream: &str, naming: Naming, task: Option<TaskPolicy>) -> Self {
        let segment = (!naming.prefix.is_empty()).then_some(upstream);
        Self { uris: UriNames::new(segment), naming, task }
    }

    /// Whether a resource of the upstream is passed on.
    pub(super) fn passes_resource(&self, uri: &str) -> bool {
        self.naming.resources.passes(uri)
    }

    /// The offer made from an upstream's catalog.
    pub(super) fn apply(&self, catalog: &UpstreamCatalog) -> Mapped {
        let mut mapped = Mapped::default();
        let offer = &mut mapped.offer;
        for tool in catalog.tools.iter().filter(|tool| self.naming.tools.passes(&tool.name)) {
            let name = self.name(&tool.name);
            if name != tool.name {
                offer.tool_aliases.push((tool.name.clone(), name.clone()));
            }
            mapped.tools.insert(name.clone(), tool.name.clone());
            offer.tools.push(self.tool(tool, name));
        }
        for prompt in catalog.prompts.iter().filter(|one| self.naming.prompts.passes(&one.name)) {
            let name = self.name(&prompt.name);
            mapped.prompts.insert(name.clone(), prompt.name.clone());
            offer.prompts.push(self.prompt(prompt, name));
        }
        let resources = catalog.resources.iter().filter(|one| self.passes_resource(&one.uri));
        offer.resources = resources.map(|one| self.resource(one)).collect();
        let passes = |one: &&ResourceTemplate| self.passes_resource(&one.uri_template);
        let templates = catalog.templates.iter().filter(passes);
        offer.templates = templates.map(|one| self.template(one)).collect();
        let skills = catalog.skills.iter().filter(|one| self.passes_resource(&one.uri));
        offer.skills = skills.map(|one| self.skill(one)).collect();
        let listed = offer.resources.iter();
        let listed = listed.filter_map(|one| Some((one.uri.as_str(), one.mime_type.as_ref()?)));
        let listed: HashMap<_, _> = listed.collect();
        let kind = |uri: &str| {
            let markdown = || uri.ends_with(".md").then(|| "text/markdown".to_owned());
            listed.get(uri).map(|kind| (*kind).clone()).or_else(markdown)
        };
        // Only the upstream knows the files of a dynamic skill.
        let is_known = |one: &&Skill| !catalog.reads_folders || one.files != SkillFiles::Dynamic;
        let known: Vec<_> = offer.skills.iter().filter(is_known).cloned().collect();
        offer.folders = Skill::folders(&known, kind);
        if catalog.has_resources {
            // A result may link to a resource that is not listed, a tool to a page of its own.
            offer.unlisted = self.uris.beginnings();
            offer.unlisted.push(String::new());
        }
        offer.completes = catalog.completes;
        offer.logs = catalog.logs;
        offer.updates = catalog.subscribes;
        let passed = if catalog.tasks { TaskMode::Passed } else { TaskMode::Never };
        offer.task = self.task.unwrap_or(passed.into());
        offer.changes = true;
        offer.tolerant = true;
        // The upstream may change at any time, and what it lists may depend on our credentials.
        offer.cache = CacheHint { ttl_ms: 0, scope: CacheScope::Private };
        mapped
    }

    /// Why a tool of the upstream, by its own name or ours, is not passed on.
    pub(super) fn withheld(&self, catalog: &UpstreamCatalog, name: &str) -> Option<String> {
        let is_meant = |tool: &&Tool| tool.name == name || self.name(&tool.name) == name;
        let tool = catalog.tools.iter().find(is_meant)?;
        let reason = self.naming.tools.refusal(&tool.name)?;
        Some(format!("it has a tool `{}`, but {reason}", tool.name))
    }

    fn name(&self, name: &str) -> String {
        let new = self.naming.renames.get(name).map_or(name, String::as_str);
        format!("{}{new}", self.naming.prefix)
    }

    fn description(&self, name: &str, own: Option<&String>) -> Option<String> {
        self.naming.descriptions.get(name).or(own).cloned()
    }

    fn tool(&self, tool: &Tool, name: String) -> Tool {
        Tool {
            name,
            description: self.description(&tool.name, tool.description.as_ref()),
            meta: self.meta(tool.meta.as_ref()),
            ..tool.clone()
        }
    }

    fn prompt(&self, prompt: &Prompt, name: String) -> Prompt {
        Prompt {
            name,
            description: self.description(&prompt.name, prompt.description.as_ref()),
            ..prompt.clone()
        }
    }

    fn resource(&self, resource: &Resource) -> Resource {
        let (uri, meta) =
            (self.uris.outward(&resource.uri).into(), self.meta(resource.meta.as_ref()));
        Resource { uri, meta, ..resource.clone() }
    }

    fn template(&self, template: &ResourceTemplate) -> ResourceTemplate {
        let uri_template = self.uris.outward(&template.uri_template).into();
        ResourceTemplate { uri_template, ..template.clone() }
    }

    /// The entry and its files get the same prefix, so that reads and digests still match.
    fn skill(&self, skill: &Skill) -> Skill {
        let outward = |uri: &str| self.uris.outward(uri).into_owned();
        let files = match &skill.files {
            SkillFiles::Dynamic => SkillFiles::Dynamic,
            SkillFiles::Listed(files) => {
                let file = |file: &SkillFile| SkillFile { uri: outward(&file.uri), ..file.clone() };
                SkillFiles::Listed(files.iter().map(file).collect())
            }
        };
        Skill { uri: outward(&skill.uri), files, ..skill.clone() }
    }

    fn meta(&self, meta: Option<&Raw>) -> Option<Raw> {
        meta.map(|meta| self.uris.outward_json(meta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> UpstreamCatalog {
        let tool = |name: &str| Tool::new(name, "its own words", Raw::empty_object());
        let mut shown = tool("show");
        shown.meta = Some(Raw::parse(r#"{"ui":{"resourceUri":"ui://page"}}"#).unwrap());
        let resource = |uri: &str| Resource { uri: uri.into(), ..Resource::default() };
        UpstreamCatalog {
            tools: vec![tool("read"), tool("erase"), shown],
            prompts: vec![Prompt { name: "ask".into(), ..Prompt::default() }],
            resources: vec![resource("ui://page"), resource("file:///a")],
            has_resources: true,
            ..UpstreamCatalog::default()
        }
    }

    #[test]
    fn names_are_prefixed_renamed_and_filtered() {
        let naming = Naming {
            prefix: "f_".into(),
            tools: Filter::new(None, &["erase".into()]).unwrap(),
            renames: BTreeMap::from([("read".into(), "get".into())]),
            descriptions: BTreeMap::from([("read".into(), "our words".into())]),
            ..Naming::default()
        };
        let mapping = Mapping::new("f", naming, None);
        let mapped = mapping.apply(&catalog());
        let offer = &mapped.offer;
        let names: Vec<_> = offer.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["f_get", "f_show"]);
        assert_eq!(offer.tools[0].description.as_deref(), Some("our words"));
        assert_eq!((mapped.tool("f_get"), mapped.tool("read")), (Some("read"), None));
        assert_eq!(mapped.prompt("f_ask"), Some("ask"));
        assert_eq!(offer.tool_aliases[0], ("read".to_owned(), "f_get".to_owned()));
        let meta = offer.tools[1].meta.as_ref().unwrap().text();
        assert_eq!(meta, r#"{"ui":{"resourceUri":"ui://f/page"}}"#);
        assert_eq!(offer.resources[0].uri, "ui://f/page");
        assert_eq!(offer.resources[1].uri, "file:///a");
        assert_eq!(offer.unlisted, ["ui://f/", "skill://f/", ""]);
        let reason = "it has a tool `erase`, but a pattern of `deny` excludes it";
        for (name, expected) in
            [("erase", Some(reason)), ("f_erase", Some(reason)), ("f_get", None)]
        {
            assert_eq!(mapping.withheld(&catalog(), name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn without_a_prefix_everything_keeps_its_name() {
        let mapped = Mapping::new("f", Naming::default(), None).apply(&catalog());
        assert_eq!(mapped.offer.tools[0].name, "read");
        assert_eq!(mapped.offer.tool_aliases, []);
        assert_eq!(mapped.offer.resources[0].uri, "ui://page");
        assert_eq!(mapped.offer.unlisted, [""]);
    }
}
