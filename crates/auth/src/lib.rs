//! Callers of an HTTP server by OAuth access tokens: an MCP server as a resource server. Start at
//! [`ResourceServer`].
//!
//! Access tokens are JSON Web Tokens that an issuer signs, or opaque tokens that the issuer is
//! asked about. `claims`, `keys`, `scopes` and `documents` do no I/O; `issuer` and `introspection`
//! send requests to the issuer. Tokens are never kept: verdicts are cached under their digests.
//!
//! An [`Overseer`] limits and logs the calls.

mod audit; // one line per call
mod cache; // verdicts on tokens, bounded
mod certificate; // callers by the certificates of their connections
mod claims; // the claims of a token, and whether they are valid here
mod documents; // metadata and challenges for clients
mod introspection; // asking the issuer about an opaque token
mod issuer; // the issuer's metadata and keys, fetched and kept
mod keys; // the keys of an issuer
mod limits; // how often callers may call
mod overseer; // limits and audit, as the engine sees them
mod resource_server; // establishes the caller
mod scopes; // broad scopes, and roles
mod settings; // how tokens are checked
mod shared_limits; // limits that several nodes count together
mod token; // a parsed JSON Web Token

pub use audit::AuditSettings;
pub use certificate::certificate_caller;
pub use limits::{Limit, Per};
pub use overseer::Overseer;
pub use resource_server::ResourceServer;
pub use scopes::{BadHierarchy, Grants, Role};
pub use settings::{BadSettings, Introspection, Settings, check_scope, is_algorithm};
