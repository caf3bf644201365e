//! The entry points of fuzzers and property tests: templates, and the values that are put into
//! them.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::input::Input;
use super::template::{CommandLine, RunItem, Stdin, TextTemplate};
use super::values::Values;

/// Arguments of a command line, one per line, an empty line, and the JSON of a call. No value
/// becomes an option or a second argument, no NUL byte is passed on, and what a program gets as
/// JSON is what the client sent.
pub fn templates(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (run, json) = text.split_once("\n\n").unwrap_or((&text, "{}"));
    check_literal(run);
    let Ok(raw) = RawValue::from_string(json.trim().to_owned()) else { return };
    let Ok(input) = Input::from_short(&Map::new()) else { return };
    let Ok(values) = Values::parse(&raw, &input) else { return };
    if let Ok(template) = TextTemplate::parse(run) {
        let _ = template.render(&values);
    }
    match Stdin::Json.render(&values) {
        Ok(Some(stdin)) => {
            let [sent, passed] =
                [raw.get().as_bytes(), &stdin].map(serde_json::from_slice::<Value>);
            assert_eq!(sent.ok(), passed.ok(), "another value is passed on");
        }
        other => assert!(other.is_err(), "the JSON of a call is empty"),
    }
    let items = run.lines().map(|line| RunItem::Argument(line.to_owned()));
    let items: Vec<_> =
        std::iter::once(RunItem::Argument("program".to_owned())).chain(items).collect();
    let Ok(line) = CommandLine::parse(&items, &[]) else { return };
    let Ok(arguments) = line.render(&values) else { return };
    let mut after_dashes = false;
    for argument in &arguments {
        let argument = argument.to_string_lossy();
        assert!(!argument.contains('\0'), "a NUL byte in {argument:?}");
        let is_option = argument.starts_with('-') && !after_dashes;
        let is_written = || run.lines().any(|line| writes_option(line, &argument));
        assert!(!is_option || is_written(), "{argument:?} became an option");
        after_dashes |= argument == "--";
    }
}

/// Whether the author wrote the beginning of an option in this line: as literal text, or as the text
/// of a switch.
fn writes_option(line: &str, argument: &str) -> bool {
    let written = match line.strip_prefix('{') {
        Some(switch) => switch.split_once('?').map_or("", |(_, text)| text),
        None => line,
    };
    let written = written.split(['{', '}']).next().unwrap_or_default();
    written.starts_with('-') && argument.starts_with(written)
}

/// A text without placeholders is rendered as it is.
fn check_literal(text: &str) {
    let escaped = text.replace('{', "{{").replace('}', "}}");
    let Ok(template) = TextTemplate::parse(&escaped) else { panic!("{escaped:?} is a literal") };
    let (Ok(none), Ok(input)) =
        (RawValue::from_string("{}".to_owned()), Input::from_short(&Map::new()))
    else {
        return;
    };
    let rendered = Values::parse(&none, &input).and_then(|values| template.render(&values));
    assert_eq!(rendered.as_deref(), Ok(text));
}
