//! `sabir install` and `sabir uninstall`: put Sabir into a client, and take it out again.

use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum as _;
use serde_json::{Value, json};

use crate::args::{Install, Uninstall};
use crate::clients::{Client, ConfigFile, Entry, Format, Places, Scope, Server};
use crate::config;
use crate::report::{Failure, print_text, say};
use crate::shell;

pub(crate) fn install(args: &Install) -> Result<(), Failure> {
    let places = Places::of_this_user()?;
    let client = match args.client {
        Some(client) if !args.list => client,
        _ => return list(&places),
    };
    let target = Target::read(args.target.as_deref(), args.name.as_deref())?;
    let entry = target.entry(args.token_env.as_deref())?;
    let value = client
        .value(&target.name, &entry)
        .map_err(|(what, hint)| Failure::Other { what, hint: Some(hint) })?;
    let file = file_of(client, args.scope, &places)?;
    let path = file.path().display().to_string();
    if args.print {
        say(&format!("# {path}"));
        print_text(&snippet(client, &target.name, &value)?);
        return Ok(());
    }
    let known = file.servers()?.into_iter().find(|server| server.name == target.name);
    let Some(known) = known else {
        add(client, args.scope, &target.name, &entry, &value, &file)?;
        say(&format!("added `{}` to {path}", target.name));
        say(&format!(
            "  restart {} to use it; `sabir uninstall {} {}` removes it",
            client.name(),
            client.name(),
            target.name
        ));
        return Ok(());
    };
    let is_same =
        (known.is_ours() || known.url().is_some()) && known.served() == Some(target.served());
    let (value, done) = match is_same {
        true => (known.updated(&value), "updated"),
        false if args.force => (value, "replaced"),
        false => {
            return Err(Failure::Other {
                what: format!("{path} has another server `{}` already", target.name),
                hint: Some("choose a --name, or replace it with --force"),
            });
        }
    };
    if known.value == value {
        say(&format!("`{}` is in {path} already", target.name));
        return Ok(());
    }
    file.add(&target.name, &value)?;
    say(&format!("{done} `{}` in {path}; restart {} to use it", target.name, client.name()));
    Ok(())
}

/// Adds a new entry. The client's own command refuses a name that is taken.
fn add(
    client: Client,
    scope: Scope,
    name: &str,
    entry: &Entry,
    value: &Value,
    file: &ConfigFile,
) -> Result<(), Failure> {
    if let Some(own) = client.add_command(scope, name, entry) {
        file.back_up()?;
        if run(&own) {
            return Ok(());
        }
    }
    file.add(name, value)
}

pub(crate) fn uninstall(args: &Uninstall) -> Result<(), Failure> {
    let places = Places::of_this_user()?;
    let file = file_of(args.client, args.scope, &places)?;
    let mut servers = file.servers()?;
    servers.extend(places.local_servers(&file, args.scope));
    let server = chosen(args.name.as_deref(), &servers).map_err(|what| Failure::Other {
        what: format!("{}: {what}", file.path().display()),
        hint: None,
    })?;
    let own = args.client.remove_command(args.scope, &server.name);
    let own = own.filter(|_| server.folder.is_none());
    let path = file.path().display().to_string();
    if own.is_some_and(|own| run(&own)) {
        file.restore()?;
    } else {
        file.remove(server)?;
    }
    say(&format!("removed `{}` from {path}", server.name));
    Ok(())
}

/// The server of this name, or the only one that runs Sabir.
fn chosen<'s>(name: Option<&str>, servers: &'s [Server]) -> Result<&'s Server, String> {
    let ours: Vec<_> = servers.iter().filter(|server| server.is_ours()).collect();
    let named = |servers: &[&Server]| {
        let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        names.join(", ")
    };
    let all: Vec<_> = servers.iter().collect();
    match (name, &ours[..]) {
        (Some(name), _) => {
            servers.iter().find(|server| server.name == name).ok_or_else(|| match &all[..] {
                [] => format!("unknown server `{name}` (no server is configured)"),
                all => format!("unknown server `{name}` (expected one of {})", named(all)),
            })
        }
        (None, [only]) => Ok(only),
        (None, []) if all.is_empty() => Err("there are no servers".to_owned()),
        // A URL may be Sabir's, or not.
        (None, []) => {
            Err(format!("no server runs Sabir (name the one to remove: {})", named(&all)))
        }
        (None, several) => {
            Err(format!("several servers run Sabir (name one of {})", named(several)))
        }
    }
}

/// Prints where Sabir is installed. A URL may be Sabir's, or not.
fn list(places: &Places) -> Result<(), Failure> {
    let mut found = false;
    for (client, scope, path) in files(places) {
        let (file, servers) = match servers_of(client, scope, path, places) {
            Ok(read) => read,
            // One broken file does not keep the others from being read.
            Err(failure) => {
                say(&format!("skipped {failure}"));
                continue;
            }
        };
        for server in servers {
            let line = match server.url() {
                Some(url) => format!("{url} (may not be Sabir)"),
                None if server.is_ours() => {
                    shell::line(server.line().unwrap_or_default().iter().map(String::as_str))
                }
                None => continue,
            };
            found = true;
            print_text(&format!(
                "{} ({}) {}: {line}\n  {}\n",
                client.name(),
                server.scope_word(scope),
                server.name,
                file.path().display()
            ));
        }
    }
    if !found {
        let names: Vec<_> = Client::value_variants().iter().map(|client| client.name()).collect();
        say("Sabir is in no client; `sabir install CLIENT` adds it");
        say(&format!("  clients: {}", names.join(", ")));
    }
    Ok(())
}

