//! A shop as an axum application: `GET /stock/{article}` for people and programs, `/mcp` for models.
//! Both take their connections from one pool.

pub mod pool; // a small connection pool

use axum::Router;
use axum::extract::{Path, State as RouteState};
use axum::http::StatusCode;
use axum::routing::get;
use sabir::{BadOffer, Error, Handle, HttpService, HttpSettings, Server, State};

use crate::pool::Pool;

/// The application, and what is needed to stop it.
pub struct Shop {
    /// All routes, `/mcp` among them.
    pub router: Router,
    /// The MCP endpoint: stopped before axum waits for its connections.
    pub mcp: HttpService,
    /// The MCP server: closed last.
    pub handle: Handle<Pool>,
}

/// Builds the application. Must be called inside a tokio runtime.
pub fn shop(pool: Pool) -> Result<Shop, BadOffer> {
    let handle = Server::new("shop", env!("CARGO_PKG_VERSION"))
        .state(pool.clone())
        .tool("stock", "Tells how many of an article are in stock", stock)
        .tool("order", "Orders an article", order)
        .handle()?;
    let mcp = handle.http_service(HttpSettings::default());
    let router = Router::new()
        .route("/stock/{article}", get(stock_page))
        .with_state(pool)
        .route_service("/mcp", mcp.clone());
    Ok(Shop { router, mcp, handle })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Stock {
    /// The name of the article
    article: String,
}

async fn stock(State(pool): State<Pool>, Stock { article }: Stock) -> Result<String, Error> {
    let count = pool.get().await?.stock(&article).await;
    let count = count.ok_or_else(|| format!("`{article}` is not sold here"))?;
    Ok(format!("{count} in stock"))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The name of the article
    article: String,
    /// How many are wanted
    #[schemars(range(min = 1))]
    count: u32,
}

async fn order(State(pool): State<Pool>, order: Order) -> Result<String, Error> {
    let Order { article, count } = order;
    let mut connection = pool.get().await?;
    match connection.take(&article, count).await {
        Some(left) => Ok(format!("ordered; {left} left")),
        None => Err(Error::failed(format!("there are not {count} of `{article}` in stock"))),
    }
}

/// The same for people.
async fn stock_page(
    RouteState(pool): RouteState<Pool>,
    Path(article): Path<String>,
) -> Result<String, StatusCode> {
    let mut connection = pool.get().await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let count = connection.stock(&article).await.ok_or(StatusCode::NOT_FOUND)?;
    Ok(format!("{count}\n"))
}

impl std::fmt::Debug for Shop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shop").field("handle", &self.handle).finish_non_exhaustive()
    }
}
