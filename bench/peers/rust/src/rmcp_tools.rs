//! The tools of the two rmcp peers.
//!
//! Twenty-one methods are written out, because `#[tool_router]` does not expand macros in its block.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use sabir_peers::{Echo, Move, Search};

/// The server. It has no state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoServer;

#[tool_router(vis = "pub(crate)")]
impl EchoServer {
    #[tool(description = "Says what it is told")]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Waits once, then says what it is told")]
    async fn wait(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        tokio::task::yield_now().await;
        text
    }

    #[tool(description = "Looks for something")]
    async fn search_1(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_1(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_2(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_2(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_3(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_3(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_4(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_4(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_5(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_5(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_6(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_6(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_7(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_7(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_8(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_8(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_9(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }

    #[tool(description = "Moves something")]
    async fn move_9(&self, Parameters(wanted): Parameters<Move>) -> String {
        wanted.answer()
    }

    #[tool(description = "Looks for something")]
    async fn search_10(&self, Parameters(search): Parameters<Search>) -> String {
        search.answer()
    }
}
