//! The send sequence space, and the peer's window. RFC 9293 sections 3.3.1 and 3.8.6.

use hol_wire::tcp::{Flags, Segment, SeqNum};

/// Maximum window scale shift. RFC 7323 section 2.3.
const MAX_SCALE: u8 = 14;

/// If the peer's largest window is at most this many octets, segments are not limited to half of it. RFC 9293
/// section 3.7.1.
const DEFAULT_MSS: u32 = 536;
/// Minimum segment size after the limit to half a window: 68 octets minus a header. Linux: tcp_bound_to_half_wnd.
const MIN_BOUND: u32 = 36;

/// The send sequence variables, such as SND.UNA, SND.NXT and SND.WND.
#[derive(Debug, Default)]
pub(crate) struct SendSequence {
    una: SeqNum,
    nxt: SeqNum,
    /// The peer's window in octets.
    wnd: u32,
    /// The largest window that the peer has advertised, in octets.
    max_wnd: u32,
    /// SND.WL1: sequence number of the segment that set `wnd`.
    wl1: SeqNum,
    /// The window scale shift of the windows that the peer advertises: Snd.Wind.Shift.
    scale: u8,
    /// Number of octets acknowledged since the connection began.
    acknowledged: u64,
    /// Number of octets written since PSH was last set.
    unpushed: u32,
}

impl SendSequence {
    /// Sets ISS. It is not zero, which means that the connection was never opened.
    pub(crate) fn set_iss(&mut self, iss: SeqNum) {
        (self.una, self.nxt) = (iss, iss);
    }

    /// Returns whether the initial send sequence number (ISS) has been chosen.
    pub(crate) fn is_iss_set(&self) -> bool {
        self.nxt != SeqNum::default()
    }

    /// Returns SND.UNA, the oldest unacknowledged sequence number.
    pub(crate) fn una(&self) -> SeqNum {
        self.una
    }

    /// Returns SND.NXT, the next sequence number to send.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.nxt
    }

    /// Returns whether the peer's window is closed.
    pub(crate) fn window_is_closed(&self) -> bool {
        self.wnd == 0
    }

    /// Returns the peer's window in octets.
    pub(crate) fn window(&self) -> u32 {
        self.wnd
    }

    /// Returns whether the window field `field` announces the current window again.
    pub(crate) fn announces_current_window(&self, field: u16) -> bool {
        u32::from(field) == self.wnd >> self.scale
    }

    /// Limits `octets` to half of the peer's largest window, because a segment that fills a window is acknowledged
    /// late. Linux: tcp_bound_to_half_wnd.
    pub(crate) fn bound_to_half_window(&self, octets: u32) -> u32 {
        let max = if self.max_wnd > DEFAULT_MSS { self.max_wnd / 2 } else { self.max_wnd };
        if max == 0 { octets } else { octets.min(max.max(MIN_BOUND)) }
    }

    /// Returns the largest window that the peer has advertised, in octets.
    pub(crate) fn max_window(&self) -> u32 {
        self.max_wnd
    }

    /// Returns the sequence number that follows the peer's window.
    pub(crate) fn window_end(&self) -> SeqNum {
        self.una + self.wnd
    }

    /// Returns the usable window U: the number of octets of the peer's window that are not in use. RFC 9293
    /// section 3.8.6.2.1.
    pub(crate) fn usable_window(&self) -> u32 {
        self.window_from(self.nxt)
    }

    /// Returns the number of octets from `seq` to the end of the peer's window.
    pub(crate) fn window_from(&self, seq: SeqNum) -> u32 {
        let end = self.window_end();
        if end.after(seq) { end.distance_from(seq) } else { 0 }
    }

    /// Returns the number of octets acknowledged since the connection began, and the number of octets sent.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.acknowledged, self.acknowledged + u64::from(self.nxt.distance_from(self.una)))
    }

    /// Processes the window of the peer's SYN, which is not scaled, and stores the window scale shift of later
    /// windows. RFC 7323 section 2.2.
    pub(crate) fn on_syn(&mut self, syn: &Segment, scale: Option<u8>) {
        self.wl1 = syn.seq;
        self.wnd = syn.window.into();
        self.max_wnd = self.wnd;
        self.scale = scale.map_or(self.scale, |scale| scale.min(MAX_SCALE));
    }

    /// Accepts the window of the ACK that completes the handshake, whatever earlier segments have set. RFC 9293
    /// section 3.10.7.4.
    pub(crate) fn accept_window_of_handshake_ack(&mut self, segment: &Segment) {
        self.wl1 = segment.seq - 1;
    }

    /// Records that our SYN was sent, whose sequence number is ISS.
    pub(crate) fn on_syn_sent(&mut self) {
        self.nxt = self.una.next();
    }

    /// Records that `length` new sequence numbers were sent.
    pub(crate) fn on_sent(&mut self, length: u32) {
        self.nxt += length;
    }

    /// Records that the application has written `octets` octets.
    pub(crate) fn on_written(&mut self, octets: u32) {
        self.unpushed = self.unpushed.saturating_add(octets);
    }

    /// Records that PSH is set at the end of the data written so far.
    pub(crate) fn on_pushed(&mut self) {
        self.unpushed = 0;
    }

    /// Returns whether more than half a window has been written since PSH was last set. Linux: forced_push.
    pub(crate) fn push_is_forced(&self) -> bool {
        self.unpushed > self.max_wnd / 2
    }

    /// Advances SND.UNA to `ack`.
    pub(crate) fn acknowledge(&mut self, ack: SeqNum) {
        self.acknowledged += u64::from(ack.distance_from(self.una));
        self.una = ack;
    }

    /// Updates the peer's window, if the segment is newer than the one that set it or acknowledges new data.
    /// Returns whether the window was updated. RFC 9293 section 3.10.7.4. Must be called before SND.UNA advances.
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
