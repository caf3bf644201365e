use super::*;

fn line(run: &[&str]) -> Result<CommandLine, DefinitionError> {
    let run: Vec<_> = run.iter().map(|argument| RunItem::Argument((*argument).into())).collect();
    CommandLine::parse(&run, &[])
}

fn text(source: &str) -> Text {
    TextTemplate::parse(source).unwrap().text
}

/// The error as `location: message; hint`.
fn shown(error: &DefinitionError) -> String {
    let hint = error.hint.iter().map(|hint| format!("; {hint}"));
    hint.fold(error.to_string(), |text, hint| text + &hint)
}

fn value(name: &str, optional: bool) -> Piece {
    Piece::Value { name: name.into(), optional }
}

fn literal(text: &str) -> Piece {
    Piece::Literal(text.into())
}

#[test]
fn text_is_split_into_literals_and_placeholders() {
    assert_eq!(text(""), []);
    assert_eq!(text("plain"), [literal("plain")]);
    assert_eq!(text("{a}"), [value("a", false)]);
    assert_eq!(text("{a?}{b}"), [value("a", true), value("b", false)]);
    assert_eq!(text("x{größe}y"), [literal("x"), value("größe", false), literal("y")]);
    let switch = Piece::Switch { name: "all".into(), text: "--all=1?".into() };
    assert_eq!(text("{all?--all=1?}"), [switch]);
}

#[test]
fn doubled_braces_are_braces() {
    assert_eq!(text("{{print $1}}"), [literal("{print $1}")]);
    assert_eq!(text("{{{a}}}"), [literal("{"), value("a", false), literal("}")]);
    assert_eq!(text("}}{{"), [literal("}{")]);
}

#[test]
fn errors_have_a_location_and_a_hint() {
    let check = |run: &[&str], message: &str| {
        assert_eq!(shown(&line(run).unwrap_err()), message, "{run:?}");
    };
    check(
        &["awk", "{print $1}"],
        "run[1], character 1: invalid argument name `print $1` (expected letters, digits, `_`, `-` or `.`); write `{{` and `}}` for literal braces",
    );
    check(&["echo", "ä{a"], "run[1], character 2: unclosed `{`; write `{{` for a literal brace");
    check(&["echo", "{a{b}}"], "run[1], character 1: unclosed `{`; write `{{` for a literal brace");
    check(
        &["echo", "x", "a}"],
        "run[2], character 2: unmatched `}`; write `}}` for a literal brace",
    );
    check(
        &["echo", "{}"],
        "run[1], character 1: placeholder without a name; write `{{` and `}}` for literal braces",
    );
    check(
        &["echo", "{?}"],
        "run[1], character 1: placeholder without a name; write `{{` and `}}` for literal braces",
    );
    check(&["echo", "x{all?-a}"], "run[1], character 1: `{all?…}` must be the whole argument");
    check(&["echo", "a\0b"], "run[1], character 2: a NUL byte cannot be passed to a program");
    check(&["{program}"], "run[0], character 1: the program cannot contain placeholders");
    check(&["bin/{program}"], "run[0], character 1: the program cannot contain placeholders");
    let missing =
        "run[0], character 1: missing program; write e.g. `run = [\"du\", \"-h\", \"{path}\"]`";
    check(&[""], missing);
    check(&[], missing);
    let inner = RunItem::Group(vec!["-e".into(), "{".into()]);
    let run = [RunItem::Argument("grep".into()), inner];
    let error = CommandLine::parse(&run, &[]).unwrap_err();
    assert_eq!(
        shown(&error),
        "run[1][1], character 1: unclosed `{`; write `{{` for a literal brace"
    );
    let run = [RunItem::Argument("grep".into()), RunItem::Group(vec![])];
    assert_eq!(CommandLine::parse(&run, &[]).unwrap_err().message, "empty list");
}

#[test]
fn a_flag_belongs_to_the_placeholder_after_it() {
    let sizes = |run: &[&str]| {
        let line = line(run).unwrap();
        line.groups.iter().map(|group| group.arguments.len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&["p", "--limit", "{limit?}"]), [2]);
    assert_eq!(sizes(&["p", "-n", "{n}", "{file}"]), [2, 1]);
    // Neither of these is a flag for what follows.
    assert_eq!(sizes(&["p", "--", "{file?}"]), [1, 1]);
    assert_eq!(sizes(&["p", "-", "{file?}"]), [1, 1]);
    assert_eq!(sizes(&["p", "sub", "{file?}"]), [1, 1]);
    assert_eq!(sizes(&["p", "--x", "{a}{b}"]), [1, 1]);
    assert_eq!(sizes(&["p", "--x", "{all?--all}"]), [1, 1]);
    assert_eq!(sizes(&["p", "--x={x}", "{a}"]), [1, 1]);
}

#[test]
fn an_inner_list_is_a_group() {
    let run = [
        RunItem::Argument("ls".into()),
        RunItem::Argument("-l".into()),
        RunItem::Group(vec!["{path?}".into()]),
        RunItem::Group(vec!["-x".into()]),
        RunItem::Argument("{y?}".into()),
    ];
    let line = CommandLine::parse(&run, &[]).unwrap();
    assert_eq!(
        line.groups.iter().map(|group| group.arguments.len()).collect::<Vec<_>>(),
        [1, 1, 1, 1]
    );
    assert_eq!(line.program(), "ls");
}

#[test]
fn dashes_apply_to_later_arguments_only() {
    let together = RunItem::Group(vec!["{a}".into(), "--".into(), "{b}".into()]);
    let run = [RunItem::Argument("p".into()), together, RunItem::Argument("{c}".into())];
    let line = CommandLine::parse(&run, &[]).unwrap();
    let after: Vec<_> =
        line.groups.iter().flat_map(|group| &group.arguments).map(|a| a.after_dashes).collect();
    assert_eq!(after, [false, false, true, true]);
}
