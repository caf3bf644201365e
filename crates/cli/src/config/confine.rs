//! `limits` and `sandbox` of a command: the resources and files that its program may use.

use std::path::PathBuf;

use sabir_sources::command::{self, Files, Sockets};
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, RELATIVE, Text};
use super::values::{duration, size};

/// `limits`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    memory: Option<Spanned<String>>,
    cpu_time: Option<Spanned<String>>,
    file_size: Option<Spanned<String>>,
}

/// `sandbox`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sandbox {
    read: Option<Vec<Spanned<String>>>,
    write: Option<Vec<Spanned<String>>>,
    metadata: Option<Spanned<bool>>,
    network: Option<bool>,
    sockets: Option<Spanned<toml::Value>>,
}

pub(super) fn limits(file: Option<&Limits>, text: &Text<'_>) -> Result<command::Limits, Mistake> {
    let Some(file) = file else { return Ok(command::Limits::default()) };
    let bytes = |written: &Option<Spanned<String>>| {
        Ok(size(written.as_ref(), text)?.map(|bytes| bytes as u64))
    };
    let cpu_time = duration(file.cpu_time.as_ref(), text)?;
    if let (Some(written), Some(time)) = (&file.cpu_time, cpu_time)
        && (time.is_zero() || time.subsec_nanos() > 0)
    {
        return Err(text.invalid(written, "cpu_time", "whole seconds, at least \"1s\""));
    }
    Ok(command::Limits {
        memory: bytes(&file.memory)?,
        cpu_seconds: cpu_time.map(|time| time.as_secs()),
        file_size: bytes(&file.file_size)?,
    })
}

/// Settles `sandbox`. Without `read` and `write`, it does not restrict files.
pub(super) fn sandbox(
    file: Option<&Spanned<Sandbox>>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Option<command::Sandbox>, Mistake> {
    let Some(written) = file else { return Ok(None) };
    let Sandbox { read, write, metadata, network, sockets } = written.get_ref();
    let files = match (read, write) {
        (None, None) => None,
        (read, write) => Some(Files {
            read: existing(read.as_deref(), owner, text)?,
            write: existing(write.as_deref(), owner, text)?,
        }),
    };
    if let (Some(metadata), None) = (metadata, &files) {
        let what = format!("{owner}: sandbox: `metadata` requires `read` or `write`");
        return Err(text.mistake(metadata.span(), what));
    }
    let sandbox = command::Sandbox {
        files,
        metadata: metadata.as_ref().is_some_and(|metadata| *metadata.get_ref()),
        network: network.unwrap_or(true),
        sockets: unix_sockets(sockets.as_ref(), owner, text)?,
    };
    let enforced = sandbox.check().map(|()| Some(sandbox));
    enforced.map_err(|reason| text.mistake(written.span(), format!("{owner}: {reason}")))
}

/// `true` for all Unix sockets, or the paths of some.
fn unix_sockets(
    written: Option<&Spanned<toml::Value>>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Sockets, Mistake> {
    let Some(written) = written else { return Ok(Sockets::None) };
    let paths = match written.get_ref() {
        toml::Value::Boolean(true) => return Ok(Sockets::All),
        toml::Value::Boolean(false) => return Ok(Sockets::None),
        toml::Value::Array(paths) => paths.iter().map(|path| path.as_str()).collect(),
        _ => None,
    };
    let paths: Vec<&str> = paths.ok_or_else(|| {
        let what =
            format!("{owner}: sandbox: invalid `sockets` (expected a list of paths, or true)");
        text.mistake(written.span(), what)
    })?;
    if paths.is_empty() {
        return Ok(Sockets::None);
    }
    let paths: Vec<_> =
        paths.iter().map(|path| Spanned::new(written.span(), (*path).to_owned())).collect();
    existing(Some(&paths), owner, text).map(Sockets::Named)
}

fn existing(
    paths: Option<&[Spanned<String>]>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Vec<PathBuf>, Mistake> {
    let found = paths.into_iter().flatten().map(|written| {
        let path = text.resolve(written.get_ref());
        if path.exists() {
            return Ok(path);
        }
        let what = format!("{owner}: sandbox: file or folder not found: {}", path.display());
        Err(text.mistake(written.span(), what).hint(RELATIVE))
    });
    found.collect()
}
