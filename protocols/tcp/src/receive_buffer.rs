//! The memory of the receive buffer, and the window that it allows. Linux: net/ipv4/tcp_input.c and
//! tcp_output.c; if the buffer counts only octets, the window is the free space. RFC 9293 section 3.8.6.

use crate::Config;
use crate::packet_memory::PacketMemory;
use crate::reassembly::Piece;

/// Denominator of the ratio `payload_ratio`. Linux: TCP_RMEM_TO_WIN_SCALE.
const PAYLOAD_DENOMINATOR: u32 = 256;
/// Number of segments by which the earned window grows for each segment with a low memory overhead.
const GROWTH_SEGMENTS: u32 = 2;
/// Number of segments to expect in the first round trip. RFC 6928.
const INITIAL_WINDOW: u32 = 10;

/// The memory of received packets, and the limits of the receive window.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveBuffer {
    memory: PacketMemory,
    /// Current limit of the memory in octets. Linux: sk_rcvbuf.
    limit: u32,
    /// Maximum of `limit` in octets. Linux: the maximum in tcp_rmem.
    max_limit: u32,
    /// Ratio of payload to memory in 256ths, as measured in the peer's largest segments. Linux: scaling_ratio.
    payload_ratio: u32,
    /// The maximum window in octets. Linux: window_clamp.
    clamp: u32,
    /// The earned window in octets. It grows with each segment of the peer that uses little memory in relation to
    /// its payload. Linux: rcv_ssthresh.
    earned: u32,
    /// Memory in octets of packets that the application has not read.
    unread: u32,
    /// Number of packets that the application has not read.
    packets: u32,
    /// Number of octets of payload that the application has not read.
    waiting_payload: u32,
    /// Number of octets of payload in the first unread packet.
    first_payload: u32,
    /// Number of free octets after the data of the last packet.
    tailroom: u32,
}

/// A window that may be advertised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowOffer {
    /// The window in octets.
    pub(crate) window: u32,
    /// Whether more than half of the buffer is in use, so that the peer must not send faster.
    pub(crate) is_pressed: bool,
}

impl ReceiveBuffer {
    /// Creates an empty buffer.
    pub(crate) fn new(config: &Config) -> Self {
        let octets = |size: hol_base::ByteCount| u32::try_from(size.0).unwrap_or(u32::MAX);
        let memory = PacketMemory::new(config.packet_head);
        Self {
            memory,
            limit: octets(config.receive_buffer),
            max_limit: octets(config.receive_buffer_max),
            payload_ratio: if memory.is_counted() { PAYLOAD_DENOMINATOR / 2 } else { PAYLOAD_DENOMINATOR },
            clamp: u32::MAX,
            earned: u32::MAX,
            unread: 0,
            packets: 0,
            waiting_payload: 0,
            first_payload: 0,
            tailroom: 0,
        }
    }

    /// Returns whether memory is counted instead of payload, so that the window grows only when data are received.
    pub(crate) fn is_counted(&self) -> bool {
        self.memory.is_counted()
    }

    /// Returns the limit of the buffer's memory, in octets.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns how many octets of payload fit into `memory` octets. Linux: tcp_win_from_space.
    fn payload_of(&self, memory: u32) -> u32 {
        (u64::from(memory) * u64::from(self.payload_ratio) / u64::from(PAYLOAD_DENOMINATOR)) as u32
    }

    /// Returns how many octets of payload fit into the whole buffer. Linux: tcp_full_space.
    pub(crate) fn full_space(&self) -> u32 {
        self.payload_of(self.limit)
    }

    /// Returns how many more octets of payload fit into the buffer; `early` is the memory of out-of-order data.
    /// Linux: tcp_space.
    fn space(&self, early: u32) -> u32 {
        self.payload_of(self.limit.saturating_sub(self.unread + early))
    }

    /// Returns the window of a SYN in octets: a multiple of `mss`, unless the window is smaller than `mss`. Linux:
    /// tcp_select_initial_window.
    pub(crate) fn window_in_syn(&mut self, mss: u32) -> u32 {
        let whole = self.full_space();
        let window = if whole > mss { whole / mss * mss } else { whole };
        self.earned = window;
        window
    }

