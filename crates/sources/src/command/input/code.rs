//! Refuses placeholders inside of code: a value in the script of `sh -c` could run any command.

use std::path::Path;

use crate::command::definition::{DefinitionError, Location};
use crate::command::template::{Argument, CommandLine, Piece};

/// A program that runs code from its command line.
struct Interpreter {
    names: &'static [&'static str],
    /// The letters of the options before the code.
    options: &'static [char],
    /// How the code reads the first argument after it, with `1` for its number.
    argument: &'static str,
    /// Whether the first argument after the code is the name of the script.
    has_name: bool,
}

const INTERPRETERS: [Interpreter; 6] = [
    Interpreter {
        names: &["sh", "bash", "dash", "ash", "zsh", "ksh", "fish"],
        options: &['c'],
        argument: "\"$1\"",
        has_name: true,
    },
    Interpreter {
        names: &["python", "pypy"],
        options: &['c'],
        argument: "sys.argv[1]",
        has_name: false,
    },
    Interpreter { names: &["perl"], options: &['e', 'E'], argument: "$ARGV[0]", has_name: false },
    Interpreter { names: &["ruby"], options: &['e'], argument: "ARGV[0]", has_name: false },
    Interpreter {
        names: &["node", "nodejs"],
        options: &['e', 'p'],
        argument: "process.argv[1]",
        has_name: false,
    },
    Interpreter { names: &["php"], options: &['r'], argument: "$argv[1]", has_name: false },
];

impl Interpreter {
    fn find(word: &str) -> Option<&'static Self> {
        let name = Path::new(word).file_name()?.to_str()?;
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        INTERPRETERS.iter().find(|one| one.names.contains(&name))
    }

    /// Whether the next argument is code: `-c`, or several letters like `-ec`.
    fn is_option(&self, word: &str) -> bool {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(self.options)) || word == "--eval"
    }
}

/// All placeholders of a command line that are inside of code.
pub(super) fn placeholders(line: &CommandLine) -> Vec<DefinitionError> {
    let mut interpreter = Interpreter::find(line.program());
    let mut is_code = false;
    let mut found = Vec::new();
    for argument in line.groups.iter().flat_map(|group| &group.arguments) {
        if let (true, Some(interpreter)) = (is_code, interpreter)
            && let Some(name) = argument.names().next()
        {
            let what = format!(
                "`{name}` would become part of the code that {} runs",
                interpreter.names[0]
            );
            let error = DefinitionError::new(Location::Text(argument.place, None), what);
            found.push(error.hint(corrected(argument, interpreter)));
        }
        let word = match &argument.text[..] {
            [Piece::Literal(word)] => word,
            _ => "",
        };
        is_code = interpreter.is_some_and(|one| one.is_option(word));
        interpreter = Interpreter::find(word).or(interpreter);
    }
    found
}

/// The code with the values as arguments after it.
fn corrected(argument: &Argument, interpreter: &Interpreter) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut code = String::new();
    for piece in &argument.text {
        match piece {
            Piece::Literal(text) | Piece::Switch { text, .. } => code += text,
            Piece::Value { name, .. } => {
                let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                let first = if interpreter.argument.contains('0') { at } else { at + 1 };
                code += &interpreter.argument.replace(['0', '1'], &first.to_string());
            }
        }
    }
    let script_name = if interpreter.has_name {
        format!(", \"{}\"", interpreter.names[0])
    } else {
        String::new()
    };
    let values: String = names.iter().map(|name| format!(", \"{{{name}}}\"")).collect();
    format!("pass it as an argument after the code: '{code}'{script_name}{values}")
}
