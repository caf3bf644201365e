//! `[[command]]`: a program as a tool.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use sabir::ToolAnnotations;
use sabir_sources::command::{
    self, CommandLine, CommandSource, DefinitionError, Extras, FindError, Location, MimeType,
    OUTPUT_FILE, Output, Place, Program, RunItem, Stdin, TextTemplate, find_program,
};
use serde::Deserialize;
use toml::Spanned;

use super::confine::{self, Limits, Sandbox};
use super::input::{Described, input, read_schema};
use super::json::Entries;
use super::mistake::{Mistake, Place as FilePlace, RELATIVE, Text};
use super::sources::SourceDescription;
use super::values::{duration, positive, size, task};

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
    output_file: Option<Spanned<String>>,
    progress: Option<Spanned<String>>,
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
    task: Option<Spanned<toml::Value>>,
    task_after: Option<Spanned<String>>,
    limits: Option<Limits>,
    sandbox: Option<Spanned<Sandbox>>,
    pub(super) scopes: Option<Vec<Spanned<String>>>,
}

/// The default number of concurrent calls.
const CONCURRENCY: usize = 16;

/// How many calls may wait in the queue. Further calls are refused.
const MAX_WAITING: usize = 1024;

/// Settles a command. Its timeout must not be longer than `call_time`.
pub(super) fn settle(
    file: &Command,
    text: &Text<'_>,
    call_time: Option<Duration>,
) -> Result<SourceDescription, Mistake> {
    let owner = format!("command `{}`", file.name.get_ref());
    // All of them are checked before the first mistake ends the definition.
    let described = input(file.input.as_ref(), file.input_schema.as_ref(), &owner, text);
    let annotations = annotations(file, &owner, text);
    let program = program(file, call_time, &owner, text);
    let output = text.checked(output(file, &owner, text)).unwrap_or(Output::Text);
    let concurrency = text.checked(positive(file.concurrency.as_ref(), text)).flatten();
    let extras = extras(file, &owner, text);
    let task = task(file.task.as_ref(), file.task_after.as_ref(), &owner, text);
    let task = task.unwrap_or_default();
    let mut described = described?;
    if extras.output_file.is_some() {
        described.input = described.input.with_placeholder(OUTPUT_FILE);
    }
    let (line, stdin) = templates(file, &described, extras.folder.as_ref(), &owner, text)?;
    let name = line.program().to_owned();
    if file.description.is_none() {
        let what = format!("{owner}: no description, by which models choose a tool");
        let hint = "add e.g. `description = \"Show how much space files and folders use\"`";
        text.warn(text.mistake(file.name.span(), what).hint(hint));
    }
    let mut command = command::Command {
        name: file.name.get_ref().clone(),
        title: file.title.clone(),
        description: file.description.clone(),
        annotations,
        input: described.input,
        line,
        stdin,
        program,
        output,
        concurrency: concurrency.unwrap_or(CONCURRENCY),
        max_waiting: MAX_WAITING,
        log_stderr: file.log_stderr.unwrap_or(false),
        extras,
        task,
    };
    let run = text.place(place(file, Some(Place::Run(0, None))));
    let runs = name.clone();
    let look = {
        let (name, owner, run, folder) = (name.clone(), owner.clone(), run.clone(), text.folder());
        let search = search_path(&command.program).map(OsStr::to_owned);
        move || match find_program(&name, &folder, search.as_deref()) {
            Ok(_) => Ok(()),
            Err(error) => Err(not_found(&error, &owner, run.clone())),
        }
    };
    let description =
        SourceDescription::new(text.place(file.name.span()), move |context| async move {
            let found = context.find_program(&name, search_path(&command.program));
            let program = &mut command.program;
            program.path = found.map_err(|error| not_found(&error, &owner, run))?;
            let supervisor = context.supervisor(program.grace.after_term);
            Ok(CommandSource::new(command, supervisor))
        });
    Ok(description.runs(&runs).looks(look))
}

/// The search path in the environment of a program.
fn search_path(program: &Program) -> Option<&OsStr> {
    let search = program.env.iter().rev().find(|(name, _)| name == "PATH");
    search.map(|(_, path)| path.as_os_str())
}

/// Parses `run`, `allow_dash` and `stdin`, and checks them against the input.
fn templates(
    file: &Command,
    described: &Described,
    folder: Option<&TextTemplate>,
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
    let found = described.input.mismatches(&line, &stdin, folder);
    described.report(&found, owner, text, |at| place(file, at));
    for risky in described.input.refused_numbers(&line) {
        let at = match risky.location {
            Location::Text(at, _) => Some(at),
            _ => None,
        };
        text.warn(text.wrong_definition(place(file, at), owner, &risky));
    }
    Ok((line, stdin))
}

