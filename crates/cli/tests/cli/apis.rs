//! HTTP APIs and requests as tools, through the real binary and a real server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::client::{Client, text};
use crate::{folder_with, sabir, seen};

/// A server that answers each request with its line and its body, as JSON.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_ascii_lowercase()),
            }
        }
        let header =
            |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let mut body = vec![0; header("content-length:").map_or(0, |n| n.parse().unwrap())];
        reader.read_exact(&mut body).ok()?;
        let said = json!({
            "line": lines[0].trim_end_matches(" http/1.1"),
            "type": header("content-type:"),
            "secret": header("authorization:"),
            "access_token": "issued",
            "body": String::from_utf8_lossy(&body),
        });
        let said = said.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            said.len()
        );
        stream.write_all((head + &said).as_bytes()).ok()?;
    }
}

#[track_caller]
fn check(file: &str, expected: &str) {
    let folder = folder_with(file);
    assert_eq!(seen(&sabir(folder.path(), &["check"])), expected.trim());
}

#[test]
fn a_request_is_a_tool() {
    let url = echo();
    let mut client = Client::start(&format!(
        r#"
[[http]]
name = "order"
method = "PUT"
url = "{url}/shops/{{shop}}?fast={{fast?}}"
headers = {{ X-A = "b" }}
body = {{ json = {{ n = "{{n}}", text = "<{{n}}>", absent = "{{none?}}" }} }}
input = {{ shop = "string", n = "number", fast = "boolean?", none = "string?" }}

[[http]]
name = "all"
url = "{url}/all"
body = "json"
input = {{ a = "string" }}
select = "body"

[[http]]
name = "form"
url = "{url}/form"
body = {{ form = {{ a = "{{a}}", b = "x y" }} }}
input = {{ a = "string[]" }}
select = "/body"

[[http]]
name = "picture"
url = "{url}/picture"
output = "image"
"#
    ));
    client.initialize();
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(
        tools[0]["annotations"],
        json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true })
    );
    let call = |client: &mut Client, name: &str, arguments: Value| {
        client.ask("tools/call", json!({ "name": name, "arguments": arguments }))["result"].clone()
    };
    let reply = call(&mut client, "order", json!({ "shop": "a/b", "n": 1.5, "fast": true }));
    let said: Value = serde_json::from_str(text(&reply)).unwrap();
    assert_eq!(said["line"], "put /shops/a%2fb?fast=true");
    assert_eq!(said["body"], r#"{"n":1.5,"text":"<1.5>"}"#);
    assert_eq!(text(&call(&mut client, "all", json!({ "a": "é" }))), r#""{\"a\":\"é\"}""#);
    assert_eq!(
        text(&call(&mut client, "form", json!({ "a": ["1", "&"] }))),
        r#""a=1&a=%26&b=x%20y""#
    );
    let picture = call(&mut client, "picture", json!({}));
    assert_eq!((text(&picture), &picture["isError"]), ("the answer is not an image", &json!(true)));
}

#[test]
fn requests_have_two_names_as_one_of_them_is_a_section_too() {
    let request = |word: &str, name: &str| {
        format!("[[{word}]]\nname = \"{name}\"\nurl = \"https://x.test/\"\n")
    };
    let listed = |file: &str| seen(&sabir(folder_with(file).path(), &["check"]));
    let both = request("http", "a") + &request("request", "b") + &request("http", "c");
    assert!(listed(&both).contains("tools: b, a, c\n"), "{}", listed(&both));
    let section = "[http]\nendpoint = \"/x\"\n";
    let beside = listed(&(section.to_owned() + &request("request", "b")));
    assert!(beside.contains("tools: b\n"), "{beside}");
    for file in [section.to_owned() + &request("http", "a"), request("http", "a") + section] {
        let shown = listed(&file);
        let hint = "hint: a file with `[http]` writes its requests as `[[request]]`";
        assert!(shown.starts_with("exit 3") && shown.contains(hint), "{shown}");
    }
    check(
        "[[http]]\nname = \"a\"\nmethods = \"GET\"\n",
        "exit 3\nstderr:\nerror: [[http]]: `url` is missing\n  --> sabir.toml:1\n  hint: add e.g. `url = \"https://weather.example.com/v1/{city}\"`\nerror: [[http]]: unknown key `methods`\n  --> sabir.toml:3\n  hint: did you mean `method`?",
    );
    check(
        "[http]\nname = \"a\"\n",
        "exit 3\nstderr:\nerror: [http]: unknown key `name`\n  --> sabir.toml:2\n  hint: a request as a tool begins with `[[http]]`",
    );
}

#[test]
fn an_api_is_offered_with_credentials_from_the_environment() {
    let url = echo();
    let folder = folder_with(&format!(
        "[[openapi]]\nname = \"x\"\npath = \"api.yaml\"\nbase_url = \"{url}/v1\"\nmethods = [\"GET\", \"POST\"]\n\
         exclude = {{ operations = [\"hidden*\"] }}\nrename = {{ \"POST /b\" = \"make\" }}\n\
         auth = [{{ type = \"bearer\", file = \"key\" }}]\n"
    ));
    let api = "openapi: 3.0.0\nservers: [{url: 'https://elsewhere.test'}]\npaths:\n  /a/{id}:\n    get: {operationId: a/get}\n    delete: {operationId: gone}\n  /b:\n    get: {operationId: hiddenOne}\n    post: {requestBody: {required: true, content: {application/json: {schema: {properties: {n: {type: integer}}}}}}}\n";
    std::fs::write(folder.path().join("api.yaml"), api).unwrap();
    std::fs::write(folder.path().join("key"), "s3cret\n").unwrap();
    let shown = seen(&sabir(folder.path(), &["openapi", "sabir.toml"]));
    let expected = "exit 0\nstdout:\n\
        tool     operation    arguments  bytes\n\
        x_a_get  GET /a/{id}  id           105\n\
        make     POST /b      n             95\n\
        \n\
        left out, excluded by operation hiddenOne: 1\n  GET /b\n\
        \n\
        left out, method DELETE is not in `methods`: 1\n  DELETE /a/{id}";
    let digits = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    assert_eq!(digits(&shown), digits(expected), "{shown}");
    let mut client = Client::start_in(folder);
    client.initialize();
    let reply = client.ask("tools/call", json!({ "name": "make", "arguments": { "n": 1 } }));
    let said: Value = serde_json::from_str(text(&reply["result"])).unwrap();
    assert_eq!(said["line"], "post /v1/b");
    assert_eq!(said["secret"], "bearer s3cret");
    assert_eq!(said["body"], "{\"n\":1}");
}

#[test]
fn a_token_is_got_with_client_credentials() {
    let (api, issuer) = (echo(), echo());
    let folder = folder_with(&format!(
        "[[http]]\nname = \"r\"\nurl = \"{api}/\"\n\
         auth = [{{ type = \"oauth2\", token_url = \"{issuer}/token\", client_id = \"me\", env = \"KEY\" }}]\n"
    ));
    let mut client = Client::start_with(folder, &[("KEY", "s3cret")]);
    client.initialize();
    let reply = client.ask("tools/call", json!({ "name": "r", "arguments": {} }));
    let said: Value = serde_json::from_str(text(&reply["result"])).unwrap();
    assert_eq!(said["secret"], "bearer issued");
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let request = |rest: &str| format!("[[http]]\nname = \"r\"\n{rest}\n");
    check(
        &request("url = \"https://{host}/\"\ninput = { host = \"string\" }"),
        "exit 3\nstderr:\nerror: request `r`: url: the host must be a name without placeholders\n  --> sabir.toml:3\n  hint: write e.g. `url = \"https://api.example.com/v1/{id}?q={query?}\"`",
    );
    check(
        &request("url = \"https://x.test/{id}\""),
        "exit 3\nstderr:\nerror: request `r`: url: unknown argument `id`\n  --> sabir.toml:3\n  hint: add it: input = { id = \"string\" }",
    );
    check(
        &request("url = \"https://x.test/\"\nbody = { json = 1, text = \"a\" }"),
        "exit 3\nstderr:\nerror: request `r`: body: expected \"json\", or a table with one of `json`, `form`, `text` and `file`, e.g. { json = { name = \"{name}\" } }\n  --> sabir.toml:4",
    );
    check(
        &request("url = \"https://x.test/\"\nauth = [{ type = \"bearer\" }]"),
        "exit 3\nstderr:\nerror: request `r`: auth: expected `env` or `file`, which refer to the secret\n  --> sabir.toml:4",
    );
    check(
        &request("url = \"https://x.test/\"\nselect = \"a[\""),
        "exit 3\nstderr:\nerror: request `r`: select: Parse error: Expected number, ':', or '*' -- found Eof (line 0, column 2)\n  --> sabir.toml:4\n  hint: a JSON Pointer starts with `/`, anything else is JMESPath",
    );
    let api = |rest: &str| format!("[[openapi]]\nname = \"x\"\n{rest}\n");
    check(
        &api(""),
        "exit 3\nstderr:\nerror: openapi `x`: expected either `path` or `url` of a description\n  --> sabir.toml:2\n  hint: add e.g. `path = \"openapi.yaml\"`, or `url = \"https://…/openapi.json\"`",
    );
    check(
        &api("url = \"https://x.test/api\"\nmethods = [\"FETCH\"]"),
        "exit 3\nstderr:\nerror: invalid method `FETCH` of `methods` (expected e.g. \"GET\", \"POST\", \"*\" for all)\n  --> sabir.toml:4",
    );
    check(
        &request("url = \"https://x.test/\"\nauth = [{ type = \"login\", client_id = \"a\" }]"),
        "exit 3\nstderr:\nerror: request `r`: auth: a login needs an authorization server (expected `issuer`, or `authorization_url` and `token_url`)\n  --> sabir.toml:4",
    );
    check(
        &api(
            "url = \"https://x.test/api\"\nauth = [{ type = \"login\", issuer = \"https://as.test\" }]",
        ),
        "exit 3\nstderr:\nerror: openapi `x`: auth: a login needs `base_url`, where the tokens are sent\n  --> sabir.toml:4",
    );
    let folder = folder_with(&api("path = \"api.txt\""));
    std::fs::write(folder.path().join("api.txt"), "hello").unwrap();
    let shown = seen(&sabir(folder.path(), &["check"]));
    assert!(
        shown.starts_with("exit 1\nstderr:\nerror: openapi x: cannot read the description /"),
        "{shown}"
    );
    assert!(shown.contains("/api.txt: not an OpenAPI description"), "{shown}");
}
