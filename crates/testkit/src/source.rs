//! A source whose calls are ended by a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sabir_registry::{
    Answer, Ask, CallHandle, CompleteCall, Context, Offer, Outcome, Pending, PromptCall,
    ResourceCall, Source, SourceHandle, Starting, ToolCall,
};
use sabir_wire::types::{Completion, PromptReply, ResourceReply, ToolReply};
use sabir_wire::{ErrorObject, Extra, Problem, Raw, ReadJson};
use tokio::sync::oneshot;

use crate::player::Ending;

/// A source with a given offer, whose calls wait until the script ends them.
#[derive(Default)]
pub struct ScriptedSource {
    offer: Mutex<Offer>,
    handle: OnceLock<SourceHandle>,
    calls: Mutex<Calls>,
    abandoned: Mutex<Vec<Raw>>,
}

#[derive(Default)]
struct Calls {
    /// Begun, and not yet taken by the script.
    begun: VecDeque<Begun>,
    last: u64,
}

/// A call that was begun.
pub(crate) struct Begun {
    /// Counts up; a call that begins again is another.
    pub(crate) number: u64,
    pub(crate) called: Called,
    end: oneshot::Sender<Ending>,
}

/// The item that was called.
#[derive(Clone, Debug)]
pub enum Called {
    /// A tool.
    Tool(ToolCall),
    /// A prompt.
    Prompt(PromptCall),
    /// A resource.
    Resource(ResourceCall),
    /// A completion.
    Complete(CompleteCall),
}

impl Called {
    /// The context of the call.
    pub fn context(&self) -> &Context {
        match self {
            Self::Tool(call) => &call.context,
            Self::Prompt(call) => &call.context,
            Self::Resource(call) => &call.context,
            Self::Complete(call) => &call.context,
        }
    }

    /// The running call.
    pub fn handle(&self) -> &Arc<dyn CallHandle> {
        &self.context().call
    }
}

impl ScriptedSource {
    /// A source that offers this.
    pub fn new(offer: Offer) -> Arc<Self> {
        Arc::new(Self { offer: Mutex::new(offer), ..Self::default() })
    }

    /// Changes the offer, and tells the registry.
    ///
    /// # Panics
    /// If the new offer is invalid.
    pub fn become_offer(&self, offer: Offer) {
        *lock(&self.offer) = offer;
        self.handle().changed().expect("the script's offer is good");
    }

    /// The handle by which the source reports changes.
    ///
    /// # Panics
    /// If the source was added to no registry.
    pub fn handle(&self) -> &SourceHandle {
        self.handle.get().expect("the source was added to a registry")
    }

    /// The current offer.
    pub fn current(&self) -> Offer {
        lock(&self.offer).clone()
    }

    /// The states of questions that will not be answered.
    pub fn abandoned(&self) -> Vec<Raw> {
        lock(&self.abandoned).clone()
    }

    /// The next call that was begun.
    pub(crate) fn next_begun(&self) -> Option<Begun> {
        lock(&self.calls).begun.pop_front()
    }

    fn begin(&self, called: Called) -> oneshot::Receiver<Ending> {
        let (end, ending) = oneshot::channel();
        let mut calls = lock(&self.calls);
        calls.last += 1;
        let number = calls.last;
        calls.begun.push_back(Begun { number, called, end });
        ending
    }

    fn pending<T: Send + 'static>(&self, called: Called, read: fn(&Raw) -> T) -> Pending<T> {
        let ending = self.begin(called);
        Box::pin(async move {
            match ending.await {
                Ok(ending) => answer(ending, read),
                // The script is over.
                Err(_) => std::future::pending().await,
            }
        })
    }
}

impl Begun {
    /// Ends the call. The receiver may be gone, which is not a failure.
    pub(crate) fn finish(self, ending: Ending) {
        let _ = self.end.send(ending);
    }
}

fn answer<T>(ending: Ending, read: fn(&Raw) -> T) -> Answer<T> {
    match ending {
        Ending::Result(json) => Ok(Outcome::Done(read(&json))),
        Ending::Asks(json) => Ok(Outcome::NeedInput(ask(&json))),
        Ending::Error { code, message } => Err(Problem::Chosen(ErrorObject::new(code, message))),
        Ending::Fails(reason) => Err(Problem::ToolFailed(reason.into())),
        Ending::Panics => panic!("as the script says"),
    }
}

/// Parses a value of a script.
///
/// # Panics
/// If the script has another type of value.
pub(crate) fn read<T: ReadJson>(json: &Raw) -> T {
    T::read_json(json).unwrap_or_else(|error| panic!("the script has {json:?}: {error}"))
}

/// Reads the reply of a tool as a source of ours would build it: not as one that is relayed.
pub(crate) fn tool_reply(json: &Raw) -> ToolReply {
    ToolReply { extra: Extra::NONE, ..read(json) }
}

/// Reads a completion as a source of ours would build it.
pub(crate) fn completion(json: &Raw) -> Completion {
    Completion { extra: Extra::NONE, ..read(json) }
}

/// Reads the questions of a script. Their state may be any JSON.
pub(crate) fn ask(json: &Raw) -> Ask {
    let questions = json.member("inputRequests").map(|all| all.members()).unwrap_or_default();
    let questions = questions.into_iter().map(|(key, question)| (key, read(&question))).collect();
    // A script says that a call takes the errors of its client.
    let takes_refusals = json.member("takesRefusals").is_some();
    Ask { questions, state: json.member("requestState"), takes_refusals, ..Ask::default() }
}

impl Source for ScriptedSource {
    fn offer(&self) -> Offer {
        self.current()
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        self.pending(Called::Tool(call), tool_reply)
    }

    fn get_prompt(&self, call: PromptCall) -> Pending<PromptReply> {
        self.pending(Called::Prompt(call), read)
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        self.pending(Called::Resource(call), read)
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        self.pending(Called::Complete(call), completion)
    }

    fn start(&self, handle: SourceHandle) -> Starting {
        let _ = self.handle.set(handle);
        Box::pin(async { Ok(()) })
    }

    fn abandon(&self, state: &Raw) {
        lock(&self.abandoned).push(state.clone());
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
