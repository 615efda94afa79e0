//! Decides when to send a SACK, and builds it. RFC 9260 sections 6.2 and 6.7.

use hol_base::Time;
use hol_wire::sctp::{Chunk, Sack};

use crate::state::State;
use crate::tsn_map::MAX_DUPLICATES;
use crate::{Config, Endpoint};

/// The state that determines when the next SACK is sent.
#[derive(Debug)]
pub(crate) struct Acknowledgements {
    /// Number of packets with DATA since the last SACK that was sent to acknowledge them. A SACK that is bundled
    /// with DATA, or that updates the window, does not reset this number. `net/sctp/sm_sideeffect.c`
    /// sctp_gen_sack, `output.c` sctp_packet_bundle_sack.
    packets: u32,
    /// Whether the next packet must be acknowledged at once.
    due: bool,
    /// The path of the last DATA, on which the SACK is sent. RFC 9260 section 6.4.
    reply_path: usize,
    /// The path on which DATA advanced the cumulative TSN since the last SACK; a SACK is bundled only with DATA on
    /// this path.
    bundle_path: Option<usize>,
    /// The a_rwnd of the last SACK.
    advertised: usize,
}

/// Which acknowledgement the DATA chunks of one packet require.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SackRequest {
    /// Whether the packet contained a DATA chunk, or a chunk that counts like DATA.
    pub(crate) has_data: bool,
    /// Whether to acknowledge at once: for the I bit, a duplicate, or a chunk for which the receive buffer has no
    /// room.
    pub(crate) at_once: bool,
    /// Whether the packet filled the last gap.
    pub(crate) gap_closed: bool,
}

impl Acknowledgements {
    /// Creates the initial state, in which the first packet is acknowledged at once. RFC 9260 section 5.1.
    pub(crate) fn new(config: &Config) -> Self {
        let advertised = config.receive_buffer.0 as usize;
        Self { packets: 0, due: true, reply_path: 0, bundle_path: None, advertised }
    }

    /// Records that DATA, new or duplicate, arrived on `path`. The next SACK is sent on this path, because on
    /// another it might be lost.
    pub(crate) fn note_data(&mut self, path: usize) {
        self.reply_path = path;
    }

    /// Records that DATA arrived on `path` that advanced the cumulative TSN and left no gap.
    pub(crate) fn note_in_order(&mut self, path: usize) {
        self.bundle_path = Some(path);
    }

    pub(crate) fn may_bundle_to(&self, path: usize) -> bool {
        self.bundle_path == Some(path)
    }
}

impl Endpoint {
    /// Returns the number of octets of user data for which the receive buffer has room; unread data use some of it
    /// (`net/sctp/associola.c` sctp_assoc_rwnd_decrease).
    pub(crate) fn receive_window(&self) -> usize {
        let held = self.reassembly.held_octets()
            + self.interleaved.held_octets()
            + self.streams_in.held_octets()
            + self.peer_reconfig_requests.held_octets()
            + self.reader.unread();
        (self.config.receive_buffer.0 as usize).saturating_sub(held)
    }

    /// Acknowledges a packet, now or later, after its chunks have been processed. RFC 9260 section 6.2.
    pub(crate) fn acknowledge_packet(&mut self, now: Time, seen: SackRequest) {
        if !seen.has_data {
            return;
        }
        let gap = self.tsn_map.has_gap() || (seen.gap_closed && self.config.sack_when_gap_closes);
        let due = self.acknowledgements.due || self.config.sack_frequency == 1;
        if self.state == State::ShutdownSent {
            // Section 9.2: each packet with DATA is answered by a SHUTDOWN, and a peer that sends DATA has not
            // failed.
            self.error_count = 0;
            self.queue_sack();
            self.queue_shutdown(now);
        } else if seen.at_once || gap || due {
            self.queue_sack();
        } else {
            self.acknowledgements.packets += 1;
            self.acknowledgements.due = self.acknowledgements.packets + 1 >= self.config.sack_frequency;
            self.timers.sack = Some(self.clock.expiry(now, self.config.sack_delay));
        }
    }

    /// Returns whether the window has opened enough for a window update (silly window avoidance). RFC 9260 section
    /// 6.2.
    fn window_update_due(&self) -> bool {
        let opened = self.receive_window().saturating_sub(self.acknowledgements.advertised);
        opened as u64 >= (self.config.receive_buffer.0 / 8).max(self.config.mtu.0)
    }

    /// Sends a window update after the application has read enough data (`net/sctp/associola.c`
    /// sctp_assoc_rwnd_increase). RFC 9260 section 6.2.
    pub(crate) fn send_window_update_if_due(&mut self, now: Time) {
        if self.state.receives_data() && self.window_update_due() {
            let update = self.make_sack();
            self.control.push_back((Some(self.acknowledgements.reply_path), Chunk::Sack(update)));
            self.flush(now, false);
        }
    }

    /// Returns the maximum number of gap ack blocks in a SACK. With concurrent multipath transfer each chunk in
    /// flight on a slower path causes a gap, so the limit is the number that fits into a packet with 16 duplicate
    /// TSNs. RFC 9260 section 3.3.4.
    fn gap_block_limit(&self) -> u16 {
        if !self.config.cmt {
            return self.config.max_gap_blocks;
        }
        let room = (self.max_chunk_size() - Sack::FIXED_OCTETS) / 4 - MAX_DUPLICATES;
        u16::try_from(room).unwrap_or(u16::MAX)
    }

    /// Queues a SACK, and restarts the count of packets to acknowledge.
    pub(crate) fn queue_sack(&mut self) {
        let sack = self.make_sack();
        self.acknowledgements.packets = 0;
        self.control.push_back((Some(self.acknowledgements.reply_path), Chunk::Sack(sack)));
    }

    /// Builds the current SACK, which acknowledges everything received. RFC 9260 section 3.3.4.
    pub(crate) fn make_sack(&mut self) -> Sack {
        let a_rwnd = self.receive_window();
        self.timers.sack = None;
        let state = &mut self.acknowledgements;
        (state.due, state.bundle_path, state.advertised) = (false, None, a_rwnd);
        Sack {
            cumulative_tsn: self.tsn_map.cumulative(),
            a_rwnd: a_rwnd as u32,
            gaps: self.tsn_map.gap_ack_blocks(self.gap_block_limit()),
            duplicates: self.tsn_map.take_duplicates(),
        }
    }
}
