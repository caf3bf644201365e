//! An MCP server and an HTTP API that demand tokens, and the authorization server that issues them,
//! on one port.
//!
//! It rotates refresh tokens and accepts each once, and it counts every violation: a token of one user
//! in a call for another, a token of another issuer, a refresh token that is used again, or too early.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The server. It ends with its runtime.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The URL of the MCP endpoint.
    pub url: String,
    /// The base URL of the API, whose operation `GET /whoami` says who calls.
    pub api: String,
    state: Arc<Mutex<State>>,
}

/// The tokens that were issued, and how they were used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    /// Clients that registered.
    pub registrations: usize,
    /// Codes that were redeemed.
    pub logins: usize,
    /// Refresh tokens that were redeemed, by user.
    pub refreshes: BTreeMap<String, usize>,
    /// Refresh tokens that were used after they had been redeemed.
    pub reused: usize,
    /// Refresh tokens that were redeemed in the first half of the life of their access token.
    pub early: usize,
    /// Tokens that were exchanged.
    pub exchanges: usize,
    /// Calls with a valid token.
    pub calls: usize,
    /// Calls with the token of another user.
    pub mixed_up: usize,
    /// Requests with a token that had expired or was revoked.
    pub refused: usize,
    /// Requests with a token that was never issued here.
    pub foreign: usize,
}

impl Issued {
    /// How often the token of a user was renewed.
    pub fn refreshes_of(&self, user: &str) -> usize {
        self.refreshes.get(user).copied().unwrap_or_default()
    }
}

#[derive(Debug)]
struct State {
    origin: String,
    lifetime: Duration,
    /// Code: its user and challenge's `resource`.
    codes: HashMap<String, String>,
    /// Access token: its user and its end.
    access: HashMap<String, (String, Instant)>,
    /// Refresh token: its user, and when it may be used.
    refresh: HashMap<String, (String, Instant)>,
    spent: HashSet<String>,
    issued: Issued,
}

static NUMBER: AtomicU64 = AtomicU64::new(1);

impl Provider {
    /// Starts a server whose access tokens live so long.
    pub async fn start(lifetime: Duration) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(Mutex::new(State {
            origin: origin.clone(),
            lifetime,
            codes: HashMap::new(),
            access: HashMap::new(),
            refresh: HashMap::new(),
            spent: HashSet::new(),
            issued: Issued::default(),
        }));
        let provider = Self { url: format!("{origin}/mcp"), api: format!("{origin}/api"), state };
        let serving = provider.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let provider = serving.clone();
                tokio::spawn(async move {
                    // A client may leave at any time.
                    let _ = provider.answer(stream).await;
                });
            }
        });
        Ok(provider)
    }

    /// The counters so far.
    pub fn issued(&self) -> Issued {
        self.lock().issued.clone()
    }

    /// Makes all access tokens worthless, although they have not expired.
    pub fn revoke(&self) {
        self.lock().access.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let Some(request) = Request::read(&mut stream).await? else { return Ok(()) };
        let response = self.lock().respond(&request);
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    }
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    query: HashMap<String, String>,
    token: Option<String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) async fn read(stream: &mut TcpStream) -> std::io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while bytes.len() < end + length {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let token = header("authorization");
        Ok(Some(Self {
            method,
            path: path.to_owned(),
            query: pairs(query),
            token: token.and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned)),
            body: String::from_utf8_lossy(&bytes[end..end + length]).into_owned(),
        }))
    }
}

