//! The classic format: a header, then packets. draft-ietf-opsawg-pcap section 4.

use std::io::Read;

use super::{ByteOrder, CaptureInterface, CapturedPacket, Input, LinkType, StopReason};

/// Maximum length of a record in octets, as in libpcap.
pub(super) const MAX_RECORD: usize = 256 << 10;

#[derive(Debug)]
/// Reads a pcap file.
pub(super) struct Pcap {
    order: ByteOrder,
    /// Length of a time stamp tick in nanoseconds.
    tick: u64,
    interface: [CaptureInterface; 1],
}

impl Pcap {
    /// Returns the byte order and the nanoseconds per tick that a magic number means; `None` if it
    /// is unknown.
    pub fn byte_order(magic: [u8; 4]) -> Option<(ByteOrder, u64)> {
        const MICROSECONDS_MAGIC: u32 = 0xa1b2_c3d4;
        const NANOSECONDS_MAGIC: u32 = 0xa1b2_3c4d;
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| match order.decode_u32(magic) {
            MICROSECONDS_MAGIC => Some((order, 1000)),
            NANOSECONDS_MAGIC => Some((order, 1)),
            _ => None,
        })
    }

    /// Reads the rest of the file header, after the magic number.
    pub fn read_header(
        input: &mut Input<impl Read>,
        order: ByteOrder,
        tick: u64,
    ) -> Result<Self, StopReason> {
        let header = input.rest(20)?;
        let [.., a, b, c, d] = header[..] else { unreachable!("20 octets") };
        // The upper 16 bits are reserved or describe a frame check sequence.
        let link = LinkType(order.decode_u32([a, b, c, d]) & 0xffff);
        Ok(Self { order, tick, interface: [CaptureInterface { name: None, link }] })
    }

    /// Returns the only interface of the file.
    pub const fn interfaces(&self) -> &[CaptureInterface] {
        &self.interface
    }

    /// Reads the next packet of the file.
    pub fn packet(&self, input: &mut Input<impl Read>) -> Result<CapturedPacket, StopReason> {
        let begin = input.offset();
        let header = input.take::<16>()?;
        let (fields, _) = header.as_chunks::<4>();
        let [seconds, ticks, length, original] = [0, 1, 2, 3].map(|at| self.order.decode_u32(fields[at]));
        if length as usize > MAX_RECORD {
            return Err(StopReason::Broken(begin, "a packet is longer than 256 KiB"));
        }
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * self.tick;
        let octets = input.rest(length as usize)?;
        let cut = original.saturating_sub(length);
        Ok(CapturedPacket { time, interface: 0, link: self.interface[0].link, octets, cut })
    }
}
