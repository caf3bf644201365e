//! A folder of skills: each folder with a `SKILL.md` is one. For clients that know the extension as
//! skills, for all others as resources and prompts.
//!
//! The folder is read as a whole into a snapshot, so that digests, sizes and contents always agree.
//! It is read again when it changes.

mod folder; // what is in a folder of skills
mod frontmatter; // the fields at the top of a SKILL.md

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use notify_debouncer_full::notify::{Config, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, NoCache, new_debouncer_opt};
use sabir_registry::{
    Offer, Outcome, Pending, PromptCall, ResourceCall, Source, SourceHandle, StartError, Starting,
};
use sabir_wire::Problem;
use sabir_wire::types::{CacheHint, CacheScope, Prompt, PromptReply, Resource, ResourceContents};
use sabir_wire::types::{ResourceReply, Skill};

use self::folder::{Loaded, Snapshot};

/// How long changes are collected before the folder is read again.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// How long clients may keep what they were told: changes are not announced to all of them.
const CACHE: CacheHint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };

/// Serves a folder of skills.
#[derive(Clone)]
pub struct SkillsSource(Arc<Inner>);

struct Inner {
    root: PathBuf,
    /// The folder as the operator calls it.
    label: String,
    snapshot: ArcSwap<Snapshot>,
    watcher: Mutex<Option<Debouncer<RecommendedWatcher, NoCache>>>,
    /// Why the folder is not watched.
    unwatched: Mutex<Option<String>>,
}

impl SkillsSource {
    /// Reads the skills in `root`, an existing folder that operators call `label`.
    pub fn open(root: &Path, label: impl Into<String>) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        let snapshot = ArcSwap::from_pointee(Snapshot::read(&root)?);
        let (watcher, unwatched) = (Mutex::default(), Mutex::default());
        let label = label.into();
        Ok(Self(Arc::new(Inner { root, label, snapshot, watcher, unwatched })))
    }
}

impl Inner {
    /// Reads the folder again, and tells if it is another one.
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
        format!("skills {}", self.0.label)
    }

    fn offer(&self) -> Offer {
        let snapshot = self.0.snapshot.load();
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
        let skills: Vec<Skill> = snapshot.skills.iter().map(|skill| skill.entry.clone()).collect();
        Offer {
            resources: snapshot.skills.iter().map(resource).collect(),
            prompts: snapshot.skills.iter().map(prompt).collect(),
            unlisted: snapshot.skills.iter().map(|skill| format!("{}/", skill.folder)).collect(),
            skills,
            folders: snapshot.folders.clone(),
            updates: true,
            changes: true,
            cache: CACHE,
            ..Offer::default()
        }
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        let inner = self.0.clone();
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

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let snapshot = self.0.snapshot.load_full();
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
        let snapshot = self.0.snapshot.load_full();
        Box::pin(async move {
            let skill = snapshot.skills.iter().find(|skill| *skill.name == *call.name);
            let skill = skill.ok_or_else(|| Problem::Params("the skill is gone".into()))?;
            Ok(Outcome::Done(PromptReply::user(skill.body.clone())))
        })
    }

    fn summary(&self) -> Option<String> {
        let snapshot = self.0.snapshot.load();
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let (skills, files) = (snapshot.skills.len(), snapshot.files.len());
        Some(format!("{skills} skill{}, {files} file{}", s(skills), s(files)))
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = self.0.snapshot.load().problems.clone();
        let unwatched = lock(&self.0.unwatched).clone();
        problems.extend(unwatched.map(|reason| format!("the folder is not watched: {reason}")));
        problems
    }
}

impl std::fmt::Debug for SkillsSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SkillsSource({})", self.0.label)
    }
}
