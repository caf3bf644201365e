//! Notifications of observers and the tap by a connection.

use bytes::Bytes;
use sabir_session::{CallKey, CallNotification, MessageKind, Session};
use sabir_wire::Peer;

use super::{Connection, Frame};
use crate::calls::Observation;
use crate::engine::Engine;
use crate::observe::{ClientEvent, ClientEventKind, TransportKind};

/// Tells the tap of a link that is opened; `None` without a tap.
pub(super) fn open_link(engine: &Engine, session: &Session) -> Option<u64> {
    let (tap, owner) = (engine.settings.tap.as_ref()?, session.owner());
    let transport = TransportKind::of(session.kind(), owner).name();
    Some(tap.open(&Peer::Client { transport, caller: owner }))
}

impl Connection {
    /// Its number for the tap; 0 without one.
    fn link(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.link)
    }

    /// Tells the tap of a frame that the transport has decoded, with the headers that came with it,
    /// which may contain the trace of its HTTP request.
    pub fn record(&mut self, frame: &Bytes, headers: &[(String, String)]) {
        if self.engine.is_traced() {
            let trace = headers.iter().find(|(name, _)| name == "traceparent");
            if let Some((_, trace)) = trace {
                self.kept().http_trace = Some(trace.as_str().into());
            }
        }
        if let Some(tap) = &self.engine.settings.tap {
            tap.tell(|tap| tap.received(self.link(), 0, frame, headers));
        }
    }

    /// The identity of the next call for observers.
    pub(super) fn observation(&mut self, key: CallKey) -> Observation {
        Observation {
            number: self.engine.number_call(),
            link: self.link(),
            id: self.session.id_of(key).filter(|_| self.engine.is_observed()).cloned(),
            http_trace: self.kept.as_mut().and_then(|kept| kept.http_trace.take()),
            observers: self.engine.shared_observers(),
        }
    }

    pub(super) fn record_sent(&self, frame: &Bytes) {
        if let Some(tap) = &self.engine.settings.tap {
            tap.tell(|tap| tap.sent(self.link(), 0, frame));
        }
    }

    pub(super) fn record_closed(&self) {
        if let Some(tap) = &self.engine.settings.tap {
            tap.tell(|tap| tap.closed(self.link()));
        }
    }

    /// Tells observers of a notification of a running call.
    pub(super) fn tell_note(&self, key: CallKey, note: &CallNotification) {
        if let Some(call) = self.running.iter().find(|call| call.key == key) {
            self.engine.observers().for_each(|observer| observer.noted(call.observed.number, note));
        }
    }

    /// Tells observers of the response to a call, which is among the frames after the first `sent`.
    pub(super) fn tell_answer(&self, number: u64, sent: usize) {
        let is_answer = |frame: &&Frame| matches!(frame.kind, MessageKind::Answer(_));
        if let Some(frame) = self.frames.iter().skip(sent).find(is_answer) {
            self.engine.observers().for_each(|observer| observer.answered(number, &frame.text));
        }
    }

    /// Tells observers of an event of a legacy client.
    pub(super) fn tell(&self, kind: ClientEventKind) {
        if self.number > 0 {
            let client = self.session.client().cloned();
            self.engine.tell(ClientEvent { connection: u64::from(self.number), client, kind });
        }
    }
}
