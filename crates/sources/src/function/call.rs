//! The parameters of handlers, and what they are extracted from.

use std::sync::Arc;

use sabir_registry::Context as CallContext;
use sabir_wire::{Caller, Problem, Raw};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;

use crate::function::context::Context;
use crate::function::error::Error;
use crate::function::schema;

/// One call of a handler, from which its parameters are extracted.
pub struct Call<'a, S> {
    pub(crate) state: &'a S,
    pub(crate) arguments: Raw,
    pub(crate) uri: Option<&'a str>,
    pub(crate) context: CallContext,
}

impl<S> Call<'_, S> {
    /// The state that was given to the server before the handler was added.
    pub fn state(&self) -> &S {
        self.state
    }

    /// The arguments of a tool or a prompt, or the variables of a resource template: a JSON object.
    pub fn arguments(&self) -> &Raw {
        &self.arguments
    }

    /// The URI of the resource that is read; `None` for tools and prompts.
    pub fn uri(&self) -> Option<&str> {
        self.uri
    }

    /// The caller, as authenticated by the transport.
    pub fn caller(&self) -> &Caller {
        &self.context.caller
    }

    /// The context of the call, to report progress or to ask the client.
    pub fn context(&self) -> Context {
        Context::new(self.context.clone())
    }
}

/// A type that can be a parameter of a handler.
///
/// Implement it to compute a parameter from the call. It runs before the handler, and an error ends
/// the call. `Kind` tells extractors from plain argument types and is never written by hand.
///
/// ```
/// use sabir_sources::function::{Call, Error, FromCall};
///
/// struct User(String);
///
/// impl<S> FromCall<S> for User {
///     fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
///         let caller = call.caller();
///         if !caller.has_scope("shop") {
///             return Err(Error::failed("you are not allowed to shop (expected the scope `shop`)"));
///         }
///         Ok(User(caller.subject().to_owned()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a handler with the state `{S}`",
    note = "expected an extractor, or a type that implements `Deserialize` and `JsonSchema`"
)]
pub trait FromCall<S, Kind = Extractor>: Sized {
    /// The schema of the call's arguments, if this parameter takes them.
    #[doc(hidden)]
    const SCHEMA: Option<fn() -> Schema> = None;

    /// Extracts the parameter, or ends the call.
    fn from_call(call: &Call<'_, S>) -> Result<Self, Error>;
}

/// The kind of parameters that say by their type where they come from.
#[derive(Debug)]
pub enum Extractor {}

/// The kind of parameters that are a plain argument type, read like [`Args`].
#[derive(Debug)]
pub enum Plain {}

/// The arguments of the call, as a type from which their JSON Schema is derived.
///
/// `Args(add): Args<Add>` and `add: Add` are the same parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args<A>(pub A);

/// A clone of the server's state, or of a part of it ([`FromRef`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<T>(pub T);

/// The URI of the resource that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri(pub String);

/// A part of a state. Every state is a part of itself.
///
/// ```
/// use sabir_sources::function::FromRef;
///
/// #[derive(Clone)]
/// struct Pool;
/// #[derive(Clone)]
/// struct App { pool: Pool, name: String }
///
/// // A handler of a server with the state `App` may now take `State<Pool>`.
/// impl FromRef<App> for Pool {
///     fn from_ref(app: &App) -> Self {
///         app.pool.clone()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the server has no state of type `{Self}`",
    note = "call `.state(…)` before the handler is added, or implement `FromRef<{S}>` for `{Self}`"
)]
pub trait FromRef<S> {
    /// Clones the part out of the whole.
    fn from_ref(state: &S) -> Self;
}

impl<T: Clone> FromRef<T> for T {
    fn from_ref(state: &T) -> Self {
        state.clone()
    }
}

impl<S, A: DeserializeOwned + JsonSchema> FromCall<S, Plain> for A {
    const SCHEMA: Option<fn() -> Schema> = Some(schema::of_arguments::<A>);

    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        // The schema let it pass, but the type may be stricter than its schema.
        let misfit = |error: serde_json::Error| Problem::Arguments(error.to_string().into());
        call.arguments.read().map_err(misfit).map_err(Error::problem)
    }
}

impl<S, A: DeserializeOwned + JsonSchema> FromCall<S> for Args<A> {
    const SCHEMA: Option<fn() -> Schema> = <A as FromCall<S, Plain>>::SCHEMA;

    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        <A as FromCall<S, Plain>>::from_call(call).map(Self)
    }
}

/// The arguments as the client wrote them.
impl<S> FromCall<S> for Raw {
    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        Ok(call.arguments.clone())
    }
}

impl<S, T: FromRef<S>> FromCall<S> for State<T> {
    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        Ok(Self(T::from_ref(call.state)))
    }
}

/// A state behind an `Arc`, so that a method with `self: Arc<Self>` is a handler.
impl<S, T> FromCall<S> for Arc<T>
where
    Self: FromRef<S>,
{
    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        Ok(Self::from_ref(call.state))
    }
}

impl<S> FromCall<S> for Context {
    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        Ok(call.context())
    }
}

impl<S> FromCall<S> for Caller {
    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        Ok(call.caller().clone())
    }
}

impl<S> FromCall<S> for Uri {
    fn from_call(call: &Call<'_, S>) -> Result<Self, Error> {
        let missing = || Problem::Internal("only a resource has a URI".into());
        call.uri.map(|uri| Self(uri.to_owned())).ok_or_else(|| Error::problem(missing()))
    }
}

impl<S> std::fmt::Debug for Call<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all = f.debug_struct("Call");
        all.field("arguments", &self.arguments).field("uri", &self.uri).finish_non_exhaustive()
    }
}
