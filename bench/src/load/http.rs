//! One client of HTTP or WebSocket with many connections on one thread. Each connection sends its next request when
//! the previous one is answered; every answer is checked.

mod answer; // parse a response
mod frames; // the same over WebSocket

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as Blocking};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use self::answer::{Answer, read_answer};
use self::frames::{frame, read_frame, shake_hands};
use super::Measured;
use super::exchange::{Ask, Checker, Era, FIRST_ID, Template};

/// A load on a server.
#[derive(Clone, Debug)]
pub struct Job {
    /// The server's address.
    pub address: SocketAddr,
    /// The era of the requests.
    pub era: Era,
    /// The request that is sent.
    pub ask: Ask,
    /// The number of connections.
    pub connections: usize,
    /// How long requests are sent.
    pub time: Duration,
    /// How requests are sent.
    pub way: Way,
}

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each as a POST, on a connection that is kept alive.
    Http,
    /// Each as a frame of a WebSocket.
    WebSocket,
}

/// A connection and the request in flight.
struct Connection {
    stream: TcpStream,
    request: Template,
    id: u64,
    written: usize,
    length: usize,
    sent: Instant,
    input: Vec<u8>,
    read: Reader,
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this time.
    Time(Duration),
    /// After this many answers over all connections.
    Answers(usize),
}

/// Open connections, after their handshakes.
pub struct Client {
    poll: Poll,
    connections: Vec<Connection>,
    checker: Checker,
    /// Whether it waits for answers in `epoll_wait` instead of polling without a pause.
    sleeps: bool,
    /// The buffer for reads.
    room: Vec<u8>,
}

/// The most bytes of one read.
const ROOM: usize = 64 << 10;

/// Sends requests until the job's time is over.
pub fn run(job: &Job) -> Result<Measured, String> {
    Client::open(job)?.run(Until::Time(job.time))
}

impl Client {
    /// Opens all connections of a job, with their handshakes.
    pub fn open(job: &Job) -> Result<Self, String> {
        let poll = Poll::new().map_err(lost)?;
        let mut connections = Vec::new();
        for at in 0..job.connections {
            let mut connection = Connection::open(job).map_err(lost)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registry = poll.registry();
            registry.register(&mut connection.stream, Token(at), interest).map_err(lost)?;
            connections.push(connection);
        }
        let checker = Checker::new(job.ask.clone());
        // A single connection waits, as clients do. Many connections are polled without a pause:
        // otherwise the server would pay for waking the generator with every answer, which is
        // expensive on a virtual machine.
        let sleeps = job.connections == 1;
        Ok(Self { poll, connections, checker, sleeps, room: vec![0; ROOM] })
    }

    /// Waits for answers instead of polling without a pause, so that a server that shares the core
    /// can use the rest of it.
    pub fn sleeping(self) -> Self {
        Self { sleeps: true, ..self }
    }

    /// Sends requests over all connections until the load ends.
    pub fn run(&mut self, until: Until) -> Result<Measured, String> {
        let mut latencies = Vec::with_capacity(1 << 20);
        let mut events = Events::with_capacity(1024);
        let start = Instant::now();
        let mut open = self.connections.len();
        let mut asked = open;
        for connection in &mut self.connections {
            connection.id += 1;
            connection.ask(start).map_err(lost)?;
        }
        let patience = if self.sleeps { PATIENCE } else { Duration::ZERO };
        let (mut end, mut last) = (start, start);
        while open > 0 {
            self.poll.poll(&mut events, Some(patience)).map_err(lost)?;
            if events.is_empty() {
                match last.elapsed() < PATIENCE {
                    true => continue,
                    false => return Err(format!("no answer (waited {} s)", PATIENCE.as_secs())),
                }
            }
            last = Instant::now();
            for event in &events {
                let connection = &mut self.connections[event.token().0];
                if event.is_writable() {
                    connection.write().map_err(lost)?;
                }
                if !event.is_readable()
                    || !connection.take_answer(&mut self.room, &mut self.checker)?
                {
                    continue;
                }
                let now = Instant::now();
                let took = (now - connection.sent).as_nanos();
                latencies.push(u32::try_from(took).unwrap_or(u32::MAX));
                let more = match until {
                    Until::Time(time) => now - start < time,
                    Until::Answers(count) => asked < count,
                };
                if more {
                    asked += 1;
                    connection.id += 1;
                    connection.ask(now).map_err(lost)?;
                } else {
                    open -= 1;
                    end = now;
                }
            }
        }
        Ok(Measured::new(latencies, end - start))
    }
}

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

fn lost(error: io::Error) -> String {
    format!("connection error: {error}")
}

