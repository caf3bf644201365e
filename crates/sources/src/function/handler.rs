//! Which functions can be tools, prompts and resources.

use crate::function::context::Context;

/// A function of one argument, which may also take the [`Context`] of its call.
///
/// `Form` tells the two apart and is never written by hand.
pub trait Handler<Argument, Form>: Send + Sync + 'static {
    /// What it gives, in the end.
    type Output;

    /// Calls it.
    fn call(
        &self,
        argument: Argument,
        context: Context,
    ) -> impl Future<Output = Self::Output> + Send + 'static;
}

/// The form of a function that takes its argument alone.
#[derive(Debug)]
pub struct Alone;

/// The form of a function that takes its argument and the context.
#[derive(Debug)]
pub struct WithContext;

impl<F, A, Fut> Handler<A, Alone> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
{
    type Output = Fut::Output;

    fn call(&self, argument: A, _: Context) -> impl Future<Output = Self::Output> + Send + 'static {
        self(argument)
    }
}

impl<F, A, Fut> Handler<A, WithContext> for F
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
{
    type Output = Fut::Output;

    fn call(
        &self,
        argument: A,
        context: Context,
    ) -> impl Future<Output = Self::Output> + Send + 'static {
        self(argument, context)
    }
}
