//! Users who log in at a server that Sabir calls for them: whose credentials a call uses, where
//! they are kept, and what a caller without credentials is told.
//!
//! The server is an [upstream](crate::upstream) or an [HTTP API](crate::http). A caller's token for
//! Sabir is never sent to it.

mod ask; // callers who have not logged in
mod auth; // whose credentials are used
mod shared_slot; // credentials that several nodes share
mod vault; // where credentials are kept

pub(crate) use ask::{MissingLogin, missing_login};
pub(crate) use auth::User;
pub use auth::{Connect, LoginServer, UserAuth};
pub use vault::Vault;
