//! Upstreams and APIs that demand a login: of the operator at a terminal, and of each caller on our
//! page.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sabir_client::{Answerer, Answering, Client, HttpTarget};
use sabir_testkit::Provider;
use sabir_wire::types::{ClientCapabilities, Elicit, Question};
use sabir_wire::{Raw, Revision};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{PATIENCE, Relay, TOKENS, config, raw, text};

/// A response, as a browser sees it.
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Gets a page of this machine, without following redirects.
fn get(url: &str, headers: &str) -> Response {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, target) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(host).unwrap();
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), body: body.to_owned() }
}

/// `sabir upstream login`, with a person who agrees as `user`.
fn log_in(folder: &Path, user: &str) -> String {
    log_in_to("notes", folder, user)
}

fn log_in_to(name: &str, folder: &Path, user: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sabir"))
        .args(["upstream", "login", name, "--no-browser"])
        .current_dir(folder)
        .envs(TOKENS)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let link = lines.find(|line| line.contains("http://")).unwrap();
    let agreed = get(&format!("{}&user={user}", link.trim()), "");
    let done = get(agreed.header("location").unwrap(), "");
    assert_eq!(done.status, 200, "{}", done.body);
    let said = lines.collect::<Vec<_>>().join("\n");
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

fn tokens() -> String {
    TOKENS.map(|(env, _)| format!("[[token]]\nname = \"{env}\"\nenv = \"{env}\"\n")).concat()
}

fn configuration(provider: &Provider) -> String {
    format!(
        "{}[[upstream]]\nname = \"notes\"\nmemory = \"none\"\nurl = \"{}\"\nauth = {{ kind = \"oauth\", folder = \
         \"credentials\" }}\n",
        tokens(),
        provider.url
    )
}

/// An API with a description, whose users log in at its issuer.
fn api(provider: &Provider) -> String {
    let origin = provider.api.strip_suffix("/api").unwrap();
    format!(
        "[[openapi]]\nname = \"crm\"\npath = \"crm.json\"\nbase_url = \"{}\"\nauth = [{{ type = \
         \"login\", issuer = \"{origin}\", scopes = [\"notes\"], folder = \"credentials\" }}]\n",
        provider.api
    )
}

/// Two requests to an API, whose users log in at endpoints that the file names.
fn requests(provider: &Provider) -> String {
    let origin = provider.api.strip_suffix("/api").unwrap();
    let request = |name: &str| {
        format!(
            "[[request]]\nname = \"{name}\"\nurl = \"{}/whoami?as={{as?}}\"\nselect = \"user\"\n\
             input = {{ as = \"string?\" }}\nauth = [{{ type = \"login\", client_id = \"sabir\", \
             authorization_url = \"{origin}/authorize\", token_url = \"{origin}/token\", folder = \
             \"credentials\" }}]\n",
            provider.api
        )
    };
    request("first") + &request("second")
}

fn folder_with_api() -> TempDir {
    let folder = TempDir::new().unwrap();
    let query = json!([{ "name": "as", "in": "query", "schema": { "type": "string" } }]);
    let description = json!({
        "openapi": "3.0.0",
        "paths": { "/whoami": { "get": { "operationId": "whoami", "parameters": query } } },
    });
    std::fs::write(folder.path().join("crm.json"), description.to_string()).unwrap();
    folder
}

/// A user with a browser, who opens every link.
#[derive(Debug)]
struct Browser {
    user: &'static str,
    token: &'static str,
    links: Mutex<Vec<String>>,
}

impl Browser {
    fn password(token: &str) -> String {
        format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("me:{token}")))
    }

    /// Sends the token, and confirms its name.
    fn agree(&self, link: &str) -> Response {
        let password = Self::password(self.token);
        let page = get(link, &password);
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(
            page.body.contains(&format!("<b>{}</b>", self.user.to_uppercase())),
            "{}",
            page.body
        );
        let (_, rest) = page.body.split_once("href=\"").unwrap();
        let (path, _) = rest.split_once('"').unwrap();
        let place = format!("{}{path}", &link[..link.find("/connect/").unwrap()]);
        // Another user may have opened that page, and sent the link on.
        let strange = get(&place, &password);
        assert_eq!(strange.status, 403, "another browser: {}", strange.body);
        let cookie = format!("Cookie: {}\r\n", cookie(&page));
        let guessed = get(&format!("{link}?consent=x"), &format!("{password}{cookie}"));
        assert_eq!(guessed.status, 403, "{}", guessed.body);
        assert_eq!(get(&place, &cookie).status, 401, "the token is missing");
        get(&place, &format!("{password}{cookie}"))
    }

    /// Follows a link of our page to its end.
    fn follow(&self, link: &str) -> Response {
        let sent_on = self.agree(link);
        assert_eq!(sent_on.status, 302, "{}", sent_on.body);
        let cookie = cookie(&sent_on);
        let place = sent_on.header("location").unwrap();
        let agreed = get(&format!("{place}&user={}", self.user), "");
        let back = agreed.header("location").unwrap().to_owned();
        assert_eq!(get(&back, "").status, 403, "another browser");
        get(&back, &format!("Cookie: other=1; {cookie}\r\n"))
    }
}

