//! Mistakes in `[[command]]`, `[[prompt]]` and `[[resource]]` are reported with their places.

use std::os::unix::fs::PermissionsExt as _;

use crate::{folder_with, sabir, seen};

/// Checks a file; `~` in `expected` is its folder.
#[track_caller]
fn check(file: &str, expected: &str) {
    let folder = folder_with(file);
    std::fs::write(folder.path().join("plain.txt"), "no program").unwrap();
    let seen = seen(&sabir(folder.path(), &["check"]));
    let path = folder.path().canonicalize().unwrap();
    let seen = seen.replace(path.to_str().unwrap(), "~");
    assert_eq!(seen, format!("exit 3\nstderr:\nerror: {expected}"));
}

/// Checks a command of two lines with `rest` from the third on.
#[track_caller]
fn check_command(rest: &str, expected: &str) {
    check(&format!("[[command]]\nname = \"t\"\n{rest}\n"), &format!("command `t`: {expected}"));
}

#[test]
fn check_prints_the_counts_of_a_valid_file() {
    let folder = folder_with(
        r#"
[[command]]
name = "a"
description = "A"
run = ["true"]

[[command]]
name = "b"
description = "B"
run = ["echo", "{x}", ["--limit", "{limit?}"], "{all?--all}", 7]
input = { x = "string", limit = { type = "integer?", minimum = 0 }, all = "boolean?" }

[[prompt]]
name = "p"
text = "Hello"

[[resource]]
uri = "text://r"
text = "r"
"#,
    );
    let expected = "exit 0\nstderr:\ntools: a, b\nprompts: p\nresources: text://r\n`sabir` \
                    offers 2 tools, 1 prompt and 1 resource";
    assert_eq!(seen(&sabir(folder.path(), &["check"])), expected);
}

