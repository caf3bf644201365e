//! `sabir import`: the servers of clients as `[[upstream]]` entries.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::install::files;
use crate::clients::{Client, ConfigFile, Places, Server};
use crate::config;
use crate::report::{Failure, print_text, say};

pub(crate) fn run(client: Option<Client>) -> Result<(), Failure> {
    let places = Places::of_this_user()?;
    let mut written = String::new();
    let mut names = BTreeSet::new();
    for (owner, _, path) in files(&places) {
        if client.is_some_and(|client| client != owner) {
            continue;
        }
        let file = ConfigFile::read(owner, path)?;
        for server in file.servers()? {
            let origin = format!("{} ({})", file.path().display(), owner.name());
            if server.is_ours() {
                say(&format!("skipped `{}` of {origin}: it is Sabir", server.name));
                continue;
            }
            let mut name = config::plain(&server.name);
            while !names.insert(name.clone()) {
                name += "-2";
            }
            match upstream(&name, &server) {
                Some(Upstream { text, variables }) => {
                    say(&format!("imported `{name}` of {origin}"));
                    for variable in variables {
                        say(&format!(
                            "  set {variable}: its value was in the file and is not copied"
                        ));
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

struct Upstream {
    text: String,
    /// Variables whose values were written in the file.
    variables: Vec<String>,
}

fn upstream(name: &str, server: &Server) -> Option<Upstream> {
    let mut table = toml::Table::new();
    let mut variables = Vec::new();
    table.insert("name".to_owned(), name.into());
    if let Some(url) = server.url() {
        table.insert("url".to_owned(), reference(url).into());
        let mut headers = toml::Table::new();
        for (header, value) in members(&server.value, &["headers", "http_headers"]) {
            let value = secret(name, &header, &value, &mut variables);
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
        let line: Vec<_> = server.line()?.iter().map(|word| reference(word)).collect();
        table.insert("run".to_owned(), line.into());
        if let Some(cwd) = server.value["cwd"].as_str() {
            table.insert("cwd".to_owned(), reference(cwd).into());
        }
        let mut env = toml::Table::new();
        for (variable, value) in members(&server.value, &["env", "envs", "environment"]) {
            let value = secret("", &variable, &value, &mut variables);
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
    Some(Upstream { text: format!("[[upstream]]\n{}", lines.collect::<String>()), variables })
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

/// A value that looks like a secret becomes a reference to a variable.
fn secret(server: &str, key: &str, value: &str, variables: &mut Vec<String>) -> String {
    let value = reference(value);
    let lower = key.to_ascii_lowercase();
    let words =
        ["key", "token", "secret", "password", "passwd", "credential", "auth", "cookie", "pat"];
    let is_secret = words.iter().any(|word| {
        lower.split(['_', '-', '.']).any(|part| part.ends_with(word) || part.starts_with("auth"))
    });
    if !is_secret || value.contains("${") || value.is_empty() {
        return value;
    }
    let variable = match server {
        "" => key.to_owned(),
        server => format!("{server}_{key}")
            .to_uppercase()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
    };
    variables.push(variable.clone());
    match value.split_once(' ') {
        Some((scheme, _)) if ["Bearer", "Basic", "token"].contains(&scheme) => {
            format!("{scheme} ${{{variable}}}")
        }
        _ => format!("${{{variable}}}"),
    }
}

/// References to variables, as `${NAME}`: clients also write `${env:NAME}`, `${input:name}` and
/// `{env:NAME}`.
fn reference(value: &str) -> String {
    let value = value.replace("${env:", "${").replace("{env:", "${");
    let Some((before, after)) = value.split_once("${input:") else { return value };
    let (id, rest) = after.split_once('}').unwrap_or((after, ""));
    let variable = id.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("{before}${{{variable}}}{}", reference(rest))
}
