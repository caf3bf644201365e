//! rmcp, the official Rust SDK, as a client. Takes a job and prints what it
//! saw, as `clients/node/job.mjs` describes.
//!
//! Modes: `initialize` (which asks for 2026-07-28 and must be talked down),
//! `auto`, `discover`, or the date of a legacy revision to ask for.

use std::error::Error;

use rmcp::model::{CallToolRequestParams, ClientConfig, JsonObject, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

#[derive(Deserialize)]
struct Job {
    mode: String,
    stdio: Option<Vec<String>>,
    http: Option<String>,
    tool: String,
    args: JsonObject,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1).ok_or("a job is needed as the one argument")?;
    let job: Job = serde_json::from_str(&argument)?;
    let seen = see(&job).await?;
    println!("{seen}");
    Ok(())
}

async fn see(job: &Job) -> Result<Value, Box<dyn Error>> {
    let client = connect(job).await?;
    let revision = client.peer_info().map(|peer| peer.protocol_version.clone());
    let tools = client.list_all_tools().await?;
    let call = CallToolRequestParams::new(job.tool.clone()).with_arguments(job.args.clone());
    let result = client.call_tool(call).await?;
    client.cancel().await?;

    let blocks = result.content.iter().filter_map(|block| block.as_text());
    let text = blocks.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n");
    if result.is_error == Some(true) {
        return Err(format!("the tool answered with an error: {text}").into());
    }
    let names: Vec<_> = tools.iter().map(|tool| &tool.name).collect();
    Ok(json!({
        "revision": revision,
        "tools": names,
        "text": text,
        "structured": result.structured_content,
    }))
}

async fn connect(job: &Job) -> Result<RunningService<RoleClient, ClientConfig>, Box<dyn Error>> {
    let (lifecycle, me) = lifecycle(&job.mode)?;
    let client = match (&job.stdio, &job.http) {
        (Some(line), None) => {
            let (program, arguments) = line.split_first().ok_or("an empty stdio command")?;
            let mut command = Command::new(program);
            command.args(arguments);
            me.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
        }
        (None, Some(url)) => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            me.serve_with_lifecycle(transport, lifecycle).await?
        }
        _ => return Err("a job names stdio or http".into()),
    };
    Ok(client)
}

fn lifecycle(mode: &str) -> Result<(ClientLifecycleMode, ClientConfig), Box<dyn Error>> {
    let mut me = ClientConfig::default();
    let newest = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match mode {
        "initialize" => {
            me.protocol_version = ProtocolVersion::V_2026_07_28;
            ClientLifecycleMode::Initialize
        }
        "auto" => ClientLifecycleMode::Auto { preferred_versions: newest, legacy_version: None },
        "discover" => ClientLifecycleMode::Discover { preferred_versions: newest },
        date => {
            me.protocol_version = serde_json::from_value(json!(date))?;
            ClientLifecycleMode::Initialize
        }
    };
    Ok((lifecycle, me))
}
