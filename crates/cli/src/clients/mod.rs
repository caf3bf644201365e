//! The configuration files of MCP clients: where they are, what an entry looks like, and how one is
//! added and removed without touching anything else.

mod edit; // adding and removing an entry in a text
mod file; // reading and writing a file safely
mod json; // files in JSON, with or without comments
mod toml; // Codex
mod yaml; // Goose

pub(crate) use edit::EditError;
pub(crate) use file::{ConfigFile, backup_of};

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

/// A client that Sabir can be added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Windsurf,
    Codex,
    Gemini,
    Zed,
    Goose,
    Opencode,
}

/// Whose configuration is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The user's, for all projects
    User,
    /// That of the project in the current folder
    Project,
}

/// A server as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A program that the client starts.
    Local(Vec<String>),
    /// A URL, and the environment variable with its bearer token.
    Remote(String, Option<String>),
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Toml,
    Yaml,
}

impl Client {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The key of the table of servers.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::Goose => "extensions",
            Self::Opencode => "mcp",
            _ => "mcpServers",
        }
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::Goose => Format::Yaml,
            _ => Format::Json,
        }
    }

    /// The file with the servers of a scope. `None`: the client has no such scope.
    pub(crate) fn file(self, scope: Scope, places: &Places) -> Option<PathBuf> {
        let Places { home, config, project } = places;
        let app = if cfg!(target_os = "macos") {
            &home.join("Library/Application Support")
        } else {
            config
        };
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Some(match (self, scope) {
            (Self::ClaudeCode, Scope::User) => {
                variable("CLAUDE_CONFIG_DIR").unwrap_or(home.clone()).join(".claude.json")
            }
            (Self::ClaudeCode, Scope::Project) => project.join(".mcp.json"),
            (Self::ClaudeDesktop, Scope::User) => app.join("Claude/claude_desktop_config.json"),
            (Self::Cursor, Scope::User) => home.join(".cursor/mcp.json"),
            (Self::Cursor, Scope::Project) => project.join(".cursor/mcp.json"),
            (Self::Vscode, Scope::User) => app.join("Code/User/mcp.json"),
            (Self::Vscode, Scope::Project) => project.join(".vscode/mcp.json"),
            (Self::Windsurf, Scope::User) => home.join(".codeium/windsurf/mcp_config.json"),
            (Self::Codex, Scope::User) => {
                variable("CODEX_HOME").unwrap_or(home.join(".codex")).join("config.toml")
            }
            (Self::Codex, Scope::Project) => project.join(".codex/config.toml"),
            (Self::Gemini, Scope::User) => home.join(".gemini/settings.json"),
            (Self::Gemini, Scope::Project) => project.join(".gemini/settings.json"),
            (Self::Zed, Scope::User) => config.join("zed/settings.json"),
            (Self::Zed, Scope::Project) => project.join(".zed/settings.json"),
            (Self::Goose, Scope::User) => config.join("goose/config.yaml"),
            (Self::Opencode, Scope::User) => config.join("opencode/opencode.json"),
            (Self::Opencode, Scope::Project) => project.join("opencode.json"),
            (Self::ClaudeDesktop | Self::Windsurf | Self::Goose, Scope::Project) => return None,
        })
    }

    /// The value of an entry. `Err`: why the client cannot have it, and a hint.
    pub(crate) fn value(self, name: &str, entry: &Entry) -> Result<Value, (String, &'static str)> {
        match entry {
            Entry::Local(line) => Ok(self.local(name, line)),
            Entry::Remote(url, token_env) => self.remote(name, url, token_env.as_deref()),
        }
    }

    fn local(self, name: &str, line: &[String]) -> Value {
        let (command, args) = (&line[0], &line[1..]);
        match self {
            Self::ClaudeCode | Self::Vscode => {
                json!({ "type": "stdio", "command": command, "args": args })
            }
            Self::Goose => json!({
                "enabled": true, "type": "stdio", "name": name, "cmd": command, "args": args,
                "timeout": 300,
            }),
            Self::Opencode => json!({ "type": "local", "command": line, "enabled": true }),
            _ => json!({ "command": command, "args": args }),
        }
    }

    fn remote(
        self,
        name: &str,
        url: &str,
        token_env: Option<&str>,
    ) -> Result<Value, (String, &'static str)> {
        let mut value = match self {
            Self::ClaudeDesktop => {
                let what = "Claude Desktop has no URLs in its file".to_owned();
                return Err((what, "add it in the app, under Settings, Connectors"));
            }
            Self::ClaudeCode | Self::Vscode | Self::Gemini => json!({ "type": "http", "url": url }),
            Self::Windsurf => json!({ "serverUrl": url }),
            Self::Goose => json!({
                "enabled": true, "type": "streamable_http", "name": name, "uri": url,
                "timeout": 300,
            }),
            Self::Opencode => json!({ "type": "remote", "url": url, "enabled": true }),
            Self::Cursor | Self::Codex | Self::Zed => json!({ "url": url }),
        };
        let Some(variable) = token_env else { return Ok(value) };
        let reference = match self {
            Self::Codex => {
                value["bearer_token_env_var"] = variable.into();
                return Ok(value);
            }
            Self::Zed => {
                let what = "Zed does not read environment variables in its file".to_owned();
                return Err((what, "install without --token-env, and add the header by hand"));
            }
            Self::ClaudeCode | Self::Gemini | Self::ClaudeDesktop => format!("${{{variable}}}"),
            Self::Goose => {
                value["env_keys"] = json!([variable]);
                format!("${{{variable}}}")
            }
            Self::Cursor | Self::Vscode | Self::Windsurf => format!("${{env:{variable}}}"),
            Self::Opencode => format!("{{env:{variable}}}"),
        };
        value["headers"] = json!({ "Authorization": format!("Bearer {reference}") });
        Ok(value)
    }

    /// The command of the client itself that adds an entry, if it has one for this scope.
    pub(crate) fn add_command(
        self,
        scope: Scope,
        name: &str,
        entry: &Entry,
    ) -> Option<Vec<String>> {
        let mut words: Vec<String> = Vec::new();
        let mut push = |more: &[&str]| words.extend(more.iter().map(ToString::to_string));
        match (self, entry) {
            (Self::ClaudeCode, Entry::Local(line)) => {
                push(&["claude", "mcp", "add", "--scope", scope.word(), name, "--"]);
                words.extend_from_slice(line);
            }
            (Self::ClaudeCode, Entry::Remote(url, token)) => {
                push(&["claude", "mcp", "add", "--transport", "http", "--scope", scope.word()]);
                push(&[name, url]);
                if let Some(token) = token {
                    push(&["--header", &format!("Authorization: Bearer ${{{token}}}")]);
                }
            }
            (Self::Codex, _) if scope == Scope::Project => return None,
            (Self::Codex, Entry::Local(line)) => {
                push(&["codex", "mcp", "add", name, "--"]);
                words.extend_from_slice(line);
            }
            (Self::Codex, Entry::Remote(url, token)) => {
                push(&["codex", "mcp", "add", name, "--url", url]);
                if let Some(token) = token {
                    push(&["--bearer-token-env-var", token]);
                }
            }
            // `gemini mcp add` reads options of the server as its own, and drops comments.
            _ => return None,
        }
        Some(words)
    }

    /// The command of the client itself that removes an entry.
    pub(crate) fn remove_command(self, scope: Scope, name: &str) -> Option<Vec<String>> {
        let words = match (self, scope) {
            (Self::ClaudeCode, _) => vec!["claude", "mcp", "remove", "--scope", scope.word(), name],
            (Self::Codex, Scope::User) => vec!["codex", "mcp", "remove", name],
            _ => return None,
        };
        Some(words.into_iter().map(str::to_owned).collect())
    }
}

