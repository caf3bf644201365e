//! Which functions can be tools, prompts and resources.

use std::sync::Arc;

use sabir_registry::{Outcome, Pending};
use schemars::Schema;

use crate::function::call::{Call, FromCall};
use crate::function::error::{Error, Function};
use crate::function::reply::IntoReply;

/// An async function or closure of up to six parameters, each of which is extracted from the call
/// ([`FromCall`]).
///
/// The parameters come in any order; one of them at most takes the arguments. `Form` tells
/// functions of different parameters apart and is never written by hand.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a handler of a server with the state `{S}`",
    note = "a handler is an `async fn`, or a closure that returns a `Send` future",
    note = "its parameters are `State<T>` (call `.state(…)` before it is added), `Args<A>` or a plain \
            `A` with `Deserialize` and `JsonSchema`, `Context`, `Caller`, `Uri`, `Raw`, or other \
            types that implement `FromCall<{S}>`"
)]
pub trait Handler<S, Form>: Send + Sync + 'static {
    /// The output of its future.
    type Output;

    /// The future of one call.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// The schema of its arguments; `None` if no parameter takes them.
    fn schema() -> Option<Schema>;

    /// Extracts the parameters and calls the function.
    fn call(&self, call: &Call<'_, S>) -> Result<Self::Future, Error>;
}

/// Functions of as many parameters as are named, each with the kind of its extraction.
macro_rules! handler {
    ($($kind:ident $parameter:ident),*) => {
        impl<F, S, Fut, $($kind, $parameter),*> Handler<S, ($(($kind, $parameter),)*)> for F
        where
            F: Fn($($parameter),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            $($parameter: FromCall<S, $kind>,)*
        {
            type Output = Fut::Output;
            type Future = Fut;

            fn schema() -> Option<Schema> {
                const {
                    let takers = 0 $(+ $parameter::SCHEMA.is_some() as usize)*;
                    assert!(takers <= 1, "two parameters of this handler take the arguments");
                }
                let schema: Option<fn() -> Schema> = None $(.or($parameter::SCHEMA))*;
                schema.map(|schema| schema())
            }

            fn call(&self, _call: &Call<'_, S>) -> Result<Fut, Error> {
                Ok(self($($parameter::from_call(_call)?),*))
            }
        }
    };
}

handler!();
handler!(K1 P1);
handler!(K1 P1, K2 P2);
handler!(K1 P1, K2 P2, K3 P3);
handler!(K1 P1, K2 P2, K3 P3, K4 P4);
handler!(K1 P1, K2 P2, K3 P3, K4 P4, K5 P5);
handler!(K1 P1, K2 P2, K3 P3, K4 P4, K5 P5, K6 P6);

/// A type-erased handler.
pub(crate) type Run<S, T> = Arc<dyn Fn(&Call<'_, S>, &Arc<Function>) -> Pending<T> + Send + Sync>;

/// Erases the type of a handler.
pub(crate) fn run<S, T, H, Form>(handler: H) -> Run<S, T>
where
    H: Handler<S, Form, Output: IntoReply<T>>,
    T: 'static,
{
    Arc::new(move |call, function| {
        let (called, function) = (handler.call(call), function.clone());
        Box::pin(async move {
            let reply = match called {
                Ok(work) => work.await.into_reply(),
                Err(error) => Err(error),
            };
            reply
                .map_or_else(|error| error.into_answer(&function), |reply| Ok(Outcome::Done(reply)))
        })
    })
}
