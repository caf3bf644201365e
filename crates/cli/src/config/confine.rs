//! `limits` and `sandbox` of a command: the resources and files that its program may use.

use std::path::PathBuf;

use sabir_sources::command::{self, Files};
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
    network: Option<bool>,
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

/// Settles `sandbox`. Without `read` and `write`, it restricts only the network.
pub(super) fn sandbox(
    file: Option<&Spanned<Sandbox>>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Option<command::Sandbox>, Mistake> {
    let Some(written) = file else { return Ok(None) };
    if cfg!(not(target_os = "linux")) {
        return Err(
            text.mistake(written.span(), format!("{owner}: `sandbox` is supported on Linux only"))
        );
    }
    let Sandbox { read, write, network } = written.get_ref();
    let files = match (read, write) {
        (None, None) => None,
        (read, write) => Some(Files {
            read: existing(read.as_deref(), owner, text)?,
            write: existing(write.as_deref(), owner, text)?,
        }),
    };
    Ok(Some(command::Sandbox { files, network: network.unwrap_or(true) }))
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
