//! The immutable snapshot of everything that is offered.

mod apps; // views of tools
mod view; // the catalog as a caller sees it

use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use sabir_wire::mirror::{MirroredArgument, mirrored_arguments};
use sabir_wire::types::{
    CacheHint, CacheScope, Prompt, Reference, Resource, ResourceTemplate, ServerCapabilities,
    Skill, Tool,
};
use sabir_wire::{Problem, Raw, Revision, UriTemplate};

use self::view::{Views, instructions};
use crate::access::{Access, Needs};
use crate::listing::Listing;
use crate::names::ToolName;
use crate::schema::{BadSchema, Checker};
use crate::source::{BadOffer, Offer, Source, TaskMode, TaskPolicy};

/// Everything that is offered at one time, with the source of each item.
#[derive(Debug)]
pub struct Catalog {
    server: Raw,
    instructions: Option<String>,
    capabilities: ServerCapabilities,
    tools: FxHashMap<Box<str>, Arc<ToolEntry>>,
    tool_list: Listing<Tool>,
    /// Further names of tools; `None` for one that two tools have.
    aliases: FxHashMap<Box<str>, Option<Arc<ToolEntry>>>,
    prompts: FxHashMap<Box<str>, (Prompt, Provider)>,
    prompt_list: Listing<Prompt>,
    resources: FxHashMap<Box<str>, Provider>,
    resource_list: Listing<Resource>,
    templates: Vec<(UriTemplate, String, Provider)>,
    template_list: Listing<ResourceTemplate>,
    skill_list: Listing<Skill>,
    skills: FxHashMap<Box<str>, Skill>,
    folders: FxHashMap<Box<str>, Vec<Resource>>,
    cache: CacheHint,
    /// Prefixes of URIs that are read without being listed; `None` if two sources have the same.
    unlisted: FxHashMap<Box<str>, Option<Provider>>,
    views: Views,
}

/// A tool with its compiled schemas and its source.
#[derive(Debug)]
pub struct ToolEntry {
    /// As its source offers it.
    pub tool: Tool,
    /// Checks arguments.
    pub input: Checker,
    /// Checks results.
    pub output: Option<Checker>,
    /// Arguments that HTTP repeats in headers.
    pub mirrored: Vec<MirroredArgument>,
    /// Whether a call becomes a task.
    pub task: TaskPolicy,
    needs: Needs,
    provider: Provider,
}

/// A list that clients can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// The tools.
    Tools,
    /// The prompts.
    Prompts,
    /// The resources.
    Resources,
    /// The resource templates.
    Templates,
    /// The skills.
    Skills,
}

/// The source of a resource, and the values of its template's variables.
#[derive(Debug)]
pub struct FoundResource {
    provider: Provider,
    /// The template that it matches; `None` if it is listed itself.
    pub template: Option<String>,
    /// The values of the template's variables.
    pub variables: Vec<(String, String)>,
}

/// A source, and the scopes that everything of it needs.
#[derive(Clone)]
pub(crate) struct Provider {
    source: Arc<dyn Source>,
    /// The name for operators.
    pub(crate) name: Arc<str>,
    needs: Needs,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("needs", &self.needs).finish_non_exhaustive()
    }
}

/// A checked offer with compiled schemas.
#[derive(Debug)]
pub(crate) struct CheckedOffer {
    pub(crate) provider: Provider,
    tools: Vec<Arc<ToolEntry>>,
    templates: Vec<(UriTemplate, ResourceTemplate)>,
    pub(crate) offer: Offer,
    /// The invalid parts that were left out of a tolerant offer.
    pub(crate) left_out: Vec<BadOffer>,
}

