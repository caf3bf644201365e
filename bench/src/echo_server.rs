//! The server under test: `echo-server stdio [TOOLS]` or `echo-server http 127.0.0.1:PORT [TOOLS]`, where TOOLS is how many it has beside `echo`.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match sabir_bench::echo::serve(&words).await {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) => ExitCode::FAILURE,
        None => ExitCode::from(2),
    }
}
