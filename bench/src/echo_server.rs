//! The server under test: the library as a user would write it.
//!
//! `echo-server stdio` or `echo-server http 127.0.0.1:PORT`. It offers `echo` and twenty further tools of two or three arguments.

use std::process::ExitCode;

use sabir::{Error, HttpSettings, Server};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say
    text: String,
}

/// The arguments of the tools that only stand in the list.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Search {
    /// What to look for
    query: String,
    /// Where to look
    folder: Option<String>,
    /// How many to find at most
    limit: Option<u32>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Move {
    /// What to move
    from: String,
    /// Where to
    to: String,
}

fn server() -> Server {
    let mut server = Server::new("echo-server", env!("CARGO_PKG_VERSION")).tool(
        "echo",
        "Says what it is told",
        async |Echo { text }| Ok::<_, Error>(text),
    );
    for n in 1..=10 {
        server = server
            .tool(format!("search_{n}"), "Looks for something", async |search: Search| {
                let Search { query, folder, limit } = search;
                Ok(format!("{query} in {folder:?}, at most {limit:?}"))
            })
            .tool(format!("move_{n}"), "Moves something", async |Move { from, to }| {
                Ok(format!("{from} to {to}"))
            });
    }
    server
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let served = match args.as_slice() {
        ["stdio"] => server().serve_stdio().await,
        ["http", address] => match address.parse() {
            Ok(address) => {
                let settings = HttpSettings { address, ..HttpSettings::default() };
                server().serve_http(settings).await
            }
            Err(_) => return ExitCode::from(2),
        },
        _ => return ExitCode::from(2),
    };
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
