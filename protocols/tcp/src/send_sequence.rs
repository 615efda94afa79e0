//! The send sequence space, and the window in it that the peer offers. RFC 9293 sections 3.3.1 and 3.8.6.

use hol_wire::tcp::{Flags, Segment, SeqNum};

/// A window may not be shifted further. RFC 7323 section 2.3.
const MAX_SCALE: u8 = 14;

/// A window no larger than this is not halved. RFC 9293 section 3.7.1.
const DEFAULT_MSS: u32 = 536;
/// A packet is not cut below what is left of 68 octets beside a header. Linux: tcp_bound_to_half_wnd.
const LEAST_BOUND: u32 = 36;

/// SND.UNA, SND.NXT and SND.WND.
#[derive(Debug, Default)]
pub(crate) struct SendSequence {
    una: SeqNum,
    nxt: SeqNum,
    /// The peer's window.
    wnd: u32,
    /// The greatest window the peer has offered.
    max_wnd: u32,
    /// The segment that `wnd` came with.
    wl1: SeqNum,
    scale: u8,
    /// Octets acknowledged since the start.
    acknowledged: u64,
    /// Octets written since PSH was set last.
    unpushed: u32,
}

impl SendSequence {
    /// The connection begins at ISS, which is not zero: that is kept for "never opened".
    pub(crate) fn begin(&mut self, iss: SeqNum) {
        (self.una, self.nxt) = (iss, iss);
    }

    /// An ISS was chosen.
    pub(crate) fn is_begun(&self) -> bool {
        self.nxt != SeqNum::default()
    }

    /// SND.UNA.
    pub(crate) fn una(&self) -> SeqNum {
        self.una
    }

    /// SND.NXT.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.nxt
    }

    /// The window that the peer offered last is closed.
    pub(crate) fn window_is_closed(&self) -> bool {
        self.wnd == 0
    }

    /// The window that the peer offered last.
    pub(crate) fn window(&self) -> u32 {
        self.wnd
    }

    /// A segment with this window field offers the same.
    pub(crate) fn is_window(&self, field: u16) -> bool {
        u32::from(field) == self.wnd >> self.scale
    }

    /// `octets`, or half of the peer's greatest window if that is less: a packet that fills a window is acknowledged late. Linux:
    /// tcp_bound_to_half_wnd.
    pub(crate) fn bound_to_half_window(&self, octets: u32) -> u32 {
        let most = if self.max_wnd > DEFAULT_MSS { self.max_wnd / 2 } else { self.max_wnd };
        if most == 0 { octets } else { octets.min(most.max(LEAST_BOUND)) }
    }

    /// The greatest window the peer has offered.
    pub(crate) fn max_window(&self) -> u32 {
        self.max_wnd
    }

    /// The sequence number behind the peer's window.
    pub(crate) fn window_end(&self) -> SeqNum {
        self.una + self.wnd
    }

    /// U: octets that the peer's window takes beyond what is sent. RFC 9293 section 3.8.6.2.1.
    pub(crate) fn usable_window(&self) -> u32 {
        self.window_from(self.nxt)
    }

    /// Octets from `seq` to the end of the peer's window.
    pub(crate) fn window_from(&self, seq: SeqNum) -> u32 {
        let end = self.window_end();
        if end.after(seq) { end.distance_from(seq) } else { 0 }
    }

    /// Octets acknowledged since the start, and octets sent.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.acknowledged, self.acknowledged + u64::from(self.nxt.distance_from(self.una)))
    }

    /// The peer's SYN: its window, never scaled itself, and the scale of those that follow. RFC 7323 section 2.2.
    pub(crate) fn on_syn(&mut self, syn: &Segment, scale: Option<u8>) {
        self.wl1 = syn.seq;
        self.wnd = syn.window.into();
        self.max_wnd = self.wnd;
        self.scale = scale.map_or(self.scale, |scale| scale.min(MAX_SCALE));
    }

    /// The window of the ACK that completes the handshake counts, whatever came before. RFC 9293 section 3.10.7.4.
    pub(crate) fn expect_window_of(&mut self, segment: &Segment) {
        self.wl1 = segment.seq - 1;
    }

    /// Our SYN takes the place of ISS.
    pub(crate) fn on_syn_sent(&mut self) {
        self.nxt = self.una.next();
    }

    /// `length` sequence numbers left for the first time.
    pub(crate) fn on_sent(&mut self, length: u32) {
        self.nxt += length;
    }

    /// The application has written so many octets.
    pub(crate) fn on_written(&mut self, octets: u32) {
        self.unpushed = self.unpushed.saturating_add(octets);
    }

    /// PSH is set at the end of what was written.
    pub(crate) fn on_pushed(&mut self) {
        self.unpushed = 0;
    }

    /// More than half a window was written without PSH. Linux: forced_push.
    pub(crate) fn push_is_forced(&self) -> bool {
        self.unpushed > self.max_wnd / 2
    }

    /// SND.UNA moves to `ack`.
    pub(crate) fn acknowledge(&mut self, ack: SeqNum) {
        self.acknowledged += u64::from(ack.distance_from(self.una));
        self.una = ack;
    }

    /// Takes the peer's window if the segment is newer than the one it came with last, or an ACK of new
    /// data. RFC 9293 section 3.10.7.4. Call it before SND.UNA moves.
    pub(crate) fn update_window(&mut self, segment: &Segment) -> bool {
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.scale };
        let window = u32::from(segment.window) << shift;
        let newer = segment.ack.after(self.una)
            || segment.seq.after(self.wl1)
            || (segment.seq == self.wl1 && (window > self.wnd || window == 0));
        if newer {
            self.wl1 = segment.seq;
            self.wnd = window;
            self.max_wnd = self.max_wnd.max(window);
        }
        newer
    }
}
