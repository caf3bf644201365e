//! The engine, without I/O: frames go in, frames come out.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use sabir_engine::{Conversation, Settings};
use sabir_session::{Lane, Note, Standing};
use sabir_wire::types::Topic;

use crate::house::House;
use crate::player::{CallNumber, Ending, Event, Player};

/// Plays against [`Conversation`].
pub struct ConversationPlayer {
    /// The server.
    pub house: House,
    conversation: Conversation,
    heard: VecDeque<Bytes>,
    is_closed: bool,
}

impl ConversationPlayer {
    /// A client on a pipe, with a house that offers [`House::offer`].
    pub fn new(settings: Settings) -> Self {
        Self::with(House::new(settings), Standing::Stream, None)
    }

    /// A client of some standing and principal.
    pub fn with(house: House, standing: Standing, principal: Option<Arc<str>>) -> Self {
        let conversation = {
            let _guard = house.enter();
            Conversation::new(&house.engine, standing, principal)
        };
        Self { house, conversation, heard: VecDeque::new(), is_closed: false }
    }

    /// The conversation itself.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Lets everything happen that can happen without time passing.
    pub fn settle(&mut self) {
        let conversation = &mut self.conversation;
        self.house.block_on(async {
            let mut quiet = 0;
            while quiet < QUIET && !conversation.is_closed() {
                tokio::task::yield_now().await;
                let mut waiting = pin!(conversation.wait());
                let has_happened = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
                quiet = if has_happened.is_ready() { 0 } else { quiet + 1 };
            }
        });
        while let Some(frame) = self.conversation.next_frame() {
            self.heard.push_back(frame.text);
        }
        if self.conversation.is_closed() && !self.is_closed {
            self.is_closed = true;
            self.house.teller()(Event::Close);
        }
    }
}

/// After so many rounds in which nothing happened, nothing will.
pub(crate) const QUIET: usize = 12;

impl Player for ConversationPlayer {
    fn say(&mut self, frame: &[u8]) {
        let frame = Bytes::copy_from_slice(frame);
        {
            let _guard = self.house.enter();
            self.conversation.receive(Lane::default(), &frame);
        }
        self.settle();
    }

    fn end_input(&mut self) {
        {
            let _guard = self.house.enter();
            self.conversation.end();
        }
        self.settle();
    }

    fn hear(&mut self) -> Option<Bytes> {
        self.settle();
        self.heard.pop_front()
    }

    fn event(&mut self) -> Option<Event> {
        self.settle();
        self.house.event()
    }

    fn finish(&mut self, call: CallNumber, ending: Ending) {
        self.house.finish(call, ending);
        self.settle();
    }

    fn note(&mut self, call: CallNumber, note: Note) {
        self.house.note(call, note);
        self.settle();
    }

    fn change(&mut self, topic: Topic) {
        self.house.change(topic);
        self.settle();
    }

    fn pass(&mut self, time: Duration) {
        self.house.pass(time);
        self.settle();
    }

    fn said_too_much(&mut self) -> Option<Bytes> {
        self.settle();
        self.heard.front().cloned()
    }

    fn leave(&mut self) -> Vec<Bytes> {
        self.settle();
        self.heard.drain(..).collect()
    }
}