impl CheckedOffer {
    /// Checks an offer on its own. Tools that are unchanged since `before` are not compiled again.
    pub(crate) fn check(
        source: &Arc<dyn Source>,
        mut offer: Offer,
        access: &Access,
        before: Option<&Self>,
    ) -> Result<Self, BadOffer> {
        // Our task policy replaces that of another server.
        let task = offer.task;
        offer.tools.iter_mut().for_each(|tool| tool.execution = task.execution());
        let (name, needs) = (source.name().into(), access.of_source());
        let provider = Provider { source: source.clone(), name, needs };
        let mut left_out = Vec::new();
        let mut leave_out = |bad: BadOffer| match offer.tolerant {
            true => {
                left_out.push(bad);
                Ok(())
            }
            false => Err(bad),
        };
        let is_same = |entry: &ToolEntry, tool: &Tool| entry.task == task && entry.tool == *tool;
        let known = |tool: &Tool| before?.tools.iter().find(|entry| is_same(entry, tool)).cloned();
        let mut tools = Vec::with_capacity(offer.tools.len());
        for tool in &offer.tools {
            let entry = known(tool)
                .map_or_else(|| ToolEntry::check(tool, task, access, &provider).map(Arc::new), Ok);
            match entry {
                Ok(entry) => tools.push(entry),
                Err(bad) => leave_out(bad)?,
            }
        }
        let mut templates = Vec::with_capacity(offer.templates.len());
        for template in &offer.templates {
            match UriTemplate::parse(&template.uri_template) {
                Ok(parsed) => templates.push((parsed, template.clone())),
                Err(reason) => {
                    let template = template.uri_template.clone();
                    leave_out(BadOffer::Template { template, reason })?;
                }
            }
        }
        Ok(Self { provider, tools, templates, offer, left_out })
    }

    fn instructions(&self) -> Option<&str> {
        self.offer.instructions.as_deref()
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        match kind {
            "tool" => self.tools.iter().any(|entry| entry.tool.name == name),
            "prompt" => self.offer.prompts.iter().any(|prompt| prompt.name == name),
            _ => self.offer.resources.iter().any(|resource| resource.uri == name),
        }
    }
}

impl ToolEntry {
    fn check(
        tool: &Tool,
        task: TaskPolicy,
        access: &Access,
        provider: &Provider,
    ) -> Result<Self, BadOffer> {
        let name = || tool.name.clone();
        ToolName::try_from(tool.name.as_str())
            .map_err(|reason| BadOffer::Name { tool: name(), reason })?;
        let schema =
            |which| move |reason: BadSchema| BadOffer::Schema { tool: name(), which, reason };
        let (input, value) =
            Checker::read_arguments(&tool.input_schema).map_err(schema("input schema"))?;
        let output = tool.output_schema.as_ref().map(Checker::for_results).transpose();
        let output = output.map_err(schema("output schema"))?;
        let mirrored = mirrored_arguments(&value)
            .map_err(|reason| BadOffer::Header { tool: name(), reason })?;
        let (needs, provider) = (access.of_tool(&tool.name), provider.clone());
        Ok(Self { tool: tool.clone(), input, output, mirrored, task, needs, provider })
    }

    fn is_of(&self, provider: &Provider) -> bool {
        Arc::ptr_eq(&self.provider.source, &provider.source)
    }

    /// The source that runs it.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.provider.source
    }

    /// The name of the source, for operators.
    pub fn source_name(&self) -> &Arc<str> {
        &self.provider.name
    }
}

impl FoundResource {
    /// The source that provides it.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.provider.source
    }

    /// The name of the source, for operators.
    pub fn source_name(&self) -> &Arc<str> {
        &self.provider.name
    }
}

