//! What a person types. Nothing is looked up here.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Serve what you have to every MCP client
#[derive(Debug, Parser)]
#[command(name = "sabir", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// How much to say on the standard error
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", env = "SABIR_LOG")]
    pub(crate) log: LogLevel,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve what a sabir.toml describes
    Serve(Serve),
    /// Read a sabir.toml and say what is wrong with it, and where
    Check {
        /// A sabir.toml, or a folder that holds one [default: ./sabir.toml]
        path: Option<PathBuf>,
    },
    /// Write a commented sabir.toml into this folder
    Init,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// A sabir.toml, or a folder that holds one [default: ./sabir.toml]
    pub(crate) path: Option<PathBuf>,

    /// Serve the client that started this process, through its pipes
    #[arg(long)]
    pub(crate) stdio: bool,
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