impl State {
    fn respond(&mut self, request: &Request) -> String {
        let origin = self.origin.clone();
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/mcp") => self.endpoint(request),
            ("GET", "/api/whoami") => match self.user_of(request) {
                Some(user) => ok(&json!({ "user": self.called(user, request.query.get("as")) })),
                None => response("401 Unauthorized", "", ""),
            },
            ("GET", "/.well-known/oauth-protected-resource/mcp") => ok(&json!({
                "resource": format!("{origin}/mcp"),
                "authorization_servers": [origin],
                "scopes_supported": ["notes"],
            })),
            ("GET", "/.well-known/oauth-authorization-server") => ok(&json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "authorization_response_iss_parameter_supported": true,
                "client_id_metadata_document_supported": true,
            })),
            ("POST", "/register") => {
                self.issued.registrations += 1;
                response("201 Created", "", &json!({ "client_id": fresh("client") }).to_string())
            }
            ("GET", "/authorize") => self.authorize(&request.query),
            ("POST", "/token") => self.token(&pairs(&request.body)),
            _ => response("404 Not Found", "", ""),
        }
    }

    /// Agrees at once, for the user in the parameter `user`.
    fn authorize(&mut self, query: &HashMap<String, String>) -> String {
        let get = |name: &str| query.get(name).cloned().unwrap_or_default();
        let code = fresh("code");
        let user = query.get("user").cloned().unwrap_or_else(|| "ann".to_owned());
        self.codes.insert(code.clone(), user);
        let place = format!(
            "Location: {}?code={code}&state={}&iss={}\r\n",
            get("redirect_uri"),
            get("state"),
            self.origin.replace(':', "%3A").replace('/', "%2F")
        );
        response("302 Found", &place, "")
    }

    fn token(&mut self, form: &HashMap<String, String>) -> String {
        let get = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let user = match get("grant_type") {
            "authorization_code" if !get("code_verifier").is_empty() => {
                self.issued.logins += 1;
                self.codes.remove(get("code"))
            }
            "refresh_token" => {
                let token = get("refresh_token").to_owned();
                let known = self.refresh.remove(&token);
                match &known {
                    Some((user, from)) => {
                        *self.issued.refreshes.entry(user.clone()).or_default() += 1;
                        self.issued.early += usize::from(Instant::now() < *from);
                    }
                    None if self.spent.contains(&token) => self.issued.reused += 1,
                    None => {}
                }
                self.spent.insert(token);
                known.map(|(user, _)| user)
            }
            "client_credentials" => Some("service".to_owned()),
            "urn:ietf:params:oauth:grant-type:token-exchange"
                if get("subject_token_type").ends_with(":access_token")
                    && get("resource") == format!("{}/mcp", self.origin) =>
            {
                self.issued.exchanges += 1;
                get("subject_token").strip_prefix("subject-of-").map(str::to_owned)
            }
            _ => None,
        };
        let Some(user) = user else {
            return response("400 Bad Request", "", r#"{"error":"invalid_grant"}"#);
        };
        let (access, refresh) = (fresh("access"), fresh("refresh"));
        let now = Instant::now();
        self.access.insert(access.clone(), (user.clone(), now + self.lifetime));
        self.refresh.insert(refresh.clone(), (user, now + self.lifetime / 2));
        ok(&json!({
            "access_token": access, "token_type": "Bearer", "refresh_token": refresh,
            "expires_in": self.lifetime.as_secs(), "scope": "notes",
        }))
    }

    /// Whose token a request has.
    fn user_of(&mut self, request: &Request) -> Option<String> {
        let known = request.token.as_ref().and_then(|token| self.access.get(token));
        let valid = known.filter(|(_, end)| Instant::now() < *end).map(|(user, _)| user.clone());
        if let Some(token) = request.token.as_ref().filter(|_| valid.is_none()) {
            let is_ours = token.starts_with("access-");
            self.issued.refused += usize::from(is_ours);
            self.issued.foreign += usize::from(!is_ours);
        }
        valid
    }

    /// Counts a call of `user`, who should be `expected`.
    fn called(&mut self, user: String, expected: Option<&String>) -> String {
        self.issued.calls += 1;
        self.issued.mixed_up += usize::from(expected.is_some_and(|expected| *expected != user));
        user
    }

    /// A legacy server with one tool, `whoami`, whose argument says who should call.
    fn endpoint(&mut self, request: &Request) -> String {
        let Some(user) = self.user_of(request) else {
            let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
            let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"{place}\"\r\n");
            return response("401 Unauthorized", &challenge, "");
        };
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let id = message["id"].clone();
        if id.is_null() {
            return response("202 Accepted", "", "");
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "protected", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [
                { "name": "whoami", "inputSchema": { "type": "object" } },
            ] }),
            "tools/call" => {
                let expected = message["params"]["arguments"]["as"].as_str().map(str::to_owned);
                let user = self.called(user, expected.as_ref());
                json!({ "content": [{ "type": "text", "text": user }] })
            }
            _ => {
                let error = json!({ "code": -32601, "message": "method not found" });
                return ok(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        };
        ok(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }
}

fn ok(body: &Value) -> String {
    response("200 OK", "", &body.to_string())
}

pub(crate) fn response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn fresh(kind: &str) -> String {
    format!("{kind}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The pairs of a query or a form. Percent signs are decoded.
fn pairs(text: &str) -> HashMap<String, String> {
    let decode = |text: &str| {
        let bytes = text.replace('+', " ").into_bytes();
        let mut decoded = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
            match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                Some(byte) if bytes[at] == b'%' => {
                    decoded.push(byte);
                    at += 3;
                }
                _ => {
                    decoded.push(bytes[at]);
                    at += 1;
                }
            }
        }
        String::from_utf8_lossy(&decoded).into_owned()
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}