fn cookie(response: &Response) -> String {
    response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

impl Answerer for Browser {
    fn answer(&self, question: Question) -> Answering<'_> {
        let Question::Elicit(Elicit::Url { url, .. }) = question else { panic!("not a link") };
        let done = self.follow(&url);
        assert_eq!(done.status, 200, "{}", done.body);
        self.links.lock().unwrap().push(url);
        Box::pin(async { Ok(Raw::from(json!({ "action": "accept" }))) })
    }
}

fn client(
    relay: &Relay,
    (user, token): (&'static str, &'static str),
    capabilities: ClientCapabilities,
    revision: Revision,
) -> (Client, Arc<Browser>) {
    let target = HttpTarget::new(&*relay.url).unwrap();
    let target = target.with_header("authorization", &format!("Bearer {token}")).unwrap();
    let browser = Arc::new(Browser { user, token, links: Mutex::default() });
    let mut config = config(revision);
    config.capabilities = capabilities;
    (Client::new(target.transport(), config, browser.clone()), browser)
}

async fn who(client: &Client, user: &str) -> String {
    who_by(client, "notes_whoami", user).await
}

async fn who_by(client: &Client, tool: &str, user: &str) -> String {
    let called = client.call_tool(tool, raw(json!({ "as": user }))).await;
    called.map_or_else(|error| error.to_string(), |reply| text(&reply))
}

