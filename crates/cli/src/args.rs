//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use sabir::Caller;

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
    Check {
        /// A sabir.toml, a folder that holds one, or folders of articles [default: ./sabir.toml, else
        /// this folder if it holds articles]
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,

        /// Read the articles of the folder alone, and no sabir.toml in it
        #[arg(long)]
        no_config: bool,

        /// Print the result as JSON on standard output
        #[arg(long)]
        json: bool,

        /// Show only what such a caller may use, e.g. 'sub=ann,scope=notes:read files'
        #[arg(long = "as", value_name = "CALLER", value_parser = caller)]
        caller: Option<Caller>,
    },
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
    /// Print a script that completes commands, options, clients and paths
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
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

/// Reads `sub=…,scope=…`; scopes are separated by spaces.
fn caller(text: &str) -> Result<Caller, String> {
    let (mut issuer, mut subject, mut scopes) = ("check", None, Vec::new());
    for pair in text.split(',') {
        match pair.trim().split_once('=') {
            Some(("iss", value)) => issuer = value,
            Some(("sub", value)) => subject = Some(value),
            Some(("scope", value)) => scopes.extend(value.split_ascii_whitespace()),
            _ => return Err(format!("unknown part `{pair}` (expected sub=…, iss=… or scope=…)")),
        }
    }
    Ok(Caller::new(issuer, subject.unwrap_or("anybody")).with_scopes(scopes))
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// A URL, a sabir.toml or a folder [default: this folder]
    pub(crate) target: Option<String>,

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
    #[arg(value_names = ["TARGET", "TOOL", "KEY=VALUE"], required = true)]
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
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// An environment variable of the client with the bearer token for the URL
    #[arg(long, value_name = "VARIABLE")]
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
    #[arg(value_name = "PATH")]
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

    /// Serve WebSocket clients on this address, at / and /mcp, and nobody else there; --http serves
    /// them too, at /mcp
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) ws: Option<SocketAddr>,

    /// Be an editor for Claude Code: serve WebSocket clients on a loopback port with a random token,
    /// and tell where in a lock file. NAME is what people see there
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

    /// Serve the console at / of a loopback address; `auto` does if standard error is a terminal
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) console: When,
}

/// When something is done that suits a person at a terminal.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
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
