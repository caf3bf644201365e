//! `sabir init`: writes a commented configuration.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::config::{FILE_NAME, TEMPLATE, holds_markdown};
use crate::report::{Failure, say};

/// The lines of the template that serve its folder.
const COMMENTED: &str = "# [[articles]]\n# path = \".\"";

pub(crate) fn run() -> Result<(), Failure> {
    let new = OpenOptions::new().write(true).create_new(true).open(FILE_NAME);
    // A folder that is served without a file is served with it, too.
    let has_markdown = holds_markdown(Path::new("."));
    let text = match has_markdown {
        true => TEMPLATE.replace(COMMENTED, &COMMENTED.replace("# ", "")),
        false => TEMPLATE.to_owned(),
    };
    let written = new.and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => {
            let serves = if has_markdown { ", for the Markdown of this folder" } else { "" };
            say(&format!(
                "wrote sabir.toml{serves}; `sabir check` reads it, `sabir serve` serves it"
            ));
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Failure::new("sabir.toml already exists (not changed)"))
        }
        Err(error) => Err(Failure::new(format!("cannot write sabir.toml: {error}"))),
    }
}
