//! The receive sequence space, and the window in it that we offer. RFC 9293 sections 3.3.1 and 3.8.6.

use hol_wire::tcp::SeqNum;

/// RCV.NXT and RCV.WND.
#[derive(Debug, Default)]
pub(crate) struct ReceiveSequence {
    nxt: SeqNum,
    /// RCV.NXT in the last segment that we sent: what the peer knows.
    wup: SeqNum,
    /// The window in that segment.
    wnd: u32,
    scale: u8,
}

impl ReceiveSequence {
    /// The peer's SYN: what follows it is next, and how our windows are shifted.
    pub(crate) fn on_syn(&mut self, syn: SeqNum, scale: Option<u8>) {
        self.nxt = syn.next();
        self.wup = self.nxt;
        self.scale = scale.unwrap_or(self.scale);
    }

    /// RCV.NXT.
    pub(crate) fn nxt(&self) -> SeqNum {
        self.nxt
    }

    /// RCV.NXT as the peer knows it.
    pub(crate) fn acknowledged(&self) -> SeqNum {
        self.wup
    }

    /// Octets received in order that the peer does not know of yet.
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.nxt.distance_from(self.wup)
    }

    /// The window in the last segment that we sent.
    pub(crate) fn offered(&self) -> u32 {
        self.wnd
    }

    /// Our windows are shifted.
    pub(crate) fn is_scaled(&self) -> bool {
        self.scale > 0
    }

    /// Everything before `nxt` has arrived.
    pub(crate) fn advance(&mut self, nxt: SeqNum) {
        self.nxt = nxt;
    }

    /// What is left of the window that the peer knows.
    pub(crate) fn window(&self) -> u32 {
        self.wnd.saturating_sub(self.unacknowledged())
    }

    /// The sequence number behind that window.
    pub(crate) fn window_end(&self) -> SeqNum {
        self.nxt + self.window()
    }

    /// The window field of a segment that leaves now, which the peer then knows; `free` octets of `buffer` are.
    ///
    /// The right edge never moves left (RFC 9293 section 3.8.6), and only by enough to be worth it: a segment
    /// or half of the buffer (section 3.8.6.2.2).
    pub(crate) fn advertise(&mut self, buffer: u32, free: u32, mss: u32) -> u16 {
        let free = self.limited(free);
        let current = self.window();
        let worthwhile = (buffer / 2).min(mss);
        let window = if free >= current + worthwhile { free } else { current };
        // Rounded up, lest what was offered be scaled away.
        let field = window.div_ceil(1 << self.scale).min(u16::MAX.into());
        self.wnd = field << self.scale;
        self.wup = self.nxt;
        field as u16
    }

    /// So much of `free` as a window field can tell.
    pub(crate) fn limited(&self, free: u32) -> u32 {
        free.min(u32::from(u16::MAX) << self.scale)
    }

    /// The window field of a SYN, which is never scaled. RFC 7323 section 2.2.
    pub(crate) fn advertise_in_syn(&mut self, buffer: u32) -> u16 {
        let window = buffer.min(u16::MAX.into());
        self.wnd = window;
        self.wup = self.nxt;
        window as u16
    }
}
