//! The receiver of the medium.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::Time;
use hol_rtp::{Header, ParseError};
use hol_transport::DeliveryTimes;

use super::extended_counter::ExtendedCounter;
use super::fec_decoder::FecDecoder;
use super::frames::FrameAssembler;
use super::packets::{LENGTH_PREFIX, PARITY_PAYLOAD_TYPE};
use super::playout::Playout;
use super::{Media, clock};
use crate::contract::{AbortReason, Application, ConnectionId, Delivery, Input, Output, Progress};
use crate::ledger::{Ledger, MessageArrival};

/// A player that records when each frame can be played, and whether that is too late.
#[derive(Debug)]
pub(crate) struct Player {
    is_stream: bool,
    repair: Option<FecDecoder>,
    timestamp: ExtendedCounter<32>,
    frames: FrameAssembler,
    playout: Playout,
    /// Connections that the peer has closed for sending.
    to_close: VecDeque<ConnectionId>,
    abort_reason: Option<AbortReason>,
    ledger: Ledger,
}

impl Player {
    /// Creates a player that receives at most `expected` messages.
    pub(super) fn new(media: &Media, is_stream: bool, expected: u64) -> Self {
        Self {
            is_stream,
            repair: media.fec.map(FecDecoder::new),
            timestamp: ExtendedCounter::default(),
            frames: FrameAssembler::new(media.packing),
            playout: Playout::new(media.buffer),
            to_close: VecDeque::new(),
            abort_reason: None,
            ledger: Ledger::new(expected),
        }
    }

    fn handle_message(&mut self, now: Time, delivery: Delivery) -> Result<(), ParseError> {
        let Delivery { mut payload, delivery_times, .. } = delivery;
        let packet = payload.split_off(if self.is_stream { LENGTH_PREFIX.min(payload.len()) } else { 0 });
        let (header, payload) = Header::read(&packet)?;
        let Some(repair) = &mut self.repair else { return self.receive_packet(now, delivery_times, &packet) };
        let restored = if header.payload_type == PARITY_PAYLOAD_TYPE {
            repair.add_parity_packet(header.source, Bytes::copy_from_slice(payload))?
        } else {
            let restored = repair.add_media_packet(header.sequence, packet.clone());
            self.receive_packet(now, delivery_times, &packet)?;
            restored
        };
        restored.iter().try_for_each(|packet| self.receive_packet(now, delivery_times, packet))
    }

    /// Handles a media packet that was received or restored.
    fn receive_packet(
        &mut self,
        now: Time,
        delivery_times: DeliveryTimes,
        packet: &[u8],
    ) -> Result<(), ParseError> {
        let (header, payload) = Header::read(packet)?;
        let number = self.timestamp.extend_and_update(header.timestamp).map(clock::frame);
        let number = number.and_then(|number| u32::try_from(number).ok()).ok_or(EARLY_TIMESTAMP)?;
        self.playout.note_arrival(now, number);
        for frame in self.frames.add_packet(number, header, payload)? {
            let entry = self.ledger.note_request(frame, MessageArrival { delivery_times, delivered: now });
            if self.playout.is_late(now, frame) {
                self.ledger.note_late(entry);
            }
        }
        Ok(())
    }
}

const EARLY_TIMESTAMP: ParseError = ParseError("a timestamp precedes the first one");

impl Application for Player {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Message(delivery) => {
                let invalid = |ParseError(why)| AbortReason::InvalidData(why);
                self.abort_reason =
                    self.handle_message(now, delivery).err().map(invalid).or(self.abort_reason);
            }
            Input::PeerClosed(connection) => self.to_close.push_back(connection),
            Input::Failed(_, reason) => self.abort_reason = Some(AbortReason::Connection(reason)),
            Input::Opened(_)
            | Input::Accepted(_)
            | Input::Closed(_)
            | Input::Full(_)
            | Input::Writable(_) => {}
        }
    }

    fn poll(&mut self, _: Time) -> Output {
        if let Some(abort_reason) = self.abort_reason {
            return Output::Stop(abort_reason);
        }
        self.to_close.pop_front().map_or(Output::Wait(Time::MAX), Output::Close)
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
