//! Plain requests: POSTs of a message to the endpoint, as nearly all requests are.
//!
//! hyper reads whatever HTTP allows, and most of that is sent by nobody. So a connection begins
//! here, where a plain request is read as it stands and answered in one write. The first that is
//! anything else, or is refused, or cannot be answered at once, takes the connection over to hyper,
//! with all that was read of it; and there it stays. So hyper is the authority on HTTP: what is
//! read here is read there alike, and nothing is decided here that hyper's way would decide
//! otherwise.

mod head; // what stands before the body

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::SystemTime;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::head::{Head, Size};
use super::exchange;
use super::reply::{Answer, Reply};
use super::socket::{Socket, TOGETHER};
use super::state::{HttpConnection, InFlight};

/// The longest plain request.
const MOST: usize = 64 << 10;

/// How much is read at once: more where a client fills it.
const FIRST_ROOM: usize = 8 << 10;

/// A connection on which there were only plain requests.
pub(crate) struct Plain {
    socket: Socket,
    connection: Arc<HttpConnection>,
    /// What was read and not answered.
    read: Bytes,
    /// Where to read to.
    room: BytesMut,
    /// How much room is made.
    room_size: usize,
    /// What the last request said before its body.
    head: Head,
    /// What is to be written.
    out: Vec<u8>,
    date: Date,
}

/// How it goes on with a connection.
pub(crate) enum Next {
    /// Not at all: the peer has gone, or we were asked to finish.
    Over,
    /// With hyper, and the answer to the first request if that was taken in already.
    Unusual(Option<Answer>),
}

/// What became of what was read.
enum Step {
    /// There is nothing.
    Empty,
    /// A request was answered, with that body.
    Answered(Bytes),
    /// The request is so long, and not all of it is there.
    Short(usize),
    /// It is not for us.
    Unusual(Option<Answer>),
}

impl Plain {
    pub(crate) fn new(socket: Socket, connection: Arc<HttpConnection>) -> Self {
        Self {
            socket,
            connection,
            read: Bytes::new(),
            room: BytesMut::new(),
            room_size: FIRST_ROOM,
            head: Head::default(),
            out: Vec::new(),
            date: Date::default(),
        }
    }

    /// Serves as long as all is plain.
    pub(crate) async fn serve(&mut self) -> Next {
        loop {
            // What is asked at once is answered at once, but before we wait for anything.
            let step = if self.read.is_empty() { Step::Empty } else { self.step() };
            let written = match &step {
                Step::Answered(body) => self.write(body).await,
                _ => self.flush().await,
            };
            if written.is_err() {
                return Next::Over;
            }
            match step {
                Step::Answered(_) => {}
                Step::Empty if self.read().await => {}
                Step::Empty => return Next::Over,
                Step::Short(length) if self.fill(length).await => {}
                Step::Short(_) => return Next::Unusual(None),
                Step::Unusual(answer) => return Next::Unusual(answer),
            }
        }
    }

    /// The socket, which gives once more what was not answered.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket.again(self.read)
    }

    /// Answers the request that was read.
    fn step(&mut self) -> Step {
        let shared = &self.connection.shared;
        let most = MOST.min(shared.engine.settings().engine_limits.message_size);
        let Some(Size { head, body }) =
            self.head.read(&self.read, shared).filter(|size| size.body <= most)
        else {
            return Step::Unusual(None);
        };
        let length = head + body;
        if length > self.read.len() {
            return Step::Short(length);
        }
        let flight = InFlight::begin(&self.connection);
        let body = self.read.slice(head..length);
        let answer = exchange::answer(flight, &self.head, &body);
        let Some((reply, body)) = answer.at_once() else { return Step::Unusual(Some(answer)) };
        self.read.advance(length);
        let date = self.date.at(self.connection.shared.clock.now());
        write_head(&mut self.out, reply, body.len(), date);
        Step::Answered(body.clone())
    }

    /// Writes the body of an answer behind its head, now or with what comes next.
    async fn write(&mut self, body: &Bytes) -> io::Result<()> {
        if body.len() <= TOGETHER {
            self.out.extend_from_slice(body);
            return if self.out.len() > MOST { self.flush().await } else { Ok(()) };
        }
        self.socket.write_all_buf(&mut Buf::chain(&*self.out, &**body)).await?;
        self.out.clear();
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.socket.write_all(&self.out).await?;
        self.out.clear();
        self.out.shrink_to(FIRST_ROOM);
        Ok(())
    }

    /// Waits for more to read. `false` if nothing will come, or none is wanted.
    async fn read(&mut self) -> bool {
        self.read = Bytes::new();
        // The same memory again, if nobody needs what was there: it is still in the cache.
        if !self.room.try_reclaim(self.room_size) && self.room.capacity() < self.room_size / 2 {
            self.room.reserve(self.room_size);
        }
        let room = self.room.capacity();
        let mut reading = pin!(self.socket.read_buf(&mut self.room));
        let pulse = &self.connection.activity;
        let read = poll_fn(|cx| match pulse.is_told() {
            true => Poll::Ready(Ok(0)),
            false => reading.as_mut().poll(cx),
        });
        let length = read.await.unwrap_or(0);
        self.read = self.room.split().freeze();
        if length == room {
            self.room_size = (2 * self.room_size).min(MOST);
        } else if length < room / 4 && room > FIRST_ROOM {
            // Whoever has said much may be silent for long.
            (self.room, self.room_size) = (BytesMut::new(), FIRST_ROOM);
        }
        length > 0
    }

    /// Waits for the rest of a request that is so long. `false` if it does not come in time.
    async fn fill(&mut self, length: usize) -> bool {
        let _flight = InFlight::begin(&self.connection);
        let mut all = BytesMut::with_capacity(length);
        all.extend_from_slice(&self.read);
        // Not each piece has so much time, but all of them together.
        let reading = async {
            while all.len() < length {
                if self.socket.read_buf(&mut all).await.unwrap_or(0) == 0 {
                    return false;
                }
            }
            true
        };
        let is_whole = self.connection.activity.body_in_time(reading).await.unwrap_or(false);
        self.read = all.freeze();
        is_whole
    }
}

/// Writes the head of an answer, as hyper would.
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

/// The date as answers tell it, written anew when the clock has ticked.
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
