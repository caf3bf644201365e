//! Serves the shop on 127.0.0.1:3000 until Ctrl-C.

use std::error::Error;

use sabir_example_axum::pool::Pool;
use sabir_example_axum::{Shop, shop};
use tokio::net::TcpListener;

#[tokio::main]
#[expect(clippy::print_stderr, reason = "for the person who started it")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::open(4, [("tea", 100), ("coffee", 20)]);
    let Shop { router, mcp, handle } = shop(pool)?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    eprintln!("http://127.0.0.1:3000/stock/tea and http://127.0.0.1:3000/mcp");
    let shutdown = async move {
        let _ = tokio::signal::ctrl_c().await;
        // Ends the event streams of MCP clients, which axum would wait for.
        mcp.stop();
    };
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await?;
    handle.close().await;
    Ok(())
}
