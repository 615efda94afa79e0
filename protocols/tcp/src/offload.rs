//! Segmentation offload: blocks of several segments are passed to the network layer, which segments them. The size of blocks decides when
//! they are sent, and where PSH is set. Linux: net/ipv4/tcp_output.c tcp_write_xmit.

use hol_base::{Duration, Time};
use hol_congestion::{Algorithm, CongestionWindow};

use crate::recovery_phase::Phase;
use crate::send::{NextSegment, Push};
use crate::{CongestionUnit, Endpoint};

/// Maximum length of a block in octets: 64 KiB minus the headers. Linux: sk_setup_caps, GSO_LEGACY_MAX_SIZE.
const MAX_BLOCK: u32 = 65_343;
/// A block is sent at once if it has at least 1/WINDOW_DIVISOR of the window. Linux: net.ipv4.tcp_tso_win_divisor.
const WINDOW_DIVISOR: u32 = 3;
/// A block contains the data of 2^-PACE_SHIFT s (1/1024 s) at the current rate. Linux: sk_pacing_shift.
const PACE_SHIFT: u32 = 10;
/// Unit of round-trip times, as an exponent: 2⁹ µs. If the round-trip time is less than one unit, a block may have
/// the maximum size; each further unit halves this size. Linux: net.ipv4.tcp_tso_rtt_log.
const RTT_LOG: u32 = 9;
/// Minimum number of segments in a block. Linux: net.ipv4.tcp_min_tso_segs.
const MIN_SEGMENTS: u32 = 2;
/// Maximum time for which a block waits for an expected acknowledgment. Linux: tcp_tso_should_defer.
const MAX_WAIT: Duration = Duration::from_millis(1);

impl Endpoint {
    /// Returns whether blocks of several segments are sent. That is possible only if the congestion window counts
    /// segments; otherwise they are sent one by one.
    pub(crate) fn uses_segmentation_offload(&self) -> bool {
        self.config.segmentation_offload && self.config.congestion_unit == CongestionUnit::Packets
    }

    /// Returns the number of octets that always fit into a block, regardless of the SACK blocks in its segments.
    pub(crate) fn guaranteed_block_size(&self) -> usize {
        const SACK_OPTION_OCTETS: u32 = 4 + 4 * 8;
        self.snd.bound_to_half_window(self.negotiated.mss()).saturating_sub(SACK_OPTION_OCTETS) as usize
    }

    /// Returns the maximum number of octets in a block. Writes of the application fill a block before the next one
    /// begins. Linux: tcp_xmit_size_goal.
    pub(crate) fn block_size(&self) -> usize {
        let segment = self.payload_limit().max(1);
        let max = self.snd.bound_to_half_window(MAX_BLOCK) as usize;
        (max / segment * segment).max(segment)
    }

    /// Returns the number of octets sent in 1/1024 s, at the congestion controller's pacing rate if it has one.
    fn burst_octets(&self) -> u64 {
        self.cwnd.pacing().map_or(self.usage.rate(), |pacing| pacing.rate) >> PACE_SHIFT
    }

    /// Returns whether data that are marked as lost wait for retransmission.
    pub(crate) fn has_unsent_lost_data(&self) -> bool {
        self.board.lost().segments > self.board.retrans_out().segments
    }

    /// Updates the rate that the congestion window allows until the next acknowledgment, in octets per second.
    /// Linux: tcp_update_pacing_rate.
    pub(crate) fn update_rate(&mut self) {
        if !self.uses_segmentation_offload() {
            return;
        }
        let Some(srtt) = self.rtt.srtt() else { return };
        let (cwnd, out) = (self.cwnd.cwnd(), self.board.packets_out().segments);
        let percent = if cwnd < self.cwnd.ssthresh() / 2 { 200 } else { 120 };
        let octets = u64::from(self.negotiated.mss()) * u64::from(cwnd.max(out)) * percent;
        self.usage.set_rate(octets * 10_000_000 / srtt.as_nanos().max(1));
    }

