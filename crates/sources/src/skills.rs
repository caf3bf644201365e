//! A folder of skills: each folder with a `SKILL.md` is one. Clients that know the extension get
//! skills, all others get resources and prompts, and a tool if one is configured.
//!
//! The folder is read as a whole into a snapshot, so that digests, sizes and contents always agree.
//! It is read again when it changes.

mod folder; // reads a folder of skills
mod frontmatter; // the fields at the top of a SKILL.md
mod tool; // the tool that reads skills
mod verify; // the checks of a host

pub use verify::{BadSkillFile, verify};

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use notify_debouncer_full::notify::{Config, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, NoCache, new_debouncer_opt};
use sabir_budget::{Hold, memory};
use sabir_registry::{
    Offer, Outcome, Pending, PromptCall, ResourceCall, Source, SourceHandle, StartError, Starting,
    ToolCall,
};
use sabir_wire::Problem;
use sabir_wire::types::{CacheHint, CacheScope, Prompt, PromptReply, Resource, ResourceContents};
use sabir_wire::types::{ResourceReply, Skill, SkillFiles, ToolReply};

use self::folder::{Loaded, Snapshot};

/// How long changes are collected before the folder is read again.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// How long clients may cache lists and contents: changes are not announced to all of them.
const CACHE: CacheHint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };

/// Serves a folder of skills.
#[derive(Clone)]
pub struct SkillsSource {
    inner: Arc<Inner>,
    /// The name of the tool that reads skills.
    tool: Option<String>,
    /// Whether skills are listed as dynamic, without their files.
    is_dynamic: bool,
}

struct Inner {
    root: PathBuf,
    /// The folder as the operator calls it.
    label: String,
    snapshot: ArcSwap<Snapshot>,
    /// The files' share of the memory budget of the process.
    memory: Mutex<Hold>,
    watcher: Mutex<Option<Debouncer<RecommendedWatcher, NoCache>>>,
    /// Why the folder is not watched.
    unwatched: Mutex<Option<String>>,
}

impl SkillsSource {
    /// Reads the skills in `root`, an existing folder that operators call `label`.
    pub fn open(root: &Path, label: impl Into<String>) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        let snapshot = Snapshot::read(&root)?;
        let memory = Mutex::new(memory().take_anyway(snapshot.size()));
        let (watcher, unwatched) = (Mutex::default(), Mutex::default());
        let (snapshot, label) = (ArcSwap::from_pointee(snapshot), label.into());
        let inner = Arc::new(Inner { root, label, snapshot, memory, watcher, unwatched });
        Ok(Self { inner, tool: None, is_dynamic: false })
    }

    /// Also offers a tool of that name that reads skills, for clients that know tools only.
    pub fn with_tool(self, name: impl Into<String>) -> Self {
        Self { tool: Some(name.into()), ..self }
    }

    /// Lists the skills as dynamic: without their files and digests, which would be wrong as soon
    /// as a file changes. Files and folders are read as before.
    pub fn dynamic(self) -> Self {
        Self { is_dynamic: true, ..self }
    }
}

