//! Turns everything that is added to a server into sources: functions get its state.

use std::sync::Arc;

use sabir_registry::{Context as CallContext, Pending, Source};
use sabir_wire::Raw;

use crate::function::call::Call;
use crate::function::error::{Function, FunctionOptions};
use crate::function::handler::Run;

/// Something that can be added to a server with the state `S`: a described function, or any
/// [`Source`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added to a server with the state `{S}`",
    note = "expected a `ToolFunction`, `PromptFunction` or `ResourceFunction` \
            of that state, or a `Source`"
)]
pub trait IntoSource<S> {
    /// The source, which keeps the state.
    fn into_source(self, state: S, options: FunctionOptions) -> Arc<dyn Source>;
}

impl<S, T: Source + 'static> IntoSource<S> for T {
    fn into_source(self, _: S, _: FunctionOptions) -> Arc<dyn Source> {
        Arc::new(self)
    }
}

/// A described function with its state.
pub(crate) struct Bound<D, S> {
    pub(crate) described: D,
    state: S,
    function: Arc<Function>,
}

impl<D, S> Bound<D, S> {
    pub(crate) fn new(
        described: D,
        kind: &'static str,
        name: &str,
        state: S,
        options: FunctionOptions,
    ) -> Self {
        let function = Arc::new(Function { kind, name: name.to_owned(), options });
        Self { described, state, function }
    }

    pub(crate) fn call<T>(
        &self,
        run: &Run<S, T>,
        arguments: Raw,
        uri: Option<&str>,
        context: CallContext,
    ) -> Pending<T> {
        run(&Call { state: &self.state, arguments, uri, context }, &self.function)
    }
}
