//! The host pipe: the process that started us offers its tools on our standard streams.

use std::path::PathBuf;
use std::sync::Arc;

use sabir_client::PipeTransport;
use sabir_engine::{ClientEvent, ClientEventKind};
use sabir_sources::host::Host;
use sabir_wire::Raw;
use serde_json::json;

use super::ide::LockFile;
use crate::report::say;

/// The host at the other end of our standard streams.
pub(super) fn connect() -> Arc<Host> {
    let (input, output) = sabir_transports::stdio::streams();
    Host::new(Arc::new(PipeTransport::new(input, output)))
}

/// Tells the host what happened to a client.
pub(super) fn tell(host: &Host, event: ClientEvent) {
    let ClientEvent { connection, client, kind, .. } = event;
    let described =
        |state: &str| json!({ "connection": connection, "client": client, "state": state });
    let (method, params) = match kind {
        ClientEventKind::Initializing => ("connected", described("initializing")),
        ClientEventKind::Ready => ("connected", described("ready")),
        ClientEventKind::Left => ("disconnected", described("closed")),
        ClientEventKind::Notified { method, params } => {
            ("notified", json!({ "connection": connection, "method": method, "params": params }))
        }
        _ => return,
    };
    tell_json(host, &format!("notifications/client/{method}"), &params);
}

/// Tells the host where we listen, as soon as it is ready; and handles its notifications.
pub(super) fn introduce(host: &Arc<Host>, url: &str, lock: Option<&Arc<LockFile>>) {
    let listening = json!({ "url": url, "lockFile": lock.map(|lock| lock.path()) });
    let told = host.clone();
    tokio::spawn(async move {
        if told.opened().await {
            tell_json(&told, "notifications/host/listening", &listening);
        }
    });
    let Some(lock) = lock.cloned() else { return };
    host.on_own(move |method, params| {
        if method == "notifications/host/workspace" {
            #[derive(serde::Deserialize)]
            struct Workspace {
                folders: Vec<PathBuf>,
            }
            let read = params.and_then(|params| params.read::<Workspace>().ok());
            match read.map(|workspace| lock.set_folders(workspace.folders)) {
                Some(Ok(())) => {}
                Some(Err(error)) => say(&format!("warning: cannot write the lock file: {error}")),
                None => {
                    say(&format!("warning: invalid {method} (expected `folders`, a list of paths)"))
                }
            }
        }
    });
}

fn tell_json(host: &Host, method: &str, params: &serde_json::Value) {
    // We have just serialized this JSON.
    if let Ok(params) = Raw::of(params) {
        host.tell(method, params);
    }
}
