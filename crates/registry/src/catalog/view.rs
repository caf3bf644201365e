//! The part of a catalog that a caller may see and use.
//!
//! Callers with the same scopes see the same: views are kept per set of scopes, not per caller.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use sabir_wire::types::{CacheHint, CacheScope, Reference};
use sabir_wire::{Caller, Request};

use super::{Catalog, CheckedOffer, ToolEntry};
use crate::access::{Access, Needs};
use crate::source::Source;

/// Views at once. When full, all are dropped and made again.
const MAX_VIEWS: usize = 64;

/// The views of a catalog.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// The scopes of all items, in alphabetical order.
    pub(super) scopes: Vec<Box<str>>,
    /// The instructions of sources, if any item needs scopes.
    pub(super) instructions: Vec<(Needs, String)>,
    /// The scopes of skills and their folders, by URI.
    skills: FxHashMap<Box<str>, Needs>,
    made: Mutex<FxHashMap<Vec<Box<str>>, Arc<Catalog>>>,
    /// With the tool of [`Catalog::with_tool`].
    with_tool: OnceLock<Arc<Catalog>>,
}

impl Views {
    /// The views of a catalog of these offers.
    pub(super) fn of(offers: &[&CheckedOffer]) -> Self {
        let needs = offers.iter().flat_map(|checked| {
            let of_tools = checked.tools.iter().map(|entry| &entry.needs);
            of_tools.chain([&checked.provider.needs])
        });
        let mut scopes: Vec<_> = needs.flat_map(|needs| needs.iter().cloned()).collect();
        scopes.sort();
        scopes.dedup();
        if scopes.is_empty() {
            return Self::default();
        }
        let (mut instructions, mut skills) = (Vec::new(), FxHashMap::default());
        for CheckedOffer { provider, offer, .. } in offers {
            let told = offer.instructions.iter();
            instructions.extend(told.map(|text| (provider.needs.clone(), text.clone())));
            let uris = offer.skills.iter().map(|skill| skill.uri.as_str());
            for uri in uris.chain(offer.folders.iter().map(|(uri, _)| uri.as_str())) {
                skills.entry(uri.into()).or_insert_with(|| provider.needs.clone());
            }
        }
        Self { scopes, instructions, skills, ..Self::default() }
    }

    /// How long clients may cache lists, and for whom: lists that depend on the caller are private.
    pub(super) fn cache(&self, mut hint: CacheHint) -> CacheHint {
        if !self.scopes.is_empty() {
            hint.scope = CacheScope::Private;
        }
        hint
    }
}

impl Catalog {
    /// The catalog that the caller may see and use: the whole, if no item needs scopes or the
    /// caller is the local user.
    pub fn seen_by(self: &Arc<Self>, caller: &Caller) -> Arc<Self> {
        let scopes = &self.views.scopes;
        if scopes.is_empty() || caller.is_local() {
            return self.clone();
        }
        let granted: Vec<_> =
            scopes.iter().filter(|scope| caller.has_scope(scope)).cloned().collect();
        if granted.len() == scopes.len() {
            return self.clone();
        }
        let lock = || self.views.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = lock().get(&granted) {
            return made.clone();
        }
        let may = |needs: &Needs| needs.iter().all(|scope| granted.contains(scope));
        let view = Arc::new(self.view(&may));
        let mut made = lock();
        if made.len() >= MAX_VIEWS {
            made.clear();
        }
        made.entry(granted).or_insert(view).clone()
    }

    /// The same with a tool that only some clients see, always the same one. If the name is taken,
    /// the tool is left out.
    pub fn with_tool(self: &Arc<Self>, entry: &Arc<ToolEntry>) -> Arc<Self> {
        let with_tool = || {
            let mut more = self.view(&|_| true);
            more.instructions.clone_from(&self.instructions);
            if !more.tools.contains_key(entry.tool.name.as_str()) {
                more.tools.insert(entry.tool.name.as_str().into(), entry.clone());
                more.tool_list = more.tool_list.with(entry.tool.clone());
            }
            Arc::new(more)
        };
        self.views.with_tool.get_or_init(with_tool).clone()
    }

