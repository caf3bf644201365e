//! The server under test, as a user of the library would write it: `echo`, and further tools of two or three arguments that only stand in the list.

use sabir::{Error, HttpSettings, ServeError, Server};

/// How many tools there are beside `echo` if nobody says.
pub const FURTHER_TOOLS: usize = 20;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say
    text: String,
}

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

/// The server, with so many tools beside `echo`.
pub fn server(further: usize) -> Server {
    let mut server = Server::new("echo-server", env!("CARGO_PKG_VERSION")).tool(
        "echo",
        "Says what it is told",
        async |Echo { text }| Ok::<_, Error>(text),
    );
    for at in 0..further {
        let n = at / 2 + 1;
        server = if at % 2 == 0 {
            server.tool(format!("search_{n}"), "Looks for something", async |search: Search| {
                let Search { query, folder, limit } = search;
                Ok(format!("{query} in {folder:?}, at most {limit:?}"))
            })
        } else {
            server.tool(format!("move_{n}"), "Moves something", async |Move { from, to }| {
                Ok(format!("{from} to {to}"))
            })
        };
    }
    server
}

/// Serves as `stdio` or `http ADDRESS` say, with the number of further tools behind them.
/// `None`: the words say something else.
pub async fn serve(words: &[String]) -> Option<Result<(), ServeError>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (words, further) = match *words.as_slice() {
        ["stdio", further] => (vec!["stdio"], further.parse().ok()?),
        ["http", address, further] => (vec!["http", address], further.parse().ok()?),
        _ => (words, FURTHER_TOOLS),
    };
    match words.as_slice() {
        ["stdio"] => Some(server(further).serve_stdio().await),
        ["http", address] => {
            let address = address.parse().ok()?;
            let settings = HttpSettings { address, ..HttpSettings::default() };
            Some(server(further).serve_http(settings).await)
        }
        _ => None,
    }
}
