//! A request, and its options.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use sabir_wire::types::{ClientCapabilities, Level};
use sabir_wire::{Era, Id, Meta, Method, Raw, Request, Revision, write_request};

use crate::config::ClientConfig;

/// A request to a server, in the shape of the newest revision. It is sent in the server's revision.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The method and its params.
    pub body: RequestBody,
    /// The options of the call.
    pub options: CallOptions,
}

/// The method of a request, and its params.
#[derive(Clone, Debug)]
pub enum RequestBody {
    /// A method of the protocol.
    Known(Request),
    /// Another method, such as one of an extension. Its params are passed on as they are, with the
    /// metadata of the request added.
    Other {
        /// The name of the method.
        method: Box<str>,
        /// The params, an object.
        params: Option<Raw>,
    },
}

/// The options of a call. The default is that of the client.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// Members of `_meta` to pass on, such as the trace context. The members that the protocol
    /// needs are added.
    pub meta: Option<Raw>,
    /// The questions that the server may ask in this call, in the modern era.
    pub capabilities: Option<ClientCapabilities>,
    /// Name and version of the client in this call, in the modern era.
    pub client: Option<Raw>,
    /// The least severe log messages to send for this call, in the modern era.
    pub log_level: Option<Level>,
    /// Ask for progress notifications.
    pub progress: bool,
    /// Instead of [`Limits::call_time`](crate::Limits::call_time).
    pub timeout: Option<Duration>,
    /// Instead of [`Limits::call_max`](crate::Limits::call_max).
    pub max_time: Option<Duration>,
    /// The number of the call on whose behalf this one is made, for a [`Tap`](sabir_wire::Tap); 0
    /// for none.
    pub origin: u64,
    /// The client on whose behalf the call is made: a message of a call that was cancelled may reach
    /// another call of the same number.
    pub client_number: u64,
}

impl CallRequest {
    /// A request with the options of the client.
    pub fn new(request: Request) -> Self {
        Self { body: RequestBody::Known(request), options: CallOptions::default() }
    }

    /// Sets the options.
    #[must_use]
    pub fn with(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// The method.
    pub fn method(&self) -> Method {
        match &self.body {
            RequestBody::Known(request) => request.method(),
            RequestBody::Other { method, .. } => Method::named(method),
        }
    }

    /// The value of the header `Mcp-Name`.
    pub(crate) fn name(&self) -> Option<Cow<'_, str>> {
        match &self.body {
            RequestBody::Known(Request::CallTool(call)) => Some(Cow::Borrowed(&*call.name)),
            RequestBody::Known(Request::GetPrompt(get)) => Some(Cow::Borrowed(&*get.name)),
            RequestBody::Known(Request::ReadResource(read)) => Some(Cow::Borrowed(&*read.uri)),
            RequestBody::Known(Request::GetTask(id) | Request::CancelTask(id)) => {
                Some(Cow::Borrowed(&**id))
            }
            RequestBody::Known(Request::UpdateTask(update)) => Some(Cow::Borrowed(&*update.id)),
            // A task method with raw params also needs the id of its task in the header.
            RequestBody::Other { method, params: Some(params) } if method.starts_with("tasks/") => {
                params.member("taskId")?.read::<String>().ok().map(Cow::Owned)
            }
            _ => None,
        }
    }

    /// Whether a server may ask questions while it works on the request.
    pub(crate) fn may_ask(&self) -> bool {
        match &self.body {
            RequestBody::Known(request) => matches!(
                request,
                Request::CallTool(_)
                    | Request::GetPrompt(_)
                    | Request::ReadResource(_)
                    | Request::TaskResult(_)
            ),
            RequestBody::Other { .. } => true,
        }
    }

    /// Whether the era has the method.
    pub(crate) fn is_in(&self, era: Era) -> bool {
        let RequestBody::Known(request) = &self.body else { return true };
        match request {
            Request::Discover | Request::Listen(_) | Request::UpdateTask(_) => era == Era::Modern,
            Request::Initialize(_)
            | Request::Ping
            | Request::SetLevel(_)
            | Request::Subscribe(_)
            | Request::Unsubscribe(_)
            | Request::TaskResult(_)
            | Request::ListTasks(_) => era == Era::Legacy,
            _ => true,
        }
    }

    /// The message.
    pub(crate) fn write(&self, id: &Id, revision: Revision, config: &ClientConfig) -> Bytes {
        let options = &self.options;
        let capabilities = options.capabilities.as_ref().unwrap_or(&config.capabilities);
        let meta = Meta {
            raw: options.meta.clone(),
            progress_token: options.progress.then(|| id.clone()),
            version: None,
            client: Some(options.client.as_ref().unwrap_or(&config.client).clone()),
            capabilities: Some(capabilities.clone()),
            log_level: options.log_level,
        };
        match &self.body {
            RequestBody::Known(request) => request.write(id, &meta, revision),
            RequestBody::Other { method, params } => {
                let meta = meta.to_raw(revision);
                let params = match &meta {
                    Some(meta) => {
                        let params = params.clone().unwrap_or_default();
                        Some(params.with_members(&[("_meta", Some(meta.text()))]))
                    }
                    None => params.clone(),
                };
                write_request(id, method, params.as_ref())
            }
        }
    }
}

impl From<Request> for CallRequest {
    fn from(request: Request) -> Self {
        Self::new(request)
    }
}
