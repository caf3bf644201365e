//! A function that reads a resource, or any of a family.

use std::collections::BTreeMap;
use std::sync::Arc;

use sabir_registry::{CompleteCall, Offer, Outcome, Pending, ResourceCall, Source};
use sabir_wire::types::{Annotations, Completion, Icon, Resource, ResourceReply, ResourceTemplate};

use crate::function::context::Context;
use crate::function::error::Error;
use crate::function::handler::Handler;
use crate::function::prompt::{Completer, complete, completer};

type Run = Arc<dyn Fn(ResourceCall) -> Pending<ResourceReply> + Send + Sync>;

/// A resource that is read by a Rust function of its URI.
#[derive(Clone)]
pub struct ResourceFunction {
    resource: Resource,
    updates: bool,
    run: Run,
}

impl ResourceFunction {
    /// Begins to describe a resource.
    pub fn at(uri: impl Into<String>, name: impl Into<String>) -> ResourceBuilder {
        let resource = Resource { uri: uri.into(), name: name.into(), ..Resource::default() };
        ResourceBuilder { resource, updates: false }
    }
}

/// Describes a resource further.
#[derive(Clone, Debug)]
pub struct ResourceBuilder {
    resource: Resource,
    updates: bool,
}

impl ResourceBuilder {
    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.resource.title = Some(title.into());
        self
    }

    /// What it is about.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.resource.description = Some(description.into());
        self
    }

    /// What it is.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.resource.mime_type = Some(mime_type.into());
        self
    }

    /// Hints for its use.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.resource.annotations = Some(annotations);
        self
    }

    /// How it looks.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.resource.icons.push(icon);
        self
    }

    /// It changes, and whoever holds the server's handle tells when.
    pub fn updates(mut self) -> Self {
        self.updates = true;
        self
    }

    /// The resource, read by `handler`, which is given its URI.
    pub fn read_by<H, Form>(self, handler: H) -> ResourceFunction
    where
        H: Handler<String, Form, Output = Result<ResourceReply, Error>>,
    {
        let run = reader(handler, |call| String::from(call.uri.clone()));
        ResourceFunction { resource: self.resource, updates: self.updates, run }
    }
}

impl Source for ResourceFunction {
    fn offer(&self) -> Offer {
        let resources = vec![self.resource.clone()];
        Offer { resources, updates: self.updates, ..Offer::default() }
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        (self.run)(call)
    }
}

/// A family of resources that is read by a Rust function of the variables in its URI template.
#[derive(Clone)]
pub struct TemplateFunction {
    template: ResourceTemplate,
    completers: Vec<(String, Completer)>,
    updates: bool,
    run: Run,
}

impl TemplateFunction {
    /// Begins to describe a family of resources.
    pub fn over(uri_template: impl Into<String>, name: impl Into<String>) -> TemplateBuilder {
        let (uri_template, name) = (uri_template.into(), name.into());
        let template = ResourceTemplate { uri_template, name, ..ResourceTemplate::default() };
        TemplateBuilder { template, completers: Vec::new(), updates: false }
    }
}

/// Describes a family of resources further.
#[derive(Clone)]
pub struct TemplateBuilder {
    template: ResourceTemplate,
    completers: Vec<(String, Completer)>,
    updates: bool,
}

impl TemplateBuilder {
    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.template.title = Some(title.into());
        self
    }

    /// What they are about.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.template.description = Some(description.into());
        self
    }

    /// What they are.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.template.mime_type = Some(mime_type.into());
        self
    }

    /// They change, and whoever holds the server's handle tells when.
    pub fn updates(mut self) -> Self {
        self.updates = true;
        self
    }

    /// Completes a variable: given what was typed and what is known, what could it be?
    pub fn completed_by(
        mut self,
        variable: impl Into<String>,
        complete: impl Fn(&str, &BTreeMap<String, String>) -> Completion + Send + Sync + 'static,
    ) -> Self {
        self.completers.push((variable.into(), completer(complete)));
        self
    }

    /// The family, read by `handler`, which is given the variables.
    pub fn read_by<H, Form>(self, handler: H) -> TemplateFunction
    where
        H: Handler<BTreeMap<String, String>, Form, Output = Result<ResourceReply, Error>>,
    {
        let run = reader(handler, |call| call.variables.clone());
        let Self { template, completers, updates } = self;
        TemplateFunction { template, completers, updates, run }
    }
}

impl Source for TemplateFunction {
    fn offer(&self) -> Offer {
        Offer {
            templates: vec![self.template.clone()],
            completes: !self.completers.is_empty(),
            updates: self.updates,
            ..Offer::default()
        }
    }

    fn read_resource(&self, call: ResourceCall) -> Pending<ResourceReply> {
        (self.run)(call)
    }

    fn complete(&self, call: CompleteCall) -> Pending<Completion> {
        complete(&self.completers, call)
    }
}

fn reader<A, H, Form>(handler: H, argument: fn(&ResourceCall) -> A) -> Run
where
    A: 'static,
    H: Handler<A, Form, Output = Result<ResourceReply, Error>>,
{
    Arc::new(move |call| {
        let work = handler.call(argument(&call), Context::new(call.context));
        Box::pin(async move {
            match work.await {
                Ok(reply) => Ok(Outcome::Done(reply)),
                Err(error) => error.into_answer(),
            }
        })
    })
}
