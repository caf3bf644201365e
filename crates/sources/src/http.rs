//! HTTP APIs as tools: one request ([`RequestSource`]), or a whole API ([`ApiSource`]).
//!
//! Both send through a [`Sender`]: allowed hosts and addresses, credentials, time and size limits,
//! retries of requests that may be repeated, and `Retry-After`. The caller's token for Sabir is
//! never sent on: a [`Sender`] does not know it. A caller may have a token for the API itself
//! ([`UserLogin`]).

mod api; // a whole API
mod catalog; // which operations are offered, and how
mod credential; // how we authenticate
mod folder; // files that may be sent
mod large; // three tools for many operations
mod login; // users who log in at the API
mod load; // reads a description and the files that it refers to
mod pattern; // names with `*`
mod reply; // the result for the client
mod request; // one request as a tool
mod sender; // sends requests
mod stored; // answers that are too long for a result
mod template; // the texts of a request

pub use api::{Api, ApiSource, host_of, tools};
pub use catalog::{Catalog, Choice, Filter, LeftOut, Listed, Offered};
pub use credential::{Auth, Credential, Secret};
pub use folder::Folder;
pub use load::{Loader, Location};
pub use login::UserLogin;
pub use reply::ReplyLimits;
pub use request::{BodyForm, RequestSource, Selection, SingleOutput, SingleRequest};
pub use sender::{Sender, SenderSettings};
pub use template::{BadTemplate, JsonTemplate, UrlTemplate};
