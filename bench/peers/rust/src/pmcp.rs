//! pmcp: typed tools, both eras, its concurrent router with JSON answers.
//!
//! The tools give whole results, because pmcp writes a plain value as JSON text, with quotes.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::serve::ListenerExt;
use pmcp::server::axum_router::{RouterConfig, concurrent_router_with_config};
use pmcp::server::streamable_http_server::StreamableHttpServerConfig;
use pmcp::server::typed_tool::TypedToolWithResult;
use pmcp::types::protocol::{LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28};
use pmcp::types::{CallToolResult, Content, ProtocolVersion};
use pmcp::{Server, ServerBuilder};
use sabir_peers::{Echo, Move, Place, Search};

type Answer = Pin<Box<dyn Future<Output = pmcp::Result<CallToolResult>> + Send>>;

fn said(text: String) -> Answer {
    Box::pin(async { Ok(CallToolResult::new(vec![Content::text(text)])) })
}

fn server() -> pmcp::Result<Server> {
    let eras = [LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28];
    let mut server: ServerBuilder = Server::builder()
        .name("echo-server")
        .version(env!("CARGO_PKG_VERSION"))
        .with_supported_protocol_versions(eras.map(|era| ProtocolVersion(era.to_owned())))
        .tool(
            "echo",
            TypedToolWithResult::new("echo", |Echo { text }, _| said(text))
                .with_description("Says what it is told"),
        );
    for n in 1..=10 {
        let (search, mv) = (format!("search_{n}"), format!("move_{n}"));
        server = server
            .tool(
                search.clone(),
                TypedToolWithResult::new(search, |search: Search, _| said(search.answer()))
                    .with_description("Looks for something"),
            )
            .tool(
                mv.clone(),
                TypedToolWithResult::new(mv, |wanted: Move, _| said(wanted.answer()))
                    .with_description("Moves something"),
            );
    }
    server.build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    match Place::from_args()? {
        Place::Stdio => server()?.run_stdio().await?,
        Place::Http(address) => {
            let settings = RouterConfig {
                server_config: StreamableHttpServerConfig {
                    enable_json_response: true,
                    // A JSON answer is no stream that could be resumed.
                    event_store: None,
                    ..StreamableHttpServerConfig::default()
                },
                ..RouterConfig::default()
            };
            let mcp = concurrent_router_with_config(Arc::new(server()?), settings);
            let router = axum::Router::new().nest("/mcp", mcp);
            let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
                // Without it the peer is slower, not wrong.
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, router).await?;
        }
    }
    Ok(())
}
