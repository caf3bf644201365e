//! Listening, and what is printed about it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use sabir::{BindError, HttpServer, HttpSettings};
use sabir_engine::Engine;

use super::certificates::scheme;
use crate::commands::secrets::VARIABLE;
use crate::config;
use crate::report::{Failure, say};
use crate::shell;

/// Whether the server needs no authentication.
pub(super) fn is_open(settings: &HttpSettings) -> bool {
    settings.tokens.is_empty() && settings.authenticate.is_none()
}

/// Listens, and prints the URL and a command that adds it to a client.
pub(super) async fn bind(
    engine: &Arc<Engine>,
    settings: HttpSettings,
    token: Option<&TokenOrigin>,
) -> Result<HttpServer, Failure> {
    let is_open = is_open(&settings);
    let (endpoint, scheme) = (settings.endpoint.clone(), scheme(&settings));
    let is_websocket = settings.only_websocket;
    let server = HttpServer::bind(engine.clone(), settings).await.map_err(|error| {
        let hint = match error {
            BindError::Public(_) => Some("require a --token, or add --allow-public"),
            BindError::Plain(_) => {
                Some("add [tls] to the file, or --behind-proxy if a proxy terminates TLS")
            }
            BindError::System { .. } => {
                Some("choose another address, e.g. --http 7332; `sabir doctor` looks at the port")
            }
        };
        Failure::Other { what: error.to_string(), hint }
    })?;
    let address = server.address();
    if is_open && !address.ip().is_loopback() {
        say("warning: other hosts can use this server without authentication");
    }
    let name = &engine.settings().server.name;
    if is_websocket {
        say(&format!("serving `{name}` on {scheme}://{address}"));
        return Ok(server);
    }
    say(&format!("serving `{name}` on {scheme}://{address}{endpoint}"));
    say(&format!("  {}", client_line(name, scheme, address, &endpoint, token)));
    if let Some(TokenOrigin::CommandLine) = token {
        say(&format!("  export {VARIABLE} with this token where the client runs"));
    }
    Ok(server)
}

/// Where the token for HTTP clients comes from.
pub(super) enum TokenOrigin {
    CommandLine,
    File(PathBuf),
    Variable(String),
}

impl TokenOrigin {
    /// The environment variable in which a client finds it.
    pub(super) fn variable(&self) -> &str {
        match self {
            Self::Variable(name) => name,
            Self::CommandLine | Self::File(_) => VARIABLE,
        }
    }
}

/// The command that adds this server to a client. A token is never shown: the client reads its
/// variable, or the shell its file.
fn client_line(
    name: &str,
    scheme: &str,
    mut address: SocketAddr,
    endpoint: &str,
    token: Option<&TokenOrigin>,
) -> String {
    if address.ip().is_unspecified() {
        // An address for this machine; for others the user has to write its name.
        address.set_ip(if address.is_ipv6() {
            Ipv6Addr::LOCALHOST.into()
        } else {
            Ipv4Addr::LOCALHOST.into()
        });
    }
    let url = shell::quoted(&format!("{scheme}://{address}{endpoint}"));
    let header = match token {
        Some(TokenOrigin::File(path)) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let path = shell::quoted(&path.to_string_lossy());
            format!(" --header \"Authorization: Bearer $(cat {path})\"")
        }
        Some(origin) => format!(" --header 'Authorization: Bearer ${{{}}}'", origin.variable()),
        None => String::new(),
    };
    format!("claude mcp add --transport http {} {url}{header}", config::plain(name))
}
