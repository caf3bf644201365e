//! rust-mcp-sdk with its Axum server and JSON answers. Modern era only.
//!
//! The list of tools is created once; the SDK leaves that to its user.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use rust_mcp_axum::{AxumServerOptions, create_axum_server};
use rust_mcp_sdk::macros::{JsonSchema, mcp_tool};
use rust_mcp_sdk::mcp_server::{
    McpServerOptions, ServerHandler, ToMcpServerHandler, server_runtime,
};
use rust_mcp_sdk::schema::schema_utils::CallToolError;
use rust_mcp_sdk::schema::{
    CallToolRequestParams, CallToolResult, Implementation, ListToolsResult,
    ListToolsResultCacheScope, PaginatedRequestParams, RpcError, ServerCapabilities,
    ServerCapabilitiesTools, ServerResult, TextContent, Tool,
};
use rust_mcp_sdk::{McpServer, RequestContext, ServerDetails, StdioTransport, TransportOptions};
use sabir_peers::Place;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The arguments of `echo` and `wait`.
#[mcp_tool(name = "echo", description = "Says what it is told")]
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Echo {
    /// What to say
    text: String,
}

/// The arguments of each `search_N`.
#[mcp_tool(name = "search", description = "Looks for something")]
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Search {
    /// What to look for
    query: String,
    /// Where to look
    folder: Option<String>,
    /// How many to find at most
    limit: Option<u32>,
}

/// The arguments of each `move_N`.
#[mcp_tool(name = "move", description = "Moves something")]
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Move {
    /// What to move
    from: String,
    /// Where to
    to: String,
}

struct EchoServer {
    tools: Vec<Tool>,
}

impl EchoServer {
    fn new() -> Self {
        let description = Some("Waits once, then says what it is told".to_owned());
        let wait = Tool { name: "wait".to_owned(), description, ..Echo::tool() };
        let mut tools = vec![Echo::tool(), wait];
        tools.extend((1..=10).map(|n| Tool { name: format!("search_{n}"), ..Search::tool() }));
        tools.extend((1..=9).map(|n| Tool { name: format!("move_{n}"), ..Move::tool() }));
        Self { tools }
    }
}

#[async_trait]
impl ServerHandler for EchoServer {
    async fn handle_list_tools_request(
        &self,
        _: Option<PaginatedRequestParams>,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ListToolsResult, RpcError> {
        Ok(ListToolsResult {
            tools: self.tools.clone(),
            meta: None,
            next_cursor: None,
            cache_scope: ListToolsResultCacheScope::Public,
            result_type: "complete".to_owned(),
            ttl_ms: 0,
        })
    }

    async fn handle_call_tool_request(
        &self,
        call: CallToolRequestParams,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        let text = match call.name.as_str() {
            "echo" => arguments::<Echo>(call)?.text,
            "wait" => {
                let Echo { text } = arguments(call)?;
                tokio::task::yield_now().await;
                text
            }
            name if name.starts_with("search_") => {
                let Search { query, folder, limit } = arguments(call)?;
                format!("{query} in {folder:?}, at most {limit:?}")
            }
            name if name.starts_with("move_") => {
                let Move { from, to } = arguments(call)?;
                format!("{from} to {to}")
            }
            _ => return Err(CallToolError::unknown_tool(call.name)),
        };
        Ok(CallToolResult::text_content(vec![TextContent::from(text)]).into())
    }
}

fn arguments<T: DeserializeOwned>(call: CallToolRequestParams) -> Result<T, CallToolError> {
    let given = serde_json::Value::Object(call.arguments.unwrap_or_default());
    serde_json::from_value(given).map_err(CallToolError::new)
}

fn details() -> ServerDetails {
    ServerDetails {
        server_info: Implementation {
            name: "echo-server".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            title: None,
            description: None,
            icons: Vec::new(),
            website_url: None,
        },
        capabilities: ServerCapabilities {
            tools: Some(ServerCapabilitiesTools { list_changed: None }),
            ..ServerCapabilities::default()
        },
        instructions: None,
        meta: None,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let handler = EchoServer::new().to_mcp_server_handler();
    match Place::from_args()? {
        Place::Stdio => {
            let options = McpServerOptions {
                server_details: details(),
                transport: StdioTransport::new(TransportOptions::default())?,
                handler,
                message_observer: None,
            };
            server_runtime::create_server(options).start().await?;
        }
        Place::Http(address) => {
            let options = AxumServerOptions {
                host: address.ip().to_string(),
                port: address.port(),
                enable_json_response: Some(true),
                sse_support: false,
                ..AxumServerOptions::default()
            };
            create_axum_server(details(), handler, options).start().await?;
        }
    }
    Ok(())
}
