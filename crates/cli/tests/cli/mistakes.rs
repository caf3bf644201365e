//! Sixty broken files: each message names the key, its place and what is right, and none speaks of
//! Rust or of the parser.

use std::process::Output;

use crate::{folder_with, sabir};

/// A file, the line of its mistake, and texts that must be in the message.
type Row = (&'static str, usize, &'static [&'static str]);

const COMMAND: &str = "[[command]]\nname = \"t\"\ndescription = \"d\"\n";

/// Sections and keys.
const KEYS: &[Row] = &[
    ("nmae = 1", 1, &["unknown section or key `nmae`"]),
    ("[serve]\nname = \"x\"", 1, &["`serve`", "did you mean `[server]`?"]),
    ("[[commands]]\nname = \"x\"", 1, &["`commands`", "did you mean `[[command]]`?"]),
    ("endpoint = \"/x\"", 1, &["`endpoint` is a key of [http]"]),
    ("[server]\nnmae = \"x\"", 2, &["[server]: unknown key `nmae`", "did you mean `name`?"]),
    ("[server]\ntimeout = \"1s\"", 2, &["`timeout` is a key of [[command]]"]),
    ("[server]\nzzz = 1", 2, &["`zzz`", "the keys are name, version, title"]),
    ("[listen]\nport = 7331", 2, &["unknown key `port`", "`http = \"127.0.0.1:7331\"`"]),
    (
        "[[token]]\nname = \"a\"",
        2,
        &["token `a`: expected either `hash` or `env`", "`sabir token new NAME` prints a token"],
    ),
    ("[[articles]]\nabout = \"a\"", 1, &["[[articles]]: `path` is missing", "`path = \".\"`"]),
    ("[[articles]]\npath = \".\"\nwach = true", 3, &["`wach`", "`watch = true`"]),
    ("[[command]]\nrun = [\"true\"]", 1, &["`name` is missing", "`name = \"disk_usage\"`"]),
    ("[[command]]\nname = \"t\"", 1, &["`run` is missing", "add e.g. `run = ["]),
    ("[[command]]\nname = \"t\"\nrun = [\"true\"]\ncmd = 1", 4, &["`cmd`", "did you mean `run`?"]),
    ("[[command]]\nname = \"t\"\nrun = [\"true\"]\narguments = 1", 4, &["did you mean `input`?"]),
    ("[[command]]\nname = \"t\"\nrun = [\"true\"]\nlimits.mem = 1", 4, &["unknown key `mem`"]),
    ("[[prompt]]\ntext = \"x\"", 1, &["[[prompt]]: `name` is missing", "`name = \"explain\"`"]),
    ("[[resource]]\ntext = \"x\"", 1, &["`uri` is missing", "`uri = \"text://motto\"`"]),
    (
        "[[upstream]]\nname = \"a\"\nrun = [\"true\"]\ncommand = \"npx\"",
        4,
        &["did you mean `run`? Write e.g. `run = [\"npx\", \"-y\""],
    ),
    ("[[upstream]]\nname = \"a\"", 2, &["either `run` or `url`", "`url = \"https://"]),
    (
        "[[upstream]]\nname = \"a\"\nurl = \"https://a.example/mcp\"\nauth = { kind = \"client_credentials\", client_id = \"b\", client_secret_env = \"PATH\" }",
        4,
        &["no `issuer` (expected the authorization server that may see the secret)"],
    ),
    ("[cluster]\nstore = \"x\"", 2, &["`store` is a key of [tasks]; the keys here are "]),
    ("[[limit]]\nper = [\"caller\"]", 1, &["neither `rate` nor `quota`", "`rate = \"10/s\"`"]),
    ("[dialect]\nrevison = \"x\"", 2, &["did you mean `revision`?", "`revision = \"2025-11-25\"`"]),
];

/// Folders and requests.
const SOURCES: &[Row] = &[
    ("[[articles]]\npath = \".\"\nsite = \"a.org\"", 3, &["invalid `site`", "\"https://"]),
    ("[[articles]]\npath = \".\"\nname = \"my docs!\"", 3, &["`my docs!`", "name = \"my_docs\""]),
    ("[[articles]]\npath = \".\"\nmax_chars = \"9k\"", 3, &["`max_chars`", "max_chars = 24000"]),
    (
        "[[articles]]\npath = \".\"\nappearance = \"x\"",
        3,
        &["\"x\" of `appearance`", "\"chatgpt\""],
    ),
    (
        "[[articles]]\npath = \".\"\nweight = 0.5",
        3,
        &["`weight`", "{ path = \"blog\", factor = 0.7 }"],
    ),
    (
        "[[articles]]\npath = \".\"\nweight = [\n  { path = \"a\", factor = -1 },\n]",
        4,
        &["invalid `factor` -1", "0.7"],
    ),
    (
        "[[articles]]\npath = \".\"\ninclude = [\"*.md\"]\nexclude = [\"[a\"]",
        4,
        &["`exclude`: invalid glob", "exclude = [\"docs/**\""],
    ),
    (
        "[[articles]]\npath = \".\"\nembeddings = { url = \"localhost:1\", model = \"m\" }",
        3,
        &["localhost:1", "url = \"http://localhost:11434/v1\""],
    ),
    (
        "[[http]]\nname = \"t\"\nurl = \"https://a.org/\"\nheaders = { \"A b\" = \"c\" }",
        4,
        &["headers: invalid name `A b`", "headers = { Accept = "],
    ),
    (
        "[[http]]\nname = \"t\"\nurl = \"https://a.org/\"\nheaders = { Authorization = \"Bearer x\" }",
        4,
        &["`Authorization` is a secret in the file", "auth = [{ type = \"bearer\", env = "],
    ),
    (
        "[[http]]\nname = \"t\"\nurl = \"https://a.org/\"\nheaders = { X-API-Key = \"x\" }",
        4,
        &["`X-API-Key` is a secret", "in = \"header\", name = \"X-API-Key\""],
    ),
    (
        "[[http]]\nname = \"t\"\nurl = \"ftp://a.org\"",
        3,
        &["starts with https://", "url = \"https://"],
    ),
    ("[[http]]\nname = \"t\"\nurl = \"https://a.org\"\noutput = {}", 4, &["output = \"json\""]),
    ("[[openapi]]\nname = \"t\"", 2, &["either `path` or `url`", "path = \"openapi.yaml\""]),
    ("{\"mcpServers\": {}}", 1, &["this is JSON (expected TOML)", "`[import]`", "`sabir import`"]),
    ("path: docs", 1, &["expected `=` after the key", "`path = \"docs\"`"]),
];

/// Forms of values.
const TYPES: &[Row] = &[
    ("[command]\nname = \"t\"", 1, &["`[command]` in single brackets", "`[[command]]`"]),
    ("[token]\nname = \"t\"", 1, &["expected `[[token]]`"]),
    ("[[server]]\nname = \"t\"", 1, &["`[[server]]` in double brackets", "write `[server]`"]),
    ("[[limits]]\ncalls = 1", 1, &["expected `[limits]`"]),
    ("server = \"x\"", 1, &["invalid value \"x\" of `server` (expected a table)"]),
    ("[server]\nname = 3", 2, &["invalid value 3 of `name` (expected a string", "\"my-server\""]),
    ("[server]\nname = [\"x\"]", 2, &["a list of `name`", "expected a string"]),
    ("[server]\ntitle = true", 2, &["invalid value true of `title`"]),
    ("[listen]\nhttp = 7331", 2, &["7331 of `http`", "`http = \"127.0.0.1:7331\"`"]),
    ("[listen]\nstdio = \"yes\"", 2, &["\"yes\" of `stdio` (expected true or false)"]),
    ("[listen]\nstdio = 1", 2, &["1 of `stdio` (expected true or false)", "`stdio = false`"]),
    ("[http]\norigins = \"*\"", 2, &["`origins` (expected a list)", "`origins = [\"*\"]`"]),
    ("[http]\nretry = 5", 2, &["`retry`", "`retry = \"1s\"`"]),
    ("[http]\nhead_size = 65536", 2, &["`head_size`", "`head_size = \"64KB\"`"]),
    ("[http]\nconnections = \"many\"", 2, &["expected a whole number", "`connections = 10000`"]),
    ("[http]\nsessions = 1.5", 2, &["1.5 of `sessions` (expected a whole number"]),
    ("[limits]\ndepth = -1", 2, &["-1 of `depth` (expected a whole number, 0 or more)"]),
    ("[limits]\ncalls = 99999999999999999999", 2, &["`calls` (expected a whole number"]),
    ("[limits]\ncall_time = 300", 2, &["`call_time = \"5m\"`"]),
    (
        "[dialect]\nflat_server_info = 2024-01-01",
        2,
        &["`flat_server_info` (expected true or false)"],
    ),
    ("[[command]]\nname = \"t\"\nrun = \"echo a b\"", 3, &["`run = [\"echo\", \"a\", \"b\"]`"]),
    ("[[command]]\nname = \"t\"\nrun = [\"true\"]\ntimeout = 30", 4, &["`timeout = \"30s\"`"]),
    (
        "[[command]]\nname = \"t\"\nrun = [\"true\"]\ninput = \"string\"",
        4,
        &["`input` (expected a table)", "input = { path"],
    ),
    (
        "[[command]]\nname = \"t\"\nrun = [\"true\"]\nallow_dash = \"x\"",
        4,
        &["`allow_dash = [\"x\"]`"],
    ),
    (
        "[[command]]\nname = \"t\"\nrun = [\"true\"]\nlimits = { memory = 512 }",
        4,
        &["512 of `memory`", "`memory = \"512MB\"`"],
    ),
    (
        "[[prompt]]\nname = \"p\"\ntext = \"x\"\nmessages = \"hi\"",
        4,
        &["`messages` (expected a list)", "`messages = [{ text = "],
    ),
    ("[clients]\nslow = 5", 2, &["5 of `slow`", "`slow = \"280s\"`"]),
    ("[[prompt]]\nname = 3\ntext = \"x\"", 2, &["3 of `name` (expected a string"]),
];

/// Values.
const VALUES: &[Row] = &[
    ("[listen]\nhttp = \"nowhere\"", 2, &["invalid address `nowhere`", "\"localhost:7331\""]),
    ("[http]\nendpoint = \"mcp\"", 2, &["invalid path `mcp`", "\"/mcp\""]),
    ("[http]\nendpoint = \"/healthz\"", 2, &["the path `/healthz` is taken", "\"/mcp\""]),
    ("[http]\nendpoint = \"/sse\"", 2, &["the path `/sse` is taken"]),
    ("[http]\nold_sse = true\nendpoint = \"/messages\"", 3, &["the path `/messages` is taken"]),
    ("[http]\ntoken_env = \"SABIR_UNSET\"", 2, &["`SABIR_UNSET` is not set", "openssl rand"]),
    ("[limits]\ngrace = \"5\"", 2, &["invalid duration `5`", "\"5s\""]),
    ("[limits]\nmessage_size = \"16mb\"", 2, &["invalid size `16mb`", "\"16MB\""]),
    ("[limits]\ncalls = 0", 2, &["invalid number 0 of `calls` (expected at least 1)"]),
    ("[dialect]\nnull_id = \"x\"", 2, &["\"refuse\" or \"answer\""]),
    ("[[articles]]\npath = \"nowhere\"", 2, &["nowhere", "relative to the folder of this file"]),
    ("[[resource]]\nuri = \"note://{id}\"\ntext = \"x\"", 2, &["braces", "note://%7Bid%7D"]),
    ("[[resource]]\nuri = \"motto\"\ntext = \"x\"", 2, &["invalid URI `motto`", "text://motto"]),
    (
        "[[resource]]\nuri = \"a:b\"\nfile = \"nowhere\"",
        3,
        &["cannot read", "relative to the folder"],
    ),
    ("[[prompt]]\nname = \"p\"", 2, &["expected either `text` or `messages`", "`text = "]),
    (
        "[[command]]\nname = \"bad name\"\nrun = [\"true\"]",
        2,
        &["a name is made of letters", "`name = \"bad_name\"`"],
    ),
    (
        "[[command]]\nname = \"a\"\nrun = [\"true\"]\n[[command]]\nname = \"a\"\nrun = [\"true\"]",
        5,
        &["there is a tool `a` already", "rename one of them"],
    ),
    ("[[prompt]]\nname = \"p\"\ntext = \"{who}\"", 3, &["unknown argument `who`"]),
];

/// The lines after a command's name and description.
const COMMANDS: &[Row] = &[
    (
        "run = [\"sh\", \"-c\", \"grep {x} f\"]\ninput.x = \"string\"",
        4,
        &["`x` would become part of the code that sh runs", "'grep \"$1\" f', \"sh\", \"{x}\""],
    ),
    (
        "run = [\"env\", \"bash\", \"-ec\", \"{x}\"]\ninput.x = \"string\"",
        4,
        &["the code that sh runs"],
    ),
    (
        "run = [\"python3\", \"-c\", \"print({x})\"]\ninput.x = \"string\"",
        4,
        &["'print(sys.argv[1])', \"{x}\""],
    ),
    ("run = [\"perl\", \"-ne\", \"{x}\"]\ninput.x = \"string\"", 4, &["$ARGV[0]"]),
    ("run = [\"./nowhere\"]", 4, &["file not found", "relative to the folder"]),
    ("run = [\"sabir-no-such\"]", 4, &["`sabir-no-such` not found in PATH", "install it"]),
    ("run = [\"echo\", \"{x\"]", 4, &["unclosed `{`", "write `{{`"]),
    (
        "run = [\"echo\", \"{y}\"]\ninput.x = \"string\"",
        4,
        &["unknown argument `y`", "did you mean `x`?"],
    ),
    (
        "run = [\"echo\", \"{x}\"]\ninput.x = \"strnig\"",
        5,
        &["unknown type `strnig`", "did you mean `string`?"],
    ),
    ("run = [\"true\"]\noutput = \"jsn\"", 5, &["invalid media type `jsn`", "\"json\""]),
    ("run = [\"true\"]\nenv.A = 1", 5, &["`A` has an invalid value (expected a string"]),
    ("run = [\"true\"]\ncwd = \"nowhere\"", 5, &["folder not found"]),
];

/// Lines that are not TOML.
const SYNTAX: &[Row] = &[
    (
        "[server]\nname = notes",
        2,
        &["notes of `name` (expected a string in quotes)", "`name = \"notes\"`"],
    ),
    ("[server]\nname: \"notes\"", 2, &["expected `=`", "`name = \"notes\"`"]),
    ("[listen]\nstdio = True", 2, &["True of `stdio` (expected true or false)", "`stdio = true`"]),
    ("[server]\nname =", 2, &["`name` has no value"]),
    ("[server\nname = \"x\"", 1, &["expected `]`"]),
    ("[server]\nname = \"x\"\nname = \"y\"", 3, &["duplicate key"]),
];

/// Words of Rust, of serde or of the parser.
const FORBIDDEN: [&str; 12] = [
    "invalid type",
    "a map",
    "map,",
    "sequence",
    "struct ",
    "usize",
    "u64",
    "i64",
    "Option",
    "Vec<",
    "field",
    "variant",
];

#[test]
fn each_of_the_broken_files_is_explained() {
    let rows = [KEYS, SOURCES, TYPES, VALUES, SYNTAX].concat();
    let rows = rows.into_iter().map(|(file, line, texts)| (file.to_owned(), line, texts));
    let commands =
        COMMANDS.iter().map(|(rest, line, texts)| (format!("{COMMAND}{rest}"), *line, *texts));
    let mut count = 0;
    for (file, line, texts) in rows.chain(commands) {
        count += 1;
        explained(&file, line, texts);
    }
    assert!(count >= 60, "only {count}");
}

#[test]
fn the_consequences_of_a_mistake_are_not_reported() {
    ALONE.iter().for_each(|(file, line, texts)| explained(file, *line, texts));
}

#[test]
fn an_invalid_value_is_reported_with_its_key() {
    NAMED.iter().for_each(|(file, line, texts)| explained(file, *line, texts));
}

#[test]
fn the_sections_of_other_tools_are_known() {
    SECTIONS.iter().for_each(|(file, line, texts)| explained(file, *line, texts));
}

#[test]
fn the_words_of_the_parser_are_replaced() {
    PARSER.iter().for_each(|(file, line, texts)| explained(file, *line, texts));
}

/// Checks that the file has one mistake, and that its message has the texts.
fn explained(file: &str, line: usize, texts: &[&str]) {
    let (code, said) = said(file, &["check"]);
    assert_eq!(code, 3, "{file}\n{said}");
    let excerpt = format!("\n  {line} | {}\n", file.lines().nth(line - 1).unwrap());
    for text in texts.iter().copied().chain([&*format!("--> sabir.toml:{line}\n"), &excerpt]) {
        assert!(said.contains(text), "no {text:?}:\n{file}\n{said}");
    }
    assert!(said.contains('^') && said.contains("hint: ") | said.contains("expected"), "{said}");
    let wrong = FORBIDDEN.iter().find(|word| said.contains(**word));
    assert_eq!(wrong, None, "{file}\n{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{file}\n{said}");
}

#[test]
fn all_mistakes_of_a_file_are_reported_in_its_order() {
    let file = "[server]\nnmae = \"x\"\nversion = 3\n[limits]\ngrace = \"soon\"\ncalls = 0\n\
                [[command]]\nname = \"t\"\nrun = \"true\"\ntimeout = 30\n[[command]]\nname = \"u\"\n\
                run = [\"true\"]\ntimeout = \"0s\"\noutput = \"jsn\"\nenv = { A = 1, B = 2 }\n";
    let (code, said) = said(file, &["check"]);
    let lines: Vec<_> =
        said.lines().filter_map(|line| line.strip_prefix("  --> sabir.toml:")).collect();
    assert_eq!(
        (code, &lines[..]),
        (3, &["2", "3", "5", "6", "9", "10", "14", "15", "16", "16"][..]),
        "{said}"
    );
}

/// A section, and the lines of its mistakes.
const SEVERAL: &[(&str, &[&str])] = &[
    (
        "[[upstream]]\nname = \"a\"\nrun = [\"true\"]\nprefix = \"a b\"\nstart = \"x\"\nscope = \"y\"\n\
         idle_stop = \"z\"\ntimeout = \"z\"\nconcurrency = 0\ncwd = \"nowhere\"\nenv = { A = 1, B = 2 }",
        &["4", "5", "6", "7", "8", "9", "10", "11", "11"],
    ),
    (
        "[[articles]]\npath = \".\"\nname = \"a b\"\nsite = \"x\"\nlanguage = \"xx\"\nmax_chars = 1\n\
         appearance = \"x\"\nnot_found = \"x\"\ncommit = true",
        &["3", "4", "5", "6", "7", "8", "9"],
    ),
    (
        "[[request]]\nname = \"t\"\nurl = \"https://a.org/\"\nmethod = \"GRAB\"\ntimeout = \"x\"\n\
         max_answer = \"x\"\nmax_response = \"x\"\nconcurrency = 0\nselect = \"[\"\noutput = \"jsn\"",
        &["4", "5", "6", "7", "8", "9", "10"],
    ),
    (
        "[[openapi]]\nname = \"t\"\npath = \"nowhere\"\nbase_url = \"x\"\nprefix = \"a b\"\n\
         methods = [\"GRAB\"]\nmax_tools = 0\nmax_answer = \"x\"\ntimeout = \"x\"\nfiles = \"nowhere\"",
        &["3", "4", "5", "6", "7", "8", "9", "10"],
    ),
    (
        "[auth]\nissuer = 3\nleeway = \"x\"\n\
         introspection = { client_id = \"a\", client_secret_env = \"SABIR_UNSET\" }",
        &["2", "3", "4"],
    ),
    ("[[limit]]\nrate = \"x\"\nburst = 0\nper = [\"x\", \"y\"]", &["2", "3", "4", "4"]),
    (
        "[[prompt]]\nname = \"p\"\ninput = { a = \"strnig\" }\nmessages = [\n  { role = \"x\", text = \"a\" },\n  \
         { text = \"{\" },\n  { role = \"user\" },\n]",
        &["3", "5", "6", "7"],
    ),
];

#[test]
fn all_mistakes_of_a_section_are_reported() {
    for (file, expected) in SEVERAL {
        let (_, said) = said(file, &["check"]);
        let lines: Vec<_> =
            said.lines().filter_map(|line| line.strip_prefix("  --> sabir.toml:")).collect();
        assert_eq!(lines, *expected, "{file}\n{said}");
    }
}

/// One mistake, whose consequences are not reported.
const ALONE: &[Row] = &[
    ("[[upstream]]\nname = \"a\"\nrun = \"npx -y x\"", 3, &["`run = [\"npx\", \"-y\", \"x\"]`"]),
    ("[[upstream]]\nname = \"a\"\nurl = 3", 3, &["3 of `url`"]),
    ("[[limit]]\nrate = 10", 2, &["10 of `rate`"]),
    ("[[prompt]]\nname = \"p\"\ntext = 3", 3, &["3 of `text`"]),
    ("[[openapi]]\nname = \"p\"\npath = 3", 3, &["3 of `path`"]),
    ("[[resource]]\nuri = \"a:b\"\ntext = 3", 3, &["3 of `text`"]),
    ("[[token]]\nname = \"a\"\nenv = 3", 3, &["3 of `env`"]),
    ("[[prompt]]\nname = \"p\"\nmessages = [{ text = 3 }]", 3, &["3 of `text`"]),
];

/// Values whose messages name the key.
const NAMED: &[Row] = &[
    ("[limits]\ngrace = \"soon\"", 2, &["invalid duration `soon` of `grace` (expected"]),
    ("[limits]\nmessage_size = \"big\"", 2, &["invalid size `big` of `message_size` (expected"]),
    ("[http]\nrefusals = \"x\"", 2, &["invalid rate `x` of `refusals` (expected"]),
    ("[listen]\nhttp = \"nowhere\"", 2, &["invalid address `nowhere` of `http` (expected"]),
    ("[[openapi]]\nname = \"t\"\nurl = \"x\"", 3, &["invalid URL `x` of `url` (expected"]),
    (
        "[[openapi]]\nname = \"t\"\nurl = \"https://a.org\"\nmethods = [\"GRAB\"]",
        4,
        &["invalid method `GRAB` of `methods` (expected"],
    ),
];

/// Sections of other tools.
const SECTIONS: &[Row] = &[
    ("[[tool]]\nname = \"x\"", 1, &["did you mean `[[command]]`?"]),
    ("[[tools]]\nname = \"x\"", 1, &["did you mean `[[command]]`?"]),
    ("[[folder]]\npath = \".\"", 1, &["did you mean `[[articles]]`?"]),
    ("[docs]\npath = \".\"", 1, &["did you mean `[[articles]]`?"]),
    ("[mcpServers]\nx = 1", 1, &["did you mean `[[upstream]]`?"]),
    ("[mcp]\nx = 1", 1, &["did you mean `[[upstream]]`?"]),
    ("[servers.a]\nx = 1", 1, &["did you mean `[[upstream]]`?"]),
    ("[xyzzy]\nx = 1", 1, &["`sabir init` writes a file with all sections"]),
];

/// Text that the parser does not explain.
const PARSER: &[Row] = &[
    (
        "[[articles]]\npath = \"C:\\temp\\users\"",
        2,
        &["a backslash in double quotes", "`path = 'C:\\temp\\users'`"],
    ),
    ("[server]\nname = “notes”", 2, &["curly quotes", "`name = \"notes\"`"]),
    ("[server]\nname = \"x\"\nname = \"y\"", 3, &["duplicate key `name`"]),
];

/// A server of a JSON file, and texts that must be in the message.
const JSON: &[(&str, &str)] = &[
    (r#""z""#, "server `a`: expected an object, e.g. {"),
    (
        r#"{"command":"x","args":"y"}"#,
        "server `a`: `args`: expected a list of texts, e.g. [\"-y\", \"pkg\"]",
    ),
    (r#"{"command":"x","args":[{}]}"#, "server `a`: `args`: expected a list of texts"),
    (r#"{"command":"x","env":["A"]}"#, "server `a`: `env`: expected an object, e.g. {"),
    (r#"{"command":7}"#, "server `a`: `command`: expected a text"),
    (r#"{"url":7}"#, "server `a`: `url`: expected a text"),
    (r#"{"command":"x","disabled":"y"}"#, "server `a`: `disabled`: expected true or false"),
];

#[test]
fn mistakes_of_a_json_file_are_explained() {
    for (server, expected) in JSON {
        let folder = folder_with("[import]\npath = \"x.json\"\n");
        let json = format!("{{\"mcpServers\": {{\n\"a\": {server}}}}}");
        std::fs::write(folder.path().join("x.json"), json).unwrap();
        for args in [&["check"][..], &["check", "x.json"]] {
            let Output { status, stderr, .. } = sabir(folder.path(), args);
            let said = String::from_utf8(stderr).unwrap();
            assert_eq!(status.code(), Some(3), "{server}: {said}");
            assert!(said.contains(expected) && said.contains("x.json:2"), "{server}: {said}");
            let wrong = FORBIDDEN.iter().find(|word| said.contains(**word));
            assert_eq!(wrong, None, "{server}: {said}");
        }
    }
}

#[test]
fn a_file_in_another_encoding_is_explained() {
    let folder = folder_with("");
    std::fs::write(folder.path().join("sabir.toml"), b"[server]\nname = \"\xe9\"\n").unwrap();
    let Output { status, stderr, .. } = sabir(folder.path(), &["check"]);
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("invalid UTF-8 in line 2") && said.contains("hint: "), "{said}");
}

#[test]
fn the_caret_is_below_the_mistake() {
    let (_, text) = said("[server]\n\tname = \"ä\", 3\n", &["check"]);
    assert!(text.contains("\n  2 |  name = \"ä\", 3\n    |            ^"), "{text}");
    let long = format!("[limits]\ncalls = [{}]\n", "1, ".repeat(500));
    let (_, text) = said(&long, &["check"]);
    assert!(text.lines().all(|line| line.len() < 140), "{text}");
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let file =
        "[[command]]\nname = \"t\"\nrun = [\"head\", \"-n\", \"{n}\"]\ninput.n = \"integer\"\n";
    let (code, said) = said(file, &["check"]);
    assert_eq!(code, 0, "{said}");
    for text in
        ["warning: command `t`: no description", "a negative `n` is refused", "`minimum = 0`"]
    {
        assert!(said.contains(text), "no {text}: {said}");
    }
}

/// The exit code, and the text on standard error.
pub(crate) fn said(file: &str, args: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } = sabir(folder_with(file).path(), args);
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}
