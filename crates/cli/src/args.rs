//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use sabir::Caller;
use sabir_wire::Raw;

use crate::clients::{Client, Scope};
use crate::config::{ADDRESSES, parse_address};
use crate::logging::Log;

/// Serve what you have to every MCP client
#[derive(Debug, Parser)]
#[command(name = "sabir", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) log: Log,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the sources of a sabir.toml, or a folder of articles
    Serve(Serve),
    /// Read a sabir.toml or a folder of articles, and report every problem with its place
    Check(Check),
    /// Bearer tokens for HTTP clients
    #[command(subcommand)]
    Token(Token),
    /// Write a commented sabir.toml into the current folder
    Init,
    /// List the tools, prompts and resources of any MCP server
    List(List),
    /// Call a tool of any MCP server
    #[command(
        after_help = "With a command, the tool comes first: sabir call TOOL KEY=VALUE -- COMMAND"
    )]
    Call(Call),
    /// Print the tools that an API would be offered as, and what is left out
    Openapi(OpenApi),
    /// Log in to an upstream of a sabir.toml, or log out
    #[command(subcommand)]
    Upstream(Upstream),
    /// The nodes that share the sessions of a sabir.toml
    #[command(subcommand)]
    Cluster(Cluster),
    /// Play the clients' side of a recording against a server, and show how its answers differ
    Replay(Replay),
    /// Tell a recording call by call: who asked what, what was translated, where the time went
    Explain {
        /// A file of `sabir serve --record`
        file: PathBuf,

        /// Only the call of this number
        #[arg(long, value_name = "NUMBER")]
        call: Option<u64>,
    },
    /// Add a folder, a sabir.toml or a URL to an MCP client
    Install(Install),
    /// Remove a server from an MCP client
    Uninstall(Uninstall),
    /// Print the servers of MCP clients as [[upstream]] entries; secrets become references
    Import {
        /// Only of this client
        client: Option<Client>,
    },
    /// Look for what keeps MCP clients from using their servers, and say how to fix it
    Doctor,
    /// Print a script that completes commands, options, clients, tools and paths
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// A sabir.toml, a folder that holds one, or folders of articles [default: ./sabir.toml, else
    /// this folder if it holds articles]
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// Read the articles of the folder alone, and no sabir.toml in it
    #[arg(long)]
    pub(crate) no_config: bool,

    /// Start the upstreams too, and list what they offer now
    #[arg(long)]
    pub(crate) start: bool,

    /// Print the result as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Show only what such a caller may use, e.g. 'sub=ann,scope=notes:read files,groups=staff'
    #[arg(long = "as", value_name = "CALLER", value_parser = caller)]
    pub(crate) caller: Option<Caller>,

    /// Say whether such a caller sees this tool, and why or why not
    #[arg(long, value_name = "TOOL")]
    pub(crate) why: Option<String>,
}

/// For programs that run `sabir check`.
const EXIT_CODES: &str = "Exit codes: 0 nothing is wrong, 1 a source cannot be started, \
                          2 wrong command line, 3 wrong configuration";

