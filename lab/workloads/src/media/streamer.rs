//! The sender of the medium, which sends at the pace of the encoder's clock.

use std::collections::VecDeque;

use hol_base::Time;
use hol_measure::RecordKind;
use hol_rtp::Stream;

use super::clock;
use super::packets::{Packet, Packetizer};
use crate::contract::{AbortReason, Application, ConnectionId, Input, Outgoing, Output, Progress};
use crate::ledger::{DueMessage, EntryId, Ledger};
use crate::openings::ConnectionOpenings;
use crate::rejected_messages::RejectedMessages;
use crate::{ENDLESS, StreamLayout};

/// A client that takes a frame from the encoder at each tick, and sends one frame or unit per tick. While the transport
/// blocks, packets wait, but the encoder continues.
#[derive(Debug)]
pub(crate) struct Streamer {
    lanes: StreamLayout,
    stream: Stream,
    packets: Packetizer,
    /// Number of frames that are not due yet.
    frames_left: u64,
    /// Whether frames are produced until the run ends.
    endless: bool,
    openings: ConnectionOpenings,
    /// Time at which all connections were open, so that the encoder started; `None` until then.
    start: Option<Time>,
    /// Number of encoder ticks since the start; a tick is the duration of a frame.
    ticks: u64,
    outbox: VecDeque<Packet>,
    rejected: RejectedMessages,
    /// Number of packets sent, which determines the stream of the next packet: packets use the streams of all
    /// connections in turn.
    turns: u32,
    to_close: VecDeque<ConnectionId>,
    abort_reason: Option<AbortReason>,
    ledger: Ledger,
}

impl Streamer {
    /// Creates a streamer that sends `frames` frames at `kbps` kbit/s.
    pub(super) fn new(packets: Packetizer, kbps: u16, lanes: StreamLayout, frames: u64) -> Self {
        Self {
            lanes,
            stream: Stream::new(kbps).expect("the bit rate was checked"),
            packets,
            frames_left: frames,
            endless: frames == ENDLESS,
            openings: ConnectionOpenings::new(lanes),
            start: None,
            ticks: 0,
            outbox: VecDeque::new(),
            rejected: RejectedMessages::default(),
            turns: 0,
            to_close: VecDeque::new(),
            abort_reason: None,
            ledger: Ledger::default(),
        }
    }

    fn opened(&mut self, now: Time) {
        if self.openings.note_opened() {
            self.start = Some(now);
        }
    }

    /// Returns the time of the next tick, at which a frame is produced or a delayed unit is sent.
    fn next_tick(&self) -> Time {
        let waits = self.frames_left > 0 || !self.packets.is_empty();
        self.start.filter(|_| waits).map_or(Time::MAX, |start| start + clock::duration(self.ticks + 1))
    }

    /// Handles a tick of the encoder.
    fn tick(&mut self, at: Time) {
        self.ticks += 1;
        if self.frames_left > 0 {
            let frame = self.next_frame(at);
            self.packets.add_frame(self.ledger.messages_due() as u32 - 1, frame);
            if self.frames_left == 0 {
                self.packets.finish(self.ledger.messages_due() as u32);
            }
        }
        let packets = self.packets.next(self.frames_left == 0);
        if let Some(frame) = packets.first().and_then(|packet| packet.frame) {
            self.ledger.reschedule(EntryId::from_number(frame), at);
        }
        self.outbox.extend(packets);
    }

    /// Produces the next frame and records that it is due.
    fn next_frame(&mut self, at: Time) -> Vec<u8> {
        self.frames_left -= u64::from(!self.endless);
        let frame = self.stream.next().expect("the stream is endless");
        let (size, kind) = (frame.len() as u32, RecordKind::Frame);
        self.ledger
            .note_due(at, DueMessage { scheduled: at, lane: 0, size, reply_size: 0, kind, parent: None });
        frame
    }

    /// Addresses a packet to the next stream; packets use the streams of all connections in turn.
    fn outgoing(&mut self, packet: Packet) -> Outgoing {
        let lane = self.lanes.lane_of_turn(self.turns, |_| true);
        self.turns = self.turns.wrapping_add(1);
        let entry = packet.frame.map(EntryId::from_number);
        if let Some(entry) = entry {
            self.ledger.note_lane(entry, lane);
        }
        let (connection, stream) = (self.lanes.connection(lane), self.lanes.stream(lane));
        Outgoing { connection, stream, payload: packet.octets, delivery: None, entry }
    }

    fn has_more(&self) -> bool {
        self.next_tick() < Time::MAX || !self.outbox.is_empty() || self.rejected.len() > 0
    }
}

impl Application for Streamer {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Opened(_) => self.opened(now),
            Input::Full(outgoing) => self.rejected.add(outgoing),
            Input::Writable(_) => self.rejected.retry(),
            Input::PeerClosed(_) if self.has_more() => {
                self.abort_reason = Some(AbortReason::Connection("closed by the peer"));
            }
            Input::PeerClosed(connection) => self.to_close.push_back(connection),
            Input::Failed(_, reason) => self.abort_reason = Some(AbortReason::Connection(reason)),
            Input::Message(_) => {
                self.abort_reason =
                    Some(AbortReason::InvalidData("the player sent a message, although it sends none"));
            }
            Input::Accepted(_) | Input::Closed(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if let Some(abort_reason) = self.abort_reason {
            return Output::Stop(abort_reason);
        }
        if let Some(connection) = self.openings.next() {
            return Output::Open(connection);
        }
        if let Some(connection) = self.to_close.pop_front() {
            return Output::Close(connection);
        }
        while self.next_tick() <= now {
            self.tick(self.next_tick());
        }
        let rejected = self.rejected.next();
        let is_blocked = self.rejected.len() > 0;
        let next = rejected.or_else(|| {
            let packet = if is_blocked { None } else { self.outbox.pop_front() }?;
            Some(self.outgoing(packet))
        });
        let Some(outgoing) = next else { return Output::Wait(self.next_tick()) };
        if let Some(entry) = outgoing.entry {
            self.ledger.note_written(entry, now);
        }
        Output::Send(outgoing)
    }

    fn progress(&self) -> Progress {
        Progress {
            messages_due: self.ledger.messages_due(),
            messages_done: 0,
            last_due_time: self.ledger.last_due_time(),
            is_all_due: self.frames_left == 0,
            waits_for_reply: false,
        }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Records the frames that were never produced.
    fn end(&mut self, now: Time) -> bool {
        const PART_OCTETS: u64 = 4096;
        if self.endless {
            return true;
        }
        for _ in 0..PART_OCTETS.min(self.frames_left) {
            let since = self.start.get_or_insert(now);
            let at = *since + clock::duration(self.ledger.messages_due() + 1);
            self.next_frame(at);
        }
        self.frames_left == 0
    }
}
