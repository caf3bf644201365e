//! rmcp as its own examples show it: `#[tool_handler]`, `StreamableHttpService` with its
//! default settings (sessions, answers as event streams), `axum::serve`.
//!
//! Unlike the examples, the runtime has one thread, as for every peer.

mod rmcp_tools;

use std::error::Error;

use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool_handler};
use sabir_peers::Place;

use crate::rmcp_tools::EchoServer;

#[tool_handler(name = "echo-server")]
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
                LocalSessionManager::default().into(),
                StreamableHttpServerConfig::default(),
            );
            let router = axum::Router::new().nest_service("/mcp", service);
            let listener = tokio::net::TcpListener::bind(address).await?;
            axum::serve(listener, router).await?;
        }
    }
    Ok(())
}