#[derive(Debug, Subcommand)]
pub(crate) enum Upstream {
    /// Log in at the authorization server of an upstream or an API, in a browser
    Login {
        /// The name of the upstream or the API
        name: String,

        /// A sabir.toml, or its folder [default: this folder]
        path: Option<PathBuf>,

        /// The port on this machine that the browser is sent back to [default: a free one]
        #[arg(long)]
        port: Option<u16>,

        /// Only print the link
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the credentials for an upstream or an API
    Logout {
        /// The name of the upstream or the API
        name: String,

        /// A sabir.toml, or its folder [default: this folder]
        path: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// List the nodes that run: sessions, calls and streams of each, and how fast the store answers
    Status {
        /// A sabir.toml, or its folder [default: this folder]
        path: Option<PathBuf>,

        /// Print the result as JSON on standard output
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Print a new token once, and the lines for sabir.toml that contain only its digest
    New {
        /// The name of the caller to whom it belongs
        name: String,

        /// A scope of the caller; may be repeated
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
    },
}

/// Reads `sub=…,scope=…`; scopes are separated by spaces. Other parts are claims; one that is there more
/// than once is a list.
fn caller(text: &str) -> Result<Caller, String> {
    let (mut issuer, mut subject) = ("check", "anybody");
    let mut claims = serde_json::Map::new();
    for pair in text.split(',') {
        match pair.trim().split_once('=') {
            Some(("iss", value)) => issuer = value,
            Some(("sub", value)) => subject = value,
            Some((name, value)) if !name.is_empty() => {
                let values = claims.entry(name).or_insert_with(|| serde_json::json!([]));
                values.as_array_mut().into_iter().for_each(|values| values.push(value.into()));
            }
            _ => {
                let what = "expected sub=…, iss=…, scope=… or a claim";
                return Err(format!("unknown part `{pair}` ({what})"));
            }
        }
    }
    let claims = Raw::from(serde_json::Value::Object(claims));
    Ok(Caller::new(issuer, subject).with_claims(claims))
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// A URL, a sabir.toml or a folder [default: this folder]
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub(crate) target: Option<String>,

    /// Print only the names of the tools, for completions
    #[arg(long, hide = true)]
    pub(crate) names: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Send this header with every HTTP request
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,

    /// A program that serves on its standard input and output, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Call {
    /// A URL, a sabir.toml or a folder; the name of the tool; its arguments
    #[arg(value_names = ["TARGET", "TOOL", "KEY=VALUE"], required = true,
          value_hint = clap::ValueHint::AnyPath)]
    pub(crate) words: Vec<String>,

    /// Print the result as JSON; with a value, also take the arguments from it
    #[arg(long, value_name = "ARGUMENTS", num_args = 0..=1)]
    pub(crate) json: Option<Option<String>>,

    /// Cancel the call after this time without progress [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,

    /// Send this header with every HTTP request
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,

    /// A program that serves on its standard input and output, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// A file of `sabir serve --record`
    pub(crate) file: PathBuf,

    /// A URL, a sabir.toml or a folder [default: this folder]
    #[arg(long, value_name = "TARGET")]
    pub(crate) against: Option<String>,

    /// A member of the answers that may differ, such as `version` or `result.serverInfo.version`;
    /// may be repeated. Ids and times always may
    #[arg(long, value_name = "FIELD")]
    pub(crate) ignore: Vec<String>,

    /// The time to wait for each answer
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    pub(crate) timeout: Duration,

    /// Send this header with every HTTP request
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,

    /// A program that serves on its standard input and output, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn time(text: &str) -> Result<Duration, String> {
    crate::config::duration(text)
        .ok_or_else(|| "expected e.g. \"250ms\", \"5s\", \"2m\"".to_owned())
}

#[derive(Debug, clap::Args)]
pub(crate) struct Install {
    /// The client
    #[arg(required_unless_present = "list")]
    pub(crate) client: Option<Client>,

    /// A folder of articles, a sabir.toml, or the URL of a server [default: .]
    #[arg(value_name = "PATH|URL", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) target: Option<String>,

    /// Whose configuration is changed
    #[arg(long, default_value = "user")]
    pub(crate) scope: Scope,

    /// The name of the server in the client [default: its own]
    #[arg(long, value_parser = entry_name)]
    pub(crate) name: Option<String>,

    /// An environment variable of the client with the bearer token for the URL
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    pub(crate) token_env: Option<String>,

    /// Replace another server of the same name
    #[arg(long)]
    pub(crate) force: bool,

    /// Only print what would be written
    #[arg(long)]
    pub(crate) print: bool,

    /// Show in which clients Sabir is
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Uninstall {
    /// The client
    pub(crate) client: Client,

    /// The name of the server [default: the one that runs Sabir]
    pub(crate) name: Option<String>,

    /// Whose configuration is changed
    #[arg(long, default_value = "user")]
    pub(crate) scope: Scope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// A sabir.toml, a folder that holds one, or folders of articles [default: ./sabir.toml, else
    /// this folder if it holds articles]
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// Serve the client that started this process, on standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Serve HTTP clients on this address or port, at /mcp [default: 127.0.0.1:7331, unless the
    /// file or another transport says otherwise]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,

    /// Offer the tools of the process that started this one, which is an MCP server on our standard
    /// input and output; see docs/editors.md
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) host: bool,

