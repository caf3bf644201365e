//! `[[app]]`: an HTML view of a tool.

use sabir::UiCsp;
use sabir_sources::app::{App as View, AppSource, Permission, Visibility};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, Text};
use super::sources::{Files, SourceDescription};

/// An `[[app]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct App {
    pub(crate) tool: Spanned<String>,
    file: Option<Spanned<String>>,
    built_in: Option<bool>,
    uri: Option<Spanned<String>>,
    title: Option<String>,
    description: Option<String>,
    visibility: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    csp: Csp,
    #[serde(default)]
    permissions: Vec<Spanned<String>>,
    domain: Option<String>,
    border: Option<bool>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
}

/// The origins that a view uses.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Csp {
    connect: Vec<Spanned<String>>,
    resources: Vec<Spanned<String>>,
    frames: Vec<Spanned<String>>,
    base_uris: Vec<Spanned<String>>,
}

/// Settles the views of a file. A tool has one at most.
pub(super) fn settle_all(apps: &[App], text: &Text<'_>) -> Vec<Result<SourceDescription, Mistake>> {
    let settled = apps.iter().enumerate().map(|(nth, file)| {
        let tool = file.tool.get_ref();
        if apps[..nth].iter().any(|before| before.tool.get_ref() == tool) {
            let what = format!("there are two apps of the tool `{tool}`");
            return Err(text.mistake(file.tool.span(), what));
        }
        settle(file, text)
    });
    settled.collect()
}

fn settle(file: &App, text: &Text<'_>) -> Result<SourceDescription, Mistake> {
    let tool = file.tool.get_ref();
    let owner = format!("app of `{tool}`");
    let mut files = Files::new(&owner);
    let mut view = match (&file.file, file.built_in.unwrap_or(false)) {
        (Some(path), false) => {
            files.add(path, None, text);
            View::file(text.resolve(path.get_ref()))
        }
        (None, true) => View::built_in(),
        (None, false) if file.visibility.is_some() => View::without_view(),
        _ => {
            let what = format!("{owner}: expected either `file` or `built_in = true`");
            return Err(text.lacking(file.tool.span(), what));
        }
    };
    if let Some(uri) = &file.uri {
        if !uri.get_ref().starts_with("ui://") || uri.get_ref().contains(is_no_uri) {
            return Err(text.invalid(uri, "URI", "e.g. \"ui://views/map\""));
        }
        view = view.uri(uri.get_ref());
    }
    for permission in &file.permissions {
        view = view.permission(named(
            permission,
            &Permission::ALL.map(|one| (one.name(), one)),
            text,
        )?);
    }
    if let Some(written) = &file.visibility {
        let known = Visibility::ALL.map(|one| (one.name(), one));
        let visibility = written.iter().map(|one| named(one, &known, text));
        view = view.visibility(visibility.collect::<Result<Vec<_>, _>>()?);
    }
    view = view.csp(csp(&file.csp, text)?);
    view = file.title.iter().fold(view, View::title);
    view = file.description.iter().fold(view, View::description);
    view = file.domain.iter().fold(view, View::domain);
    view = file.border.iter().fold(view, |view, border| view.border(*border));
    Ok(files.describe(text.place(file.tool.span()), AppSource::new(tool, &view)))
}

/// The choice that a word names.
fn named<T: Copy>(
    word: &Spanned<String>,
    known: &[(&str, T)],
    text: &Text<'_>,
) -> Result<T, Mistake> {
    let found = known.iter().find(|(name, _)| name == word.get_ref());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        text.invalid(word, "value", &names.join(", "))
    })
}

fn csp(file: &Csp, text: &Text<'_>) -> Result<UiCsp, Mistake> {
    let origins = |written: &[Spanned<String>]| -> Result<Vec<String>, Mistake> {
        let checked = written.iter().map(|origin| match is_origin(origin.get_ref()) {
            true => Ok(origin.get_ref().clone()),
            false => Err(text.invalid(origin, "origin", "e.g. \"https://api.example.com\"")),
        });
        checked.collect()
    };
    Ok(UiCsp {
        connect: origins(&file.connect)?,
        resources: origins(&file.resources)?,
        frames: origins(&file.frames)?,
        base_uris: origins(&file.base_uris)?,
        ..UiCsp::default()
    })
}

/// A scheme and a host, perhaps with a port: hosts copy it into a policy.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let legal = |c: char| c.is_ascii_alphanumeric() || "-.:[]*".contains(c);
    ["https", "http", "wss", "ws"].contains(&scheme) && !host.is_empty() && host.chars().all(legal)
}

fn is_no_uri(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "{}<>\"".contains(c)
}
