//! Tools that change the offer, so that listeners are notified.

use std::sync::{Arc, Mutex, PoisonError};

use sabir::{BadOffer, Error, Handle, IntoSource, PromptFunction, SourceId, ToolFunction};

use crate::Nothing;

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let passing_tool =
        || ToolFunction::new("test_passing_tool", "Comes and goes", async |_: Nothing| "here");
    let tools = Toggle::new(handle);
    handle.add_tool("test_trigger_tool_change", "Changes the tools", move |_: Nothing| {
        let toggled = tools.toggle(passing_tool());
        async move { toggled }
    })?;
    let passing_prompt =
        || PromptFunction::new("test_passing_prompt", "Comes and goes", async || "here");
    let prompts = Toggle::new(handle);
    handle.add_tool("test_trigger_prompt_change", "Changes the prompts", move |_: Nothing| {
        let toggled = prompts.toggle(passing_prompt());
        async move { toggled }
    })?;
    Ok(())
}

/// Something that is offered every other time.
#[derive(Clone)]
struct Toggle {
    handle: Handle,
    offered: Arc<Mutex<Option<SourceId>>>,
}

impl Toggle {
    fn new(handle: &Handle) -> Self {
        Self { handle: handle.clone(), offered: Arc::default() }
    }

    fn toggle(&self, source: impl IntoSource<()>) -> Result<&'static str, Error> {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        match offered.take() {
            Some(source) => drop(self.handle.remove_source(source)),
            None => *offered = Some(self.handle.add_source(source)?),
        }
        Ok("changed")
    }
}