impl Scope {
    /// The scope as people write it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// The folders in which clients keep their files.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    home: PathBuf,
    config: PathBuf,
    project: PathBuf,
}

impl Places {
    /// The folders of this user, and the current folder as the project.
    pub(crate) fn of_this_user() -> std::io::Result<Self> {
        use etcetera::BaseStrategy as _;
        let base = etcetera::choose_base_strategy()
            .map_err(|_| std::io::Error::other("the home folder is unknown (set HOME)"))?;
        // Zed, Goose and opencode use ~/.config on macOS, too.
        let config = match std::env::var_os("XDG_CONFIG_HOME") {
            Some(folder) if Path::new(&folder).is_absolute() => folder.into(),
            _ => base.home_dir().join(".config"),
        };
        let project = std::env::current_dir()?;
        Ok(Self { home: base.home_dir().to_owned(), config, project })
    }

    /// The servers that the user's file of Claude Code has for the current folder only, or for one
    /// above it. Its own command adds them there, unless a scope is named.
    pub(crate) fn local_servers(&self, file: &ConfigFile, scope: Scope) -> Vec<Server> {
        let whole = match (file.client(), scope) {
            (Client::ClaudeCode, Scope::User) => file.parsed(),
            _ => return Vec::new(),
        };
        let folders = self.project.ancestors().filter_map(Path::to_str);
        let of = |folder: &str| {
            let servers = Server::all(&whole["projects"][folder]["mcpServers"]).into_iter();
            let folder = Some(folder.to_owned());
            servers.map(move |server| Server { folder: folder.clone(), ..server })
        };
        folders.flat_map(of).collect()
    }
}

