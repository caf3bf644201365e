//! pmcp with typed tools, both eras, and its concurrent router with JSON answers.
//!
//! The tools return complete results, because pmcp writes a plain string as JSON, with quotes.

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

fn text_result(text: String) -> Answer {
    Box::pin(async { Ok(CallToolResult::new(vec![Content::text(text)])) })
}

fn wait(text: String) -> Answer {
    Box::pin(async {
        tokio::task::yield_now().await;
        Ok(CallToolResult::new(vec![Content::text(text)]))
    })
}

fn server() -> pmcp::Result<Server> {
    let eras = [LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28];
    let mut server: ServerBuilder = Server::builder()
        .name("echo-server")
        .version(env!("CARGO_PKG_VERSION"))
        .with_supported_protocol_versions(eras.map(|era| ProtocolVersion(era.to_owned())))
        .tool(
            "echo",
            TypedToolWithResult::new("echo", |Echo { text }, _| text_result(text))
                .with_description("Says what it is told"),
        )
        .tool(
            "wait",
            TypedToolWithResult::new("wait", |Echo { text }, _| wait(text))
                .with_description("Waits once, then says what it is told"),
        );
    for n in 1..=10 {
        let name = format!("search_{n}");
        server = server.tool(
            name.clone(),
            TypedToolWithResult::new(name, |search: Search, _| text_result(search.answer()))
                .with_description("Looks for something"),
        );
    }
    for n in 1..=9 {
        let name = format!("move_{n}");
        server = server.tool(
            name.clone(),
            TypedToolWithResult::new(name, |wanted: Move, _| text_result(wanted.answer()))
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
                    // Only streams can be resumed, not JSON answers.
                    event_store: None,
                    ..StreamableHttpServerConfig::default()
                },
                ..RouterConfig::default()
            };
            let mcp = concurrent_router_with_config(Arc::new(server()?), settings);
            let router = axum::Router::new().nest("/mcp", mcp);
            let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
                // Only the speed depends on it.
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, router).await?;
        }
    }
    Ok(())
}
