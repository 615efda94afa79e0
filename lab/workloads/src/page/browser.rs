//! The client, which loads pages.

use std::collections::VecDeque;

use hol_base::{Rng, Seed, Time};
use hol_measure::RecordKind;

use super::files;
use super::frame::{self, Frame, FrameBuilder};
use super::loading::{PageLoad, Part};
use super::tracks::Tracks;
use super::{ConnectionReuse, Page};
use crate::ENDLESS;
use crate::contract::{AbortReason, Application, ConnectionId, Delivery, Input, Outgoing, Output, Progress};
use crate::ledger::{DueMessage, EntryId, Ledger, MessageArrival};
use crate::rejected_messages::RejectedMessages;

/// A browser that loads one page after the other. Each page has its own connections, which are opened on demand.
#[derive(Debug)]
pub(crate) struct Browser {
    page: Page,
    tracks: Tracks,
    frames: FrameBuilder,
    size_rng: Rng,
    /// Number of pages that have not started.
    pages_left: u64,
    endless: bool,
    /// When the next page starts; `None`: at once, because it is the first page.
    next_page_at: Option<Time>,
    loading: Option<PageLoad>,
    /// Number of connections requested so far.
    connections: u32,
    pending_actions: VecDeque<Action>,
    rejected: RejectedMessages,
    pages_done: u64,
    abort_reason: Option<AbortReason>,
    ledger: Ledger,
}

/// An action of the browser that waits to be carried out.
#[derive(Debug)]
enum Action {
    Open(ConnectionId),
    Send(Outgoing),
    Close(ConnectionId),
}

impl Browser {
    /// Creates a browser that loads pages over these connections and streams.
    pub(crate) fn new(page: Page, tracks: Tracks, messages: u64, seed: Seed) -> Self {
        Self {
            page,
            tracks,
            frames: FrameBuilder::default(),
            size_rng: seed.derive("workload/page").rng(),
            pages_left: messages,
            endless: messages == ENDLESS,
            next_page_at: None,
            loading: None,
            connections: 0,
            pending_actions: VecDeque::new(),
            rejected: RejectedMessages::default(),
            pages_done: 0,
            abort_reason: None,
            ledger: Ledger::default(),
        }
    }

    /// Starts a page: requests the files that are known without the document.
    fn start_page(&mut self, now: Time) {
        let files = files::draw(&self.page, &mut self.size_rng);
        let entries = self.note_page(now, files.iter().map(|file| u64::from(file.size)).sum());
        self.loading = Some(PageLoad::new(entries, files, self.page.head.0 as u32, self.tracks));
        files::initial_files(&self.page).for_each(|file| self.discover_file(now, file));
        self.send_requests();
    }

    /// Adds the record of a page and that of the page's first octets; both start with the request of the page's first
    /// file.
    fn note_page(&mut self, now: Time, octets: u64) -> [EntryId; 2] {
        let scheduled = self.next_page_at.unwrap_or(now);
        self.pages_left -= u64::from(!self.endless);
        let (number, size) = (self.ledger.messages_due() as u32, u32::try_from(octets).unwrap_or(u32::MAX));
        let due =
            DueMessage { scheduled, lane: 0, size, reply_size: 0, kind: RecordKind::Page, parent: None };
        let head = DueMessage { kind: RecordKind::Head, parent: Some(number), ..due };
        [due, head].map(|due| self.ledger.note_composite_due(now, due, number + 2))
    }

    /// Adds a file that the browser has discovered. Its request waits until a connection or stream is free.
    fn discover_file(&mut self, now: Time, file: u16) {
        let Some(loading) = &mut self.loading else { return };
        let (size, parent) = (loading.size_of(file), Some(loading.page.number()));
        let due =
            DueMessage { scheduled: now, lane: 0, size, reply_size: 0, kind: RecordKind::Object, parent };
        loading.add_file(file, self.ledger.note_due(now, due));
    }

    /// Sends waiting requests, as far as `way` allows on the connections and streams.
    fn send_requests(&mut self) {
        let Some(loading) = &mut self.loading else { return };
        while let Some((entry, track)) = loading.next_request(self.page.way, self.tracks) {
            let place = self.tracks.connection(track);
            let known = loading.connection(place).filter(|_| self.page.way != ConnectionReuse::Close);
            let connection = known.unwrap_or_else(|| {
                let next = ConnectionId(self.connections);
                self.connections += 1;
                self.pending_actions.push_back(Action::Open(next));
                loading.add_connection(place, next, self.page.early);
                next
            });
            let (size, is_first) = loading.note_request(entry, track, connection);
            self.ledger.note_lane(entry, track);
            let payload = self.frames.build_request(self.page.request.0, entry.number(), size);
            let stream = self.tracks.request_stream(track);
            let entry = is_first.then_some(entry);
            let outgoing = Outgoing { connection, stream, payload, delivery: None, entry };
            self.pending_actions.extend(loading.queue_unless_open(outgoing).map(Action::Send));
        }
    }

