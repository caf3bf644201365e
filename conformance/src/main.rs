//! The server that the official conformance suite drives: everything that its scenarios call by
//! name, written with the public library.
//!
//! `fixture 127.0.0.1:PORT` serves HTTP, `fixture --stdio` the client that started it.

mod changes; // tools that change what is offered
mod content; // tools that return each kind of content
mod prompts;
mod questions; // tools that ask, in either era
mod resources;
mod rounds; // tools that ask by `input_required` results
mod schemas; // tools whose schema is the point
mod tasks; // tools whose calls become tasks

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sabir::{BadOffer, Handle, HttpSettings, ServeError, Server};
use sabir_sources::skills::SkillsSource;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(place) = std::env::args().nth(1) else {
        return failed("usage: fixture ADDRESS | --stdio");
    };
    let handle = match offer() {
        Ok(handle) => handle,
        Err(error) => return failed(&error.to_string()),
    };
    let skills = SkillsSource::open(Path::new(SKILLS), "skills");
    let skills = skills.map_err(|error| error.to_string());
    let added = skills.and_then(|skills| handle.add_source(skills).map_err(|bad| bad.to_string()));
    if let Err(reason) = added {
        return failed(&reason);
    }
    let served = match place.as_str() {
        "--stdio" => handle.serve_stdio().await,
        address => serve_http(&handle, address).await,
    };
    served.map_or_else(|error| failed(&error.to_string()), |()| ExitCode::SUCCESS)
}

/// The skills that it serves.
const SKILLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

/// How long a legacy client may wait on one connection before it is told to reconnect.
const STREAM_TIME: Duration = Duration::from_millis(700);

async fn serve_http(handle: &Handle, address: &str) -> Result<(), ServeError> {
    let address = address.parse().map_err(io::Error::other)?;
    let mut settings = HttpSettings::new(address);
    settings.poll_after = Some(STREAM_TIME);
    let server = handle.bind_http(settings).await?;
    say(&format!("listening on http://{}/mcp", server.address()));
    server.run(std::future::pending()).await;
    Ok(())
}

/// A tool without arguments is the first: one scenario calls the first tool of the list.
fn offer() -> Result<Handle, BadOffer> {
    let handle = Server::new("sabir-conformance", env!("CARGO_PKG_VERSION")).handle()?;
    content::offer(&handle)?;
    questions::offer(&handle)?;
    rounds::offer(&handle)?;
    schemas::offer(&handle)?;
    changes::offer(&handle)?;
    tasks::offer(&handle)?;
    prompts::offer(&handle)?;
    resources::offer(&handle)?;
    Ok(handle)
}

fn failed(reason: &str) -> ExitCode {
    say(reason);
    ExitCode::FAILURE
}

#[expect(clippy::print_stderr, reason = "for the user who started it")]
fn say(text: &str) {
    eprintln!("fixture: {text}");
}

/// No arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}
