//! `sabir init`: writes a commented configuration.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

use crate::config::{FILE_NAME, TEMPLATE};
use crate::report::{Failure, say};

pub(crate) fn run() -> Result<(), Failure> {
    let new = OpenOptions::new().write(true).create_new(true).open(FILE_NAME);
    let written = new.and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
    match written {
        Ok(()) => {
            say("wrote sabir.toml; `sabir check` reads it, `sabir serve` serves it");
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Failure::new("sabir.toml already exists (not changed)"))
        }
        Err(error) => Err(Failure::new(format!("cannot write sabir.toml: {error}"))),
    }
}