    /// Returns the maximum number of segments in a block. Linux: tcp_tso_autosize, unless the congestion
    /// controller sets it (`tso_segs`).
    pub(crate) fn max_segments(&self, segment: usize) -> u32 {
        let round_trip = self.rtt.min().map_or(u64::MAX, |min| min.as_nanos() / 1000) >> RTT_LOG;
        let more = if round_trip < u64::from(u32::BITS) { u64::from(MAX_BLOCK) >> round_trip } else { 0 };
        let octets = self.burst_octets().saturating_add(more).min(MAX_BLOCK.into());
        if let (Algorithm::Prague, Some(pacing)) = (self.config.congestion, self.cwnd.pacing()) {
            return pacing.burst;
        }
        let fewest = if self.config.congestion == Algorithm::Bbr { 1 } else { MIN_SEGMENTS };
        ((octets / segment as u64) as u32).max(fewest)
    }

    /// Returns how many segments the congestion window allows now, but at most half of the window, so that two
    /// blocks can be in flight. Linux: tcp_cwnd_test.
    fn quota(&self) -> u32 {
        let (cwnd, in_flight) = (self.cwnd.cwnd(), self.in_flight());
        cwnd.saturating_sub(in_flight).min((cwnd / 2).max(1))
    }

    /// Sends blocks while the windows allow it. Returns the number of segments sent, and whether the congestion
    /// window prevents more.
    pub(crate) fn send_blocks(&mut self, now: Time, push: Push) -> (u32, bool) {
        let (mut sent, mut is_limited, mut queued) = (0, false, 0);
        let segment = self.payload_limit();
        let max = if self.queue.length() > segment { self.max_segments(segment) } else { MIN_SEGMENTS };
        while self.queue.has_unsent() && !self.is_throttled && self.sendable_segments(now, push) > 0 {
            let quota = match self.quota() {
                0 if push == Push::Probe => 1,
                0 => break,
                quota => quota.min(max),
            };
            self.queue.grow_first_block(quota as usize * segment);
            let length = self.queue.first_block().map_or(0, |block| block.length);
            let fin = self.queue.fin_follows(length);
            let first = if length > segment { segment } else { length + usize::from(fin) };
            if first > self.snd.usable_window() as usize {
                break;
            }
            if length <= segment {
                if self.is_held(push, length, fin) {
                    break;
                }
            } else if matches!(push, Push::Normal | Push::Undelayed | Push::FRto)
                && let Some(by_congestion) = self.is_deferred(now, length, fin, max)
            {
                is_limited |= by_congestion;
                break;
            }
            let size = if length > segment { self.split_point(push, length, segment, quota) } else { length };
            let memory = u64::from(self.memory.without_data()) + size as u64;
            // Linux: tcp_small_queue_check.
            if push == Push::FRto && queued >= self.burst_octets().max(2 * memory) {
                self.is_throttled = true;
                break;
            }
            queued += memory;
            sent += self.send_block(now, size, segment);
            if matches!(push, Push::Probe | Push::FirstBlock) {
                break;
            }
        }
        (sent, is_limited || self.in_flight() >= self.cwnd.cwnd())
    }

    /// Returns whether a block of one segment waits for more data, which only the last block does. Linux:
    /// tcp_nagle_test.
    fn is_held(&self, push: Push, length: usize, fin: bool) -> bool {
        let is_last = self.queue.length() == length;
        let is_small = length < self.payload_limit() && !fin;
        push == Push::Normal && is_last && is_small && self.holds_small()
    }

    fn holds_small(&self) -> bool {
        self.small.must_wait(self.config.nagle, self.board.len() > 0, &self.snd)
    }

