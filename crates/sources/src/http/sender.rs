//! Sends requests to an API.
//!
//! A request is repeated only if it certainly had no effect, or may have it twice: it was not sent,
//! its method is idempotent, or it has an `Idempotency-Key`. The API's `Retry-After` is honoured,
//! also by later calls: they wait, or fail at once if their time is too short.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use sabir_budget::{CallQueue, memory};
use sabir_client::{AuthError, OAuth, SendError};
use sabir_openapi::{Answer, Request};
use sabir_outbound::{Error, HttpClient, Limits, Policy};
use sabir_registry::{Ask, Context};
use sabir_wire::Caller;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::credential::Auth;

/// How often a request is repeated at most.
const RETRIES: u32 = 2;

/// The wait before the first repetition; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The longest wait that an API can ask for. A longer one counts as this.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How a [`Sender`] behaves.
#[derive(Clone, Debug)]
pub struct SenderSettings {
    /// The hosts and addresses that may be reached.
    pub policy: Policy,
    /// How we authenticate.
    pub auth: Vec<Auth>,
    /// The time of one call, repetitions included.
    pub timeout: Duration,
    /// The longest answer in bytes, after decompression.
    pub max_response: u64,
    /// How many requests are sent at once. Further ones wait.
    pub concurrency: usize,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            auth: Vec::new(),
            timeout: Duration::from_secs(30),
            max_response: 16 << 20,
            concurrency: 16,
        }
    }
}

/// How many requests may wait for others. Further ones fail.
const MAX_WAITING: usize = 1024;

/// Sends requests to an API.
#[derive(Debug)]
pub struct Sender {
    client: HttpClient,
    settings: SenderSettings,
    queue: CallQueue,
    /// No request is sent before: the API asked to wait.
    not_before: Mutex<Option<Instant>>,
}

impl Sender {
    /// A sender with these settings.
    pub fn new(settings: SenderSettings) -> Result<Self, Error> {
        let client = HttpClient::new(settings.policy.clone())?;
        let queue = CallQueue::new(settings.concurrency, MAX_WAITING);
        Ok(Self { client, settings, queue, not_before: Mutex::new(None) })
    }

    /// Checks that a URL may be reached, as far as it is known before its name is resolved.
    pub fn check(&self, url: &str) -> Result<(), Error> {
        self.client.check(url)
    }

    /// Adds a credential.
    pub fn add_auth(&mut self, auth: Auth) {
        self.settings.auth.push(auth);
    }

