//! Tools that change what is offered, so that whoever listens is told.

use std::sync::{Arc, Mutex, PoisonError};

use sabir::{BadOffer, Error, Handle, PromptFunction, PromptReply, Source, SourceId, ToolFunction};

use crate::Nothing;

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let passing_tool = || {
        ToolFunction::typed("test_passing_tool", "Comes and goes", async |_: Nothing| "here")
            .build()
    };
    let tools = Toggle::new(handle);
    handle.offer(
        ToolFunction::typed("test_trigger_tool_change", "Changes the tools", move |_: Nothing| {
            let toggled = tools.toggle(passing_tool());
            async move { toggled }
        })
        .build(),
    )?;
    let passing_prompt = || {
        PromptFunction::named("test_passing_prompt", "Comes and goes")
            .filled_in_by(async |_| Ok(PromptReply::user("here")))
    };
    let prompts = Toggle::new(handle);
    handle.offer(
        ToolFunction::typed(
            "test_trigger_prompt_change",
            "Changes the prompts",
            move |_: Nothing| {
                let toggled = prompts.toggle(passing_prompt());
                async move { toggled }
            },
        )
        .build(),
    )?;
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

    fn toggle(&self, source: impl Source + 'static) -> Result<&'static str, Error> {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        match offered.take() {
            Some(source) => drop(self.handle.withdraw(source)),
            None => *offered = Some(self.handle.offer(source)?),
        }
        Ok("changed")
    }
}
