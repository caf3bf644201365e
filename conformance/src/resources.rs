//! Resources.

use sabir::{BadOffer, Handle, ResourceFunction};

use crate::content::PNG;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Data {
    id: String,
}

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let resources = [
        ResourceFunction::new(
            "test://static-text",
            "Static Text Resource",
            async || "This is the content of the static text resource.",
        )
        .description("A text that never changes")
        .mime_type("text/plain"),
        ResourceFunction::new("test://static-binary", "Static Binary Resource", async || {
            PNG.to_vec()
        })
        .description("A picture that never changes")
        .mime_type("image/png"),
        ResourceFunction::new(
            "test://watched-resource",
            "Watched Resource",
            async || "Watched resource content",
        )
        .description("A text that may change")
        .mime_type("text/plain")
        .updates(),
        ResourceFunction::template(
            "test://template/{id}/data",
            "Resource Template",
            async |Data { id }| serde_json::json!({ "id": id, "templateTest": true }).to_string(),
        )
        .description("A text for each id")
        .mime_type("application/json"),
    ];
    resources.into_iter().try_for_each(|resource| handle.add_source(resource).map(drop))
}