    /// Initialises the window of an established connection; at most 65535 octets if windows are not scaled. Linux:
    /// tcp_init_buffer_space.
    pub(crate) fn on_established(&mut self, mss: u32, is_scaled: bool) {
        let whole = self.full_space();
        self.clamp = if is_scaled { whole } else { whole.min(u16::MAX.into()) };
        // One segment is kept in reserve.
        if self.clamp > 2 * mss && self.clamp > whole.saturating_sub(mss) {
            self.clamp = (2 * mss).max(whole.saturating_sub(mss));
        }
        self.earned = self.earned.min(self.clamp);
    }

    /// Returns the number of octets to expect in the first round trip with this `window`.
    pub(crate) fn first_round_octets(&self, window: u32, mss: u32) -> u32 {
        self.earned.min(window).min(INITIAL_WINDOW * mss)
    }

    /// Returns the memory of a segment in octets. A segment `cut` from a block has a buffer of its own. A segment
    /// that arrived alone has the memory that its sender allocated, as with veth between network namespaces. With
    /// the driver ixgbe it would have a buffer of its own, too, of half a page: 2304 octets (ixgbe_build_skb,
    /// __finalize_skb_around).
    pub(crate) fn memory_of(&self, octets: u32, cut: bool) -> u32 {
        if !self.is_counted() || cut {
            self.memory.with_data(octets, cut)
        } else {
            self.memory.without_data() + octets
        }
    }

    /// Returns the memory of a segment in the out-of-order queue, in octets. Linux: skb_condense.
    pub(crate) fn out_of_order_memory_of(&self, octets: u32, cut: bool) -> u32 {
        self.memory.with_data(octets, cut)
    }

    /// Returns the number of free octets after a segment's data, into which the data of a later segment may be
    /// copied.
    pub(crate) fn tailroom_after(&self, octets: u32, cut: bool) -> u32 {
        self.memory.tailroom(octets, cut)
    }

    /// Queues a piece of data for the application. A packet that fits into the free space of the previous packet's
    /// buffer is copied there, and uses no further memory. Linux: tcp_queue_rcv and tcp_ofo_queue.
    pub(crate) fn queue(&mut self, piece: &Piece) {
        if !self.is_counted() {
            return;
        }
        let octets = piece.payload.len() as u32;
        self.waiting_payload += octets;
        if piece.packet_octets > 0 {
            if self.packets > 0 && piece.packet_octets <= self.tailroom {
                self.tailroom -= piece.packet_octets;
            } else {
                self.packets += 1;
                self.unread = self.unread.saturating_add(piece.memory);
                self.tailroom = piece.tailroom;
            }
        }
        if self.packets <= 1 {
            self.first_payload += octets;
        }
    }

    /// Handles a read that leaves `held` octets unread. These keep their share of the memory.
    pub(crate) fn read(&mut self, held: u32) {
        let held = held.min(self.waiting_payload);
        let kept = u64::from(self.unread) * u64::from(held) / u64::from(self.waiting_payload.max(1));
        (self.unread, self.waiting_payload) = (kept as u32, held);
        (self.packets, self.first_payload) = (held.min(1), held);
    }

    /// Returns the number of unread octets after the first packet. Linux: tcp_inq, after that packet has been
    /// read.
    pub(crate) fn octets_after_first(&self) -> u32 {
        self.waiting_payload - self.first_payload
    }

    /// Returns the memory in octets of packets that the application has not read.
    pub(crate) fn unread(&self) -> u32 {
        self.unread
    }

    /// Returns whether the application has read all data.
    pub(crate) fn is_read(&self) -> bool {
        self.unread == 0
    }

    /// Handles memory beyond the limit: enlarges the buffer if permitted, otherwise reduces the window. Returns
    /// false if the memory is within the limit. Linux: tcp_clamp_window.
    pub(crate) fn handle_excess(&mut self, early: u32, mss: u32) -> bool {
        let used = self.unread + early;
        if !self.is_counted() || used <= self.limit {
            return false;
        }
        self.limit = self.limit.max(used.min(self.max_limit));
        if used > self.limit {
            self.earned = self.clamp.min(2 * mss);
        }
        true
    }

