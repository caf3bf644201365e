//! The engine, without I/O: frames go in, frames come out.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use sabir_engine::{Connection, Settings};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::Caller;

use crate::house::House;
use crate::housed::Housed;
use crate::player::Event;

/// Plays against [`Connection`].
pub struct ConnectionPlayer {
    /// The server.
    pub house: House,
    connection: Connection,
    caller: Caller,
    heard: VecDeque<Bytes>,
    is_closed: bool,
}

impl ConnectionPlayer {
    /// A client on a pipe, with a house that offers [`House::offer`].
    pub fn new(settings: Settings) -> Self {
        Self::with(House::new(settings), SessionKind::Stream, Caller::local())
    }

    /// A client with a session of some kind, and its caller.
    pub fn with(house: House, kind: SessionKind, caller: Caller) -> Self {
        let connection = {
            let _guard = house.enter();
            Connection::new(&house.engine, kind, caller.clone())
        };
        Self { house, connection, caller, heard: VecDeque::new(), is_closed: false }
    }

    /// The connection itself.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs everything that can run without time passing.
    pub fn settle(&mut self) {
        let connection = &mut self.connection;
        self.house.block_on(async {
            let mut quiet = 0;
            while quiet < QUIET && !connection.is_closed() {
                tokio::task::yield_now().await;
                let mut waiting = pin!(connection.wait().happened());
                connection.advance();
                drop(connection.run());
                let has_happened = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
                quiet = if has_happened.is_ready() { 0 } else { quiet + 1 };
            }
        });
        while let Some(frame) = self.connection.next_frame() {
            self.heard.push_back(frame.text);
        }
        if self.connection.is_closed() && !self.is_closed {
            self.is_closed = true;
            self.house.teller()(Event::Close);
        }
    }
}

/// After so many rounds without an event, the engine is idle.
pub(crate) const QUIET: usize = 12;

impl Housed for ConnectionPlayer {
    fn send_frame(&mut self, frame: &[u8]) {
        let frame = Bytes::copy_from_slice(frame);
        let _guard = self.house.enter();
        self.connection.receive(StreamId::default(), self.caller.clone(), &frame);
    }

    fn close_input(&mut self) {
        let _guard = self.house.enter();
        self.connection.end();
    }

    fn settle(&mut self) {
        Self::settle(self);
    }

    fn parts(&mut self) -> (&mut House, &mut VecDeque<Bytes>) {
        (&mut self.house, &mut self.heard)
    }
}
