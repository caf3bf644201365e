//! A text or a file under a URI.

use sabir_registry::{Offer, Outcome, Pending, ResourceCall, Source};
use sabir_wire::types::{CacheHint, Resource, ResourceContents, ResourceReply};

use super::file::File;

/// A resource that is written down.
#[derive(Clone, Debug)]
pub struct TextResource {
    resource: Resource,
    holding: Holding,
}

/// Where a resource is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// In the configuration.
    Text(String),
    /// In a file.
    File(File),
}

impl TextResource {
    /// A resource as it shall be listed. Its type and size are told as far as they are known.
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
                    // It stays as it is until the server is started anew, as does the list.
                    ResourceReply { cache: Offer::default().cache, ..contents.into() }
                }
                // Nobody knows when a file will change.
                Holding::File(file) => {
                    let contents = file.read().await?.into_resource(&resource.uri);
                    ResourceReply { cache: CacheHint::default(), ..contents.into() }
                }
            };
            Ok(Outcome::Done(reply))
        })
    }
}