/// The place of a text with placeholders, or else that of `allow_dash` or `run`.
fn place(file: &Command, at: Option<Place>) -> Range<usize> {
    match (at, &file.stdin, &file.allow_dash) {
        (Some(Place::Run(index, _)), _, _) => {
            file.run.get_ref().get(index).map_or(file.run.span(), Spanned::span)
        }
        (Some(Place::Folder), _, _) => file.cwd.as_ref().unwrap_or(&file.name).span(),
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
        let what = format!(
            "{owner}: invalid argument {} (expected a string, an integer or a list of them)",
            entry.get_ref()
        );
        text.mistake(entry.span(), what)
    })
}

/// The program with its limits. Its path is found when it is opened.
fn program(file: &Command, call_time: Option<Duration>, owner: &str, text: &Text<'_>) -> Program {
    let cwd = match &file.cwd {
        None => text.folder(),
        Some(written) => {
            let cwd = text.resolve(split_folder(written.get_ref()).0);
            if !cwd.is_dir() {
                let what = format!("{owner}: folder not found: {}", cwd.display());
                text.report(text.mistake(written.span(), what).hint(RELATIVE));
            }
            cwd
        }
    };
    let mut program = Program::new(PathBuf::new(), cwd);
    set_variables(&mut program.env, file.env.as_ref(), owner, text);
    text.set(&mut program.timeout, timeout(file, call_time, owner, text));
    text.set(&mut program.grace.after_term, duration(file.kill_after.as_ref(), text));
    text.set(&mut program.max_output, size(file.max_output.as_ref(), text));
    if let Some(codes) = &file.success_codes {
        text.set(&mut program.success_codes, success_codes(codes, owner, text).map(Some));
    }
    text.set(&mut program.limits, confine::limits(file.limits.as_ref(), text).map(Some));
    text.set(&mut program.sandbox, confine::sandbox(file.sandbox.as_ref(), owner, text).map(Some));
    program
}

/// A working directory, and the part of it from the first folder with a placeholder on.
fn split_folder(cwd: &str) -> (&str, Option<&str>) {
    match cwd.find('{').map(|brace| cwd[..brace].rfind('/').map_or(0, |slash| slash + 1)) {
        Some(0) => (".", Some(cwd)),
        Some(at) => (&cwd[..at], Some(&cwd[at..])),
        None => (cwd, None),
    }
}

/// The parts that most commands do not have.
fn extras(file: &Command, owner: &str, text: &Text<'_>) -> Extras {
    let folder = file.cwd.as_ref().and_then(|cwd| {
        let template = TextTemplate::parse_at(Place::Folder, split_folder(cwd.get_ref()).1?);
        text.checked(template.map_err(|error| text.wrong_definition(cwd.span(), owner, &error)))
    });
    let progress = file.progress.as_ref().and_then(|written| {
        let pattern = Regex::new(written.get_ref()).ok().filter(|found| found.captures_len() > 1);
        if pattern.is_none() {
            let what = format!(
                "{owner}: invalid progress pattern (expected a regular expression with a group)"
            );
            let hint = r"write e.g. `progress = '(\d+)/(\d+)'`, for lines like `3/10`";
            text.report(text.mistake(written.span(), what).hint(hint));
        }
        pattern
    });
    if let Some(name) = &file.output_file
        && (name.get_ref().contains('/') || name.get_ref().is_empty() || name.get_ref() == "..")
    {
        text.report(text.invalid(name, "file name", "a name without folders, e.g. \"result.png\""));
    }
    let output_file = file.output_file.as_ref().map(|name| name.get_ref().clone());
    Extras { output_file, folder, progress }
}

