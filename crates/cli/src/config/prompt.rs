//! `[[prompt]]`: messages with placeholders, and files.

use std::ops::Range;
use std::path::Path;

use sabir::Role;
use sabir_sources::command::{Place, TextTemplate};
use sabir_sources::text::{Body, File, Message, TextPrompt};
use sabir_wire::types;
use serde::Deserialize;
use toml::Spanned;

use super::input::{Described, input};
use super::json::Entries;
use super::mistake::{Mistake, RELATIVE, Text};

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
pub(super) fn settle(file: &Prompt, text: &Text<'_>) -> Result<TextPrompt, Mistake> {
    let owner = format!("prompt `{}`", file.name.get_ref());
    let described = input(file.input.as_ref(), None, &owner, text)?;
    let messages = messages(file, &owner, text)?;
    check_placeholders(file, &described, &messages, &owner, text)?;
    let listed = types::Prompt {
        name: file.name.get_ref().clone(),
        title: file.title.clone(),
        description: file.description.clone(),
        ..types::Prompt::default()
    };
    TextPrompt::new(listed, described.input.clone(), messages).map_err(|wrong| {
        let place = described.place(&wrong.0, file.name.span());
        text.mistake(place, format!("{owner}: {wrong}"))
            .hint("write \"string\" or \"string?\", or a list of choices")
    })
}

fn messages(file: &Prompt, owner: &str, text: &Text<'_>) -> Result<Vec<Message>, Mistake> {
    match (&file.text, &file.messages) {
        (Some(one), None) => {
            let body = Body::Text(template(Place::Message(None), one, owner, text)?);
            Ok(vec![Message { role: Role::User, body }])
        }
        (None, Some(several)) if !several.get_ref().is_empty() => {
            let several = several.get_ref().iter().enumerate();
            several.map(|(index, one)| message(index, one, owner, text)).collect()
        }
        _ => {
            let what = format!("{owner}: needs either a `text` or `messages`");
            Err(text.mistake(file.name.span(), what))
        }
    }
}

fn message(
    index: usize,
    written: &Spanned<Written>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Message, Mistake> {
    let Written { role, text: said, file, mime_type, uri } = written.get_ref();
    let role = match role.as_ref().map(|role| (role.get_ref().as_str(), role.span())) {
        None | Some(("user", _)) => Role::User,
        Some(("assistant", _)) => Role::Assistant,
        Some((other, place)) => {
            let what = format!("{owner}: messages[{index}]: nobody has the role `{other}`");
            return Err(text.mistake(place, what).hint("write \"user\" or \"assistant\""));
        }
    };
    let body = match (said, file) {
        (Some(said), None) if mime_type.is_none() && uri.is_none() => {
            Body::Text(template(Place::Message(Some(index)), said, owner, text)?)
        }
        (None, Some(file)) => {
            let opened = open(file, mime_type.clone(), owner, text)?;
            let name = Path::new(file.get_ref()).file_name().unwrap_or_default();
            let known_as = || format!("prompt:///{}", name.to_string_lossy());
            Body::File(opened, uri.clone().unwrap_or_else(known_as))
        }
        _ => {
            let what = format!("{owner}: messages[{index}]: needs either a `text` or a `file`");
            return Err(text
                .mistake(written.span(), what)
                .hint("`mime_type` and `uri` are for files"));
        }
    };
    Ok(Message { role, body })
}

/// A file that is there.
fn open(
    written: &Spanned<String>,
    mime_type: Option<String>,
    owner: &str,
    text: &Text<'_>,
) -> Result<File, Mistake> {
    File::open(text.resolve(written.get_ref()), mime_type)
        .map_err(|bad| text.mistake(written.span(), format!("{owner}: {bad}")).hint(RELATIVE))
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
) -> Result<(), Mistake> {
    let texts = messages.iter().filter_map(|message| match &message.body {
        Body::Text(template) => Some(template),
        Body::File(..) => None,
    });
    let found = described.input.mismatches_in_texts(&texts.collect::<Vec<_>>());
    described.disagreement(&found, owner, text, |at| place(file, at))
}

fn place(file: &Prompt, at: Option<Place>) -> Range<usize> {
    let in_messages = match (at, &file.messages) {
        (Some(Place::Message(Some(index))), Some(messages)) => messages.get_ref().get(index),
        _ => None,
    };
    let in_messages = in_messages.and_then(|message| message.get_ref().text.as_ref());
    in_messages.or(file.text.as_ref()).unwrap_or(&file.name).span()
}
