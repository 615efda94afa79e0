//! The two windows of flow control: what the peer offers us, and what we offer. RFC 9293 section 3.8.6.

use hol_wire::tcp::{Flags, Segment, SeqNum};

use crate::Endpoint;

impl Endpoint {
    /// The sequence number behind the peer's window.
    pub(crate) fn window_end(&self) -> SeqNum {
        self.snd.una + self.snd.wnd
    }

    /// Takes the peer's window if the segment is newer than the one it came with last, or an ACK of new
    /// data. RFC 9293 section 3.10.7.4. Call it before SND.UNA moves.
    pub(crate) fn update_send_window(&mut self, segment: &Segment) -> bool {
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.snd.scale };
        let window = u32::from(segment.window) << shift;
        let newer = segment.ack.after(self.snd.una)
            || segment.seq.after(self.snd.wl1)
            || (segment.seq == self.snd.wl1 && (window > self.snd.wnd || window == 0));
        if newer {
            self.snd.wl1 = segment.seq;
            self.snd.wnd = window;
            self.snd.max_wnd = self.snd.max_wnd.max(window);
        }
        newer
    }

    /// What is left of the window that the peer knows.
    pub(crate) fn receive_window(&self) -> u32 {
        self.rcv.wnd.saturating_sub(self.rcv.nxt.distance_from(self.rcv.wup))
    }

    /// The window field of a segment that leaves now, which the peer then knows.
    ///
    /// The right edge never moves left (RFC 9293 section 3.8.6), and only by enough to be worth it: a segment
    /// or half of the buffer (section 3.8.6.2.2).
    pub(crate) fn advertise_window(&mut self) -> u16 {
        let buffer = self.rcv.sizing.buffer;
        let largest = u32::from(u16::MAX) << self.rcv.scale;
        let free = buffer.saturating_sub(self.rcv.reassembly.octets() as u32).min(largest);
        let current = self.receive_window();
        let worthwhile = (buffer / 2).min(self.config.mss.into());
        let window = if free >= current + worthwhile { free } else { current };
        // Rounded up, lest what was offered be scaled away.
        let field = window.div_ceil(1 << self.rcv.scale).min(u16::MAX.into());
        self.rcv.wnd = field << self.rcv.scale;
        self.rcv.wup = self.rcv.nxt;
        field as u16
    }

    /// The window field of a SYN, which is never scaled. RFC 7323 section 2.2.
    pub(crate) fn advertise_syn_window(&mut self) -> u16 {
        let window = self.rcv.sizing.buffer.min(u16::MAX.into());
        self.rcv.wnd = window;
        self.rcv.wup = self.rcv.nxt;
        window as u16
    }
}
