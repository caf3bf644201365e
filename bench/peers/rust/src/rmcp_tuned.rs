//! rmcp with all settings chosen for speed.
//!
//! Differences to the default: the router of the tools is built once instead of for every request;
//! answers are JSON (rmcp supports that only without legacy sessions, so there are none);
//! TCP_NODELAY; mimalloc.

mod rmcp_tools;

use std::error::Error;
use std::sync::{Arc, LazyLock};

use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool_handler};
use sabir_peers::Place;

use crate::rmcp_tools::EchoServer;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static TOOLS: LazyLock<ToolRouter<EchoServer>> = LazyLock::new(EchoServer::tool_router);

#[tool_handler(router = TOOLS, name = "echo-server")]
impl ServerHandler for EchoServer {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    match Place::from_args()? {
        Place::Stdio => {
            EchoServer.serve(stdio()).await?.waiting().await?;
        }
        Place::Http(address) => {
            let service = StreamableHttpService::new(
                || Ok(EchoServer),
                Arc::new(NeverSessionManager::default()),
                StreamableHttpServerConfig::default()
                    .with_legacy_session_mode(false)
                    .with_json_response(true),
            );
            let router = axum::Router::new().nest_service("/mcp", service);
            let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
                // Only the speed depends on it.
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, router).await?;
        }
    }
    Ok(())
}
