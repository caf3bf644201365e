//! Plain requests: POSTs of a message to the endpoint, as nearly all requests are.
//!
//! hyper reads everything that HTTP allows, and MCP clients use little of it. So a connection
//! begins here, where a plain request is parsed in place and answered in one write, whether its
//! call completes at once or has to wait. The first request that is not plain, that is refused, or
//! that is answered with an event stream hands the connection over to hyper for good, with all
//! bytes of that request. Every check runs on every request. hyper is the authority on HTTP: the
//! fuzz target `http_head` gives both the same bytes and fails on one disagreement.

mod head; // what precedes the body

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::SystemTime;

use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use http::Version;
use sabir_budget::memory;
use sabir_wire::Caller;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use self::head::Head;
use super::auth::Authenticating;
use super::reply::{Answer, Reply};
use super::socket::{Socket, TOGETHER};
use super::state::{HttpConnection, InFlight};
use super::{exchange, route};

/// The longest plain request.
const MAX_REQUEST: usize = 64 << 10;

/// The bytes that are read at once.
const ROOM: usize = 8 << 10;

/// A connection with only plain requests so far.
pub(crate) struct Plain<S> {
    socket: Socket<S>,
    connection: Arc<HttpConnection>,
    /// Bytes that were read and not answered.
    read: Bytes,
    /// The caller of the request that begins there, if authentication had to wait.
    established: Option<Caller>,
    /// The buffer for the next read.
    room: BytesMut,
    /// Bytes to be written.
    out: Vec<u8>,
    date: Date,
}

/// What happens next to a connection.
pub(crate) enum Next {
    /// It ends: the peer has disconnected, or the server stops.
    Over,
    /// hyper serves it, with the answer to the first request if that was parsed already.
    Other(Option<Answer>),
}

