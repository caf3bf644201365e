//! The server under test: `echo-server stdio [TOOLS]`, or
//! `echo-server http 127.0.0.1:PORT [TOOLS] [--threads N]`. TOOLS is the number of tools besides
//! `echo` and `wait`; N is the number of worker threads.

use std::process::ExitCode;

use sabir_bench::echo::Options;
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = Options::parse(&words) else { return ExitCode::from(2) };
    let mut builder = match options.threads {
        1 => Builder::new_current_thread(),
        threads => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    let Ok(runtime) = builder.enable_all().build() else { return ExitCode::FAILURE };
    match runtime.block_on(options.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
