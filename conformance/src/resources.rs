//! Resources.

use std::collections::BTreeMap;

use sabir::{BadOffer, Handle, ResourceContents, ResourceFunction, TemplateFunction};

use crate::content::PNG;

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let text = ResourceFunction::at("test://static-text", "Static Text Resource")
        .description("A text that never changes")
        .mime_type("text/plain")
        .read_by(async |uri: String| {
            let text = "This is the content of the static text resource.";
            Ok(ResourceContents::text(uri, "text/plain", text).into())
        });
    let binary = ResourceFunction::at("test://static-binary", "Static Binary Resource")
        .description("A picture that never changes")
        .mime_type("image/png")
        .read_by(async |uri: String| Ok(ResourceContents::blob(uri, "image/png", PNG).into()));
    let watched = ResourceFunction::at("test://watched-resource", "Watched Resource")
        .description("A text that may change")
        .mime_type("text/plain")
        .updates()
        .read_by(async |uri: String| {
            Ok(ResourceContents::text(uri, "text/plain", "Watched resource content").into())
        });
    let family = TemplateFunction::over("test://template/{id}/data", "Resource Template")
        .description("A text for each id")
        .mime_type("application/json")
        .read_by(async |variables: BTreeMap<String, String>| {
            let id = &variables["id"];
            let text = serde_json::json!({ "id": id, "templateTest": true }).to_string();
            let uri = format!("test://template/{id}/data");
            Ok(ResourceContents::text(uri, "application/json", text).into())
        });
    for resource in [text, binary, watched] {
        handle.offer(resource)?;
    }
    handle.offer(family)?;
    Ok(())
}