/// A file and its servers, with those of the local scope.
pub(super) fn servers_of(
    client: Client,
    scope: Scope,
    path: PathBuf,
    places: &Places,
) -> Result<(ConfigFile, Vec<Server>), Failure> {
    let file = ConfigFile::read(client, path)?;
    let mut servers = file.servers()?;
    servers.extend(places.local_servers(&file, scope));
    Ok((file, servers))
}

/// The files of all clients, whether they exist or not.
pub(super) fn files(places: &Places) -> impl Iterator<Item = (Client, Scope, PathBuf)> + '_ {
    Client::value_variants().iter().flat_map(move |client| {
        let user = client.file(Scope::User, places);
        // In the home folder, the file of the project may be that of the user.
        let project =
            client.file(Scope::Project, places).filter(|file| Some(file) != user.as_ref());
        let files = [(Scope::User, user), (Scope::Project, project)];
        files.into_iter().filter_map(|(scope, file)| Some((*client, scope, file?)))
    })
}

fn file_of(client: Client, scope: Scope, places: &Places) -> Result<ConfigFile, Failure> {
    let path = client.file(scope, places).ok_or_else(|| Failure::Other {
        what: format!("{} has no configuration for a project", client.name()),
        hint: Some("use --scope user"),
    })?;
    ConfigFile::read(client, path)
}

/// What a file with only this entry contains.
fn snippet(client: Client, name: &str, value: &Value) -> Result<String, Failure> {
    match client.format() {
        Format::Json => Ok(format!("{:#}\n", json!({ client.key(): { name: value } }))),
        _ => client.with("", name, value).map_err(|error| Failure::new(error.to_string())),
    }
}

/// Runs the client's own command. `false`: it is not installed, or it failed.
fn run(words: &[String]) -> bool {
    let status = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// What is installed: a URL, or a path that is served on stdio.
struct Target {
    name: String,
    what: What,
}

enum What {
    Url(String),
    Path(String),
}

impl Target {
    fn read(target: Option<&str>, name: Option<&str>) -> Result<Self, Failure> {
        if let Some((scheme, _)) = target.and_then(|target| target.split_once("://")) {
            let url = target.unwrap_or_default();
            let host = checked_host(url, scheme)?;
            let name = name.map_or(host, str::to_owned);
            return Ok(Self { name, what: What::Url(url.to_owned()) });
        }
        // A client that cannot start the server says little; so the mistakes are reported now.
        let path = Path::new(target.unwrap_or("."));
        let settings = config::read(Some(path), false)?;
        let name = name.map_or_else(|| config::plain(&settings.engine.server.name), str::to_owned);
        // The folder above a link is not the one that is written before `..`.
        let path = match path.components().any(|part| part == Component::ParentDir) {
            true => path.canonicalize()?,
            false => std::path::absolute(path)?.components().collect(),
        };
        let path = path.to_str().ok_or_else(|| {
            Failure::new(format!("{} is not UTF-8, which clients expect", path.display()))
        })?;
        Ok(Self { name, what: What::Path(path.to_owned()) })
    }

    fn served(&self) -> String {
        let (What::Url(served) | What::Path(served)) = &self.what;
        served.clone()
    }

    fn entry(&self, token_env: Option<&str>) -> Result<Entry, Failure> {
        Ok(match &self.what {
            What::Url(url) => Entry::Remote(url.clone(), token_env.map(str::to_owned)),
            What::Path(path) => {
                let mut line = sabir()?;
                line.extend(["serve", path, "--stdio"].map(str::to_owned));
                Entry::Local(line)
            }
        })
    }
}

/// The host of a URL, as a name.
fn checked_host(url: &str, scheme: &str) -> Result<String, Failure> {
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        let what = format!("`{scheme}://` is not supported (expected http:// or https://)");
        return Err(Failure::new(what));
    }
    let uri: http::Uri = url.parse().map_err(|_| Failure::new("invalid URL"))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(Failure::Other {
            what: "a password in the URL would be in the client's file".to_owned(),
            hint: Some("name a variable with a token by --token-env"),
        });
    }
    Ok(config::plain(uri.host().unwrap_or_default()))
}

/// How a client starts this program. A copy in a cache of npx or uvx may be gone tomorrow.
fn sabir() -> Result<Vec<String>, Failure> {
    let path = std::env::current_exe()?;
    let is_in = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
    if is_in("_npx") {
        return Ok(["npx", "-y", "sabir"].map(str::to_owned).to_vec());
    }
    if is_in("archive-v0") {
        return Ok(["uvx", "sabir"].map(str::to_owned).to_vec());
    }
    let path = path.to_str().ok_or_else(|| Failure::new("the path of sabir is not UTF-8"))?;
    Ok(vec![path.to_owned()])
}