    /// Serve WebSocket clients only on this address, at / and /mcp; --http serves them too, at /mcp
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) ws: Option<SocketAddr>,

    /// Be an editor for Claude Code: serve WebSocket clients on a loopback port with a random token,
    /// and write both to a lock file. NAME is the editor's name in Claude Code
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
          default_missing_value = "Sabir")]
    pub(crate) ide: Option<String>,

    /// A folder that is open in the editor; may be repeated [default: the current folder]
    #[arg(long, value_name = "FOLDER", requires = "ide")]
    pub(crate) workspace: Vec<PathBuf>,

    /// Serve the articles of the folder alone, and ignore a sabir.toml in it
    #[arg(long)]
    pub(crate) no_config: bool,

    /// Require the bearer token in this file in every HTTP request [default: the token in the
    /// environment variable SABIR_TOKEN, if it is set]
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,

    /// Require this bearer token; other users can see it in the list of processes
    #[arg(long, value_name = "SECRET")]
    pub(crate) token: Option<String>,

    /// Listen on an address that other hosts can reach, without authentication
    #[arg(long)]
    pub(crate) allow_public: bool,

    /// Listen on an address that other hosts can reach, without TLS: a proxy terminates it
    #[arg(long)]
    pub(crate) behind_proxy: bool,

    /// Write every message of every client and upstream to this file, without secrets; see
    /// docs/operations.md
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// The longest recording
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256MB")]
    pub(crate) record_limit: u64,

    /// Write the metrics to this file every 15 seconds and at the end, in the form of Prometheus
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,

    /// Serve the console: `auto` at / of the HTTP address, if that is a loopback address, and standard
    /// error is a terminal or no token is demanded; `always`; `never`; or a loopback address or port
    /// of its own
    #[arg(long, value_name = "WHEN|ADDRESS", default_value = "auto", value_parser = console)]
    pub(crate) console: ConsolePlace,
}

/// Whether the console is served, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsolePlace {
    /// With the HTTP clients, for a person at a terminal or on a server that is open to all.
    Auto,
    /// With the HTTP clients.
    Always,
    Never,
    /// On an address of its own.
    At(SocketAddr),
}

fn console(written: &str) -> Result<ConsolePlace, String> {
    match written {
        "auto" => Ok(ConsolePlace::Auto),
        "always" => Ok(ConsolePlace::Always),
        "never" => Ok(ConsolePlace::Never),
        other => match parse_address(other) {
            Some(at) if at.ip().is_loopback() => Ok(ConsolePlace::At(at)),
            Some(_) => Err("expected a loopback address".to_owned()),
            None => {
                Err("expected auto, always, never or an address, e.g. 127.0.0.1:7390".to_owned())
            }
        },
    }
}

fn size(written: &str) -> Result<u64, String> {
    let size = crate::config::size(written).map(|size| size as u64);
    size.ok_or_else(|| "expected e.g. \"64MB\"".to_owned())
}

fn address(written: &str) -> Result<SocketAddr, String> {
    parse_address(written).ok_or_else(|| format!("expected {ADDRESSES}"))
}

#[derive(Debug, clap::Args)]
pub(crate) struct OpenApi {
    /// An OpenAPI description (a file or a URL), or a sabir.toml with [[openapi]]
    pub(crate) path: String,

    /// The methods that are offered, e.g. GET,POST; `*` for all [default: GET,HEAD]
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub(crate) methods: Vec<String>,

    /// Print JSON, with the full definitions
    #[arg(long)]
    pub(crate) json: bool,
}

/// The name of an entry, which may become an argument of the client's own command.
fn entry_name(name: &str) -> Result<String, String> {
    match name.is_empty() || name.starts_with('-') || name.chars().any(char::is_control) {
        true => Err("expected a name such as notes".to_owned()),
        false => Ok(name.to_owned()),
    }
}

/// The name of an environment variable.
fn variable(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(is_plain) && !name.is_empty() && !name.starts_with(char::is_numeric) {
        true => Ok(name.to_owned()),
        false => Err("expected the name of a variable, such as WIKI_TOKEN".to_owned()),
    }
}
