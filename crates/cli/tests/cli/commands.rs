//! `[[command]]`, `[[prompt]]` and `[[resource]]`, as written: every mistake has its place.

use std::os::unix::fs::PermissionsExt as _;

use crate::{folder_with, sabir, seen};

/// Checks a file; `~` in what is expected stands for its folder.
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
fn a_good_file_is_counted() {
    let folder = folder_with(
        r#"
[[command]]
name = "a"
run = ["true"]

[[command]]
name = "b"
run = ["echo", "{x}", ["--limit", "{limit?}"], "{all?--all}", 7]
input = { x = "string", limit = "integer?", all = "boolean?" }

[[prompt]]
name = "p"
text = "Hello"

[[resource]]
uri = "text://r"
text = "r"
"#,
    );
    let expected = "exit 0\nstderr:\n`sabir` offers 2 tools, 1 prompt and 1 resource";
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
fn a_program_must_be_there_and_executable() {
    check_command(
        "run = [\"./nowhere/x\"]",
        "file not found: ~/nowhere/x\n  --> sabir.toml:3\n  hint: paths are relative to the \
         folder of this file",
    );
    check_command(
        "run = [\n  \"./plain.txt\",\n]",
        "~/plain.txt is not an executable file\n  --> sabir.toml:4\n  hint: make it one: chmod +x \
         ~/plain.txt",
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
        "run[1], character 1: unclosed `{`\n  --> sabir.toml:5\n  hint: write `{{` for a literal brace",
    );
    check_command("run = []", "run[0], character 1: missing program\n  --> sabir.toml:3");
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
        "1.5 cannot be an argument\n  --> sabir.toml:3\n  hint: write text, or a list of texts \
         that belong together",
    );
}

#[test]
fn placeholders_and_input_must_agree() {
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
        "input.x: JSON has no such number\n  --> sabir.toml:4",
    );
    check_command(
        "run = [\"echo\"]\ninput = {}\ninput_schema = { type = \"object\" }",
        "there are both `input` and `input_schema`\n  --> sabir.toml:5\n  hint: write one of them",
    );
}

#[test]
fn schemas_are_checked_and_may_stand_in_a_json_file() {
    check_command(
        "run = [\"echo\"]\ninput_schema = { type = \"objekt\" }",
        "input_schema: it must be a JSON Schema object with `\"type\": \"object\"`\n  --> \
         sabir.toml:4",
    );
    check_command(
        "run = [\"echo\"]\ninput_schema = \"plain.txt\"",
        "input_schema: ~/plain.txt is no JSON: expected ident at line 1 column 2\n  --> \
         sabir.toml:4",
    );
    check_command(
        "run = [\"echo\"]\noutput = \"json\"\noutput_schema = \"nowhere.json\"",
        "output_schema: ~/nowhere.json cannot be read: No such file or directory (os error 2)\n  \
         --> sabir.toml:5\n  hint: write a table, or the path of a JSON file",
    );
    check_command(
        "run = [\"echo\"]\noutput_schema = { type = \"object\" }",
        "only JSON has an `output_schema`\n  --> sabir.toml:4\n  hint: write output = \"json\"",
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
        "`soon` is no duration\n  --> sabir.toml:4\n  hint: write it like \"250ms\", \"5s\", \
         \"2m\" or \"1h\"",
    );
    check(
        &format!("[[command]]\nname = \"t\"\n{good}timeout = \"0s\"\n"),
        "no time is not enough for anything\n  --> sabir.toml:4",
    );
    check_command(
        &format!("{good}timeout = \"6m\""),
        "no call may take longer than 300s\n  --> sabir.toml:4\n  hint: write a shorter one, or a \
         longer `call_time` in [limits]",
    );
    check(
        &format!("[[command]]\nname = \"t\"\n{good}max_output = \"0B\"\n"),
        "`0B` is no size\n  --> sabir.toml:4\n  hint: write it like \"64KB\" or \"16MB\"",
    );
    check(
        &format!("[[command]]\nname = \"t\"\n{good}concurrency = 0\n"),
        "0 would let nothing pass\n  --> sabir.toml:4\n  hint: write 1 or more",
    );
    for codes in ["[]", "[0, 256]", "[-1]"] {
        check_command(
            &format!("{good}success_codes = {codes}"),
            "exit codes are numbers from 0 to 255, and at least one\n  --> sabir.toml:4",
        );
    }
    check(
        &format!("[[command]]\nname = \"t\"\n{good}limits = {{ cpu_time = \"1500ms\" }}\n"),
        "processor time is counted in whole seconds\n  --> sabir.toml:4\n  hint: write \"1s\" or \
         more",
    );
}

