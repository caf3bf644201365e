//! rmcp as a server behind Sabir's relay: `sabir-upstream-rmcp modern|legacy`, behind a URL if `PORT`
//! is set, else on the standard streams. Both offer the same; they differ in how they ask.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequest, InputRequests, InputRequiredResult, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[derive(Clone, Copy)]
struct Upstream {
    is_modern: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let is_modern = match std::env::args().nth(1).as_deref() {
        Some("modern") => true,
        Some("legacy") => false,
        _ => return Err("expected `modern` or `legacy`".into()),
    };
    let upstream = Upstream { is_modern };
    match std::env::var("PORT") {
        Ok(port) => serve_http(upstream, port.parse()?).await,
        Err(_) => {
            upstream.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
    }
}

async fn serve_http(upstream: Upstream, port: u16) -> Result<(), Box<dyn Error>> {
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(upstream), sessions, config);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(serving);
    }
}

/// A value of the SDK, from its JSON.
fn read<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

impl Upstream {
    /// Asks the user for a name, or the model for a word, in the way of the era.
    async fn ask(
        self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answers = request.input_responses.as_ref();
        if let Some(answer) = answers.and_then(|answers| answers.get("question")) {
            return Ok(CallToolResponse::Complete(read(text(&answer.to_string()))?));
        }
        let question = match &*request.name {
            "ask" => json!({ "method": "elicitation/create", "params": {
                "mode": "form", "message": "Who are you?",
                "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
            } }),
            _ => json!({ "method": "sampling/createMessage", "params": {
                "messages": [{ "role": "user", "content": { "type": "text", "text": "Who are you?" } }],
                "maxTokens": 10,
            } }),
        };
        if self.is_modern {
            let question: InputRequest = read(question)?;
            let questions = InputRequests::from([("question".to_owned(), question)]);
            return Ok(InputRequiredResult::from_input_requests(questions).into());
        }
        let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
        let params = question["params"].clone();
        let answer = match &*request.name {
            "ask" => json!(context.peer.create_elicitation(read(params)?).await.map_err(failed)?),
            #[allow(deprecated, reason = "the legacy era has it")]
            _ => json!(context.peer.create_message(read(params)?).await.map_err(failed)?),
        };
        Ok(CallToolResponse::Complete(read(text(&answer.to_string()))?))
    }
}

impl ServerHandler for Upstream {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources();
        ServerConfig::new(capabilities.build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.is_modern {
            true => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            false => Cow::Owned(vec![ProtocolVersion::V_2025_11_25]),
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let tools = ["echo", "add", "fail", "count", "ask", "sample"].map(tool);
        read(json!({ "tools": tools }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let result = match &*request.name {
            "echo" => text(arguments["message"].as_str().unwrap_or_default()),
            "add" => {
                let sum = arguments["a"].as_i64().zip(arguments["b"].as_i64());
                let sum = sum.map(|(a, b)| a + b);
                json!({ "content": [], "structuredContent": { "result": sum } })
            }
            "fail" => {
                json!({ "content": [{ "type": "text", "text": "on purpose" }], "isError": true })
            }
            "count" => {
                for step in 1..=3 {
                    if let Some(token) = context.meta.get_progress_token() {
                        let progress = ProgressNotificationParam::new(token, f64::from(step));
                        // The receiver may be gone.
                        let _ = context.peer.notify_progress(progress).await;
                    }
                }
                text("done")
            }
            _ => return self.ask(&request, &context).await,
        };
        Ok(CallToolResponse::Complete(read(result)?))
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        read(json!({ "prompts": [{ "name": "review", "arguments": [{ "name": "code" }] }] }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let code = json!(request.arguments)["code"].as_str().unwrap_or_default().to_owned();
        let content = json!({ "type": "text", "text": format!("Please review {code}") });
        let result: GetPromptResult =
            read(json!({ "messages": [{ "role": "user", "content": content }] }))?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        read(json!({ "resources": [{ "uri": "motto://en", "name": "motto" }] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = json!([{ "uri": request.uri, "text": "Serve what you have" }]);
        let result: ReadResourceResult = read(json!({ "contents": contents }))?;
        Ok(result.into())
    }
}