impl Catalog {
    /// Combines offers in their order. The first item of a name keeps it; the second value lists the
    /// items that lost their names, each with the index of its offer.
    pub(crate) fn build(
        offers: &[&CheckedOffer],
        server: Raw,
        page_size: usize,
        changeable: bool,
    ) -> (Self, Vec<(usize, BadOffer)>) {
        let mut taken = Vec::new();
        let mut tools = FxHashMap::default();
        let (mut prompts, mut resources) = (FxHashMap::default(), FxHashMap::default());
        let mut templates = Vec::new();
        let (mut aliases, mut unlisted) = (FxHashMap::default(), FxHashMap::default());
        let (mut tool_list, mut prompt_list) = (Vec::new(), Vec::new());
        let (mut resource_list, mut template_list) = (Vec::new(), Vec::new());
        let (mut skills, mut folders) = (FxHashMap::default(), FxHashMap::default());
        let mut skill_list = Vec::new();
        for (nth, checked) in offers.iter().enumerate() {
            let CheckedOffer { provider, tools: entries, templates: parsed, offer, .. } = checked;
            let mut lost = |kind, name: &String| {
                let by = offers[..=nth].iter().find(|before| before.has(kind, name));
                let by = by.map(|before| before.provider.name.to_string()).unwrap_or_default();
                taken.push((nth, BadOffer::Taken { kind, name: name.clone(), by }))
            };
            for entry in entries {
                match insert(&mut tools, &entry.tool.name, || entry.clone()) {
                    true => tool_list.push(entry.tool.clone()),
                    false => lost("tool", &entry.tool.name),
                }
            }
            for prompt in &offer.prompts {
                match insert(&mut prompts, &prompt.name, || (prompt.clone(), provider.clone())) {
                    true => prompt_list.push(prompt.clone()),
                    false => lost("prompt", &prompt.name),
                }
            }
            for resource in &offer.resources {
                match insert(&mut resources, &resource.uri, || provider.clone()) {
                    true => resource_list.push(resource.clone()),
                    false => lost("resource", &resource.uri),
                }
            }
            for (alias, name) in &offer.tool_aliases {
                let entry: Option<&Arc<ToolEntry>> = tools.get(name.as_str());
                if let Some(entry) = entry.filter(|entry| entry.is_of(provider)) {
                    insert_unique(&mut aliases, alias, entry.clone());
                }
            }
            for beginning in &offer.unlisted {
                insert_unique(&mut unlisted, beginning, provider.clone());
            }
            for skill in &offer.skills {
                if insert(&mut skills, &skill.uri, || skill.clone()) {
                    skill_list.push(skill.clone());
                }
            }
            for (uri, children) in &offer.folders {
                insert(&mut folders, uri, || children.clone());
            }
            for (parsed, template) in parsed {
                templates.push((parsed.clone(), template.uri_template.clone(), provider.clone()));
                template_list.push(template.clone());
            }
        }
        let views = Views::of(offers);
        let cache = views.cache(shared_cache(offers));
        let catalog = Self {
            server,
            instructions: instructions(offers.iter().filter_map(|one| one.instructions())),
            capabilities: capabilities(offers, changeable),
            tools,
            tool_list: Listing::new(apps::attached(tool_list, offers), page_size, cache),
            aliases,
            prompts,
            prompt_list: Listing::new(prompt_list, page_size, cache),
            resources,
            resource_list: Listing::new(resource_list, page_size, cache),
            templates,
            template_list: Listing::new(template_list, page_size, cache),
            skill_list: Listing::new(skill_list, page_size, cache),
            skills,
            folders,
            cache,
            unlisted,
            views,
        };
        (catalog, taken)
    }

    /// The instructions of the sources, for the model.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The capabilities that follow from the offers.
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.capabilities
    }

    /// The tool of that name, or else the only one that has it as a further name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools.get(name).or_else(|| self.aliases.get(name)?.as_ref())
    }

    /// The prompt of that name, and its source.
    pub fn prompt(&self, name: &str) -> Option<(&Prompt, &Arc<dyn Source>)> {
        self.prompts.get(name).map(|(prompt, provider)| (prompt, &provider.source))
    }

    /// The resource at that URI: listed, matched by a template, or read without being listed.
    pub fn resource(&self, uri: &str) -> Option<FoundResource> {
        let found = |provider: &Provider| FoundResource {
            provider: provider.clone(),
            template: None,
            variables: Vec::new(),
        };
        let unlisted = || {
            let fitting =
                self.unlisted.iter().filter(|(beginning, _)| uri.starts_with(&***beginning));
            fitting.max_by_key(|(beginning, _)| beginning.len())?.1.as_ref().map(found)
        };
        let listed = self.resources.get(uri).map(found);
        listed.or_else(|| self.of_family(uri)).or_else(unlisted)
    }

    fn of_family(&self, uri: &str) -> Option<FoundResource> {
        self.templates.iter().find_map(|(template, text, provider)| {
            let variables = template.read(uri)?;
            let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
            Some(FoundResource {
                provider: provider.clone(),
                template: Some(text.clone()),
                variables: variables.collect(),
            })
        })
    }

    /// The skill whose `SKILL.md` has that URI.
    pub fn skill(&self, uri: &str) -> Option<&Skill> {
        self.skills.get(uri)
    }

    /// The direct children of the folder of a skill.
    pub fn folder(&self, uri: &str) -> Option<&[Resource]> {
        self.folders.get(uri).map(Vec::as_slice)
    }

    /// How long clients may cache the catalog.
    pub fn cache(&self) -> CacheHint {
        self.cache
    }

    /// The source that completes arguments of the referenced item, and whether the item has such an
    /// argument.
    pub fn completer(
        &self,
        reference: &Reference,
        argument: &str,
    ) -> Option<(&Arc<dyn Source>, bool)> {
        match reference {
            Reference::Prompt { name, .. } => {
                let (prompt, source) = self.prompt(name)?;
                Some((source, prompt.arguments.iter().any(|known| known.name == argument)))
            }
            Reference::Resource { uri, .. } => {
                let known = self.templates.iter().find(|(_, text, _)| **text == **uri);
                if let Some((template, _, provider)) = known {
                    return Some((
                        &provider.source,
                        template.variables().any(|name| name == argument),
                    ));
                }
                self.resources.get(uri).map(|provider| (&provider.source, false))
            }
        }
    }

    /// A page of a list.
    pub fn page(
        &self,
        list: List,
        cursor: Option<&str>,
        revision: Revision,
    ) -> Result<Bytes, Problem> {
        let server = &self.server;
        let page = match list {
            List::Tools => self.tool_list.page(cursor, revision, server),
            List::Prompts => self.prompt_list.page(cursor, revision, server),
            List::Resources => self.resource_list.page(cursor, revision, server),
            List::Templates => self.template_list.page(cursor, revision, server),
            List::Skills => self.skill_list.page(cursor, revision, server),
        };
        page.map_err(|bad| Problem::Params(bad.to_string().into()))
    }

    /// Whether a page of a list costs next to nothing: it was rendered before, or it is short.
    pub fn is_page_ready(&self, list: List, cursor: Option<&str>, revision: Revision) -> bool {
        match list {
            List::Tools => self.tool_list.is_ready(cursor, revision),
            List::Prompts => self.prompt_list.is_ready(cursor, revision),
            List::Resources => self.resource_list.is_ready(cursor, revision),
            List::Templates => self.template_list.is_ready(cursor, revision),
            List::Skills => self.skill_list.is_ready(cursor, revision),
        }
    }

    /// The tools, in the order in which they are listed.
    pub fn tools(&self) -> &[Tool] {
        self.tool_list.items()
    }

    /// The prompts, in the order in which they are listed.
    pub fn prompts(&self) -> &[Prompt] {
        self.prompt_list.items()
    }

    /// The resources, in the order in which they are listed.
    pub fn resources(&self) -> &[Resource] {
        self.resource_list.items()
    }

    /// The resource templates, in the order in which they are listed.
    pub fn templates(&self) -> &[ResourceTemplate] {
        self.template_list.items()
    }
}

