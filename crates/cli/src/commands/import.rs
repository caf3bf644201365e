//! `sabir import`: the servers of clients as `[[upstream]]` entries.

mod secrets; // values that are not copied

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use secrets::Secrets;

use super::install::{files, servers_of};
use crate::clients::{Client, Places, Server};
use crate::config;
use crate::report::{Failure, print_text, say};

pub(crate) fn run(client: Option<Client>) -> Result<(), Failure> {
    let places = Places::of_this_user()?;
    let mut written = String::new();
    let mut names = BTreeSet::new();
    let mut secrets = Secrets::default();
    for (owner, scope, path) in files(&places) {
        if client.is_some_and(|client| client != owner) {
            continue;
        }
        let (file, servers) = match servers_of(owner, scope, path, &places) {
            Ok(read) => read,
            // One broken file does not keep the others from being read.
            Err(failure) if client.is_none() => {
                say(&format!("skipped {failure}"));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        for server in servers {
            let origin = format!("{} ({})", file.path().display(), owner.name());
            if server.is_ours() {
                say(&format!("skipped `{}` of {origin}: it is Sabir", server.name));
                continue;
            }
            if server.is_disabled() {
                say(&format!("skipped `{}` of {origin}: it is disabled", server.name));
                continue;
            }
            let plain = config::plain(&server.name);
            let mut numbered = (2..).map(|number| format!("{plain}-{number}"));
            let mut name = plain.clone();
            while !names.insert(name.clone()) {
                name = numbered.next().unwrap_or_default();
            }
            match upstream(&name, &server, &mut secrets) {
                Some(text) => {
                    say(&format!("imported `{name}` of {origin}"));
                    for variable in secrets.found() {
                        say(&format!(
                            "  set {variable}: its value was in the file and is not copied"
                        ));
                    }
                    for variable in secrets.asked() {
                        say(&format!("  set {variable}: the client asks its user for the value"));
                    }
                    if server.value["envFile"].is_string() {
                        say("  `envFile` is not copied: add its variables to `env`");
                    }
                    let _ = write!(written, "# From {origin}\n{text}\n");
                }
                None => {
                    say(&format!("skipped `{}` of {origin}: no program and no URL", server.name))
                }
            }
        }
    }
    if written.is_empty() {
        say("no servers found");
    }
    print_text(&written);
    Ok(())
}

fn upstream(name: &str, server: &Server, secrets: &mut Secrets) -> Option<String> {
    let mut table = toml::Table::new();
    secrets.begin(name);
    table.insert("name".to_owned(), name.into());
    if let Some(url) = server.url() {
        let url = secrets.reference(url);
        table.insert("url".to_owned(), secrets.url(url).into());
        let mut headers = toml::Table::new();
        for (header, value) in members(&server.value, &["headers", "http_headers"]) {
            let value = secrets.header(&header, &value);
            headers.insert(header, value.into());
        }
        if let Some(variable) = server.value["bearer_token_env_var"].as_str() {
            headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}").into());
        }
        for (header, variable) in members(&server.value, &["env_http_headers"]) {
            headers.insert(header, format!("${{{variable}}}").into());
        }
        insert(&mut table, "headers", headers);
    } else {
        let line = server.line()?;
        let before = std::iter::once(None).chain(line.iter().map(|word| Some(word.as_str())));
        let words = line.iter().zip(before).map(|(word, before)| secrets.word(before, word));
        table.insert("run".to_owned(), words.collect::<Vec<_>>().into());
        if let Some(cwd) = server.value["cwd"].as_str() {
            table.insert("cwd".to_owned(), secrets.reference(cwd).into());
        }
        let mut env = toml::Table::new();
        for (variable, value) in members(&server.value, &["env", "envs", "environment"]) {
            let value = secrets.variable(&variable, &value);
            env.insert(variable, value.into());
        }
        for key in ["env_keys", "env_vars"] {
            for variable in server.value[key].as_array().into_iter().flatten() {
                let Some(variable) = variable.as_str() else { continue };
                env.insert(variable.to_owned(), format!("${{{variable}}}").into());
            }
        }
        insert(&mut table, "env", env);
    }
    let lines = table.iter().map(|(key, value)| format!("{key} = {value}\n"));
    Some(format!("[[upstream]]\n{}", lines.collect::<String>()))
}

fn insert(table: &mut toml::Table, key: &str, inner: toml::Table) {
    if !inner.is_empty() {
        table.insert(key.to_owned(), inner.into());
    }
}

/// The texts of these tables.
fn members(value: &Value, keys: &[&str]) -> Vec<(String, String)> {
    let tables = keys.iter().filter_map(|key| value[*key].as_object());
    let texts = tables.flat_map(Map::iter).map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), text)
    });
    texts.collect()
}