impl Inner {
    /// Reads the folder again, and announces changes.
    fn refresh(&self, handle: &SourceHandle) {
        let read = match Snapshot::read(&self.root) {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!("skills {}: {error}", self.root.display());
                return;
            }
        };
        let before = self.snapshot.load_full();
        if *before == read {
            return;
        }
        let changed = read.changed_since(&before);
        *lock(&self.memory) = memory().take_anyway(read.size());
        self.snapshot.store(Arc::new(read));
        if let Err(bad) = handle.changed() {
            tracing::warn!("skills {}: {bad}", self.root.display());
        }
        changed.into_iter().for_each(|uri| handle.updated(uri));
    }

    fn watch(inner: &Arc<Self>, handle: SourceHandle) {
        let weak: Weak<Self> = Arc::downgrade(inner);
        let on_change = move |result: DebounceEventResult| {
            let is_change = |event: &notify_debouncer_full::DebouncedEvent| !event.kind.is_access();
            let has_changed = result.map_or(true, |events| events.iter().any(is_change));
            if let Some(inner) = weak.upgrade().filter(|_| has_changed) {
                inner.refresh(&handle);
            }
        };
        let config = Config::default().with_follow_symlinks(false);
        let watcher = new_debouncer_opt(DEBOUNCE, None, on_change, NoCache::new(), config)
            .and_then(|mut watcher: Debouncer<RecommendedWatcher, NoCache>| {
                watcher.watch(&inner.root, RecursiveMode::Recursive)?;
                Ok(watcher)
            });
        match watcher {
            Ok(watcher) => *lock(&inner.watcher) = Some(watcher),
            Err(error) => *lock(&inner.unwatched) = Some(error.to_string()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Source for SkillsSource {
    fn name(&self) -> String {
        format!("skills {}", self.inner.label)
    }

    fn offer(&self) -> Offer {
        let snapshot = self.inner.snapshot.load();
        let resource = |skill: &Loaded| Resource {
            uri: skill.entry.uri.clone(),
            name: skill.name.clone(),
            description: Some(skill.description.clone()),
            mime_type: Some("text/markdown".into()),
            ..Resource::default()
        };
        let prompt = |skill: &Loaded| Prompt {
            name: skill.name.clone(),
            description: Some(skill.description.clone()),
            ..Prompt::default()
        };
        let skill = |skill: &Loaded| match self.is_dynamic {
            true => Skill { files: SkillFiles::Dynamic, ..skill.entry.clone() },
            false => skill.entry.clone(),
        };
        Offer {
            tools: self.tool.iter().map(|name| tool::describe(name, &snapshot)).collect(),
            resources: snapshot.skills.iter().map(resource).collect(),
            prompts: snapshot.skills.iter().map(prompt).collect(),
            unlisted: snapshot.skills.iter().map(|skill| format!("{}/", skill.folder)).collect(),
            skills: snapshot.skills.iter().map(skill).collect(),
            folders: snapshot.folders.clone(),
            updates: true,
            changes: true,
            cache: CACHE,
            ..Offer::default()
        }
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        let inner = self.inner.clone();
        Box::pin(async move {
            let failed = |error: tokio::task::JoinError| StartError::new(error.to_string());
            // The folder may have changed since it was opened.
            let watching = move || {
                Inner::watch(&inner, handle.clone());
                inner.refresh(&handle);
            };
            tokio::task::spawn_blocking(watching).await.map_err(failed)
        })
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        let snapshot = self.inner.snapshot.load_full();
        Box::pin(async move { tool::read(&snapshot, &call.arguments).map(Outcome::Done) })
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let snapshot = self.inner.snapshot.load_full();
        Box::pin(async move {
            let Some(file) = snapshot.files.get(&*call.uri) else {
                return Err(Problem::UnknownResource(call.uri));
            };
            let contents = match std::str::from_utf8(&file.bytes) {
                Ok(text) => ResourceContents::text(&*call.uri, file.mime_type.clone(), text),
                Err(_) => ResourceContents::blob(&*call.uri, file.mime_type.clone(), &file.bytes),
            };
            Ok(Outcome::Done(contents.into()))
        })
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        let snapshot = self.inner.snapshot.load_full();
        Box::pin(async move {
            let skill = snapshot.skills.iter().find(|skill| *skill.name == *call.name);
            let skill = skill.ok_or_else(|| Problem::Params("the skill is gone".into()))?;
            Ok(Outcome::Done(PromptReply::user(skill.body.clone())))
        })
    }

    fn summary(&self) -> Option<String> {
        let snapshot = self.inner.snapshot.load();
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let (skills, files) = (snapshot.skills.len(), snapshot.files.len());
        Some(format!("{skills} skill{}, {files} file{}", s(skills), s(files)))
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = self.inner.snapshot.load().problems.clone();
        let unwatched = lock(&self.inner.unwatched).clone();
        problems.extend(unwatched.map(|reason| format!("the folder is not watched: {reason}")));
        problems
    }
}

impl std::fmt::Debug for SkillsSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SkillsSource({})", self.inner.label)
    }
}