#[test]
fn check_starts_no_program() {
    let folder = folder_with("[[command]]\nname = \"t\"\nrun = [\"./touch-me\"]\n");
    let program = folder.path().join("touch-me");
    std::fs::write(&program, "#!/bin/sh\ntouch touched\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(seen(&sabir(folder.path(), &["check"])).starts_with("exit 0"));
    assert!(!folder.path().join("touched").exists());
}

#[test]
fn a_program_must_exist_and_be_executable() {
    check_command(
        "run = [\"./nowhere/x\"]",
        "file not found: ~/nowhere/x\n  --> sabir.toml:3\n  hint: paths are relative to the \
         folder of this file",
    );
    check_command(
        "run = [\n  \"./plain.txt\",\n]",
        "~/plain.txt is not an executable file\n  --> sabir.toml:4\n  hint: run `chmod +x \
         ~/plain.txt`",
    );
    check_command(
        "run = [\"sabir-no-such-program\"]",
        "program `sabir-no-such-program` not found in PATH\n  --> sabir.toml:3\n  \
         hint: install it, or write its full path",
    );
    check_command(
        "run = [\"ls\"]\nenv = { PATH = \"/nowhere\" }",
        "program `ls` not found in PATH\n  --> sabir.toml:3\n  hint: install it, or \
         write its full path",
    );
}

#[test]
fn a_template_is_checked_with_its_place() {
    check_command(
        "run = [\n  \"echo\",\n  \"{x\",\n]",
        "run[1], character 1: unclosed `{`\n  --> sabir.toml:5\n  hint: write `{{` for a literal \
         brace",
    );
    check_command(
        "run = []",
        "run[0], character 1: missing program\n  --> sabir.toml:3\n  hint: write e.g. `run = [\"du\", \
         \"-h\", \"{path}\"]`",
    );
    check_command(
        "run = [\"{x}\"]\ninput = { x = \"string\" }",
        "run[0], character 1: the program cannot contain placeholders\n  --> \
         sabir.toml:3",
    );
    check_command(
        "run = [\"cat\"]\nstdin = \"{}\"",
        "stdin, character 1: placeholder without a name\n  --> sabir.toml:4\n  hint: write `{{` \
         and `}}` for literal braces",
    );
    check_command(
        "run = [\"echo\", 1.5]",
        "invalid argument 1.5 (expected a string, an integer or a list of them)\n  --> \
         sabir.toml:3",
    );
}

#[test]
fn placeholders_and_input_must_match() {
    check_command(
        "run = [\n  \"echo\",\n  \"{limt}\",\n]\ninput = { limit = \"integer\" }",
        "run[1]: unknown argument `limt`\n  --> sabir.toml:5\n  hint: did you mean `limit`?",
    );
    check_command(
        "run = [\"echo\", \"{x}\"]\ninput = { x = \"string?\" }",
        "run[1]: `x` is optional\n  --> sabir.toml:3\n  hint: write `{x?}`, give it a default, \
         or require it",
    );
    check_command(
        "run = [\"echo\"]\ninput.x = \"string\"\ninput.y = \"string\"\nstdin = \"{x}\"",
        "input.y: is not used\n  --> sabir.toml:5\n  hint: use `{y}` in `run` or `stdin`",
    );
    check_command(
        "run = [\"echo\", \"{x}\"]\ninput.x = \"string\"\nallow_dash = [\"zz\"]",
        "allow_dash: `zz` is not used in `run`\n  --> sabir.toml:5",
    );
    check_command(
        "run = [\"echo\"]\n[command.input_schema]\ntype = \"object\"\nproperties.x = { type = \
         \"string\" }",
        "input.x: is not used\n  --> sabir.toml:4\n  hint: use `{x}` in `run` or `stdin`",
    );
}

#[test]
fn the_short_form_is_checked_with_its_place() {
    check_command(
        "run = [\"echo\", \"{x}\", \"{y}\"]\n[command.input]\nx = \"string\"\ny = \"strnig\"",
        "input.y: unknown type `strnig`\n  --> sabir.toml:6\n  hint: did you mean `string`?",
    );
    check_command(
        "run = [\"echo\", \"{x}\"]\ninput = { x = { type = \"string\", descripton = \"d\" } }",
        "input.x.descripton: unknown key\n  --> sabir.toml:4\n  hint: did you mean \
         `description`?",
    );
    check_command(
        "run = [\"echo\", \"{x}\"]\ninput.x = { type = \"number\", minimum = nan }",
        "input.x: the number is not valid in JSON\n  --> sabir.toml:4",
    );
    check_command(
        "run = [\"echo\"]\ninput = {}\ninput_schema = { type = \"object\" }",
        "`input` and `input_schema` exclude each other\n  --> sabir.toml:5\n  hint: remove one of \
         them",
    );
}

#[test]
fn schemas_are_checked_and_may_be_in_a_json_file() {
    check_command(
        "run = [\"echo\"]\ninput_schema = { type = \"objekt\" }",
        "input_schema: it must be a JSON Schema object with `\"type\": \"object\"`\n  --> \
         sabir.toml:4",
    );
    check_command(
        "run = [\"echo\"]\ninput_schema = \"plain.txt\"",
        "input_schema: invalid JSON in ~/plain.txt: expected ident at line 1 column 2\n  --> \
         sabir.toml:4",
    );
    check_command(
        "run = [\"echo\"]\noutput = \"json\"\noutput_schema = \"nowhere.json\"",
        "output_schema: cannot read ~/nowhere.json: No such file or directory (os error 2)\n  --> \
         sabir.toml:5\n  hint: expected a table, or the path of a JSON file",
    );
    check_command(
        "run = [\"echo\"]\noutput_schema = { type = \"object\" }",
        "`output_schema` requires JSON output\n  --> sabir.toml:4\n  hint: set output = \"json\"",
    );
    let folder = folder_with(
        "[[command]]\nname = \"t\"\nrun = [\"echo\", \"{x}\"]\ninput_schema = \"x.json\"\n",
    );
    let schema = r#"{"type":"object","properties":{"x":{"enum":[null,1]}},"required":["x"]}"#;
    std::fs::write(folder.path().join("x.json"), schema).unwrap();
    assert!(seen(&sabir(folder.path(), &["check"])).starts_with("exit 0"));
}

#[test]
fn times_sizes_counts_and_codes_are_checked() {
    let good = "run = [\"true\"]\n";
    check(
        &format!("[[command]]\nname = \"t\"\n{good}timeout = \"soon\"\n"),
        "invalid duration `soon` of `timeout` (expected e.g. \"250ms\", \"5s\", \"2m\")\n  --> sabir.toml:4",
    );
    check_command(
        &format!("{good}timeout = \"0s\""),
        "timeout must be greater than zero\n  --> sabir.toml:4",
    );
    check_command(
        &format!("{good}timeout = \"6m\""),
        "timeout is longer than `call_time` (limit 300s)\n  --> sabir.toml:4\n  hint: set a \
         longer `call_time` in [limits]",
    );
    check(
        &format!("[[command]]\nname = \"t\"\n{good}max_output = \"0B\"\n"),
        "invalid size `0B` of `max_output` (expected e.g. \"64KB\", \"16MB\")\n  --> sabir.toml:4",
    );
    check(
        &format!("[[command]]\nname = \"t\"\n{good}concurrency = 0\n"),
        "invalid number 0 of `concurrency` (expected at least 1)\n  --> sabir.toml:4",
    );
    for codes in ["[]", "[0, 256]", "[-1]"] {
        check_command(
            &format!("{good}success_codes = {codes}"),
            "invalid exit codes (expected at least one, each from 0 to 255)\n  --> sabir.toml:4",
        );
    }
    check(
        &format!("[[command]]\nname = \"t\"\n{good}limits = {{ cpu_time = \"1500ms\" }}\n"),
        "invalid cpu_time `1500ms` (expected whole seconds, at least \"1s\")\n  --> sabir.toml:4",
    );
}

#[test]
fn output_annotations_environment_and_folders_are_checked() {
    let good = "run = [\"true\"]\n";
    check_command(
        &format!("{good}output = \"jsn\""),
        "invalid media type `jsn` (expected e.g. \"image/png\")\n  --> sabir.toml:4\n  hint: use \
         \"text\", \"lines\", \"json\" or a media type",
    );
    check_command(
        &format!("{good}destructive = true\nread_only = true"),
        "`read_only` and `destructive` exclude each other\n  --> sabir.toml:5\n  hint: remove one \
         of them",
    );
    check_command(
        &format!("{good}[command.env]\nA = \"a\"\nSABIR_NO_SUCH = true"),
        "env: `SABIR_NO_SUCH` is not set in the environment of Sabir\n  --> sabir.toml:6\n  hint: \
         set it, or write a value instead of true",
    );
    check_command(
        &format!("{good}env = {{ A = 1 }}"),
        "env: `A` has an invalid value (expected a string or true)\n  --> sabir.toml:4\n  hint: \
         true passes on the variable of Sabir's own environment; { env = \"NAME\" } and { file = \
         \"PATH\" } are references",
    );
    check_command(
        &format!("{good}env = {{ \"A=B\" = \"\" }}"),
        "env: `A=B` is not a valid name of a variable\n  --> sabir.toml:4",
    );
    check_command(
        &format!("{good}cwd = \"plain.txt\""),
        "folder not found: ~/plain.txt\n  --> sabir.toml:4\n  hint: paths are relative to the \
         folder of this file",
    );
    check_command(
        &format!("{good}[command.sandbox]\nread = [\n  \".\",\n  \"nowhere\",\n]"),
        "sandbox: file or folder not found: ~/nowhere\n  --> sabir.toml:7\n  hint: paths are \
         relative to the \
         folder of this file",
    );
}

#[test]
fn unknown_and_missing_keys_are_reported() {
    let folder = folder_with("[[command]]\nname = \"t\"\nruns = [\"true\"]\n");
    let told = seen(&sabir(folder.path(), &["check"]));
    assert!(told.contains("error: [[command]]: unknown key `runs`\n  --> sabir.toml:3"), "{told}");
    let told = seen(&sabir(folder_with("\n[[command]]\nname = \"t\"\n").path(), &["check"]));
    assert!(told.contains("[[command]]: `run` is missing\n  --> sabir.toml:2"), "{told}");
}

#[test]
fn errors_of_the_registry_are_reported_with_their_place() {
    check(
        "[[command]]\nname = \"a b\"\nrun = [\"true\"]\n",
        "tool `a b`: a name is made of letters, digits, `_`, `-` and `.`\n  --> sabir.toml:2\n  \
         hint: write e.g. `name = \"a_b\"`",
    );
    let twice = "[[command]]\nrun = [\"true\"]\nname = \"a\"\n".repeat(2);
    let hint = "\n  hint: rename one of them";
    check(&twice, &format!("there is a tool `a` already (from tool a)\n  --> sabir.toml:6{hint}"));
    let twice = "[[prompt]]\ntext = \"x\"\nname = \"a\"\n".repeat(2);
    check(
        &twice,
        &format!("there is a prompt `a` already (from prompt a)\n  --> sabir.toml:6{hint}"),
    );
}

#[test]
fn prompts_are_checked_with_their_place() {
    let prompt = |rest: &str| format!("[[prompt]]\nname = \"p\"\n{rest}\n");
    let told = |what: &str| format!("prompt `p`: {what}");
    let add = "add e.g. `text = \"Explain {topic}\"`";
    let both = "text = \"a\"\nmessages = [{ text = \"b\" }]";
    for (neither, hint) in [("", add), (both, "remove one of them"), ("messages = []", add)] {
        let expected = "expected either `text` or `messages`\n  --> sabir.toml:2\n  hint: ";
        check(&prompt(neither), &told(&format!("{expected}{hint}")));
    }
    check(
        &prompt("text = \"{x}\""),
        &told(
            "text: unknown argument `x`\n  --> sabir.toml:3\n  hint: add it: input = { x = \"string\" }",
        ),
    );
    check(
        &prompt(
            "input = { x = \"string\" }\nmessages = [\n  { text = \"a\" },\n  { text = \"{y}{x}\" \
             },\n]",
        ),
        &told(
            "messages[1].text: unknown argument `y`\n  --> sabir.toml:6\n  hint: did you mean \
             `x`?",
        ),
    );
    check(
        &prompt("input = { x = \"number\" }\ntext = \"{x}\""),
        &told(
            "input.x: must be of type string in a prompt\n  --> sabir.toml:3\n  hint: use \
             \"string\", \"string?\" or a list of choices",
        ),
    );
    check(
        &prompt("input = { x = \"string\" }\ntext = \"a\""),
        &told("input.x: is not used\n  --> sabir.toml:3\n  hint: use `{x}` in a `text`"),
    );
    check(
        &prompt("messages = [\n  { role = \"system\", text = \"a\" },\n]"),
        &told(
            "messages[0]: unknown role `system` (expected `user` or `assistant`)\n  --> \
             sabir.toml:4",
        ),
    );
    check(
        &prompt("[[prompt.messages]]\nfile = \"nowhere.md\""),
        &told(
            "cannot read ~/nowhere.md: No such file or directory (os error 2)\n  --> \
             sabir.toml:4\n  hint: paths are relative to the folder of this file",
        ),
    );
    check(
        &prompt("[[prompt.messages]]\ntext = \"a\"\nuri = \"x:y\""),
        &told(
            "messages[0]: expected either `text` or `file`\n  --> sabir.toml:3\n  hint: \
             `mime_type` and `uri` are for files only",
        ),
    );
}

#[test]
fn resources_are_checked_with_their_place() {
    check(
        "[[resource]]\nuri = \"motto\"\ntext = \"a\"\n",
        "invalid URI `motto` of `uri` (expected e.g. \"text://motto\")\n  --> sabir.toml:2",
    );
    for neither in ["", "text = \"a\"\nfile = \"plain.txt\"\n"] {
        check(
            &format!("[[resource]]\nuri = \"a:b\"\n{neither}"),
            "resource `a:b`: expected either `text` or `file`\n  --> sabir.toml:2",
        );
    }
    check(
        "[[resource]]\nuri = \"a:b\"\nfile = \".\"\n",
        "resource `a:b`: ~ is not a file\n  --> sabir.toml:3\n  hint: paths are relative to the \
         folder of this file",
    );
}
