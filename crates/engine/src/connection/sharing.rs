//! A connection of a session that several nodes serve.

use std::sync::Arc;

use sabir_session::{Output, Session, SessionRecord, SessionState};

use super::{Connection, now};
use crate::engine::Engine;
use crate::observe::ClientEventKind;

impl Connection {
    /// Goes on with a session that was opened elsewhere. Its client is told that everything may
    /// have changed: the changes that it has missed are unknown.
    pub fn resume(engine: &Arc<Engine>, record: SessionRecord) -> Self {
        let session = Session::resume(engine.session_config.clone(), record, now());
        let mut connection = Self::of(engine, session);
        connection.changes = Some(engine.changes());
        connection.number = engine.number_connection();
        connection.tell(ClientEventKind::Initializing);
        for uri in connection.session.watched() {
            connection.act(Output::Watch(uri), &mut None);
        }
        if connection.session.state() == SessionState::Ready {
            connection.act(Output::Ready(None), &mut None);
            connection.announce_everything();
        }
        connection
    }

    /// The state that other nodes need to serve this session; `None` before the handshake and once
    /// it ends.
    pub fn shared(&self) -> Option<SessionRecord> {
        self.session.shared(now())
    }

    /// Takes over the changes of another node.
    pub fn adopt(&mut self, record: SessionRecord) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.session.adopt(record, &mut outputs);
        for output in outputs.drain(..) {
            self.act(output, &mut None);
        }
        self.outputs = outputs;
    }
}
