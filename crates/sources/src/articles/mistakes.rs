//! Questions about an article that cannot be answered, and what to ask instead.

use sabir_articles::ArticleUris;
use sabir_wire::Problem;

/// Refuses a URI of another folder: an article of the same name in this one is not the article that was
/// meant. `tool` is the name of the tool in a folder without a name.
pub(super) fn refuse_other_folder(
    slug: &str,
    uris: &ArticleUris,
    tool: &str,
) -> Result<(), Problem> {
    let told = match uris.other_folder(slug).as_deref() {
        None => return Ok(()),
        Some("") => format!(
            "`{slug}` belongs to another folder (the articles of this one begin with `{}`)",
            uris.prefix()
        ),
        Some(name) => {
            format!("`{slug}` belongs to another folder, `{name}` (use its `{name}_{tool}`)")
        }
    };
    Err(Problem::ToolFailed(told.into()))
}
