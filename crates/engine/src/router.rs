//! Maps a request to the work that answers it. One arm per method.

use std::sync::Arc;

use sabir_registry::{Catalog, Line};
use sabir_session::{Asker, Call, Outcome};
use sabir_wire::Request;

use crate::engine::Engine;
use crate::guard::Running;
use crate::methods;

/// Work, done or under way.
pub(crate) enum Work {
    /// It needed nobody.
    Done(Outcome),
    /// A source is at it.
    Running(Running),
}

/// What a method needs to know beside its params.
pub(crate) struct Desk {
    pub(crate) engine: Arc<Engine>,
    /// The call keeps this catalog, whatever changes meanwhile.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) asker: Asker,
    /// Who is known to ask, where somebody has checked.
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) line: Arc<dyn Line>,
}

pub(crate) fn route(call: Call, desk: Desk) -> Work {
    match call.request {
        Request::Initialize(_) => methods::discover::initialize(&desk).into(),
        Request::Discover => methods::discover::discover(&desk).into(),
        Request::Ping => methods::discover::ping().into(),
        Request::SetLevel(_) => methods::logging::set_level(&desk).into(),
        Request::ListTools(page) => methods::tools::list(&desk, &page).into(),
        Request::CallTool(call) => methods::tools::call(desk, call),
        Request::ListPrompts(page) => methods::prompts::list(&desk, &page).into(),
        Request::GetPrompt(get) => methods::prompts::get(desk, get),
        Request::ListResources(page) => methods::resources::list(&desk, &page).into(),
        Request::ListTemplates(page) => methods::resources::templates(&desk, &page).into(),
        Request::ReadResource(read) => methods::resources::read(desk, read),
        Request::Subscribe(uri) => methods::resources::subscribe(&desk, &uri).into(),
        Request::Unsubscribe(_) => methods::resources::unsubscribe(&desk).into(),
        Request::Complete(complete) => methods::completion::complete(&desk, complete),
        Request::Listen(listen) => methods::subscriptions::listen(&desk, listen).into(),
    }
}

impl<T: Into<Outcome>> From<T> for Work {
    fn from(outcome: T) -> Self {
        Self::Done(outcome.into())
    }
}