    /// Updates the ratio of payload to memory from the peer's largest segments. Linux: tcp_measure_rcv_mss.
    pub(crate) fn measure(&mut self, octets: u32, memory: u32) {
        let ratio = (u64::from(octets) * u64::from(PAYLOAD_DENOMINATOR) / u64::from(memory.max(1))) as u32;
        let ratio = ratio.clamp(1, PAYLOAD_DENOMINATOR - 1);
        if self.is_counted() && ratio != self.payload_ratio {
            self.payload_ratio = ratio;
            self.clamp = self.full_space();
        }
    }

    /// Returns the maximum window in octets.
    pub(crate) fn clamp(&self) -> u32 {
        self.clamp
    }

    /// Increases the earned window for a segment that has `octets` of payload and uses `memory`. Returns whether
    /// the window grew. Linux: tcp_grow_window.
    pub(crate) fn grow_earned_window(
        &mut self,
        (octets, memory): (u32, u32),
        early: u32,
        mss: u32,
        segment: u32,
    ) -> bool {
        let room = self.clamp.min(self.space(early)).saturating_sub(self.earned);
        if !self.is_counted() || room == 0 {
            return false;
        }
        let step = if self.payload_of(memory) <= octets {
            GROWTH_SEGMENTS * mss
        } else if self.would_fit(octets, memory) {
            GROWTH_SEGMENTS * segment
        } else {
            return false;
        };
        self.earned += step.max(2 * octets).min(room);
        true
    }

    /// Returns whether a full window of segments, each with `octets` of payload in `memory`, would fit into the
    /// largest buffer. The larger the window, the less memory per octet is allowed. Linux: __tcp_grow_window.
    fn would_fit(&self, octets: u32, memory: u32) -> bool {
        let (mut memory, mut window) = (self.payload_of(memory) / 2, self.payload_of(self.max_limit) / 2);
        while self.earned <= window {
            if memory <= octets {
                return true;
            }
            memory /= 2;
            window /= 2;
        }
        false
    }

    /// Returns the window to advertise, in octets. `early` is the memory of out-of-order data, `segment` the
    /// length of a segment, and `offered` the last advertised window. The window is a multiple of 2^`scale`.
    /// Linux: __tcp_select_window.
    pub(crate) fn offer(&self, early: u32, segment: u32, scale: u8, offered: u32) -> WindowOffer {
        let (mut free, whole) = (self.space(early), self.full_space());
        let max = self.clamp.min(whole);
        let segment = segment.min(max);
        let unit = 1 << scale;
        let is_pressed = free < max / 2;
        if is_pressed {
            free = free / unit * unit;
            if free < whole / 16 || free < segment {
                return WindowOffer { window: 0, is_pressed };
            }
        }
        free = free.min(self.earned);
        let window = if scale > 0 {
            free.next_multiple_of(unit)
        } else if offered + segment <= free || offered > free {
            free / segment.max(1) * segment
        } else if segment == max && free > offered + max / 2 {
            free
        } else {
            offered
        };
        WindowOffer { window, is_pressed }
    }

    /// Enlarges the buffer so that `window` fits, because the application reads fast enough. Linux:
    /// tcp_rcv_space_adjust.
    pub(crate) fn enlarge(&mut self, window: u64) {
        let memory = window * u64::from(PAYLOAD_DENOMINATOR) / u64::from(self.payload_ratio);
        let limit = u32::try_from(memory).unwrap_or(u32::MAX).min(self.max_limit);
        if limit > self.limit {
            self.limit = limit;
            self.clamp = self.full_space();
        }
    }
}

#[cfg(test)]
mod tests {
    use hol_transport::DeliveryTimes;
    use hol_wire::tcp::SeqNum;

    use super::*;

    const MSS: u32 = 1448;

    fn open() -> ReceiveBuffer {
        let mut buffer = ReceiveBuffer::new(&Config::linux_6_12());
        assert_eq!(buffer.window_in_syn(1460), 64_240);
        buffer.on_established(MSS, true);
        buffer
    }

    #[test]
    fn a_buffer_beyond_32_bits_does_not_overflow() {
        let rfc = Config::rfc9293();
        let mut buffer = ReceiveBuffer::new(&Config { receive_buffer: hol_base::ByteCount(1 << 40), ..rfc });
        buffer.on_established(MSS, true);
        assert!(buffer.clamp > u32::MAX - 2 * MSS);
    }