/// `false` if the name is taken.
fn insert<T>(map: &mut FxHashMap<Box<str>, T>, name: &str, value: impl FnOnce() -> T) -> bool {
    let is_free = !map.contains_key(name);
    if is_free {
        map.insert(name.into(), value());
    }
    is_free
}

/// A duplicate name maps to `None`.
fn insert_unique<T>(map: &mut FxHashMap<Box<str>, Option<T>>, name: &str, value: T) {
    map.entry(name.into()).and_modify(|taken| *taken = None).or_insert(Some(value));
}

/// A list may be cached for the shortest time that any of its sources allows.
fn shared_cache(offers: &[&CheckedOffer]) -> CacheHint {
    let hints = offers.iter().map(|checked| checked.offer.cache);
    let all = Offer::default().cache;
    hints.fold(all, |all, hint| CacheHint {
        ttl_ms: all.ttl_ms.min(hint.ttl_ms),
        scope: if hint.scope == CacheScope::Private { hint.scope } else { all.scope },
    })
}

fn capabilities(offers: &[&CheckedOffer], changeable: bool) -> ServerCapabilities {
    let any = |has: fn(&Offer) -> bool| offers.iter().any(|checked| has(&checked.offer));
    let tools = any(|offer| !offer.tools.is_empty());
    let prompts = any(|offer| offer.is_unknown || !offer.prompts.is_empty());
    let resources = any(|offer| {
        let has_none =
            offer.resources.is_empty() && offer.templates.is_empty() && offer.unlisted.is_empty();
        offer.is_unknown || !has_none
    });
    ServerCapabilities {
        // A server that offers nothing yet still declares tools.
        tools: tools || changeable || any(|offer| offer.is_unknown) || !(prompts || resources),
        prompts,
        resources,
        completions: any(|offer| offer.is_unknown || offer.completes),
        logging: any(|offer| offer.is_unknown || offer.logs),
        subscribe: resources && any(|offer| offer.is_unknown || offer.updates),
        skills: any(|offer| !offer.skills.is_empty()),
        ui: apps::are_any(offers),
        tasks: any(|offer| offer.task.mode != TaskMode::Never && !offer.tools.is_empty()),
        ..ServerCapabilities::default()
    }
    .with_list_changed(changeable || any(|offer| offer.is_unknown || offer.changes))
}