#[test]
fn output_annotations_environment_and_folders_are_checked() {
    let good = "run = [\"true\"]\n";
    check_command(
        &format!("{good}output = \"jsn\""),
        "invalid media type `jsn` (expected e.g. \"image/png\")\n  --> sabir.toml:4\n  hint: write \"text\", \"lines\", \
         \"json\", or a type such as \"image/png\"",
    );
    check_command(
        &format!("{good}destructive = true\nread_only = true"),
        "what changes nothing cannot be destructive\n  --> sabir.toml:5\n  hint: write one of the \
         two",
    );
    check_command(
        &format!("{good}[command.env]\nA = \"a\"\nSABIR_NO_SUCH = true"),
        "env: `SABIR_NO_SUCH` is not in Sabir's own environment\n  --> sabir.toml:6\n  hint: set \
         it, or write a value here",
    );
    check_command(
        &format!("{good}env = {{ A = 1 }}"),
        "env: `A` must be a text or true\n  --> sabir.toml:4\n  hint: write a text, or true to let \
         Sabir's own variable through",
    );
    check_command(
        &format!("{good}env = {{ \"A=B\" = \"\" }}"),
        "env: `A=B` is no name of a variable\n  --> sabir.toml:4",
    );
    check_command(
        &format!("{good}cwd = \"plain.txt\""),
        "there is no folder ~/plain.txt\n  --> sabir.toml:4\n  hint: paths are relative to the \
         folder of this file",
    );
    check_command(
        &format!("{good}[command.sandbox]\nread = [\n  \".\",\n  \"nowhere\",\n]"),
        "sandbox: there is no ~/nowhere\n  --> sabir.toml:7\n  hint: paths are relative to the \
         folder of this file",
    );
}

#[test]
fn unknown_and_missing_keys_are_named() {
    let folder = folder_with("[[command]]\nname = \"t\"\nruns = [\"true\"]\n");
    let told = seen(&sabir(folder.path(), &["check"]));
    assert!(told.contains("error: unknown field `runs`"), "{told}");
    assert!(told.contains("sabir.toml:3"), "{told}");
    check("\n[[command]]\nname = \"t\"\n", "missing field `run`\n  --> sabir.toml:2");
}

#[test]
fn what_the_registry_refuses_has_its_place_too() {
    check(
        "[[command]]\nname = \"a b\"\nrun = [\"true\"]\n",
        "tool `a b`: a name is made of letters, digits, `_`, `-` and `.`\n  --> sabir.toml:2",
    );
    let twice = "[[command]]\nrun = [\"true\"]\nname = \"a\"\n".repeat(2);
    check(&twice, "there is a tool `a` already\n  --> sabir.toml:6");
    let twice = "[[prompt]]\ntext = \"x\"\nname = \"a\"\n".repeat(2);
    check(&twice, "there is a prompt `a` already\n  --> sabir.toml:6");
}

#[test]
fn prompts_are_checked_with_their_place() {
    let prompt = |rest: &str| format!("[[prompt]]\nname = \"p\"\n{rest}\n");
    let told = |what: &str| format!("prompt `p`: {what}");
    for neither in ["", "text = \"a\"\nmessages = [{ text = \"b\" }]", "messages = []"] {
        check(&prompt(neither), &told("needs either a `text` or `messages`\n  --> sabir.toml:2"));
    }
    check(&prompt("text = \"{x}\""), &told("text: unknown argument `x`\n  --> sabir.toml:3"));
    check(
        &prompt(
            "input = { x = \"string\" }\nmessages = [\n  { text = \"a\" },\n  { text = \"{y}{x}\" },\n]",
        ),
        &told(
            "messages[1].text: unknown argument `y`\n  --> sabir.toml:6\n  hint: did you mean \
             `x`?",
        ),
    );
    check(
        &prompt("input = { x = \"number\" }\ntext = \"{x}\""),
        &told(
            "input.x: must be of type string in a prompt\n  --> sabir.toml:3\n  hint: \
             write \"string\" or \"string?\", or a list of choices",
        ),
    );
    check(
        &prompt("input = { x = \"string\" }\ntext = \"a\""),
        &told("input.x: is not used\n  --> sabir.toml:3\n  hint: use `{x}` in a `text`"),
    );
    check(
        &prompt("messages = [\n  { role = \"system\", text = \"a\" },\n]"),
        &told(
            "messages[0]: nobody has the role `system`\n  --> sabir.toml:4\n  hint: write \
             \"user\" or \"assistant\"",
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
            "messages[0]: needs either a `text` or a `file`\n  --> sabir.toml:3\n  hint: \
             `mime_type` and `uri` are for files",
        ),
    );
}

#[test]
fn resources_are_checked_with_their_place() {
    check(
        "[[resource]]\nuri = \"motto\"\ntext = \"a\"\n",
        "resource `motto`: is no URI\n  --> sabir.toml:2\n  hint: write it like \"text://motto\"",
    );
    for neither in ["", "text = \"a\"\nfile = \"plain.txt\"\n"] {
        check(
            &format!("[[resource]]\nuri = \"a:b\"\n{neither}"),
            "resource `a:b`: needs either a `text` or a `file`\n  --> sabir.toml:2",
        );
    }
    check(
        "[[resource]]\nuri = \"a:b\"\nfile = \".\"\n",
        "resource `a:b`: ~ is not a file\n  --> sabir.toml:3\n  hint: paths are relative to the \
         folder of this file",
    );
}
