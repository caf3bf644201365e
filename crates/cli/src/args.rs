//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::config::{ADDRESSES, parse_address};

/// Serve what you have to every MCP client
#[derive(Debug, Parser)]
#[command(name = "sabir", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// The level of the log on standard error; `info` has one line per call
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", env = "SABIR_LOG")]
    pub(crate) log: LogLevel,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the sources of a sabir.toml, or a folder of articles
    Serve(Serve),
    /// Read a sabir.toml or a folder of articles, and report every problem with its place
    Check {
        /// A sabir.toml, a folder that holds one, or a folder of articles [default: ./sabir.toml]
        path: Option<PathBuf>,

        /// Read the articles of the folder alone, and no sabir.toml in it
        #[arg(long)]
        no_config: bool,

        /// Print the result as JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Write a commented sabir.toml into the current folder
    Init,
    /// Print the tools that an API would be offered as, and what is left out
    Openapi(OpenApi),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// A sabir.toml, a folder that holds one, or a folder of articles [default: ./sabir.toml]
    pub(crate) path: Option<PathBuf>,

    /// Serve the client that started this process, on standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Serve HTTP clients on this address or port, at /mcp [default: 127.0.0.1:7331, unless the
    /// file or --stdio says otherwise]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,

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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}
