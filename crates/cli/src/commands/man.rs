//! `sabir man`: the manual page, with the options of all subcommands.

use std::io::{self, Write as _};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::Args;

pub(crate) fn run() -> io::Result<()> {
    let mut command = Args::command();
    command.build();
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    page.extend(b".SH COMMANDS\n");
    add_subcommands(&command, "sabir", &mut page)?;
    man.render_extra_section(&mut page)?;
    man.render_version_section(&mut page)?;
    io::stdout().write_all(&page)
}

fn add_subcommands(command: &Command, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for command in command.get_subcommands().filter(shown) {
        let name = format!("{name} {}", command.get_name());
        let man = Man::new(command.clone());
        let mut part = Vec::new();
        man.render_description_section(&mut part)?;
        man.render_options_section(&mut part)?;
        // They are paragraphs of this part, not sections of the page.
        let part = String::from_utf8_lossy(&part);
        let lines = part.lines().map(|line| if line.starts_with(".SH ") { ".PP" } else { line });
        writeln!(page, ".SS \"{name}\"")?;
        writeln!(page, "{}", lines.collect::<Vec<_>>().join("\n"))?;
        add_subcommands(command, &name, page)?;
    }
    Ok(())
}
