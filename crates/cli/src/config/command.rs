//! `[[command]]`: a program as a tool.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sabir::ToolAnnotations;
use sabir_sources::command::{
    self, CommandLine, CommandSource, DefinitionError, FindError, Finder, Location, MimeType,
    Output, Place, Program, RunItem, Stdin, TextTemplate,
};
use sabir_supervisor::Supervisor;
use serde::Deserialize;
use toml::Spanned;

use super::confine::{self, Limits, Sandbox};
use super::input::{Described, input, read_schema};
use super::json::Entries;
use super::mistake::{Mistake, RELATIVE, Text};
use super::values::{duration, positive, size};

/// A `[[command]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Command {
    pub(crate) name: Spanned<String>,
    title: Option<String>,
    description: Option<String>,
    run: Spanned<Vec<Spanned<toml::Value>>>,
    allow_dash: Option<Spanned<Vec<String>>>,
    stdin: Option<Spanned<String>>,
    input: Option<Entries>,
    input_schema: Option<Spanned<toml::Value>>,
    output: Option<Spanned<String>>,
    output_schema: Option<Spanned<toml::Value>>,
    env: Option<Entries>,
    cwd: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    kill_after: Option<Spanned<String>>,
    max_output: Option<Spanned<String>>,
    success_codes: Option<Spanned<Vec<i64>>>,
    concurrency: Option<Spanned<usize>>,
    read_only: Option<Spanned<bool>>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    log_stderr: Option<bool>,
    limits: Option<Limits>,
    sandbox: Option<Spanned<Sandbox>>,
}

/// How many calls run at once if the file does not say.
const CONCURRENCY: usize = 16;

/// How many calls may wait for their turn. One more is refused.
const MAX_WAITING: usize = 1024;

/// Settles a command. No call may take longer than `call_time`.
pub(super) fn settle(
    file: &Command,
    text: &Text<'_>,
    call_time: Option<Duration>,
    supervisor: &Supervisor,
    finder: &mut Finder,
) -> Result<(CommandSource, Duration), Mistake> {
    let owner = format!("command `{}`", file.name.get_ref());
    let described = input(file.input.as_ref(), file.input_schema.as_ref(), &owner, text)?;
    let (line, stdin) = templates(file, &described, &owner, text)?;
    let program = program(file, line.program(), call_time, &owner, text, finder)?;
    let kill_after = program.grace.after_term;
    let command = command::Command {
        name: file.name.get_ref().clone(),
        title: file.title.clone(),
        description: file.description.clone(),
        annotations: annotations(file, &owner, text)?,
        input: described.input,
        line,
        stdin,
        program,
        output: output(file, &owner, text)?,
        concurrency: positive(file.concurrency.as_ref(), text)?.unwrap_or(CONCURRENCY),
        max_waiting: MAX_WAITING,
        log_stderr: file.log_stderr.unwrap_or(false),
    };
    Ok((CommandSource::new(command, supervisor.clone()), kill_after))
}

/// `run`, `allow_dash` and `stdin`, which agree with the input.
fn templates(
    file: &Command,
    described: &Described,
    owner: &str,
    text: &Text<'_>,
) -> Result<(CommandLine, Stdin), Mistake> {
    let wrong = |error: DefinitionError| {
        let at = match error.location {
            Location::Text(place, _) => Some(place),
            _ => None,
        };
        text.wrong_definition(place(file, at), owner, &error)
    };
    let allow_dash = file.allow_dash.as_ref().map_or(&[][..], |names| names.get_ref());
    let run = file.run.get_ref().iter().map(|entry| run_item(entry, owner, text));
    let run = run.collect::<Result<Vec<_>, _>>()?;
    let line = CommandLine::parse(&run, allow_dash).map_err(wrong)?;
    let stdin = match file.stdin.as_ref().map(|stdin| stdin.get_ref().as_str()) {
        None => Stdin::Empty,
        Some("json") => Stdin::Json,
        Some(template) => Stdin::Text(TextTemplate::parse(template).map_err(wrong)?),
    };
    let found = described.input.mismatches(&line, &stdin);
    described.disagreement(&found, owner, text, |at| place(file, at))?;
    Ok((line, stdin))
}

