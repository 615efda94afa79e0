//! The receive sequence space, and the window that we advertise in it. RFC 9293 sections 3.3.1 and 3.8.6.

use hol_wire::tcp::SeqNum;

/// The receive sequence variables, such as RCV.NXT and RCV.WND.
#[derive(Debug, Default)]
pub(crate) struct ReceiveSequence {
    nxt: SeqNum,
    /// RCV.NXT in our last segment.
    wup: SeqNum,
    /// The window in our last segment, in octets.
    wnd: u32,
    /// The highest right edge of all windows that we have advertised, before rounding. RFC 7323 section 2.4.
    edge: SeqNum,
    /// The window scale shift of the windows that we advertise: Rcv.Wind.Shift.
    scale: u8,
}

impl ReceiveSequence {
    /// Sets RCV.NXT after the peer's SYN, and the window scale shift of our windows.
    pub(crate) fn on_syn(&mut self, syn: SeqNum, scale: Option<u8>) {
        self.nxt = syn.next();
        self.edge = self.nxt;
        self.offer(self.wnd);
        self.scale = scale.unwrap_or(self.scale);
    }

    /// Returns RCV.NXT, the next sequence number that is expected.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.nxt
    }

    /// Returns RCV.NXT in our last segment, up to which we have acknowledged.
    pub(crate) fn acknowledged(&self) -> SeqNum {
        self.wup
    }

    /// Returns the number of octets that were received in order and that we have not acknowledged.
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.nxt.distance_from(self.wup)
    }

    /// Returns the window in our last segment, in octets.
    pub(crate) fn offered(&self) -> u32 {
        self.wnd
    }

    /// Returns the window scale shift of our windows.
    pub(crate) fn scale(&self) -> u8 {
        self.scale
    }

    /// Returns whether the windows that we advertise are scaled.
    pub(crate) fn is_scaled(&self) -> bool {
        self.scale > 0
    }

    /// Sets RCV.NXT to `nxt`: everything before it has arrived.
    pub(crate) fn advance(&mut self, nxt: SeqNum) {
        self.nxt = nxt;
    }

    /// Returns how many octets remain of the window that was last advertised to the peer.
    pub(crate) fn window(&self) -> u32 {
        if self.edge.after(self.nxt) { self.edge.distance_from(self.nxt) } else { 0 }
    }

    /// Returns the sequence number that follows the last advertised window.
    pub(crate) fn window_end(&self) -> SeqNum {
        self.nxt + self.window()
    }

    /// Returns the window field of a segment that is sent now; `unread` octets of `buffer` wait for the
    /// application, and `free` octets are free.
    ///
    /// The right edge never moves left (RFC 9293 section 3.8.6), and moves right only by at least a segment or
    /// half of the buffer (RFC 9293 section 3.8.6.2.2).
    pub(crate) fn advertise(&mut self, buffer: u32, unread: u32, free: u32, mss: u32) -> u16 {
        let free = self.limited_to_field(free);
        let current = self.window();
        let worthwhile = (buffer / 2).min(mss);
        let window = if free >= current + worthwhile { free } else { current };
        // Rounded up, so that scaling does not take back a part of the offer, unless the buffer has no room for the
        // rounded window. RFC 7323 section 2.4.
        let unit = 1 << self.scale;
        let (up, room) = (window.div_ceil(unit), buffer.saturating_sub(unread));
        let field = if up <= room.div_ceil(unit) { up } else { window / unit }.min(u16::MAX.into());
        self.offer(field << self.scale);
        field as u16
    }

    /// Stores RCV.NXT and `window` as the values in our last segment.
    fn offer(&mut self, window: u32) {
        (self.wup, self.wnd) = (self.nxt, window);
        self.edge = self.edge.latest(self.nxt + window);
    }

    /// Limits `free` to the largest window that a window field can express.
    pub(crate) fn limited_to_field(&self, free: u32) -> u32 {
        free.min(u32::from(u16::MAX) << self.scale)
    }

    /// Returns the window field of a SYN. It is not scaled, so it may be less than `buffer`. RFC 7323 section 2.2.
    pub(crate) fn advertise_in_syn(&mut self, buffer: u32) -> u16 {
        self.offer(buffer);
        buffer.min(u16::MAX.into()) as u16
    }

    /// Returns the window field of a segment that is sent now. It announces `window`, or the rest of the last
    /// window if that is larger, because the right edge never moves left. Linux: tcp_select_window.
    pub(crate) fn advertise_selected(&mut self, window: u32) -> u16 {
        let (current, unit) = (self.window(), 1 << self.scale);
        let window = if window < current { current.next_multiple_of(unit) } else { window };
        self.offer(window);
        (self.limited_to_field(window) >> self.scale) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_window_never_exceeds_the_buffer_or_shrinks() {
        // RFC 7323 section 2.4: octets arrive one at a time, and the application reads none of them.
        const BUFFER: u32 = 160;
        let mut rcv = ReceiveSequence::default();
        rcv.on_syn(SeqNum(0), Some(4));
        assert_eq!(rcv.advertise(BUFFER, 0, BUFFER, 100), 10);
        let mut unread = 0;
        while rcv.window() > 0 {
            let edge = rcv.window_end();
            unread += 1;
            rcv.advance(rcv.nxt().next());
            rcv.advertise(BUFFER, unread, BUFFER.saturating_sub(unread), 100);
            assert!(rcv.window_end().at_or_after(edge), "{unread} octets");
            assert!(unread < BUFFER + 16, "{unread} octets of {BUFFER}");
        }
    }
}
