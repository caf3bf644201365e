use super::*;

fn line(run: &[&str]) -> Result<CommandLine, TemplateError> {
    let run: Vec<_> = run.iter().map(|argument| RunItem::Argument((*argument).into())).collect();
    CommandLine::parse(&run, &[])
}

fn text(source: &str) -> Text {
    TextTemplate::parse(source).unwrap().text
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
fn errors_name_the_place_and_the_way_out() {
    let check = |run: &[&str], message: &str| {
        assert_eq!(line(run).unwrap_err().to_string(), message, "{run:?}");
    };
    check(
        &["awk", "{print $1}"],
        "run[1], character 1: `print $1` is no name of an argument; write `{{` and `}}` for braces",
    );
    check(&["echo", "ä{a"], "run[1], character 2: `{` is not closed; write `{{` for a brace");
    check(&["echo", "{a{b}}"], "run[1], character 1: `{` is not closed; write `{{` for a brace");
    check(&["echo", "x", "a}"], "run[2], character 2: `}` closes nothing; write `}}` for a brace");
    check(
        &["echo", "{}"],
        "run[1], character 1: a placeholder needs a name; write `{{` and `}}` for braces",
    );
    check(
        &["echo", "{?}"],
        "run[1], character 1: a placeholder needs a name; write `{{` and `}}` for braces",
    );
    check(
        &["echo", "x{all?-a}"],
        "run[1], character 1: `{all?…}` stands for a whole argument; nothing may be written beside it",
    );
    check(&["echo", "a\0b"], "run[1], character 2: a NUL byte cannot be given to a program");
    check(
        &["{program}"],
        "run[0], character 1: the program is fixed: it cannot be chosen by an argument",
    );
    check(
        &["bin/{program}"],
        "run[0], character 1: the program is fixed: it cannot be chosen by an argument",
    );
    check(&[""], "run[0], character 1: there is no program");
    check(&[], "run[0], character 1: there is no program");
    let inner = RunItem::Together(vec!["-e".into(), "{".into()]);
    let run = [RunItem::Argument("grep".into()), inner];
    let error = CommandLine::parse(&run, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run[1][1], character 1: `{` is not closed; write `{{` for a brace"
    );
    let run = [RunItem::Argument("grep".into()), RunItem::Together(vec![])];
    assert_eq!(CommandLine::parse(&run, &[]).unwrap_err().wrong, Wrong::EmptyGroup);
}

#[test]
fn a_flag_belongs_to_the_placeholder_after_it() {
    let sizes = |run: &[&str]| {
        let line = line(run).unwrap();
        line.units.iter().map(|unit| unit.arguments.len()).collect::<Vec<_>>()
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
fn an_inner_list_stands_for_itself() {
    let run = [
        RunItem::Argument("ls".into()),
        RunItem::Argument("-l".into()),
        RunItem::Together(vec!["{path?}".into()]),
        RunItem::Together(vec!["-x".into()]),
        RunItem::Argument("{y?}".into()),
    ];
    let line = CommandLine::parse(&run, &[]).unwrap();
    assert_eq!(
        line.units.iter().map(|unit| unit.arguments.len()).collect::<Vec<_>>(),
        [1, 1, 1, 1]
    );
    assert_eq!(line.program(), "ls");
}

#[test]
fn dashes_count_for_what_comes_after_them_only() {
    let together = RunItem::Together(vec!["{a}".into(), "--".into(), "{b}".into()]);
    let run = [RunItem::Argument("p".into()), together, RunItem::Argument("{c}".into())];
    let line = CommandLine::parse(&run, &[]).unwrap();
    let after: Vec<_> =
        line.units.iter().flat_map(|unit| &unit.arguments).map(|a| a.after_dashes).collect();
    assert_eq!(after, [false, false, true, true]);
}