/// Where something stands. What stands nowhere else is said of `allow_dash`, or of `run`.
fn place(file: &Command, at: Option<Place>) -> Range<usize> {
    match (at, &file.stdin, &file.allow_dash) {
        (Some(Place::Run(index, _)), _, _) => {
            file.run.get_ref().get(index).map_or(file.run.span(), Spanned::span)
        }
        (Some(_), Some(stdin), _) => stdin.span(),
        (None, _, Some(allow_dash)) => allow_dash.span(),
        _ => file.run.span(),
    }
}

fn run_item(
    entry: &Spanned<toml::Value>,
    owner: &str,
    text: &Text<'_>,
) -> Result<RunItem, Mistake> {
    let argument = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let item = match entry.get_ref() {
        toml::Value::Array(list) => {
            list.iter().map(argument).collect::<Option<_>>().map(RunItem::Group)
        }
        one => argument(one).map(RunItem::Argument),
    };
    item.ok_or_else(|| {
        let what = format!("{owner}: {} cannot be an argument", entry.get_ref());
        text.mistake(entry.span(), what).hint("write text, or a list of texts that belong together")
    })
}

fn program(
    file: &Command,
    name: &str,
    call_time: Option<Duration>,
    owner: &str,
    text: &Text<'_>,
    finder: &mut Finder,
) -> Result<Program, Mistake> {
    let cwd = match &file.cwd {
        None => text.folder(),
        Some(written) => {
            let cwd = text.resolve(written.get_ref());
            if !cwd.is_dir() {
                let what = format!("{owner}: there is no folder {}", cwd.display());
                return Err(text.mistake(written.span(), what).hint(RELATIVE));
            }
            cwd
        }
    };
    let mut program = Program::new(PathBuf::new(), cwd);
    set_variables(&mut program.env, file.env.as_ref(), owner, text)?;
    let search = program.env.iter().rev().find(|(name, _)| name == "PATH");
    let search = search.map(|(_, path)| path.as_os_str());
    program.path = find(file, name, search, owner, text, finder)?;
    if let Some(timeout) = some_time(file.timeout.as_ref(), text)? {
        program.timeout = timeout;
    }
    if let (Some(written), Some(most)) = (&file.timeout, call_time)
        && program.timeout > most
    {
        let what = format!("{owner}: no call may take longer than {most:?}");
        let hint = "write a shorter one, or a longer `call_time` in [limits]";
        return Err(text.mistake(written.span(), what).hint(hint));
    }
    if let Some(kill_after) = duration(file.kill_after.as_ref(), text)? {
        program.grace.after_term = kill_after;
    }
    program.max_output = size(file.max_output.as_ref(), text)?.unwrap_or(program.max_output);
    if let Some(codes) = &file.success_codes {
        program.success_codes = success_codes(codes, owner, text)?;
    }
    program.limits = confine::limits(file.limits.as_ref(), text)?;
    program.sandbox = confine::sandbox(file.sandbox.as_ref(), owner, text)?;
    Ok(program)
}

fn find(
    file: &Command,
    name: &str,
    search: Option<&OsStr>,
    owner: &str,
    text: &Text<'_>,
    finder: &mut Finder,
) -> Result<PathBuf, Mistake> {
    finder.find(name, search).map(Path::to_owned).map_err(|error| {
        let place = place(file, Some(Place::Run(0, None)));
        let mistake = text.mistake(place, format!("{owner}: {error}"));
        match error {
            FindError::NoFile(_) => mistake.hint(RELATIVE),
            FindError::NotExecutable(path) if path.is_file() => {
                mistake.hint(format!("make it one: chmod +x {}", path.display()))
            }
            FindError::NotExecutable(_) => mistake,
            FindError::NotInPath(_) => mistake.hint("install it, or write its full path"),
        }
    })
}

