//! The client with a real program: our own binary on a pipe.

use std::sync::Arc;
use std::time::Duration;

use sabir_client::{CallError, ChildTransport, Client, ClientConfig, Program};
use sabir_supervisor::{GracePeriod, Supervisor, SupervisorSettings};
use serde_json::json;
use tokio::runtime;

use crate::folder_with;

const BINARY: &str = env!("CARGO_BIN_EXE_sabir");

const FILE: &str = r#"
[[command]]
name = "echo"
description = "Echo"
run = ["/bin/echo", "{text}"]
input = { text = "string" }

[[command]]
name = "crash"
description = "Kill the server"
run = ["/bin/sh", "-c", "kill -9 $(cat server.pid)"]
"#;

/// Runs a check with a client of `sabir serve --stdio`, which writes its process id into a file.
fn with_client(check: impl AsyncFnOnce(&Client)) {
    let folder = folder_with(FILE);
    let script = format!("echo $$ > server.pid; echo hello >&2; exec {BINARY} serve . --stdio");
    let runtime = runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let executable = BINARY.into();
        let settings = SupervisorSettings { executable, ..SupervisorSettings::default() };
        let supervisor = Supervisor::new(settings);
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            cwd: folder.path().to_owned(),
            grace: GracePeriod::default(),
        };
        let transport = ChildTransport::new(supervisor.clone(), program);
        let client = Client::without_answers(Arc::new(transport), ClientConfig::default());
        check(&client).await;
        client.close().await;
        assert!(supervisor.close(Duration::from_secs(10)).await, "a process is left");
    });
}

#[test]
fn a_server_that_is_killed_in_mid_call_is_started_again() {
    with_client(async |client| {
        for round in 0..10 {
            let mut calls = tokio::task::JoinSet::new();
            for _ in 0..5 {
                let client = client.clone();
                calls.spawn(async move { client.call_tool("crash", json!({})).await });
            }
            for answer in calls.join_all().await {
                let error = answer.unwrap_err();
                assert!(matches!(error, CallError::Lost(_) | CallError::Unsent(_)), "{error:?}");
            }
            let echoed = client.call_tool("echo", json!({ "text": round.to_string() })).await;
            assert!(format!("{:?}", echoed.unwrap().content).contains(&round.to_string()));
            assert_eq!(client.stderr()[0], "hello");
        }
    });
}

#[test]
fn a_thousand_calls_at_once_get_their_own_answers() {
    with_client(async |client| {
        let mut lists = tokio::task::JoinSet::new();
        for _ in 0..1000 {
            let client = client.clone();
            lists.spawn(async move { client.list_tools().await.map(|tools| tools.len()) });
        }
        assert!(lists.join_all().await.into_iter().all(|answer| answer == Ok(2)));
    });
}
