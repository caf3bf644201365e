//! The certificates of `[tls]`, which are read again when their files change, or obtained.

use sabir::{CertificateEvent, HttpSettings, Tls};

use super::reload::{WatchedFiles, changed};
use crate::config::Settings;
use crate::escape::escaped;
use crate::report::{Failure, say};

/// Reads the certificates that the configuration names.
pub(crate) fn load(settings: &Settings) -> Result<Option<Tls>, Failure> {
    let loaded = settings.tls.clone().map(Tls::load).transpose();
    loaded.map_err(|error| Failure::new(format!("tls: {}", escaped(&error.to_string()))))
}

/// The scheme of the server's URLs, `http` or `ws`, with an `s` if it has TLS.
pub(super) fn scheme(settings: &HttpSettings) -> &'static str {
    match (settings.only_websocket, settings.tls.is_some()) {
        (false, false) => "http",
        (false, true) => "https",
        (true, false) => "ws",
        (true, true) => "wss",
    }
}

/// Obtains the certificate, if it does not come from files, and renews it.
pub(super) async fn maintain(tls: Tls) {
    let report = |event: &CertificateEvent| {
        let label = match event {
            CertificateEvent::Failed { .. } => "error: tls",
            _ => "tls",
        };
        say(&escaped(&format!("{label}: {event}")));
    };
    tls.maintain(report).await;
}

/// Reads the certificates again whenever one of the files has changed.
pub(super) async fn watch(tls: Tls) {
    if tls.files().next().is_none() {
        return;
    }
    let mut files = WatchedFiles::new(tls.files());
    loop {
        changed(Some(&mut files)).await;
        let tls = tls.clone();
        match tokio::task::spawn_blocking(move || tls.reload()).await {
            Ok(Ok(())) => say("reloaded the certificates"),
            Ok(Err(error)) => {
                say(&escaped(&format!("error: tls: {error}")));
                say("the certificates were not reloaded: the old ones are still used");
            }
            // The runtime ends.
            Err(_) => return,
        }
    }
}
