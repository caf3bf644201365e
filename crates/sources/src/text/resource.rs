//! A text or a file under a URI.

use sabir_registry::{Offer, Outcome, Pending, ResourceCall, Source};
use sabir_wire::types::{CacheHint, Resource, ResourceContents, ResourceReply};

use super::file::File;

/// A resource from the configuration.
#[derive(Clone, Debug)]
pub struct TextResource {
    resource: Resource,
    holding: Holding,
}

/// The content of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// A text in the configuration.
    Text(String),
    /// A file.
    File(File),
}

impl TextResource {
    /// Creates a resource. Its media type and size are added if they are known.
    pub fn new(mut resource: Resource, holding: Holding) -> Self {
        let (guess, size) = match &holding {
            Holding::Text(text) => (Some("text/plain".to_owned()), Some(text.len() as u64)),
            Holding::File(file) => (file.mime_type(), None),
        };
        resource.mime_type = resource.mime_type.or(guess);
        resource.size = resource.size.or(size);
        Self { resource, holding }
    }
}

impl Source for TextResource {
    fn offer(&self) -> Offer {
        Offer { resources: vec![self.resource.clone()], ..Offer::default() }
    }

    fn read_resource(&self, _call: ResourceCall) -> Pending<ResourceReply> {
        let Self { resource, holding } = self.clone();
        Box::pin(async move {
            let reply = match holding {
                Holding::Text(text) => {
                    let mime_type = resource.mime_type.unwrap_or_default();
                    let contents = ResourceContents::text(resource.uri, mime_type, text);
                    // The text is fixed until a restart, so clients may cache it as long as the
                    // list.
                    ResourceReply { cache: Offer::default().cache, ..contents.into() }
                }
                // A file may change at any time.
                Holding::File(file) => {
                    let contents = file.read().await?.into_resource(&resource.uri);
                    ResourceReply { cache: CacheHint::default(), ..contents.into() }
                }
            };
            Ok(Outcome::Done(reply))
        })
    }
}