    /// Handles a part of a response that has arrived.
    fn receive_part(&mut self, now: Time, delivery: &Delivery) -> Result<(), &'static str> {
        let frame = Frame::read(&delivery.payload)?;
        let loading = self.loading.as_mut().ok_or("the server sent a response without a request")?;
        let arrived = MessageArrival { delivery_times: delivery.delivery_times, delivered: now };
        let octets = frame::octets(self.page.way, frame, delivery.payload.len());
        let Part { is_first_of_page, is_last_of_file } = loading.receive(frame.number, octets)?;
        if is_first_of_page {
            self.ledger.end_first_octets(loading.first_octets, arrived);
            self.pages_done += 1;
        }
        if is_last_of_file { self.finish(now, frame.number, arrived) } else { Ok(()) }
    }

    /// Finishes a file, whose response is complete.
    fn finish(&mut self, now: Time, number: u32, arrived: MessageArrival) -> Result<(), &'static str> {
        if !self.ledger.note_reply(number, arrived, false) {
            return Err("the server sent a response twice");
        }
        self.pages_done += 1;
        let Some(loading) = &mut self.loading else { return Ok(()) };
        let (references, connection) = loading.finish(number);
        if let Some(connection) = connection.filter(|_| self.page.way == ConnectionReuse::Close) {
            loading.remove_connection(connection);
            self.pending_actions.push_back(Action::Close(connection));
        }
        if loading.is_done() {
            self.end_page(now, number, arrived);
        }
        references.into_iter().for_each(|file| self.discover_file(now, file));
        self.send_requests();
        Ok(())
    }

    /// Finishes the page, whose last file is complete; the file's record has the number `last`.
    fn end_page(&mut self, now: Time, last: u32, arrived: MessageArrival) {
        let Some(loading) = self.loading.take() else { return };
        self.ledger.end_composite(loading.page, last, arrived);
        self.pages_done += 1;
        self.pending_actions.extend(loading.into_connections().map(Action::Close));
        self.next_page_at = Some(if self.pages_left > 0 { now + self.page.pause } else { Time::MAX });
    }

    fn opened(&mut self, id: ConnectionId) {
        let waited = self.loading.as_mut().map(|loading| loading.note_opened(id));
        self.pending_actions.extend(waited.into_iter().flatten().map(Action::Send));
        // Retries a request that was too early for this transport.
        self.rejected.retry();
    }

    /// Opens a connection in place of a failed one, and repeats the requests of incomplete files.
    fn reopen(&mut self, id: ConnectionId) {
        let Some(loading) = &mut self.loading else { return };
        loading.fail(id);
        self.rejected.forget(id);
        self.pending_actions.retain(|action| match action {
            Action::Open(of) | Action::Close(of) => *of != id,
            Action::Send(outgoing) => outgoing.connection != id,
        });
        self.send_requests();
    }

    fn is_in_use(&self, id: ConnectionId) -> bool {
        self.loading.as_ref().is_some_and(|loading| loading.is_in_use(id))
    }

    /// Returns the next action, without messages for connections whose send buffer is full.
    fn next_action(&mut self) -> Option<Action> {
        let is_free = |action: &Action| match action {
            Action::Send(outgoing) => !self.rejected.waits_for(outgoing.connection),
            Action::Open(_) | Action::Close(_) => true,
        };
        let at = self.pending_actions.iter().position(is_free)?;
        self.pending_actions.remove(at)
    }
}

impl Application for Browser {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Opened(id) => self.opened(id),
            Input::Message(delivery) => {
                self.abort_reason = self
                    .receive_part(now, &delivery)
                    .err()
                    .map(AbortReason::InvalidData)
                    .or(self.abort_reason);
            }
            Input::Full(outgoing) => self.rejected.add(outgoing),
            Input::Writable(_) => self.rejected.retry(),
            Input::PeerClosed(id) if self.is_in_use(id) => {
                self.abort_reason = Some(AbortReason::Connection("closed by the peer"));
            }
            Input::Failed(id, _) if self.page.reopen && self.is_in_use(id) => self.reopen(id),
            Input::Failed(id, reason) if self.is_in_use(id) => {
                self.abort_reason = Some(AbortReason::Connection(reason));
            }
            // These are events of finished pages.
            Input::PeerClosed(_) | Input::Failed(..) | Input::Accepted(_) | Input::Closed(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if let Some(abort_reason) = self.abort_reason {
            return Output::Stop(abort_reason);
        }
        if self.loading.is_none() && self.pages_left > 0 && self.next_page_at.is_none_or(|next| next <= now) {
            self.start_page(now);
        }
        let outgoing = match self
            .rejected
            .next()
            .map_or_else(|| self.next_action(), |rejected| Some(Action::Send(rejected)))
        {
            Some(Action::Open(id)) => return Output::Open(id),
            Some(Action::Close(id)) => return Output::Close(id),
            Some(Action::Send(outgoing)) => outgoing,
            None if self.loading.is_some() => return Output::Wait(Time::MAX),
            None => return Output::Wait(self.next_page_at.unwrap_or(Time::MAX)),
        };
        if let Some(entry) = outgoing.entry {
            self.ledger.note_written(entry, now);
        }
        Output::Send(outgoing)
    }

    fn progress(&self) -> Progress {
        Progress {
            messages_due: self.ledger.messages_due(),
            messages_done: self.pages_done,
            last_due_time: self.ledger.last_due_time(),
            // While a page loads, more files may become known.
            is_all_due: self.pages_left == 0 && self.loading.is_none(),
            waits_for_reply: self.loading.is_some(),
        }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Records the pages that were never started.
    fn end(&mut self, now: Time) -> bool {
        while self.pages_left > 0 && !self.endless {
            self.note_page(now, 0);
        }
        true
    }
}
