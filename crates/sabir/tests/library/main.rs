//! The library as its users write it, through the client in memory.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod errors; // the errors of handlers
mod handlers; // which functions can be handlers
mod kinds; // prompts and resources
mod serving; // the life of a server

use sabir::Server;
use sabir::test::Client;

fn server() -> Server {
    Server::new("test", "1.0.0")
}

fn connect<S: Clone + Send + Sync + 'static>(server: Server<S>) -> Client {
    sabir::test::connect(server).unwrap()
}
