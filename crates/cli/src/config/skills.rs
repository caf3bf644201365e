//! `[[skills]]`: a folder of skills.

use sabir_sources::skills::SkillsSource;
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, RELATIVE, Text};
use super::sources::SourceDescription;

/// A `[[skills]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Skills {
    pub(crate) path: Spanned<String>,
    tool: Option<String>,
    #[serde(default)]
    dynamic: bool,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
}

/// Settles a folder of skills.
pub(super) fn settle(file: &Skills, text: &Text<'_>) -> Result<SourceDescription, Mistake> {
    let path = text.resolve(file.path.get_ref());
    let (label, tool, is_dynamic) = (file.path.get_ref().clone(), file.tool.clone(), file.dynamic);
    if !path.is_dir() {
        let what = format!("skills: folder not found: {}", path.display());
        return Err(text.mistake(file.path.span(), what).hint(RELATIVE));
    }
    let place = text.place(file.path.span());
    let failed = place.clone();
    Ok(SourceDescription::new(place, move |_| async move {
        let opening = tokio::task::spawn_blocking(move || SkillsSource::open(&path, label));
        let opened = opening.await.map_err(std::io::Error::other).and_then(|opened| opened);
        let opened = opened.map(|skills| match tool {
            Some(name) => skills.with_tool(name),
            None => skills,
        });
        let opened = opened.map(|skills| if is_dynamic { skills.dynamic() } else { skills });
        opened.map_err(|error| failed.mistake(format!("skills: {error}")))
    }))
}