    /// Sends a request of a call and reads the answer. `schemes` are those that the operation
    /// accepts; `None`: all. The error is for the model.
    pub(super) async fn send(
        &self,
        request: &Request,
        schemes: Option<&[Vec<String>]>,
        is_repeatable: bool,
        context: &Context,
    ) -> Result<Sent, String> {
        let sending = Sending { request, schemes, is_repeatable, user: None };
        let login = self.chosen(schemes).find_map(|auth| auth.credential.login());
        let Some(login) = login else {
            let sent = self.send_in_turn(&sending, &context.caller).await;
            return sent.map(Sent::Answered).map_err(|failure| failure.to_string());
        };
        let user = login.credentials(context)?;
        // A login may take minutes, so it does not hold a place in the queue.
        if let Some(ask) = login.ask(&user, context).await? {
            return Ok(Sent::Asks(ask));
        }
        let sending = Sending { user: Some(&user), ..sending };
        match self.send_in_turn(&sending, &context.caller).await {
            Ok(answer) => Ok(Sent::Answered(answer)),
            Err(Failure::Token(AuthError::LoginNeeded)) => {
                // The API may demand a new login, or one with more scopes.
                let ask = login.ask(&user, context).await?;
                ask.map(Sent::Asks).ok_or_else(|| login.describe(&AuthError::LoginNeeded))
            }
            Err(Failure::Token(error)) => Err(login.describe(&error)),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// Sends a request when it is its turn.
    async fn send_in_turn(
        &self,
        sending: &Sending<'_>,
        caller: &Caller,
    ) -> Result<Answer, Failure> {
        let deadline = Instant::now() + self.settings.timeout;
        let too_late = |_| format!("no answer within {:?}", self.settings.timeout);
        let queued = self.queue.enter(caller.share()).map_err(|full| full.to_string())?;
        let turn = timeout_at(deadline, queued).await.map_err(too_late)?;
        let _running = turn.map_err(|full| full.to_string())?;
        self.wait_for_api(deadline).await?;
        let answering = self.send_until_answered(sending, deadline);
        timeout_at(deadline, answering).await.map_err(too_late)?
    }

    async fn send_until_answered(
        &self,
        sending: &Sending<'_>,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let mut wait = FIRST_WAIT;
        let mut was_renewed = false;
        for attempt in 0.. {
            let sent = self.send_once(sending).await?;
            let may_repeat = attempt < RETRIES;
            let (pause, reply) = match sent {
                Err(error) => {
                    let may_be_twice = sending.is_repeatable && is_passing(&error);
                    let repeats = error.is_unsent() || may_be_twice;
                    if !may_repeat || !repeats || is_forbidden(&error) {
                        return Err(error.to_string().into());
                    }
                    (wait, Err(error.to_string().into()))
                }
                Ok(Answered { answer, asked, authorization }) => {
                    let refused = authorization.filter(|_| answer.status == 401 && !was_renewed);
                    if let Some(refused) = refused
                        && self.forget_tokens(sending.schemes, &refused).await
                    {
                        was_renewed = true;
                        continue;
                    }
                    let status = answer.status;
                    let is_passing = [429, 502, 503, 504].contains(&status);
                    // 429 means that nothing was done.
                    let repeats = is_passing && (sending.is_repeatable || status == 429);
                    if !may_repeat || !repeats {
                        return Ok(answer);
                    }
                    (asked.unwrap_or(wait), Ok(answer))
                }
            };
            let until = Instant::now() + pause;
            if until >= deadline {
                return reply;
            }
            sleep_until(until).await;
            wait *= 2;
        }
        Err("the request was not sent".to_owned().into())
    }

    /// Sends a request once.
    async fn send_once(&self, sending: &Sending<'_>) -> Result<Result<Answered, Error>, Failure> {
        let request = sending.request;
        let mut sent = build(request)?;
        for auth in self.chosen(sending.schemes) {
            auth.credential.apply(&mut sent, &self.client).await?;
        }
        let authorization = sent.headers().get(AUTHORIZATION).cloned();
        let limits = Limits {
            head: self.settings.timeout,
            idle: Some(self.settings.timeout),
            total: Some(self.settings.timeout),
            body: self.settings.max_response,
        };
        let sent = match sending.user {
            Some(user) => user.send(&self.client, sent, &limits).await,
            None => self.client.send(sent, &limits).await.map_err(SendError::Http),
        };
        let response = match sent {
            Ok(response) => response,
            Err(SendError::Http(error)) => return Ok(Err(error)),
            Err(SendError::Auth(error)) => return Err(Failure::Token(error)),
        };
        let (head, body) = response.into_parts();
        let mut hold = memory().take_anyway(0);
        let admit = |more| hold.grow(more).map_err(|full| full.to_string());
        let body = match body.read_with(admit).await {
            Ok(body) => body,
            Err(error) => return Ok(Err(error)),
        };
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let asked = header(RETRY_AFTER.as_str()).and_then(retry_after);
        if let Some(asked) = asked
            && matches!(
                head.status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            )
        {
            let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
            *not_before = Some(Instant::now() + asked);
        }
        let answer = Answer::read(head.status.as_u16(), header, body.into(), &request.url);
        Ok(Ok(Answered { answer, asked, authorization }))
    }

    /// The credentials for an operation that accepts these schemes: those of the first alternative
    /// that is complete, or of all if none is.
    fn chosen<'a>(&'a self, schemes: Option<&'a [Vec<String>]>) -> impl Iterator<Item = &'a Auth> {
        let auth = &self.settings.auth;
        let is_known = |name: &String| auth.iter().any(|auth| auth.scheme.as_ref() == Some(name));
        let is_complete = |all: &&Vec<String>| !all.is_empty() && all.iter().all(is_known);
        let complete = schemes.into_iter().flatten().find(is_complete);
        auth.iter().filter(move |auth| match (&auth.scheme, schemes) {
            (Some(name), Some(schemes)) => match complete {
                Some(all) => all.contains(name),
                None => schemes.iter().any(|all| all.contains(name)),
            },
            _ => true,
        })
    }

    /// Forgets the tokens that the API refused. Returns whether another attempt would have others.
    async fn forget_tokens(&self, schemes: Option<&[Vec<String>]>, refused: &HeaderValue) -> bool {
        let mut any = false;
        for auth in self.chosen(schemes) {
            any |= auth.credential.forget(refused).await;
        }
        any
    }

    /// Waits as long as the API asked for, if the call has the time.
    async fn wait_for_api(&self, deadline: Instant) -> Result<(), String> {
        let until = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = until.filter(|until| *until > Instant::now()) else { return Ok(()) };
        if until >= deadline {
            let seconds = (until - Instant::now()).as_secs() + 1;
            return Err(format!("the API asked to wait for {seconds} s before the next request"));
        }
        sleep_until(until).await;
        Ok(())
    }
}

/// The outcome of a request.
pub(super) enum Sent {
    /// The API has answered.
    Answered(Answer),
    /// The caller must log in first.
    Asks(Ask),
}

/// A request, and how it is sent.
struct Sending<'a> {
    request: &'a Request,
    schemes: Option<&'a [Vec<String>]>,
    is_repeatable: bool,
    /// The user whose token it has.
    user: Option<&'a OAuth>,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The user has no token.
    #[error(transparent)]
    Token(AuthError),
    #[error("{0}")]
    Other(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

/// An answer, and what the next attempt needs to know.
struct Answered {
    answer: Answer,
    /// The wait that the API asks for.
    asked: Option<Duration>,
    /// The header with which we authenticated.
    authorization: Option<HeaderValue>,
}

fn build(request: &Request) -> Result<http::Request<Bytes>, String> {
    let method = request.method.as_str();
    let mut builder = http::Request::builder().method(method).uri(&request.url);
    for (name, value) in &request.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is not the name of a header"))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("`{name}` contains a character that a header cannot have"))?;
        builder = builder.header(name, value);
    }
    let headers = builder.headers_mut();
    if let Some(headers) = headers.filter(|headers| !headers.contains_key(USER_AGENT)) {
        let ours = HeaderValue::from_static(concat!("sabir/", env!("CARGO_PKG_VERSION")));
        headers.insert(USER_AGENT, ours);
    }
    let body = Bytes::from(request.body.clone().unwrap_or_default());
    builder.body(body).map_err(|error| format!("the request is not valid: {error}"))
}

/// Whether the same request may succeed a moment later.
fn is_passing(error: &Error) -> bool {
    matches!(error, Error::Transfer(_) | Error::Connect { .. })
}

/// Whether the policy refuses the request, now and later.
fn is_forbidden(error: &Error) -> bool {
    !is_passing(error) && !matches!(error, Error::Timeout { .. })
}

/// Reads `Retry-After`: seconds, or a date.
fn retry_after(value: &str) -> Option<Duration> {
    let wait = match value.trim().parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            date.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST_WAIT))
}
