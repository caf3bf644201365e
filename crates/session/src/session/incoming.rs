//! Incoming frames: single messages, batches and malformed ones.

use std::time::Duration;

use sabir_wire::{Caller, Incoming, Malformed, Message, Method, ParsedRequest, Problem};

use super::Session;
use super::reply::{self, ReplyTo};
use crate::io::{Output, StreamId};

impl Session {
    pub(super) fn on_frame(
        &mut self,
        now: Duration,
        stream: StreamId,
        caller: Caller,
        frame: Result<Incoming, Malformed>,
        out: &mut Vec<Output>,
    ) {
        let reply_to = ReplyTo { stream, batch: None };
        match frame {
            Ok(Incoming::One(message)) => self.on_message(now, reply_to, caller, message, out),
            Ok(Incoming::Batch(parts)) => self.on_batch(now, stream, &caller, parts, out),
            Err(malformed) => self.on_malformed(reply_to, &malformed, out),
        }
    }

    fn on_batch(
        &mut self,
        now: Duration,
        stream: StreamId,
        caller: &Caller,
        parts: Vec<Result<Message, Malformed>>,
        out: &mut Vec<Output>,
    ) {
        let reply_to = ReplyTo { stream, batch: None };
        let revision = self.state.client.revision;
        if parts.is_empty() {
            return self.refuse(
                reply_to,
                None,
                &Problem::Request("the batch is empty".into()),
                out,
            );
        }
        if !revision.features().batches {
            return self.refuse(reply_to, None, &reply::no_batches(revision), out);
        }
        let key = self.state.calls.next_key().0;
        self.state.batches.open(key, stream);
        let reply_to = ReplyTo { stream, batch: Some(key) };
        for part in parts {
            match part {
                Ok(Message::Request { id, method: Method::Initialize, .. }) => {
                    let problem = Problem::Request("`initialize` is not allowed in a batch".into());
                    let id = self.reserve_id(reply_to, &id).is_ok().then_some(&id);
                    self.refuse(reply_to, id, &problem, out);
                }
                Ok(message) => self.on_message(now, reply_to, caller.clone(), message, out),
                Err(malformed) => self.on_malformed(reply_to, &malformed, out),
            }
        }
        self.end_part(Some(key), out);
    }

    fn on_malformed(&mut self, reply_to: ReplyTo, malformed: &Malformed, out: &mut Vec<Output>) {
        if malformed.answerable {
            let problem = reply::malformed(malformed, &self.config.dialect);
            let id = malformed.id.as_ref().filter(|id| self.reserve_id(reply_to, id).is_ok());
            self.refuse(reply_to, id, &problem, out);
        }
    }

    /// Stops the calls whose stream has no reader.
    pub(super) fn on_gone(&mut self, stream: StreamId, out: &mut Vec<Output>) {
        for key in self.state.calls.of(stream) {
            self.drop_call(key, out);
        }
    }

    fn on_message(
        &mut self,
        now: Duration,
        reply_to: ReplyTo,
        caller: Caller,
        message: Message,
        out: &mut Vec<Output>,
    ) {
        match message {
            Message::Request { id, method, params } => {
                let request = ParsedRequest::read(id, method, params);
                self.on_request(now, reply_to, caller, request, out);
            }
            Message::Notification { method, params } => {
                self.on_notification(&method, params.as_ref(), out);
            }
            Message::Response { id: Some(id), result } => self.on_response(now, &id, result, out),
            Message::Response { id: None, .. } => {}
        }
    }
}
