//! The server of pages.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use hol_base::Time;

use super::frame::{self, Frame, FrameBuilder, FrameKind};
use super::tracks::Tracks;
use super::{ConnectionReuse, Page};
use crate::contract::{AbortReason, Application, ConnectionId, Delivery, Input, Outgoing, Output, Progress};
use crate::ledger::{EntryId, Ledger, MessageArrival};

/// A server that answers each request with the head of a response and the requested number of octets.
#[derive(Debug)]
pub(crate) struct Server {
    page: Page,
    tracks: Tracks,
    frames: FrameBuilder,
    connections: BTreeMap<ConnectionId, Connection>,
    abort_reason: Option<AbortReason>,
    ledger: Ledger,
}

/// The responses that are in progress on a connection.
#[derive(Debug, Default)]
struct Connection {
    /// Responses in the order of their requests, except the one whose last part the transport rejected.
    responses: VecDeque<Response>,
    /// The part of a response that the transport rejected; `None` if it rejected none.
    rejected: Option<Outgoing>,
    is_full: bool,
    /// Whether the peer has closed the connection for sending.
    is_half_closed: bool,
}

/// A response that is being sent.
#[derive(Debug)]
struct Response {
    entry: EntryId,
    stream: u16,
    /// When the server's think time for the response ends.
    ready: Time,
    is_new: bool,
    octets_left: u32,
}

impl Server {
    /// Creates a server that receives at most `expected` requests.
    pub(crate) fn new(page: Page, tracks: Tracks, expected: u64) -> Self {
        let (frames, connections) = (FrameBuilder::default(), BTreeMap::new());
        Self { page, tracks, frames, connections, abort_reason: None, ledger: Ledger::new(expected) }
    }

    fn take_request(&mut self, now: Time, delivery: Delivery) -> Result<(), &'static str> {
        let Delivery { connection, stream, payload, delivery_times } = delivery;
        let Frame { kind: FrameKind::Headers, number } = Frame::read(&payload)? else {
            return Err("the client sent data instead of a request");
        };
        let left = frame::requested_octets(&payload)
            .ok_or("the client sent a request without the size of the response")?;
        let arrived = MessageArrival { delivery_times, delivered: now };
        let entry = if self.page.reopen {
            self.ledger.note_repeatable_request(number, arrived)
        } else {
            self.ledger.note_request(number, arrived)
        };
        let (stream, ready) = (self.tracks.response_stream(stream), now + self.page.think);
        let response = Response { entry, stream, ready, is_new: true, octets_left: left };
        self.connections.entry(connection).or_default().responses.push_back(response);
        Ok(())
    }

    /// Returns the next action: of the first connection that can send a part or can be closed.
    fn next_action(&mut self, now: Time) -> Option<Output> {
        let Self { page, frames, ledger, connections, .. } = self;
        let mut ended = None;
        for (id, connection) in connections.iter_mut() {
            if let Some(outgoing) = connection.next(now, *id, page, frames, ledger) {
                return Some(Output::Send(outgoing));
            }
            // Close only after everything has been sent.
            if connection.is_half_closed && connection.is_idle() {
                ended = Some(*id);
                break;
            }
        }
        let ended = ended?;
        connections.remove(&ended);
        Some(Output::Close(ended))
    }
}

impl FrameBuilder {
    /// Returns the next part of a response, which is not complete yet.
    fn next(&mut self, page: &Page, response: &mut Response) -> Bytes {
        let number = response.entry.number();
        let (payload, part) = if std::mem::take(&mut response.is_new) {
            self.build_head(page.head.0, number, response.octets_left)
        } else {
            self.build_data(page.way, number, response.octets_left)
        };
        response.octets_left -= part;
        payload
    }
}

impl Connection {
    /// Returns the next part to send on the connection; `None` if there is none.
    fn next(
        &mut self,
        now: Time,
        id: ConnectionId,
        page: &Page,
        frames: &mut FrameBuilder,
        ledger: &mut Ledger,
    ) -> Option<Outgoing> {
        if self.is_full {
            return None;
        }
        let outgoing = self.rejected.take().or_else(|| {
            let mut response = self.take_next_response(now, page.way)?;
            let (stream, entry) = (response.stream, response.entry);
            if response.is_new {
                ledger.note_reply_started(entry, now);
            }
            let payload = frames.next(page, &mut response);
            if response.octets_left > 0 {
                self.put_back(response, page.way);
            }
            Some(Outgoing { connection: id, stream, payload, delivery: None, entry: Some(entry) })
        })?;
        if let Some(entry) = outgoing.entry {
            ledger.note_reply_written(entry, now);
        }
        Some(outgoing)
    }

    /// Removes the next response to send: the first one that is ready. In HTTP/1 the responses on a connection or
    /// stream are sent in the order of the requests.
    fn take_next_response(&mut self, now: Time, way: ConnectionReuse) -> Option<Response> {
        let Self { responses, .. } = self;
        let may_go = |at: usize| {
            let Response { stream, ready, .. } = responses[at];
            let mut before = responses.iter().take(at);
            ready <= now
                && (way == ConnectionReuse::Multiplexed || !before.any(|other| other.stream == stream))
        };
        let at = (0..responses.len()).find(|at| may_go(*at))?;
        responses.remove(at)
    }

    /// Puts an incomplete response back into the queue: at its end if responses are multiplexed, otherwise at its
    /// front.
    fn put_back(&mut self, response: Response, way: ConnectionReuse) {
        match way {
            ConnectionReuse::Multiplexed => self.responses.push_back(response),
            ConnectionReuse::Close | ConnectionReuse::Keepalive | ConnectionReuse::Pipelined => {
                self.responses.push_front(response);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.responses.is_empty() && self.rejected.is_none()
    }
}

impl Application for Server {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Message(delivery) => {
                self.abort_reason = self
                    .take_request(now, delivery)
                    .err()
                    .map(AbortReason::InvalidData)
                    .or(self.abort_reason);
            }
            Input::Full(outgoing) => {
                let connection = self.connections.entry(outgoing.connection).or_default();
                (connection.is_full, connection.rejected) = (true, Some(outgoing));
            }
            Input::Writable(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.is_full = false;
                }
            }
            Input::PeerClosed(id) => self.connections.entry(id).or_default().is_half_closed = true,
            Input::Failed(id, reason) => {
                let is_unfinished =
                    self.connections.remove(&id).is_some_and(|connection| !connection.is_idle());
                self.abort_reason = (is_unfinished && !self.page.reopen)
                    .then_some(AbortReason::Connection(reason))
                    .or(self.abort_reason);
            }
            Input::Closed(id) => drop(self.connections.remove(&id)),
            Input::Opened(_) | Input::Accepted(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if let Some(abort_reason) = self.abort_reason {
            return Output::Stop(abort_reason);
        }
        if let Some(deed) = self.next_action(now) {
            return deed;
        }
        let thoughts = self.connections.values().flat_map(|connection| &connection.responses);
        Output::Wait(
            thoughts.map(|response| response.ready).filter(|ready| *ready > now).min().unwrap_or(Time::MAX),
        )
    }

    fn progress(&self) -> Progress {
        Progress { messages_done: self.ledger.received(), ..Progress::default() }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn end(&mut self, _: Time) -> bool {
        true
    }
}
