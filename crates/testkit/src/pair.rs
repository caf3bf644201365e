//! A client and a server, joined in memory: the bytes of a pipe, without the pipe.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use sabir_engine::Settings;
use sabir_transports::stream;
use sabir_wire::Caller;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};

use crate::connection::QUIET;
use crate::house::House;
use crate::housed::Housed;
use crate::player::Event;

/// Plays against `stream::serve`, which serves any byte stream.
pub struct Pair {
    /// The server.
    pub house: House,
    to_server: WriteHalf<DuplexStream>,
    from_server: ReadHalf<DuplexStream>,
    unread: BytesMut,
    heard: VecDeque<Bytes>,
    /// Whether the client takes what it is sent.
    is_reading: bool,
    /// Nothing more can be read.
    is_over: bool,
}

/// The limit of bytes in flight, in each direction.
const PIPE: usize = 64 << 10;

impl Pair {
    /// A client and a house that offers [`House::offer`].
    pub fn new(settings: Settings) -> Self {
        Self::with(House::new(settings))
    }

    /// A client and a house.
    pub fn with(house: House) -> Self {
        let (client, server) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(server);
        let (engine, tell) = (house.engine.clone(), house.teller());
        house.spawn(async move {
            let served = stream::serve(&engine, Caller::local(), reader, writer).await;
            served.expect("a pipe in memory does not fail");
            tell(Event::Close);
        });
        let (from_server, to_server) = tokio::io::split(client);
        let (unread, heard) = (BytesMut::new(), VecDeque::new());
        Self { house, to_server, from_server, unread, heard, is_reading: true, is_over: false }
    }

    /// Sends bytes that need not be a frame, nor a whole one.
    pub fn send(&mut self, bytes: &[u8]) {
        let Self { house, to_server, .. } = self;
        // Written piece by piece: a server that has stopped reading must not stop the test.
        house.block_on(async {
            let mut rest = bytes;
            while !rest.is_empty() {
                let written = tokio::select! {
                    biased;
                    written = to_server.write(rest) => written.unwrap_or(0),
                    () = quiet() => 0,
                };
                if written == 0 {
                    return;
                }
                rest = &rest[written..];
            }
        });
        self.settle();
    }

    /// The client disconnects without a warning.
    pub fn vanish(&mut self) {
        let (client, _) = tokio::io::duplex(1);
        (self.from_server, self.to_server) = tokio::io::split(client);
        self.settle();
    }

    /// Whether the client takes what it is sent.
    pub fn set_reading(&mut self, is_reading: bool) {
        self.is_reading = is_reading;
    }

    /// Runs everything that can run without time passing.
    pub fn settle(&mut self) {
        let Self { house, from_server, unread, is_reading, is_over, .. } = self;
        house.block_on(async {
            loop {
                let may_read = *is_reading && !*is_over;
                tokio::select! {
                    biased;
                    read = from_server.read_buf(unread), if may_read => {
                        *is_over = read.unwrap_or(0) == 0;
                    }
                    () = quiet() => return,
                };
            }
        });
        while let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line = self.unread.split_to(at + 1).freeze();
            self.heard.push_back(line.slice(..at));
        }
    }
}

async fn quiet() {
    for _ in 0..QUIET {
        tokio::task::yield_now().await;
    }
}

impl Housed for Pair {
    fn send_frame(&mut self, frame: &[u8]) {
        self.send(&[frame, b"\n"].concat());
    }

    fn close_input(&mut self) {
        let Self { house, to_server, .. } = self;
        house.block_on(to_server.shutdown()).expect("a pipe in memory does not fail");
    }

    fn settle(&mut self) {
        Self::settle(self);
    }

    fn parts(&mut self) -> (&mut House, &mut VecDeque<Bytes>) {
        (&mut self.house, &mut self.heard)
    }

    fn rest(&mut self) -> Option<Bytes> {
        let rest = std::mem::take(&mut self.unread).freeze();
        (!rest.is_empty()).then_some(rest)
    }
}
