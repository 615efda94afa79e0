//! When to acknowledge, and what. RFC 9260 sections 6.2 and 6.7.

use hol_base::Time;
use hol_wire::sctp::{Chunk, Sack};

use crate::state::State;
use crate::tsn_map::MAX_DUPLICATES;
use crate::{Config, Endpoint};

/// What is known about the next SACK.
#[derive(Debug)]
pub(crate) struct Acknowledgements {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// The path that DATA came from last: where a SACK goes. Section 6.4.
    reply_path: usize,
    /// The path whose DATA moved the cumulative TSN since the last SACK: DATA to it takes the SACK along.
    ride: Option<usize>,
    /// The a_rwnd of the last SACK.
    advertised: usize,
}

/// What the DATA chunks of one packet ask for.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SackRequest {
    /// There was one, or something that counts as one.
    pub(crate) any: bool,
    /// The I bit, or a duplicate, or a chunk that had no room: acknowledge at once.
    pub(crate) at_once: bool,
    /// The last gap closed.
    pub(crate) gap_closed: bool,
}

impl Acknowledgements {
    /// The first packet is acknowledged at once: it counts as the second. Section 5.1.
    pub(crate) fn new(config: &Config) -> Self {
        let advertised = config.receive_buffer.0 as usize;
        Self { packets: config.sack_frequency.saturating_sub(1), reply_path: 0, ride: None, advertised }
    }

    /// DATA came from `path`, whether it is new or not: a SACK that answered it somewhere else could get lost there.
    pub(crate) fn note_data(&mut self, path: usize) {
        self.reply_path = path;
    }

    /// The DATA from `path` was the next in order, with no gap behind it.
    pub(crate) fn note_in_order(&mut self, path: usize) {
        self.ride = Some(path);
    }

    pub(crate) fn may_ride_to(&self, path: usize) -> bool {
        self.ride == Some(path)
    }
}

impl Endpoint {
    /// Octets of user data that there is room for: what was not read takes its room (`net/sctp/associola.c` sctp_assoc_rwnd_decrease).
    pub(crate) fn receive_window(&self) -> usize {
        let held = self.reassembly.held()
            + self.interleaved.held()
            + self.streams_in.held()
            + self.peer_requests.held()
            + self.reader.unread();
        (self.config.receive_buffer.0 as usize).saturating_sub(held)
    }

    /// At the end of a packet: acknowledge now, or soon. Section 6.2.
    pub(crate) fn acknowledge_packet(&mut self, now: Time, seen: SackRequest) {
        if !seen.any {
            return;
        }
        let gap = self.tsn_map.has_gap() || (seen.gap_closed && self.config.sack_when_gap_closes);
        let every_so_many = self.acknowledgements.packets + 1 >= self.config.sack_frequency;
        if self.state == State::ShutdownSent {
            // Section 9.2: a SHUTDOWN answers each packet with DATA, and a peer that sends has not failed.
            self.error_count = 0;
            self.queue_sack();
            self.queue_shutdown(now);
        } else if seen.at_once || gap || every_so_many {
            self.queue_sack();
        } else {
            self.acknowledgements.packets += 1;
            self.timers.sack = Some(self.clock.expiry(now, self.config.sack_delay));
        }
    }

    /// The window has opened by much since the peer last heard of it: silly window avoidance. Section 6.2.
    fn window_update_due(&self) -> bool {
        let opened = self.receive_window().saturating_sub(self.acknowledgements.advertised);
        opened as u64 >= (self.config.receive_buffer.0 / 8).max(self.config.mtu.0)
    }

    /// The application has read: tells the peer if that made much room (`net/sctp/associola.c` sctp_assoc_rwnd_increase). Section 6.2.
    pub(crate) fn room_made(&mut self, now: Time) {
        if self.state.receives_data() && self.window_update_due() {
            self.queue_sack();
            self.flush(now, false);
        }
    }

    /// Over several paths at once each chunk that is on its way on a slower one leaves a gap: as many blocks as a packet has room for,
    /// beside 16 duplicates. RFC 9260 section 3.3.4.
    fn most_gap_blocks(&self) -> u16 {
        if !self.config.cmt {
            return self.config.max_gap_blocks;
        }
        let room = (self.largest_chunk() - Sack::FIXED) / 4 - MAX_DUPLICATES;
        u16::try_from(room).unwrap_or(u16::MAX)
    }

    pub(crate) fn queue_sack(&mut self) {
        let sack = self.make_sack();
        self.control.push_back((Some(self.acknowledgements.reply_path), Chunk::Sack(sack)));
    }

    /// The SACK of this moment; nothing is left to acknowledge. Section 3.3.4.
    pub(crate) fn make_sack(&mut self) -> Sack {
        let a_rwnd = self.receive_window();
        self.timers.sack = None;
        let state = &mut self.acknowledgements;
        (state.packets, state.ride, state.advertised) = (0, None, a_rwnd);
        Sack {
            cumulative_tsn: self.tsn_map.cumulative(),
            a_rwnd: a_rwnd as u32,
            gaps: self.tsn_map.gaps(self.most_gap_blocks()),
            duplicates: self.tsn_map.take_duplicates(),
        }
    }
}
