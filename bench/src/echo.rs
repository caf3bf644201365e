//! The server under test, as a user of the library writes it: `echo` answers at once, `wait` yields
//! to the runtime once before it answers. Further tools with two or three arguments are only listed.

use sabir::{Error, HttpSettings, ServeError, Server};

/// The default number of tools besides `echo` and `wait`: 21 tools in all.
pub const FURTHER_TOOLS: usize = 19;

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

/// Returns the server, with `further` tools besides `echo` and `wait`.
pub fn server(further: usize) -> Server {
    let mut server = Server::new("echo-server", env!("CARGO_PKG_VERSION"))
        .tool("echo", "Says what it is told", async |Echo { text }| Ok::<_, Error>(text))
        .tool("wait", "Waits once, then says what it is told", async |Echo { text }| {
            Ok::<_, Error>(wait(text).await)
        });
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

/// Yields to the runtime once, then returns the text.
async fn wait(text: String) -> String {
    tokio::task::yield_now().await;
    text
}

/// How the server is asked to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `None`: standard input and output.
    http: Option<std::net::SocketAddr>,
    /// The number of tools besides `echo` and `wait`.
    further: usize,
    /// Worker threads. One means tokio's current-thread runtime, as for every peer.
    pub threads: usize,
}

impl Options {
    /// Reads `stdio [TOOLS]` or `http ADDRESS [TOOLS] [--threads N]`. Returns `None` for anything
    /// else.
    pub fn parse(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (words, threads) = match words.as_slice() {
            [rest @ .., "--threads", threads] => (rest, threads.parse().ok()?),
            all => (all, 1),
        };
        let (http, further) = match *words {
            ["stdio"] => (None, FURTHER_TOOLS),
            ["stdio", further] => (None, further.parse().ok()?),
            ["http", address] => (Some(address.parse().ok()?), FURTHER_TOOLS),
            ["http", address, further] => (Some(address.parse().ok()?), further.parse().ok()?),
            _ => return None,
        };
        (threads > 0).then_some(Self { http, further, threads })
    }

    /// Serves until the input ends or the process is told to end.
    pub async fn serve(self) -> Result<(), ServeError> {
        let server = server(self.further);
        match self.http {
            None => server.serve_stdio().await,
            Some(address) => {
                server.serve_http(HttpSettings { address, ..HttpSettings::default() }).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn the_wait_tool_is_pending_once() {
        let mut waiting = pin!(wait("text".into()));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready("text".into()));
    }

    #[test]
    fn threads_follow_the_other_words() {
        let parse = |line: &str| {
            Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<String>>())
        };
        let address = Some(([127, 0, 0, 1], 7).into());
        let expected = Options { http: address, further: FURTHER_TOOLS, threads: 2 };
        assert_eq!(parse("http 127.0.0.1:7 --threads 2"), Some(expected));
        let expected = Options { http: address, further: 5, threads: 1 };
        assert_eq!(parse("http 127.0.0.1:7 5"), Some(expected));
        let expected = Options { http: None, further: FURTHER_TOOLS, threads: 1 };
        assert_eq!(parse("stdio"), Some(expected));
        for wrong in ["http", "stdio --threads 0", "http 127.0.0.1:7 --threads", "stdio many"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