/// The result of parsing the bytes that were read.
enum Step {
    /// The length of a complete request, and its answer.
    Taken(usize, Answer),
    /// The length of a request that has not arrived in full.
    Short(usize),
    /// The caller of the request must be established first.
    Unknown(Authenticating),
    /// The request is not plain.
    Other,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Plain<S> {
    pub(crate) fn new(socket: Socket<S>, connection: Arc<HttpConnection>) -> Self {
        let (read, room, out) = (Bytes::new(), BytesMut::new(), Vec::new());
        Self { socket, connection, read, established: None, room, out, date: Date::default() }
    }

    /// Serves as long as all requests are plain.
    pub(crate) async fn serve(&mut self) -> Next {
        loop {
            if self.read.is_empty() {
                // Answers to pipelined requests are written together, before we wait for more.
                if self.flush().await.is_err() || !self.read().await {
                    return Next::Over;
                }
            }
            match self.step() {
                Step::Taken(length, answer) => {
                    let answer = match self.wait(answer).await {
                        Some(answer) => answer,
                        None => return Next::Over,
                    };
                    let Some((reply, body)) = answer.at_once() else {
                        return self.leave(Some(answer)).await;
                    };
                    self.read.advance(length);
                    self.socket.end_head();
                    self.established = None;
                    let date = self.date.at(self.connection.state.clock.now());
                    write_head(&mut self.out, reply, body.len(), date);
                    let body = body.clone();
                    if self.write(&body).await.is_err() {
                        return Next::Over;
                    }
                }
                Step::Short(length) => {
                    if self.flush().await.is_err() {
                        return Next::Over;
                    }
                    if !self.fill(length).await {
                        return Next::Other(None);
                    }
                }
                Step::Unknown(establishing) => {
                    let in_flight = InFlight::begin(&self.connection);
                    match self.meanwhile(establishing).await {
                        Some(Ok(caller)) => self.established = Some(caller),
                        Some(Err(_)) => return self.leave(None).await,
                        None => return Next::Over,
                    }
                    drop(in_flight);
                }
                Step::Other => return self.leave(None).await,
            }
        }
    }

    /// The socket, which yields the bytes again that were not answered.
    pub(crate) fn into_socket(self) -> Socket<S> {
        self.socket.again(self.read)
    }

    /// Hands the connection over to hyper, after the answers of this reader are sent.
    async fn leave(&mut self, answer: Option<Answer>) -> Next {
        match self.flush().await {
            Ok(()) => Next::Other(answer),
            Err(_) => Next::Over,
        }
    }

    /// Parses and answers the request that was read, after every check that other requests go
    /// through.
    fn step(&self) -> Step {
        let state = &self.connection.state;
        let limits = &state.settings.limits;
        let mut room = [const { MaybeUninit::uninit() }; head::MAX_HEADERS];
        let Some(head) = Head::read(&self.read, &state.settings.endpoint, &mut room) else {
            return Step::Other;
        };
        let max_body = MAX_REQUEST.min(state.engine.settings().engine_limits.message_size);
        if head.length > limits.head || head.body > max_body {
            return Step::Other;
        }
        let is_admitted = !state.settings.only_websocket
            && state.guard.check_origin(None, Version::HTTP_11, &head).is_ok()
            && route::check_running(state).is_ok()
            && exchange::check(&head).is_ok();
        if !is_admitted {
            return Step::Other;
        }
        let length = head.length + head.body;
        let client = self.connection.client(&head);
        if let Err(refusal) = self.connection.admit(client, &head) {
            // A flood is answered here, where that is cheapest.
            return match length > self.read.len() {
                true => Step::Short(length),
                false => {
                    state.denials.log(
                        state.clock.now(),
                        &refusal,
                        &state.settings.endpoint,
                        client,
                    );
                    Step::Taken(length, refusal.into())
                }
            };
        }
        let certified = self.connection.certified.as_ref();
        let known = || state.authentication.known(&head, certified);
        let caller = match self.established.clone().map(Ok).or_else(known) {
            Some(Ok(caller)) => caller,
            Some(Err(_)) => return Step::Other,
            None => {
                let establishing = state.authentication.establish(&head);
                return establishing.map_or(Step::Other, Step::Unknown);
            }
        };
        let caller = self.connection.caller(caller, client);
        if length > self.read.len() {
            return Step::Short(length);
        }
        let body = self.read.slice(head.length..length);
        state.floods.note_request(client);
        let in_flight = InFlight::begin(&self.connection);
        let message = exchange::parse(&body, state.parsing());
        Step::Taken(length, exchange::answer(in_flight, caller, &head, message))
    }

    /// Waits for an answer. `None` if the peer disconnects, which cancels the call.
    async fn wait(&mut self, answer: Answer) -> Option<Answer> {
        let Answer::Later(reply) = answer else { return Some(answer) };
        self.meanwhile(reply).await.map(Answer::Now)
    }

    /// Waits for a future of a request, and reads ahead meanwhile. `None` if the peer disconnects,
    /// which is noticed unless it has sent [`MAX_REQUEST`] bytes of further requests.
    async fn meanwhile<T>(&mut self, mut wanted: impl Future<Output = T> + Unpin) -> Option<T> {
        if self.flush().await.is_err() {
            return None;
        }
        let mut ahead = BytesMut::new();
        // Requests that were read ahead before count, too.
        let room = MAX_REQUEST.saturating_sub(self.read.len());
        let wanted = loop {
            let left = room.saturating_sub(ahead.len());
            let mut rest = (&mut ahead).limit(left);
            tokio::select! {
                biased;
                wanted = &mut wanted => break wanted,
                read = self.socket.read_buf(&mut rest), if left > 0 => {
                    if read.unwrap_or(0) == 0 {
                        return None;
                    }
                }
            }
        };
        if !ahead.is_empty() {
            let mut all = BytesMut::with_capacity(self.read.len() + ahead.len());
            all.extend_from_slice(&self.read);
            all.extend_from_slice(&ahead);
            self.read = all.freeze();
        }
        Some(wanted)
    }

    /// Writes the body of an answer after its head, now or with the next answer.
    async fn write(&mut self, body: &Bytes) -> io::Result<()> {
        if body.len() <= TOGETHER {
            self.out.extend_from_slice(body);
            return if self.out.len() > MAX_REQUEST { self.flush().await } else { Ok(()) };
        }
        self.socket.write_all_buf(&mut Buf::chain(&*self.out, &**body)).await?;
        self.out.clear();
        self.socket.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.socket.write_all(&self.out).await?;
        self.out.clear();
        self.out.shrink_to(ROOM);
        // TLS may have buffered data.
        self.socket.flush().await
    }

    /// Waits for more bytes. `false` if the peer has disconnected, or the server stops.
    async fn read(&mut self) -> bool {
        self.read = Bytes::new();
        // Reuses the memory if it is no longer referenced.
        if !self.room.try_reclaim(ROOM) {
            self.room = BytesMut::with_capacity(ROOM);
        }
        let mut reading = pin!(self.socket.read_buf(&mut self.room));
        let activity = self.connection.activity.as_ref();
        let is_told = || activity.is_some_and(|activity| activity.is_told());
        let read = poll_fn(|cx| match is_told() {
            true => Poll::Ready(Ok(0)),
            false => reading.as_mut().poll(cx),
        });
        let length = read.await.unwrap_or(0);
        self.read = self.room.split().freeze();
        length > 0
    }

    /// Waits for the rest of a request of this length. `false` if it does not arrive in time.
    async fn fill(&mut self, length: usize) -> bool {
        // Without memory for it, the handler behind hyper refuses it.
        let Ok(hold) = memory().take(length) else { return false };
        let in_flight = InFlight::begin(&self.connection);
        let mut all = BytesMut::with_capacity(length);
        all.extend_from_slice(&self.read);
        // The time limit is for the whole body, not for each piece.
        let reading = async {
            while all.len() < length {
                if self.socket.read_buf(&mut all).await.unwrap_or(0) == 0 {
                    return false;
                }
            }
            true
        };
        let is_whole = match &in_flight.connection.activity {
            Some(activity) => activity.body_in_time(reading).await.unwrap_or(false),
            None => reading.await,
        };
        self.read = hold.keep(all.freeze());
        is_whole
    }
}

/// Writes the head of a response, as hyper would.
fn write_head(out: &mut Vec<u8>, reply: &Reply, length: usize, date: &str) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(reply.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(reply.status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in reply.body.headers().iter().chain(&reply.headers) {
        write_line(out, name.as_str(), value.as_bytes());
    }
    write_line(out, "content-length", itoa::Buffer::new().format(length).as_bytes());
    write_line(out, "date", date.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The date for answers, formatted again when the clock has ticked.
#[derive(Default)]
struct Date {
    tick: u64,
    text: String,
}

impl Date {
    fn at(&mut self, tick: u64) -> &str {
        if self.tick != tick {
            self.tick = tick;
            self.text = httpdate::fmt_http_date(SystemTime::now());
        }
        &self.text
    }
}
