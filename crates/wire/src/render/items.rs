//! What stands in lists, and who the server is, as each revision says it.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Lowered, Object, describes_object, object};
use crate::types::{Implementation, Prompt, PromptArgument, PromptMessage, Resource};
use crate::types::{ResourceTemplate, ServerCapabilities, Tool};

impl Serialize for Lowered<'_, Tool> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = self.value;
        let mut map = object(serializer)?;
        map.set("name", &tool.name)?;
        if self.features.structured {
            map.may("title", tool.title.as_ref())?;
        }
        map.may("description", tool.description.as_ref())?;
        map.set("inputSchema", &tool.input_schema)?;
        if self.features.structured {
            let sayable = |schema: &&_| self.features.stateless || describes_object(schema);
            map.may("outputSchema", tool.output_schema.as_ref().filter(sayable))?;
        }
        if self.features.audio {
            map.may("annotations", tool.annotations.as_ref())?;
        }
        if self.features.icons {
            map.list("icons", &tool.icons)?;
        }
        if self.features.structured {
            map.may("_meta", tool.meta.as_ref())?;
        }
        map.end()
    }
}

impl Lowered<'_, Resource> {
    /// The members, without the braces: a link is a resource with a type.
    pub(super) fn write_fields<M: SerializeMap>(
        &self,
        map: &mut Object<M>,
    ) -> Result<(), M::Error> {
        let resource = self.value;
        map.set("uri", &resource.uri)?;
        map.set("name", &resource.name)?;
        if self.features.structured {
            map.may("title", resource.title.as_ref())?;
        }
        map.may("description", resource.description.as_ref())?;
        map.may("mimeType", resource.mime_type.as_ref())?;
        map.may("annotations", resource.annotations.as_ref().map(|a| self.part(a)).as_ref())?;
        map.may("size", resource.size.as_ref())?;
        if self.features.icons {
            map.list("icons", &resource.icons)?;
        }
        if self.features.structured {
            map.may("_meta", resource.meta.as_ref())?;
        }
        Ok(())
    }
}

impl Serialize for Lowered<'_, Resource> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        self.write_fields(&mut map)?;
        map.end()
    }
}

impl Serialize for Lowered<'_, ResourceTemplate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let template = self.value;
        let mut map = object(serializer)?;
        map.set("uriTemplate", &template.uri_template)?;
        map.set("name", &template.name)?;
        if self.features.structured {
            map.may("title", template.title.as_ref())?;
        }
        map.may("description", template.description.as_ref())?;
        map.may("mimeType", template.mime_type.as_ref())?;
        map.may("annotations", template.annotations.as_ref().map(|a| self.part(a)).as_ref())?;
        if self.features.icons {
            map.list("icons", &template.icons)?;
        }
        if self.features.structured {
            map.may("_meta", template.meta.as_ref())?;
        }
        map.end()
    }
}

impl Serialize for Lowered<'_, Prompt> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let prompt = self.value;
        let mut map = object(serializer)?;
        map.set("name", &prompt.name)?;
        if self.features.structured {
            map.may("title", prompt.title.as_ref())?;
        }
        map.may("description", prompt.description.as_ref())?;
        map.list("arguments", &self.parts(&prompt.arguments))?;
        if self.features.icons {
            map.list("icons", &prompt.icons)?;
        }
        if self.features.structured {
            map.may("_meta", prompt.meta.as_ref())?;
        }
        map.end()
    }
}

impl Serialize for Lowered<'_, PromptArgument> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let argument = self.value;
        let mut map = object(serializer)?;
        map.set("name", &argument.name)?;
        if self.features.structured {
            map.may("title", argument.title.as_ref())?;
        }
        map.may("description", argument.description.as_ref())?;
        if argument.required {
            map.set("required", &true)?;
        }
        map.end()
    }
}

impl Serialize for Lowered<'_, PromptMessage> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = object(serializer)?;
        map.set("role", &self.value.role)?;
        map.set("content", &self.part(&self.value.content))?;
        map.end()
    }
}

impl Serialize for Lowered<'_, Implementation> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let implementation = self.value;
        let mut map = object(serializer)?;
        map.set("name", &implementation.name)?;
        map.set("version", &implementation.version)?;
        if self.features.structured {
            map.may("title", implementation.title.as_ref())?;
        }
        if self.features.icons {
            map.may("description", implementation.description.as_ref())?;
            map.may("websiteUrl", implementation.website_url.as_ref())?;
            map.list("icons", &implementation.icons)?;
        }
        map.end()
    }
}

impl Serialize for Lowered<'_, ServerCapabilities> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Offered {
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            subscribe: bool,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            list_changed: bool,
        }
        let has = self.value;
        let list = Offered { subscribe: false, list_changed: has.list_changed };
        let resources = Offered { subscribe: has.subscribe, list_changed: has.list_changed };
        let nothing = Offered { subscribe: false, list_changed: false };
        let mut map = object(serializer)?;
        map.may("logging", has.logging.then_some(&nothing))?;
        // The first revision completes, but has no word to say so.
        map.may("completions", (has.completions && self.features.audio).then_some(&nothing))?;
        map.may("prompts", has.prompts.then_some(&list))?;
        map.may("resources", has.resources.then_some(&resources))?;
        map.may("tools", has.tools.then_some(&list))?;
        map.end()
    }
}
