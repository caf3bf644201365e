//! A server whose source is a script, in a runtime with a paused clock.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_engine::{ClientEvent, ClientEventKind, Engine, Settings};
use sabir_registry::{Offer, Source};
use sabir_session::CallNotification;
use sabir_wire::Raw;
use sabir_wire::types::{
    Implementation, Prompt, PromptArgument, Resource, ResourceTemplate, Tool, Topic,
};
use tokio::runtime::{Builder, Runtime};

use crate::player::{CallNumber, Ending, Event};
use crate::source::{Begun, Called, ScriptedSource, lock};

/// An engine and its scripted source. Time passes only when it is told to.
pub struct House {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The source, whose calls wait for the script.
    pub source: Arc<ScriptedSource>,
    runtime: Runtime,
    told: Arc<Mutex<VecDeque<Event>>>,
    running: HashMap<u64, Begun>,
    seen: HashMap<u64, Called>,
    aborted: BTreeSet<u64>,
    events: VecDeque<Event>,
}

impl House {
    /// A house that offers [`House::offer`].
    pub fn new(settings: Settings) -> Self {
        Self::offering(settings, Self::offer())
    }

    /// A house that offers this.
    pub fn offering(settings: Settings, offer: Offer) -> Self {
        let source = ScriptedSource::new(offer);
        let mut house = Self::of(settings, vec![source.clone()]);
        house.source = source;
        house
    }

    /// A house with these sources; its script has nothing to end.
    ///
    /// # Panics
    /// If a source's offer is invalid.
    pub fn of(settings: Settings, sources: Vec<Arc<dyn Source>>) -> Self {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let told = Arc::new(Mutex::new(VecDeque::new()));
        let ear = told.clone();
        let on_event = move |event: ClientEvent| {
            if let ClientEventKind::Ready = event.kind {
                lock(&ear).push_back(Event::Ready);
            }
        };
        let engine = Engine::observed(settings, vec![Arc::new(on_event)]);
        for source in sources {
            engine.registry().add(source).expect("the script's offer is good");
        }
        runtime.block_on(engine.start());
        Self {
            engine,
            source: ScriptedSource::new(Offer::default()),
            runtime,
            told,
            running: HashMap::new(),
            seen: HashMap::new(),
            aborted: BTreeSet::new(),
            events: VecDeque::new(),
        }
    }

    /// One of everything: the tools `t` and `u`, the prompt `p`, the resource `memo:///a` and the
    /// family `memo:///x/{id}`. It completes, logs, updates and changes.
    pub fn offer() -> Offer {
        let any = Raw::parse(r#"{"type":"object"}"#).unwrap_or_else(|_| Raw::empty_object());
        let argument = PromptArgument { name: "a".into(), ..PromptArgument::default() };
        Offer {
            tools: vec![Tool::new("t", "the first", any.clone()), Tool::new("u", "other", any)],
            prompts: vec![Prompt {
                name: "p".into(),
                arguments: vec![argument],
                ..Prompt::default()
            }],
            resources: vec![Resource {
                uri: "memo:///a".into(),
                name: "a".into(),
                ..Resource::default()
            }],
            templates: vec![ResourceTemplate {
                uri_template: "memo:///x/{id}".into(),
                name: "x".into(),
                ..ResourceTemplate::default()
            }],
            ..Self::capable()
        }
    }

    /// An offer of nothing that completes, logs, updates and changes.
    pub(crate) fn capable() -> Offer {
        Offer { completes: true, logs: true, updates: true, changes: true, ..Offer::default() }
    }

    /// The server as it introduces itself in tests.
    pub fn settings() -> Settings {
        let server =
            Implementation { name: "s".into(), version: "1".into(), ..Implementation::default() };
        Settings { server, ..Settings::default() }
    }

    /// Runs a future to its end.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Enters the runtime: code inside may spawn tasks.
    pub(crate) fn enter(&self) -> tokio::runtime::EnterGuard<'_> {
        self.runtime.enter()
    }

    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        self.runtime.spawn(future);
    }

    /// A call that has begun, with its context.
    pub fn called(&self, call: CallNumber) -> Option<&Called> {
        self.seen.get(&call.0)
    }

    pub(crate) fn teller(&self) -> impl FnOnce(Event) + Send + use<> {
        let told = self.told.clone();
        move |event| lock(&told).push_back(event)
    }

    pub(crate) fn event(&mut self) -> Option<Event> {
        while let Some(begun) = self.source.next_begun() {
            self.events.push_back(Event::Start(CallNumber(begun.number)));
            self.seen.insert(begun.number, begun.called.clone());
            self.running.insert(begun.number, begun);
        }
        // They are kept, so that a script can end them late, which must have no effect.
        let is_unwanted = |begun: &Begun| begun.called.handle().is_cancelled();
        let unwanted = self.running.values().filter(|begun| is_unwanted(begun));
        let unwanted: BTreeSet<u64> = unwanted.map(|begun| begun.number).collect();
        for number in unwanted {
            if self.aborted.insert(number) {
                self.events.push_back(Event::Abort(CallNumber(number)));
            }
        }
        self.events.extend(lock(&self.told).drain(..));
        self.events.pop_front()
    }

    pub(crate) fn finish(&mut self, call: CallNumber, ending: Ending) {
        if let Some(begun) = self.running.remove(&call.0) {
            begun.finish(ending);
        }
    }

    pub(crate) fn note(&self, call: CallNumber, note: CallNotification) {
        let Some(call_handle) = self.seen.get(&call.0).map(Called::handle) else { return };
        match note {
            CallNotification::Progress { progress, total, message } => {
                call_handle.progress(progress, total, message)
            }
            CallNotification::Log { level, logger, data } => call_handle.log(level, logger, data),
            CallNotification::Other { method, params } => call_handle.notify(&method, params),
        }
    }

    /// Lets the source report a change. A list grows by one item, named by a count.
    pub(crate) fn change(&self, topic: Topic) {
        let mut offer = self.source.current();
        match topic {
            Topic::Resource(uri) => return self.source.handle().updated(uri),
            Topic::Tools => {
                let name = format!("more-{}", offer.tools.len());
                let any = Raw::parse(r#"{"type":"object"}"#);
                let any = any.unwrap_or_else(|_| Raw::empty_object());
                offer.tools.push(Tool::new(name, "one more", any));
            }
            Topic::Prompts => {
                let name = format!("more-{}", offer.prompts.len());
                offer.prompts.push(Prompt { name, ..Prompt::default() });
            }
            Topic::Resources => {
                let uri = format!("memo:///more-{}", offer.resources.len());
                offer.resources.push(Resource { name: uri.clone(), uri, ..Resource::default() });
            }
        }
        self.source.become_offer(offer);
    }

    /// Moves the clock.
    pub(crate) fn pass(&self, time: Duration) {
        self.block_on(tokio::time::advance(time));
    }
}
