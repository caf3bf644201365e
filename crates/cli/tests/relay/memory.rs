//! The remembered catalog: tools are listed although their upstream is cold or down.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sabir_wire::{Raw, Revision};
use tempfile::TempDir;

use super::{FIXTURE, Relay, text, until};

pub(crate) const CONFIGURATION: &str = "[[upstream]]\nname = \"up\"\nrun = [\"./server\"]\n";

/// Writes the program of the upstream.
pub(crate) fn program(folder: &Path, script: &str) {
    let path = folder.join("server");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A folder with the program of an upstream, whose catalog is remembered.
pub(crate) async fn remembered() -> TempDir {
    let folder = TempDir::new().unwrap();
    program(folder.path(), &format!("exec {FIXTURE} stdio 2025-06-18"));
    let relay = Relay::start_in(folder, CONFIGURATION);
    let (client, _) = relay.client(Revision::NEWEST).await;
    until("it is listed", async || client.list_tools().await.unwrap().len() > 5).await;
    let cache = relay.folder.path().join("cache/sabir/upstreams");
    until("it is remembered", async || {
        let files = fs::read_dir(&cache).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.path().extension().is_some_and(|end| end == "json"))
    })
    .await;
    relay.folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_a_cold_upstream_are_listed_and_calls_say_why_it_is_down() {
    let folder = remembered().await;
    program(folder.path(), "echo started > started\necho 'the disk is full' >&2\nexit 3");
    let relay = Relay::start_in(folder, CONFIGURATION);
    let (client, _) = relay.client(Revision::NEWEST).await;
    assert!(client.list_tools().await.unwrap().len() > 5);
    assert!(!relay.folder.path().join("started").exists(), "it was started for a list");
    let reply = client.call_tool("up_echo", Raw::default()).await.unwrap();
    let reason = text(&reply);
    assert!(reply.is_error, "{reason}");
    assert!(reason.contains("the disk is full"), "{reason}");
    assert!(reason.contains("its tools are listed as they were"), "{reason}");
    assert!(client.list_tools().await.unwrap().len() > 5, "they stay listed");
}