    fn packet(octets: u32, memory: u32, tailroom: u32) -> Piece {
        let payload = vec![0; octets as usize].into();
        let (seq, delivery_times) = (SeqNum(0), DeliveryTimes::default());
        Piece { seq, payload, fin: false, delivery_times, packet_octets: octets, memory, tailroom }
    }

    fn window(buffer: &ReceiveBuffer) -> u32 {
        buffer.offer(0, MSS, 7, 0).window
    }

    #[test]
    fn the_first_window_is_half_of_the_buffer_less_a_segment() {
        // tcp_init_buffer_space: 131072 / 2 - 1448, advertised in units of 128.
        assert_eq!(window(&open()), 64_128);
    }

    #[test]
    fn full_sized_segments_raise_the_window_until_the_buffer_is_full() {
        // tcp_grow_window with 1448 octets in 2304 of memory, so 160 of 256 are payload; a packet waits meanwhile.
        let mut buffer = open();
        let memory = buffer.memory_of(MSS, true);
        assert_eq!(memory, 2304);
        buffer.queue(&packet(MSS, memory, 0));
        buffer.measure(MSS, memory);
        let windows: Vec<_> = (0..8)
            .map(|_| (buffer.grow_earned_window((MSS, memory), 0, MSS, MSS), window(&buffer)))
            .collect();
        let grown = [67_072, 69_888, 72_832, 75_776, 78_592, 80_512].map(|window| (true, window));
        assert_eq!(windows, [&grown[..], &[(false, 80_512); 2]].concat());
    }

    #[test]
    fn out_of_order_data_take_memory_but_no_earned_window() {
        let mut buffer = open();
        buffer.measure(MSS, 2304);
        buffer.enlarge(1 << 20);
        let (free, early) = (buffer.space(0), 100 * 2304);
        assert_eq!(free - buffer.space(early), 144_000, "100 segments");
        assert_eq!(buffer.offer(early, MSS, 7, 0).window, 64_128, "and the window that was earned is open");
    }

    #[test]
    fn nearly_full_buffer_closes_the_window_in_time() {
        // __tcp_select_window: less than a sixteenth is free.
        let mut buffer = open();
        buffer.queue(&packet(1, 126_000, 0));
        assert_eq!(buffer.offer(0, MSS, 7, 0), WindowOffer { window: 0, is_pressed: true });
        buffer.queue(&packet(1, 6000, 0));
        assert!(buffer.handle_excess(0, MSS), "and it grows if more comes, tcp_clamp_window");
        assert_eq!((buffer.limit(), buffer.handle_excess(0, MSS)), (132_000, false));
    }

    #[test]
    fn packet_that_fits_the_tailroom_is_copied_there() {
        // skb_try_coalesce: two segments that arrived early are one packet of 2896 octets, which does not fit after a single one.
        let mut buffer = open();
        let lone = packet(MSS, 2280, 2136);
        buffer.queue(&lone);
        buffer.queue(&Piece { packet_octets: 2 * MSS, memory: 4352, tailroom: 688, ..lone.clone() });
        buffer.queue(&Piece { packet_octets: 0, memory: 0, tailroom: 0, ..lone.clone() });
        assert_eq!((buffer.unread(), buffer.octets_after_first()), (2280 + 4352, 2 * MSS));
        buffer.queue(&packet(688, 2304, 1000));
        assert_eq!((buffer.unread(), buffer.octets_after_first()), (2280 + 4352, 2 * MSS + 688));
        buffer.read(0);
        buffer.queue(&lone);
        buffer.queue(&lone);
        assert_eq!((buffer.unread(), buffer.octets_after_first()), (2280, 0), "both are the first packet");
    }

    #[test]
    fn only_payload_is_counted_without_packet_memory() {
        let mut buffer = ReceiveBuffer::new(&Config::rfc9293());
        buffer.queue(&packet(1000, 1000, 0));
        buffer.measure(1448, buffer.memory_of(1448, true));
        assert_eq!((buffer.full_space(), buffer.is_read()), (buffer.limit(), true));
        assert!(!buffer.grow_earned_window((1448, 1448), 0, 1448, 1448));
    }
}