fn timeout(
    file: &Command,
    call_time: Option<Duration>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Option<Duration>, Mistake> {
    let timeout = duration(file.timeout.as_ref(), text)?;
    if let (Some(written), Some(timeout)) = (&file.timeout, timeout) {
        let wrong = |what: &str| text.mistake(written.span(), format!("{owner}: {what}"));
        if timeout.is_zero() {
            return Err(wrong("timeout must be greater than zero"));
        }
        // `call_time` limits only a client that waits for the result.
        let may_be_task =
            file.task.as_ref().is_some_and(|task| task.get_ref().as_str() != Some("never"));
        if let Some(limit) = call_time.filter(|limit| timeout > *limit && !may_be_task) {
            return Err(wrong(&format!("timeout is longer than `call_time` (limit {limit:?})"))
                .hint("set a longer `call_time` in [limits]"));
        }
    }
    Ok(timeout)
}

fn not_found(error: &FindError, owner: &str, run: FilePlace) -> Mistake {
    let mistake = run.mistake(format!("{owner}: {error}"));
    match error {
        FindError::NoFile(_) => mistake.hint(RELATIVE),
        FindError::NotExecutable(path) if path.is_file() => {
            mistake.hint(format!("run `chmod +x {}`", path.display()))
        }
        FindError::NotExecutable(_) => mistake,
        FindError::NotInPath(_) => mistake.hint("install it, or write its full path"),
    }
}

/// Adds the variables of `env`.
fn set_variables(
    env: &mut Vec<(OsString, OsString)>,
    file: Option<&Entries>,
    owner: &str,
    text: &Text<'_>,
) {
    for (key, value) in file.into_iter().flat_map(|entries| &entries.0) {
        let name = key.get_ref();
        let wrong = |what: &str| text.mistake(key.span(), format!("{owner}: env: `{name}` {what}"));
        if let Some(value) = text.checked(variable(name, value, text, wrong)) {
            env.retain(|(known, _)| known != name.as_str());
            env.push((name.into(), value));
        }
    }
}

/// The value of a variable. `true` passes on the variable of our own environment.
fn variable(
    name: &str,
    value: &toml::Value,
    text: &Text<'_>,
    wrong: impl Fn(&str) -> Mistake,
) -> Result<OsString, Mistake> {
    let inherited = |name: &str| {
        text.variable(name).ok_or_else(|| {
            wrong("is not set in the environment of Sabir")
                .hint("set it, or write a value instead of true")
        })
    };
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(wrong("is not a valid name of a variable"));
    }
    match value {
        toml::Value::String(value) if value.contains('\0') => Err(wrong("contains a NUL byte")),
        toml::Value::String(value) => Ok(value.into()),
        toml::Value::Boolean(true) => inherited(name),
        toml::Value::Table(table) => match (table.get("env"), table.get("file"), table.len()) {
            (Some(toml::Value::String(name)), None, 1) => inherited(name),
            (None, Some(toml::Value::String(file)), 1) => {
                let secret = text
                    .read_secret(file)
                    .map_err(|error| wrong(&format!("cannot be read: {error}")).hint(RELATIVE))?;
                Ok(secret.trim_end_matches(['\r', '\n']).into())
            }
            _ => Err(wrong("has an invalid reference").hint(REFERENCES)),
        },
        _ => Err(wrong("has an invalid value (expected a string or true)").hint(REFERENCES)),
    }
}

const REFERENCES: &str = "true passes on the variable of Sabir's own environment; { env = \"NAME\" } \
                          and { file = \"PATH\" } are references";

fn success_codes(
    codes: &Spanned<Vec<i64>>,
    owner: &str,
    text: &Text<'_>,
) -> Result<Vec<i32>, Mistake> {
    let known = |code: &i64| u8::try_from(*code).ok().map(i32::from);
    let found: Option<Vec<_>> = codes.get_ref().iter().map(known).collect();
    found.filter(|codes| !codes.is_empty()).ok_or_else(|| {
        let what =
            format!("{owner}: invalid exit codes (expected at least one, each from 0 to 255)");
        text.mistake(codes.span(), what)
    })
}

fn annotations(file: &Command, owner: &str, text: &Text<'_>) -> ToolAnnotations {
    if let Some(read_only) = &file.read_only
        && *read_only.get_ref()
        && file.destructive == Some(true)
    {
        let what = format!("{owner}: `read_only` and `destructive` exclude each other");
        text.report(text.mistake(read_only.span(), what).hint("remove one of them"));
    }
    ToolAnnotations {
        read_only_hint: file.read_only.as_ref().map(|read_only| *read_only.get_ref()),
        destructive_hint: file.destructive,
        idempotent_hint: file.idempotent,
        open_world_hint: file.open_world,
        ..ToolAnnotations::default()
    }
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
                .hint("use \"text\", \"lines\", \"json\" or a media type")
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
                text.mistake(schema.span(), format!("{owner}: output_schema: {reason}"))
            })?;
            Ok(Output::Json(Some(value)))
        }
        (Some(schema), _) => {
            let what = format!("{owner}: `output_schema` requires JSON output");
            Err(text.mistake(schema.span(), what).hint("set output = \"json\""))
        }
    }
}
