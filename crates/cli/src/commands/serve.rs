//! `sabir serve`: serves what a configuration describes.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::Engine;
use tokio::runtime;

use super::engine;
use crate::args::Serve;
use crate::config;
use crate::report::{Failure, say};

pub(crate) fn run(args: &Serve) -> Result<(), Failure> {
    let settings = config::read(args.path.as_deref())?;
    if !args.stdio && !settings.stdio {
        return Err(Failure::Other("nowhere to listen: use --stdio".into()));
    }
    // One client needs one thread; what blocks gets threads of its own.
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Other(error.to_string()))?;
    let (engine, programs) = engine(settings)?;
    let served = runtime.block_on(async {
        let served = serve(engine).await;
        programs.close().await;
        served
    });
    // A thread may sit in a read that never ends; the process does not wait for it.
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

async fn serve(engine: Arc<Engine>) -> Result<(), Failure> {
    tokio::spawn(stop_on_signal(engine.clone()));
    let served = sabir_transports::stdio::serve(&engine).await;
    served.map_err(|error| Failure::Other(format!("the client's pipe broke: {error}")))
}

/// The first signal lets running calls finish within the grace; the second ends the process.
async fn stop_on_signal(engine: Arc<Engine>) {
    if signal().await.is_err() {
        return;
    }
    say("stopping");
    engine.stop();
    if signal().await.is_ok() {
        #[expect(clippy::exit, reason = "a second signal means now")]
        std::process::exit(1);
    }
}

#[cfg(unix)]
async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