/// Adds what `env` lists: a text is the value, `true` lets ours through.
fn set_variables(
    env: &mut Vec<(OsString, OsString)>,
    file: Option<&Entries>,
    owner: &str,
    text: &Text<'_>,
) -> Result<(), Mistake> {
    for (key, value) in file.into_iter().flat_map(|entries| &entries.0) {
        let name = key.get_ref();
        let wrong = |what: &str| text.mistake(key.span(), format!("{owner}: env: `{name}` {what}"));
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(wrong("is no name of a variable"));
        }
        let value = match value {
            toml::Value::String(value) if value.contains('\0') => {
                return Err(wrong("contains a NUL byte"));
            }
            toml::Value::String(value) => value.into(),
            toml::Value::Boolean(true) => std::env::var_os(name).ok_or_else(|| {
                wrong("is not in Sabir's own environment").hint("set it, or write a value here")
            })?,
            _ => {
                let hint = "write a text, or true to let Sabir's own variable through";
                return Err(wrong("must be a text or true").hint(hint));
            }
        };
        env.retain(|(known, _)| known != name.as_str());
        env.push((name.into(), value));
    }
    Ok(())
}

fn some_time(
    written: Option<&Spanned<String>>,
    text: &Text<'_>,
) -> Result<Option<Duration>, Mistake> {
    let time = duration(written, text)?;
    match (written, time) {
        (Some(written), Some(Duration::ZERO)) => {
            Err(text.mistake(written.span(), "no time is not enough for anything"))
        }
        _ => Ok(time),
    }
}

fn success_codes(
    codes: &Spanned<Vec<i64>>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Vec<i32>, Mistake> {
    let known = |code: &i64| u8::try_from(*code).ok().map(i32::from);
    let found: Option<Vec<_>> = codes.get_ref().iter().map(known).collect();
    found.filter(|codes| !codes.is_empty()).ok_or_else(|| {
        let what = format!("{owner}: exit codes are numbers from 0 to 255, and at least one");
        text.mistake(codes.span(), what)
    })
}

fn annotations(file: &Command, owner: &str, text: &Text<'_>) -> Result<ToolAnnotations, Mistake> {
    if let Some(read_only) = &file.read_only
        && *read_only.get_ref()
        && file.destructive == Some(true)
    {
        let what = format!("{owner}: what changes nothing cannot be destructive");
        return Err(text.mistake(read_only.span(), what).hint("write one of the two"));
    }
    Ok(ToolAnnotations {
        read_only_hint: file.read_only.as_ref().map(|read_only| *read_only.get_ref()),
        destructive_hint: file.destructive,
        idempotent_hint: file.idempotent,
        open_world_hint: file.open_world,
        ..ToolAnnotations::default()
    })
}

fn output(file: &Command, owner: &str, text: &Text<'_>) -> Result<Output, Mistake> {
    let written = file.output.as_ref();
    let output = match written.map_or("text", |output| output.get_ref()) {
        "text" => Output::Text,
        "lines" => Output::Lines,
        "json" => Output::Json(None),
        other => Output::Bytes(MimeType::try_from(other).map_err(|error| {
            let place = written.map_or(file.name.span(), Spanned::span);
            text.mistake(place, format!("{owner}: {error}"))
                .hint("write \"text\", \"lines\", \"json\", or a type such as \"image/png\"")
        })?),
    };
    match (&file.output_schema, output) {
        (None, output) => Ok(output),
        (Some(schema), Output::Json(_)) => {
            let value = read_schema("output_schema", schema, owner, text)?;
            let checked = sabir::Raw::of(&value).map_err(|error| error.to_string());
            let checked = checked.and_then(|raw| {
                sabir_registry::Checker::for_results(&raw).map_err(|error| error.to_string())
            });
            checked.map_err(|reason| {
                text.told(schema.span(), format!("{owner}: output_schema: {reason}"))
            })?;
            Ok(Output::Json(Some(value)))
        }
        (Some(schema), _) => {
            let what = format!("{owner}: only JSON has an `output_schema`");
            Err(text.mistake(schema.span(), what).hint("write output = \"json\""))
        }
    }
}