/// A server in the file of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) value: Value,
    /// The only folder in which Claude Code uses it: that of its local scope.
    pub(crate) folder: Option<String>,
}

impl Server {
    /// The servers of a table.
    pub(crate) fn all(table: &Value) -> Vec<Self> {
        let servers = table.as_object().into_iter().flatten();
        servers
            .map(|(name, value)| Self { name: name.clone(), value: value.clone(), folder: None })
            .collect()
    }

    /// The program and its arguments, if it is a local one.
    pub(crate) fn line(&self) -> Option<Vec<String>> {
        // Clients take numbers and booleans for their text.
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(text).collect()
        };
        let command = [&self.value["command"], &self.value["cmd"], &self.value["command"]["path"]];
        let mut line = match command.iter().find_map(|command| command.as_str()) {
            Some(command) => vec![command.to_owned()],
            None => texts(&self.value["command"]),
        };
        let args = [&self.value["args"], &self.value["command"]["args"]];
        line.extend(args.into_iter().flat_map(texts));
        (!line.is_empty()).then_some(line)
    }

    /// Its URL, if it is a remote one.
    pub(crate) fn url(&self) -> Option<&str> {
        let keys = ["url", "serverUrl", "httpUrl", "uri"];
        keys.iter().find_map(|key| self.value[*key].as_str())
    }

    /// The scope as people write it, of a server in the file of this scope.
    pub(crate) fn scope_word(&self, scope: Scope) -> &'static str {
        if self.folder.is_some() { "local" } else { scope.word() }
    }

    /// The URL, or the path that Sabir serves.
    pub(crate) fn served(&self) -> Option<String> {
        let path = || self.line()?.into_iter().skip_while(|word| word != "serve").nth(1);
        self.url().map(str::to_owned).or_else(path)
    }

    /// This entry with what a new one says about starting or reaching the server. Other keys stay.
    pub(crate) fn updated(&self, new: &Value) -> Value {
        let mut value = self.value.clone();
        for (key, new) in new.as_object().into_iter().flatten() {
            match (&mut value[key], new) {
                (Value::Object(old), Value::Object(new)) => old.extend(new.clone()),
                (Value::Array(old), Value::Array(new)) if key == "env_keys" => {
                    old.extend(
                        new.iter().filter(|one| !old.contains(one)).cloned().collect::<Vec<_>>(),
                    );
                }
                (old, _) if !old.is_null() && ["enabled", "timeout"].contains(&key.as_str()) => {}
                (old, new) => *old = new.clone(),
            }
        }
        value
    }

    /// Whether the client does not use it.
    pub(crate) fn is_disabled(&self) -> bool {
        self.value["disabled"] == true || self.value["enabled"] == false
    }

    /// Whether it runs Sabir.
    pub(crate) fn is_ours(&self) -> bool {
        let is_sabir =
            |word: &String| Path::new(word).file_name().is_some_and(|name| name == "sabir");
        self.line().is_some_and(|line| line.iter().take(4).any(is_sabir))
    }
}