    /// The scopes that the request needs, all of them, if the caller lacks any.
    pub fn missing_scopes(&self, request: &Request, caller: &Caller) -> Option<Vec<Box<str>>> {
        if self.views.scopes.is_empty() || caller.is_local() {
            return None;
        }
        let needs = self.needs(request)?;
        let is_granted = needs.iter().all(|scope| caller.has_scope(scope));
        (!is_granted).then(|| needs.to_vec())
    }

    /// Whether callers with different scopes see different parts of it.
    pub fn is_restricted(&self) -> bool {
        !self.views.scopes.is_empty()
    }

    fn needs(&self, request: &Request) -> Option<Needs> {
        let of_resource = |uri: &str| Some(self.resource(uri)?.provider.needs);
        let of_prompt = |name: &str| Some(self.prompts.get(name)?.1.needs.clone());
        match request {
            Request::CallTool(call) => Some(self.tool(&call.name)?.needs.clone()),
            Request::GetPrompt(get) => of_prompt(&get.name),
            Request::ReadResource(read) => of_resource(&read.uri),
            Request::Subscribe(uri) => of_resource(uri),
            Request::GetSkill(uri) => self.views.skills.get(uri).cloned(),
            Request::ReadFolder(read) => self.views.skills.get(&read.uri).cloned(),
            Request::Complete(complete) => match &complete.reference {
                Reference::Prompt { name, .. } => of_prompt(name),
                Reference::Resource { uri, .. } => {
                    let family = self.templates.iter().find(|(_, text, _)| **text == **uri);
                    let family = family.map(|(_, _, provider)| provider.needs.clone());
                    family.or_else(|| of_resource(uri))
                }
            },
            _ => None,
        }
    }

    fn view(&self, may: &dyn Fn(&Needs) -> bool) -> Self {
        let mut tools = self.tools.clone();
        tools.retain(|_, entry| may(&entry.needs));
        let mut aliases = self.aliases.clone();
        aliases.retain(|_, entry| entry.as_ref().is_none_or(|entry| may(&entry.needs)));
        let mut prompts = self.prompts.clone();
        prompts.retain(|_, (_, provider)| may(&provider.needs));
        let mut resources = self.resources.clone();
        resources.retain(|_, provider| may(&provider.needs));
        let mut templates = self.templates.clone();
        templates.retain(|(_, _, provider)| may(&provider.needs));
        let mut unlisted = self.unlisted.clone();
        unlisted.retain(|_, provider| provider.as_ref().is_none_or(|one| may(&one.needs)));
        let of_skill = |uri: &str| self.views.skills.get(uri).is_none_or(may);
        let mut skills = self.skills.clone();
        skills.retain(|uri, _| of_skill(uri));
        let mut folders = self.folders.clone();
        folders.retain(|uri, _| of_skill(uri));
        let has_template = |uri: &str| templates.iter().any(|(_, text, _)| text == uri);
        let told = self.views.instructions.iter().filter(|(needs, _)| may(needs));
        Self {
            server: self.server.clone(),
            instructions: instructions(told.map(|(_, text)| text.as_str())),
            capabilities: self.capabilities.clone(),
            tool_list: self.tool_list.filtered(|tool| tools.contains_key(tool.name.as_str())),
            prompt_list: self.prompt_list.filtered(|one| prompts.contains_key(one.name.as_str())),
            resource_list: self
                .resource_list
                .filtered(|one| resources.contains_key(one.uri.as_str())),
            template_list: self.template_list.filtered(|one| has_template(&one.uri_template)),
            skill_list: self.skill_list.filtered(|skill| of_skill(&skill.uri)),
            skills,
            folders,
            cache: self.cache,
            tools,
            aliases,
            prompts,
            resources,
            templates,
            unlisted,
            views: Views::default(),
        }
    }
}

impl ToolEntry {
    /// The first tool of a source that is in no registry; `None` if its offer is invalid.
    pub fn of(source: &Arc<dyn Source>) -> Option<Arc<Self>> {
        let checked = CheckedOffer::check(source, source.offer(), &Access::default(), None);
        checked.ok()?.tools.into_iter().next()
    }
}

/// Sources whose instructions are sent. More would fill the context of a model.
const MOST_INSTRUCTIONS: usize = 8;

/// The instructions of sources, as one text.
pub(super) fn instructions<'o>(all: impl Iterator<Item = &'o str>) -> Option<String> {
    let all: Vec<&str> = all.take(MOST_INSTRUCTIONS).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

#[cfg(test)]
mod tests;