    /// Returns the number of octets of the first block to send now: as many as the windows allow, but without a
    /// small last segment that must wait. Linux: tcp_mss_split_point.
    fn split_point(&self, push: Push, length: usize, segment: usize, quota: u32) -> usize {
        let (window, max) = (self.snd.usable_window() as usize, segment * quota as usize);
        let needed = length.min(window);
        let is_last = self.queue.length() == length;
        if max <= needed || (max <= window && !is_last) {
            return max.min(length);
        }
        let partial = needed % segment;
        let waits = partial != 0 && push == Push::Normal && self.holds_small();
        if waits { needed - partial } else { needed }
    }

    /// Returns `Some` if a block waits for the next acknowledgment, because it is expected soon and will allow
    /// more of the block to be sent. The value says whether the congestion window limits the block now. Linux:
    /// tcp_tso_should_defer.
    fn is_deferred(&self, now: Time, length: usize, fin: bool, max: u32) -> Option<bool> {
        if self.episode.phase() >= Phase::Recovery || self.usage.last_departure() + MAX_WAIT < now {
            return None;
        }
        let mss = self.negotiated.mss();
        let send_window = self.snd.usable_window();
        let congestion_window = self.cwnd.cwnd().saturating_sub(self.in_flight()).saturating_mul(mss);
        let limit = send_window.min(congestion_window);
        let is_last = self.queue.length() == length;
        let worthwhile = self.snd.window().min(self.cwnd.cwnd().saturating_mul(mss)) / WINDOW_DIVISOR;
        if limit >= max.saturating_mul(mss) || (!is_last && limit as usize >= length) || limit >= worthwhile {
            return None;
        }
        let oldest = self.board.front()?.sent;
        let srtt = self.rtt.srtt().unwrap_or_default();
        if oldest + srtt > now + (srtt / 2).min(MAX_WAIT) {
            return None;
        }
        if congestion_window < send_window {
            if congestion_window as usize <= length {
                return Some(true);
            }
        } else if send_window as usize <= length {
            return Some(false);
        }
        if fin { None } else { Some(false) }
    }

    /// Sends `size` octets of the first block, split into segments.
    fn send_block(&mut self, now: Time, size: usize, segment: usize) -> u32 {
        let block = self.queue.first_block();
        let segments = size.div_ceil(segment).max(1);
        let pushed = block.map_or(self.queue.fin_is_pushed(), |block| block.length == size && block.pushed);
        let mut left = size;
        let duplicate = self.reassembly.duplicate();
        for number in 1..=segments {
            // The segments of a block have the same options. Linux: tcp_gso_segment.
            duplicate.into_iter().for_each(|block| self.reassembly.note_duplicate(block));
            let (length, is_last) = (left.min(segment), number == segments);
            left -= length;
            let fin = is_last && self.queue.fin_follows(length);
            let overhead = if is_last { self.memory.without_data() } else { 0 };
            // A block of several segments always has PSH, so that the receiver passes it on. Linux: __tcp_transmit_skb.
            let cut = segments > 1;
            let ends_block = cut && is_last;
            let (is_small, pushed) = (length < segment, pushed && is_last);
            self.send_segment(
                now,
                NextSegment {
                    size: length,
                    fin,
                    is_small,
                    pushed,
                    is_part_of_block: cut,
                    ends_block,
                    overhead,
                },
            );
        }
        self.check_space();
        segments as u32
    }

    /// Returns the size of send buffer that the congestion window needs: twice the window. Linux:
    /// tcp_sndbuf_expand.
    pub(crate) fn send_buffer_for_window(&self) -> u64 {
        let frame = self.memory.with_data(self.config.mss.into(), true);
        let cwnd = self.cwnd.cwnd() / self.cwnd.quantum();
        let segments = cwnd.max(INITIAL_WINDOW).max(self.episode.reordering.dupthresh() + 1);
        let times = if matches!(self.config.congestion, Algorithm::Bbr | Algorithm::Bbr3) { 3 } else { 2 };
        debug_assert!(segments <= CongestionWindow::INFINITE);
        u64::from(times * segments) * u64::from(frame)
    }
}

/// Initial window in segments. Linux: TCP_INIT_CWND.
const INITIAL_WINDOW: u32 = 10;
