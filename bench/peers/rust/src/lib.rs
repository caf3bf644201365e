//! Shared by the Rust peers: their command line and the arguments of their tools.
//!
//! Nothing here is measured. Each binary uses one SDK as its authors show it.

use std::net::SocketAddr;

/// The transport that the command line names: `stdio`, or `http 127.0.0.1:PORT`.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Standard input and output.
    Stdio,
    /// `http://ADDRESS/mcp`.
    Http(SocketAddr),
}

impl Place {
    /// Reads the command line. The error is the usage.
    pub fn from_args() -> Result<Self, &'static str> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match args.as_slice() {
            ["stdio"] => Ok(Self::Stdio),
            ["http", address] => {
                address.parse().map(Self::Http).map_err(|_| "invalid address (expected IP:PORT)")
            }
            _ => Err("usage: PEER stdio | PEER http 127.0.0.1:PORT"),
        }
    }
}

/// The arguments of `echo` and `wait`.
#[derive(Debug, serde::Deserialize)]
#[cfg_attr(any(feature = "pmcp", feature = "rmcp"), derive(schemars::JsonSchema))]
pub struct Echo {
    /// What to say
    pub text: String,
}

/// The arguments of the `search_N` tools, which are only listed.
#[derive(Debug, serde::Deserialize)]
#[cfg_attr(any(feature = "pmcp", feature = "rmcp"), derive(schemars::JsonSchema))]
pub struct Search {
    /// What to look for
    pub query: String,
    /// Where to look
    pub folder: Option<String>,
    /// How many to find at most
    pub limit: Option<u32>,
}

impl Search {
    /// The answer of the tool.
    pub fn answer(self) -> String {
        let Self { query, folder, limit } = self;
        format!("{query} in {folder:?}, at most {limit:?}")
    }
}

/// The arguments of the `move_N` tools, which are only listed.
#[derive(Debug, serde::Deserialize)]
#[cfg_attr(any(feature = "pmcp", feature = "rmcp"), derive(schemars::JsonSchema))]
pub struct Move {
    /// What to move
    pub from: String,
    /// Where to
    pub to: String,
}

impl Move {
    /// The answer of the tool.
    pub fn answer(self) -> String {
        let Self { from, to } = self;
        format!("{from} to {to}")
    }
}
