//! A function that reads a resource, or all resources of a template.

use std::collections::BTreeMap;
use std::sync::Arc;

use sabir_registry::{CompleteCall, Offer, Outcome, Pending, ResourceCall, Source};
use sabir_wire::types::{Annotations, Completion, Icon, Resource, ResourceReply, ResourceTemplate};

use crate::function::error::FunctionOptions;
use crate::function::handler::{Handler, Run, run};
use crate::function::prompt::Completers;
use crate::function::reply::IntoReply;
use crate::function::schema::StringArguments;
use crate::function::source::{Bound, IntoSource};

/// A resource that is read by a Rust function, or a family of resources with one URI template.
///
/// The variables of a template are the fields of the parameter that takes the arguments; numbers and
/// booleans are parsed. The handler may take the whole [`Uri`](crate::function::Uri).
///
/// ```
/// use sabir_sources::function::ResourceFunction;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Page {
///     number: u32,
/// }
///
/// let motto: ResourceFunction = ResourceFunction::new("book://motto", "motto", async || "Deal!");
/// let pages: ResourceFunction =
///     ResourceFunction::template("book://pages/{number}", "page", async |Page { number }| {
///         format!("This is page {number}.")
///     })
///     .mime_type("text/markdown");
/// ```
#[must_use]
pub struct ResourceFunction<S = ()> {
    /// Its `uri` is a template if `is_template`.
    resource: Resource,
    is_template: bool,
    updates: bool,
    variables: StringArguments,
    completers: Completers,
    run: Run<S, ResourceReply>,
}

impl<S> ResourceFunction<S> {
    /// A resource.
    pub fn new<H, Form>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> Self
    where
        H: Handler<S, Form, Output: IntoReply<ResourceReply>>,
    {
        Self {
            resource: Resource { uri: uri.into(), name: name.into(), ..Resource::default() },
            is_template: false,
            updates: false,
            variables: StringArguments::of(H::schema()),
            completers: Completers::default(),
            run: run(handler),
        }
    }

    /// All resources whose URI matches a template, such as `notes://{year}/{name}`.
    pub fn template<H, Form>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: H,
    ) -> Self
    where
        H: Handler<S, Form, Output: IntoReply<ResourceReply>>,
    {
        Self { is_template: true, ..Self::new(uri_template, name, handler) }
    }

    /// Sets a name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.resource.title = Some(title.into());
        self
    }

    /// Sets the description that the model reads.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.resource.description = Some(description.into());
        self
    }

    /// Sets the media type, which is also that of contents without one.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.resource.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the hints for clients.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.resource.annotations = Some(annotations);
        self
    }

    /// Adds an icon that clients may show.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.resource.icons.push(icon);
        self
    }

    /// Declares that the contents change while the server runs: clients may subscribe, and the
    /// server's handle announces updates.
    pub fn updates(mut self) -> Self {
        self.updates = true;
        self
    }

    /// Completes a variable of a template from its typed prefix and the other variables.
    pub fn completed_by(
        mut self,
        variable: impl Into<String>,
        complete: impl Fn(&str, &BTreeMap<String, String>) -> Completion + Send + Sync + 'static,
    ) -> Self {
        self.completers.add(variable.into(), complete);
        self
    }

    fn as_template(&self) -> ResourceTemplate {
        let resource = self.resource.clone();
        ResourceTemplate {
            uri_template: resource.uri,
            name: resource.name,
            title: resource.title,
            description: resource.description,
            mime_type: resource.mime_type,
            annotations: resource.annotations,
            icons: resource.icons,
            ..ResourceTemplate::default()
        }
    }
}

impl<S: Send + Sync + 'static> IntoSource<S> for ResourceFunction<S> {
    fn into_source(self, state: S, options: FunctionOptions) -> Arc<dyn Source> {
        let name = self.resource.uri.clone();
        Arc::new(Bound::new(self, "resource", &name, state, options))
    }
}

impl<S: Send + Sync> Source for Bound<ResourceFunction<S>, S> {
    fn offer(&self) -> Offer {
        let described = &self.described;
        let (updates, completes) = (described.updates, !described.completers.0.is_empty());
        let mut offer = Offer { updates, completes, ..Offer::default() };
        if described.is_template {
            offer.templates.push(described.as_template());
        } else {
            offer.resources.push(described.resource.clone());
        }
        offer
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        let ResourceFunction { variables, run, resource, .. } = &self.described;
        let mime_type = resource.mime_type.clone();
        let read = self.call(run, variables.read(call.variables), Some(&call.uri), call.context);
        Box::pin(async move {
            let mut outcome = read.await?;
            if let Outcome::Done(reply) = &mut outcome {
                for contents in reply.contents.iter_mut().filter(|part| part.uri.is_empty()) {
                    contents.uri = call.uri.clone().into();
                    contents.mime_type = mime_type.clone();
                }
            }
            Ok(outcome)
        })
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        self.described.completers.complete(&call)
    }
}
