//! `[[prompt]]`: messages with placeholders, and files.

use std::ops::Range;
use std::path::Path;

use sabir::Role;
use sabir_sources::command::{Place, TextTemplate};
use sabir_sources::text::{Body, Message, TextPrompt};
use sabir_wire::types;
use serde::Deserialize;
use toml::Spanned;

use super::input::{Described, input};
use super::json::Entries;
use super::mistake::{Mistake, Text};
use super::sources::{Files, SourceDescription};

/// A `[[prompt]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prompt {
    pub(crate) name: Spanned<String>,
    title: Option<String>,
    description: Option<String>,
    input: Option<Entries>,
    text: Option<Spanned<String>>,
    messages: Option<Spanned<Vec<Spanned<Written>>>>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
}

/// One of its `messages`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    role: Option<Spanned<String>>,
    text: Option<Spanned<String>>,
    file: Option<Spanned<String>>,
    mime_type: Option<String>,
    uri: Option<String>,
}

/// Settles a prompt.
pub(super) fn settle(file: &Prompt, text: &Text<'_>) -> Result<SourceDescription, Mistake> {
    let owner = format!("prompt `{}`", file.name.get_ref());
    let described = text.checked(input(file.input.as_ref(), None, &owner, text));
    let mut files = Files::new(&owner);
    let messages = messages(file, &mut files, text)?;
    let described = described.ok_or_else(|| text.reported())?;
    check_placeholders(file, &described, &messages, &owner, text);
    let listed = types::Prompt {
        name: file.name.get_ref().clone(),
        title: file.title.clone(),
        description: file.description.clone(),
        ..types::Prompt::default()
    };
    let prompt = TextPrompt::new(listed, described.input.clone(), messages).map_err(|wrong| {
        let place = described.place(&wrong.0, file.name.span());
        text.mistake(place, format!("{owner}: {wrong}"))
            .hint("use \"string\", \"string?\" or a list of choices")
    })?;
    Ok(files.describe(text.place(file.name.span()), prompt))
}

fn messages(file: &Prompt, files: &mut Files, text: &Text<'_>) -> Result<Vec<Message>, Mistake> {
    match (&file.text, &file.messages) {
        (Some(one), None) => {
            let body = Body::Text(template(Place::Message(None), one, &files.owner, text)?);
            Ok(vec![Message { role: Role::User, body }])
        }
        (None, Some(several)) if !several.get_ref().is_empty() => {
            let several = several.get_ref().iter().enumerate();
            let several = several.map(|(index, one)| message(index, one, files, text));
            let several: Vec<_> = several.map(|one| text.checked(one)).collect();
            several.into_iter().collect::<Option<_>>().ok_or_else(|| text.reported())
        }
        _ => {
            let what = format!("{}: expected either `text` or `messages`", files.owner);
            let hint = match &file.text {
                Some(_) => "remove one of them",
                None => "add e.g. `text = \"Explain {topic}\"`",
            };
            Err(text.lacking(file.name.span(), what).hint(hint))
        }
    }
}

fn message(
    index: usize,
    written: &Spanned<Written>,
    files: &mut Files,
    text: &Text<'_>,
) -> Result<Message, Mistake> {
    let Written { role, text: said, file, mime_type, uri } = written.get_ref();
    let owner = format!("{}: messages[{index}]", files.owner);
    let role = match role.as_ref().map(|role| (role.get_ref().as_str(), role.span())) {
        None | Some(("user", _)) => Role::User,
        Some(("assistant", _)) => Role::Assistant,
        Some((other, place)) => {
            let what = format!("{owner}: unknown role `{other}` (expected `user` or `assistant`)");
            text.report(text.mistake(place, what));
            Role::User
        }
    };
    let body = match (said, file) {
        (Some(said), None) if mime_type.is_none() && uri.is_none() => {
            Body::Text(template(Place::Message(Some(index)), said, &files.owner, text)?)
        }
        (None, Some(file)) => {
            let name = Path::new(file.get_ref()).file_name().unwrap_or_default();
            let default_uri = || format!("prompt:///{}", name.to_string_lossy());
            let uri = uri.clone().unwrap_or_else(default_uri);
            Body::File(files.add(file, mime_type.clone(), text), uri)
        }
        _ => {
            let what = format!("{owner}: expected either `text` or `file`");
            let hint = "`mime_type` and `uri` are for files only";
            return Err(text.lacking(written.span(), what).hint(hint));
        }
    };
    Ok(Message { role, body })
}

fn template(
    place: Place,
    written: &Spanned<String>,
    owner: &str,
    text: &Text<'_>,
) -> Result<TextTemplate, Mistake> {
    TextTemplate::parse_at(place, written.get_ref())
        .map_err(|error| text.wrong_definition(written.span(), owner, &error))
}

fn check_placeholders(
    file: &Prompt,
    described: &Described,
    messages: &[Message],
    owner: &str,
    text: &Text<'_>,
) {
    let texts = messages.iter().filter_map(|message| match &message.body {
        Body::Text(template) => Some(template),
        Body::File(..) => None,
    });
    let found = described.input.mismatches_in_texts(&texts.collect::<Vec<_>>());
    described.report(&found, owner, text, |at| place(file, at));
}

fn place(file: &Prompt, at: Option<Place>) -> Range<usize> {
    let in_messages = match (at, &file.messages) {
        (Some(Place::Message(Some(index))), Some(messages)) => messages.get_ref().get(index),
        _ => None,
    };
    let in_messages = in_messages.and_then(|message| message.get_ref().text.as_ref());
    in_messages.or(file.text.as_ref()).unwrap_or(&file.name).span()
}