const ANN: (&str, &str) = ("ann", TOKENS[0].1);
const BOB: (&str, &str) = ("bob", TOKENS[1].1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_caller_logs_in_on_our_page_and_has_credentials_of_his_own() {
    let provider = Provider::start(Duration::from_secs(3600)).await.unwrap();
    let folder = TempDir::new().unwrap();
    let configuration = configuration(&provider);
    std::fs::write(folder.path().join("sabir.toml"), &configuration).unwrap();
    // The operator logs in, so that the tools are known.
    let said = log_in(folder.path(), "operator");
    assert!(said.contains("logged in to `notes` at http://127.0.0.1:"), "{said}");
    let relay = Relay::start_in(folder, &configuration);
    let everything = ClientCapabilities::everything();
    let (ann, first) = client(&relay, ANN, everything.clone(), Revision::NEWEST);
    let (bob, second) = client(&relay, BOB, everything, Revision::NEWEST_LEGACY);
    super::listed(&ann, "notes_whoami").await;
    assert_eq!(provider.issued().calls, 0);
    // Each is asked once, in the way of his client's era, and the call goes through.
    for _ in 0..3 {
        assert_eq!(who(&ann, "ann").await, "ann");
        assert_eq!(who(&bob, "bob").await, "bob");
    }
    assert_eq!(first.links.lock().unwrap().len(), 1);
    assert_eq!(second.links.lock().unwrap().len(), 1);
    let issued = provider.issued();
    assert_eq!((issued.logins, issued.calls, issued.mixed_up), (3, 6, 0), "{issued:?}");
    // A link that was used is over.
    let used = first.links.lock().unwrap()[0].clone();
    assert_eq!(get(&used, &Browser::password(ANN.1)).status, 404);
    // No token lies in the files, in clear.
    for file in std::fs::read_dir(relay.folder.path().join("credentials")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"access-" || part == b"refresh"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_for_its_caller_alone_and_clients_without_pages_get_it_in_words() {
    let provider = Provider::start(Duration::from_secs(3600)).await.unwrap();
    let folder = TempDir::new().unwrap();
    let configuration = configuration(&provider);
    std::fs::write(folder.path().join("sabir.toml"), &configuration).unwrap();
    log_in(folder.path(), "operator");
    let relay = Relay::start_in(folder, &configuration);
    let (ann, browser) = client(&relay, ANN, ClientCapabilities::default(), Revision::NEWEST);
    super::listed(&ann, "notes_whoami").await;
    let words = who(&ann, "ann").await;
    assert!(words.contains("needs the user's own login"), "{words}");
    let link = words.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    // Neither the link alone nor another's token opens it.
    for headers in [String::new(), Browser::password(BOB.1), Browser::password("wrong")] {
        let refused = get(link, &headers);
        assert_eq!(refused.status, 401, "{}", refused.body);
        assert!(refused.header("www-authenticate").unwrap().starts_with("Basic"));
    }
    // A login that was begun and not finished does not make another link.
    assert_eq!(browser.agree(link).status, 302);
    let again = who(&ann, "ann").await;
    assert!(again.contains(link), "{again}");
    let done = browser.follow(link);
    assert!(done.body.contains("You are logged in to notes"), "{}", done.body);
    assert_eq!(who(&ann, "ann").await, "ann");
}

/// Two callers through one process to one upstream, 200 calls at once while tokens expire: a
/// caller's token is never used for the other, and each is renewed once, however many calls wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_calls_at_once_of_two_callers_whose_tokens_expire() {
    const EXPIRIES: usize = 2;
    let provider = Provider::start(Duration::from_secs(4)).await.unwrap();
    let folder = TempDir::new().unwrap();
    let configuration = configuration(&provider);
    std::fs::write(folder.path().join("sabir.toml"), &configuration).unwrap();
    log_in(folder.path(), "operator");
    let relay = Relay::start_in(folder, &configuration);
    let everything = ClientCapabilities::everything();
    let (ann, _) = client(&relay, ANN, everything.clone(), Revision::NEWEST);
    let (bob, _) = client(&relay, BOB, everything, Revision::NEWEST);
    super::listed(&ann, "notes_whoami").await;
    assert_eq!(who(&ann, "ann").await, "ann");
    assert_eq!(who(&bob, "bob").await, "bob");
    let mut calls = JoinSet::new();
    for nth in 0..200 {
        let (client, name) = if nth % 2 == 0 { (&ann, "ann") } else { (&bob, "bob") };
        let (client, provider) = (client.clone(), provider.clone());
        calls.spawn(async move {
            while provider.issued().refreshes_of(name) < EXPIRIES {
                assert_eq!(who(&client, name).await, name);
            }
        });
    }
    tokio::time::timeout(PATIENCE, calls.join_all()).await.unwrap();
    let issued = provider.issued();
    assert!(issued.calls >= 200 * EXPIRIES, "{issued:?}");
    assert_eq!((issued.logins, issued.mixed_up, issued.foreign), (3, 0, 0), "{issued:?}");
    assert_eq!((issued.reused, issued.early), (0, 0), "{issued:?}");
}

/// Authorization servers that read documents about clients get ours, and no registration is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorization_servers_read_who_we_are() {
    let provider = Provider::start(Duration::from_secs(3600)).await.unwrap();
    let folder = TempDir::new().unwrap();
    let configuration = configuration(&provider) + "[connect]\nurl = \"https://sabir.example\"\n";
    std::fs::write(folder.path().join("sabir.toml"), &configuration).unwrap();
    log_in(folder.path(), "operator");
    assert_eq!(provider.issued().registrations, 1, "a program on this machine has no document");
    let relay = Relay::start_in(folder, &configuration);
    let (ann, browser) = client(&relay, ANN, ClientCapabilities::default(), Revision::NEWEST);
    super::listed(&ann, "notes_whoami").await;
    let words = who(&ann, "ann").await;
    let link = words.split_whitespace().find(|word| word.starts_with("https://")).unwrap();
    let here = relay.url.strip_suffix("/mcp").unwrap();
    let sent_on = browser.agree(&link.replace("https://sabir.example", here));
    let place = sent_on.header("location").unwrap();
    let id = "client_id=https%3A%2F%2Fsabir.example%2Fconnect%2Fclient.json";
    assert!(place.contains(id), "{place}");
    assert_eq!(provider.issued().registrations, 1);
    let document = get(&format!("{here}/connect/client.json"), "");
    assert_eq!(document.header("content-type"), Some("application/json"));
    let document: serde_json::Value = serde_json::from_str(&document.body).unwrap();
    assert_eq!(document["client_id"], "https://sabir.example/connect/client.json");
    let redirects =
        ["callback", "proof"].map(|name| format!("https://sabir.example/connect/{name}"));
    assert_eq!(document["redirect_uris"], json!(redirects));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_login_the_operator_is_told_what_to_do() {
    let provider = Provider::start(Duration::from_secs(3600)).await.unwrap();
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), configuration(&provider)).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
        command.args(args).current_dir(folder.path()).envs(TOKENS).stdin(Stdio::null());
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    };
    let checked = run(&["check", "--start"]);
    assert!(checked.contains("a login is needed (run `sabir upstream login notes`)"), "{checked}");
    log_in(folder.path(), "ann");
    let called = run(&["call", ".", "notes_whoami"]);
    assert_eq!(called.trim(), "ann");
    run(&["upstream", "logout", "notes"]);
    let unknown = run(&["upstream", "login", "other"]);
    assert!(unknown.contains("with a login has the name `other`"), "{unknown}");
    assert!(run(&["check", "--start"]).contains("a login is needed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_an_api_has_the_token_of_its_own_caller() {
    let provider = Provider::start(Duration::from_secs(3600)).await.unwrap();
    let relay = Relay::start_in(folder_with_api(), &(tokens() + &api(&provider)));
    let everything = ClientCapabilities::everything();
    let (ann, first) = client(&relay, ANN, everything.clone(), Revision::NEWEST);
    let (bob, second) = client(&relay, BOB, everything, Revision::NEWEST_LEGACY);
    super::listed(&ann, "crm_whoami").await;
    for _ in 0..3 {
        assert_eq!(who_by(&ann, "crm_whoami", "ann").await, r#"{"user":"ann"}"#);
        assert_eq!(who_by(&bob, "crm_whoami", "bob").await, r#"{"user":"bob"}"#);
    }
    let issued = provider.issued();
    // No request had a token that is not of the API's users: the callers' own tokens never arrive.
    let seen = (issued.logins, issued.calls, issued.mixed_up, issued.refused + issued.foreign);
    assert_eq!(seen, (2, 6, 0, 0), "{issued:?}");
    // Tokens that are refused early are renewed without another question.
    provider.revoke();
    for _ in 0..2 {
        assert_eq!(who_by(&bob, "crm_whoami", "bob").await, r#"{"user":"bob"}"#);
        assert_eq!(who_by(&ann, "crm_whoami", "ann").await, r#"{"user":"ann"}"#);
    }
    let issued = provider.issued();
    let refreshes = issued.refreshes_of("ann") + issued.refreshes_of("bob");
    let seen = (issued.logins, refreshes, issued.mixed_up, issued.refused);
    assert_eq!(seen, (2, 2, 0, 2), "{issued:?}");
    assert_eq!(first.links.lock().unwrap().len(), 1);
    assert_eq!(second.links.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_one_host_share_the_login_of_a_user() {
    let provider = Provider::start(Duration::from_secs(3600)).await.unwrap();
    let relay = Relay::start(&(tokens() + &requests(&provider)));
    let (ann, browser) = client(&relay, ANN, ClientCapabilities::default(), Revision::NEWEST);
    let (bob, _) = client(&relay, BOB, ClientCapabilities::default(), Revision::NEWEST);
    let words = who_by(&ann, "first", "ann").await;
    let link = words.split_whitespace().find(|word| word.starts_with("http://"));
    let done = browser.follow(link.unwrap_or_else(|| panic!("{words}")));
    assert!(done.body.contains("You are logged in to 127.0.0.1:"), "{}", done.body);
    assert_eq!(who_by(&ann, "first", "ann").await, r#""ann""#);
    assert_eq!(who_by(&ann, "second", "ann").await, r#""ann""#);
    let others = who_by(&bob, "second", "bob").await;
    assert!(others.contains("needs the user's own login there"), "{others}");
    let issued = provider.issued();
    let seen = (issued.logins, issued.registrations, issued.calls, issued.refused);
    assert_eq!(seen, (1, 0, 2, 0), "{issued:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_at_the_terminal_logs_in_at_an_api() {
    let provider = Provider::start(Duration::from_secs(3600)).await.unwrap();
    let folder = folder_with_api();
    std::fs::write(folder.path().join("sabir.toml"), api(&provider)).unwrap();
    let call = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sabir"));
        command.args(["call", ".", "crm_whoami"]).current_dir(folder.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    };
    let said = call();
    assert!(said.contains("a login is needed (run `sabir upstream login crm`)"), "{said}");
    log_in_to("crm", folder.path(), "ann");
    assert_eq!(call().trim(), r#"{"user":"ann"}"#);
}