impl Connection {
    fn open(job: &Job) -> io::Result<Self> {
        let mut stream = Blocking::connect(job.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let message = job.ask.message(job.era);
        let (request, read): (_, Reader) = match (job.way, job.era) {
            (Way::Http, era) => {
                let session = match era {
                    Era::Legacy => initialize(&mut stream, job.address)?,
                    Era::Modern => None,
                };
                (http_post(job.address, &headers(job, session.as_deref()), &message), read_answer)
            }
            (Way::WebSocket, era) => {
                shake_hands(&mut stream, job.address)?;
                if era == Era::Legacy {
                    exchange(&mut stream, &frame(INITIALIZE), 1, read_frame)?;
                    stream.write_all(&frame(INITIALIZED))?;
                }
                (frame(&message), read_frame)
            }
        };
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: TcpStream::from_std(stream),
            length: request.len(),
            request: Template::new(request, FIRST_ID),
            id: FIRST_ID,
            written: 0,
            sent: Instant::now(),
            input: Vec::with_capacity(64 << 10),
            read,
        })
    }

    fn ask(&mut self, now: Instant) -> io::Result<()> {
        (self.sent, self.written) = (now, 0);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        while self.written < self.length {
            let rest = &self.request.with(self.id)[self.written..];
            match (&self.stream).write(rest) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what has arrived. Returns whether the answer is complete; a wrong answer is an error.
    fn take_answer(&mut self, room: &mut [u8], checker: &mut Checker) -> Result<bool, String> {
        loop {
            match (&self.stream).read(room) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(read) => {
                    self.input.extend_from_slice(&room[..read]);
                    // A short read means that there is no more for now.
                    if read < room.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(lost(error)),
            }
        }
        let Some(answer) = (self.read)(&self.input)? else { return Ok(false) };
        if answer.status != 200 {
            return Err(format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body)));
        }
        checker.check(self.id, &answer.body)?;
        let length = answer.length;
        self.input.drain(..length);
        Ok(true)
    }
}

fn headers(job: &Job, session: Option<&str>) -> String {
    let mut headers = format!("MCP-Protocol-Version: {}\r\n", job.era.revision());
    match (job.era, session) {
        (Era::Modern, _) => {
            headers += &format!("Mcp-Method: {}\r\n", job.ask.method());
            if let Some(tool) = job.ask.tool() {
                headers += &format!("Mcp-Name: {tool}\r\n");
            }
        }
        (Era::Legacy, Some(session)) => headers += &format!("Mcp-Session-Id: {session}\r\n"),
        (Era::Legacy, None) => {}
    }
    headers
}

/// An HTTP request with the headers of a usual client.
pub fn http_post(address: SocketAddr, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nUser-Agent: bench/1.0\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Performs the legacy handshake. Returns the session id, if the server keeps sessions.
pub fn initialize(stream: &mut Blocking, address: SocketAddr) -> io::Result<Option<String>> {
    let session = exchange(stream, &http_post(address, "", INITIALIZE), 1, read_answer)?;
    let mut headers = "MCP-Protocol-Version: 2025-11-25\r\n".to_owned();
    if let Some(session) = &session {
        headers += &format!("Mcp-Session-Id: {session}\r\n");
    }
    exchange(stream, &http_post(address, &headers, INITIALIZED), 1, read_answer)?;
    Ok(session)
}

/// Opens `count` sessions in batches, without completing their handshakes. Returns the id of the last.
pub fn open_sessions(
    stream: &mut Blocking,
    address: SocketAddr,
    count: usize,
) -> io::Result<Option<String>> {
    const BATCH: usize = 100;
    let requests = http_post(address, "", INITIALIZE).repeat(BATCH);
    let mut last = None;
    for _ in 0..count.div_ceil(BATCH) {
        last = exchange(stream, &requests, BATCH, read_answer)?;
    }
    Ok(last)
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"#,
    r#""protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"1.0.0"}}}"#
);

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Parses the answer at the beginning of the bytes; `None` if it is not complete.
type Reader = fn(&[u8]) -> Result<Option<Answer<'_>>, String>;

/// Sends requests and reads `answers` responses. Returns the session id of the last response.
fn exchange(
    stream: &mut Blocking,
    requests: &[u8],
    answers: usize,
    read_next: Reader,
) -> io::Result<Option<String>> {
    stream.write_all(requests)?;
    let (mut input, mut chunk) = (Vec::new(), [0; 16 << 10]);
    let (mut session, mut left) = (None, answers);
    while left > 0 {
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        input.extend_from_slice(&chunk[..read]);
        while let Some(answer) = read_next(&input).map_err(io::Error::other)? {
            if answer.status >= 300 {
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                return Err(io::Error::other(format!("{}: {body}", answer.status)));
            }
            session = answer.session;
            let length = answer.length;
            input.drain(..length);
            left -= 1;
        }
    }
    Ok(session)
}
