//! Players whose server is a [`House`]: they differ in how messages are transported.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use sabir_session::CallNotification;
use sabir_wire::types::Topic;

use crate::house::House;
use crate::player::{CallNumber, Ending, Event, Player};

/// A client of a house.
pub trait Housed {
    /// The client sends one frame, without its newline.
    fn send_frame(&mut self, frame: &[u8]);

    /// The client closes its input.
    fn close_input(&mut self);

    /// Runs everything that can run without time passing.
    fn settle(&mut self);

    /// The server, and the frames that it sent and the script has not taken.
    fn parts(&mut self) -> (&mut House, &mut VecDeque<Bytes>);

    /// The bytes that the server sent after the last whole frame.
    fn rest(&mut self) -> Option<Bytes> {
        None
    }
}

impl<P: Housed> Player for P {
    fn say(&mut self, frame: &[u8]) {
        self.send_frame(frame);
        self.settle();
    }

    fn end_input(&mut self) {
        self.close_input();
        self.settle();
    }

    fn hear(&mut self) -> Option<Bytes> {
        self.settle();
        self.parts().1.pop_front()
    }

    fn event(&mut self) -> Option<Event> {
        self.settle();
        self.parts().0.event()
    }

    fn finish(&mut self, call: CallNumber, ending: Ending) {
        self.parts().0.finish(call, ending);
        self.settle();
    }

    fn note(&mut self, call: CallNumber, note: CallNotification) {
        self.parts().0.note(call, note);
        self.settle();
    }

    fn change(&mut self, topic: Topic) {
        self.parts().0.change(topic);
        self.settle();
    }

    fn pass(&mut self, time: Duration) {
        self.parts().0.pass(time);
        self.settle();
    }

    fn said_too_much(&mut self) -> Option<Bytes> {
        self.settle();
        self.parts().1.front().cloned()
    }

    fn leave(&mut self) -> Vec<Bytes> {
        self.settle();
        let rest = self.rest();
        self.parts().1.drain(..).chain(rest).collect()
    }
}
