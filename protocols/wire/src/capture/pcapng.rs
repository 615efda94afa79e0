//! The pcapng format: blocks of sections, interfaces and packets. draft-ietf-opsawg-pcapng.

use std::io::Read;

use super::pcap::MAX_RECORD;
use super::{ByteOrder, CaptureInterface, CapturedPacket, Input, LinkType, StopReason};
use crate::pcapng::{BYTE_ORDER_MAGIC, block_type, option};

#[derive(Debug)]
/// Reads a pcapng file.
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<CaptureInterface>,
    clocks: Vec<Clock>,
    /// Index of the current section's first interface among all interfaces of the file.
    section: usize,
}

/// How to convert the time stamps of an interface.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Number of ticks per second.
    ticks: u64,
    /// Number of seconds, possibly negative, to add to a time stamp.
    offset: i64,
}

/// Maximum length of a block in octets.
const MAX_BLOCK: usize = 16 << 20;

impl Pcapng {
    /// Reads the rest of the first section header, after its block type.
    pub fn read_header(input: &mut Input<impl Read>) -> Result<Self, StopReason> {
        let mut pcapng =
            Self { order: ByteOrder::Little, interfaces: Vec::new(), clocks: Vec::new(), section: 0 };
        pcapng.section_header(input)?;
        Ok(pcapng)
    }

    /// Returns the interfaces found so far.
    pub fn interfaces(&self) -> &[CaptureInterface] {
        &self.interfaces
    }

    /// Returns the next packet, skipping blocks of other kinds. A packet without a time is an error.
    pub fn packet(&mut self, input: &mut Input<impl Read>) -> Result<CapturedPacket, StopReason> {
        loop {
            let begin = input.offset();
            let kind = self.order.decode_u32(input.take()?);
            if kind == block_type::SECTION_HEADER {
                self.section = self.interfaces.len();
                self.section_header(input)?;
                continue;
            }
            let body = self.body(input, begin)?;
            let broken = StopReason::Broken(begin, "a block is shorter than its fields");
            match kind {
                block_type::INTERFACE_DESCRIPTION => self.read_interface(&body).ok_or(broken)?,
                block_type::ENHANCED_PACKET => return self.enhanced(&body, 4).ok_or(broken),
                // Appendix A: the interface number has two octets, followed by two for drops.
                block_type::OBSOLETE_PACKET => return self.enhanced(&body, 2).ok_or(broken),
                block_type::SIMPLE_PACKET => {
                    return Err(StopReason::Broken(begin, "a packet has no time (a Simple Packet Block)"));
                }
                _ => {}
            }
        }
    }

    /// Reads a section header. Its block type is the same in both byte orders; the magic number after the length
    /// shows which one applies. draft-ietf-opsawg-pcapng, section 4.1.
    fn section_header(&mut self, input: &mut Input<impl Read>) -> Result<(), StopReason> {
        let length = take_rest(input)?;
        let begin = input.offset();
        let magic = take_rest(input)?;
        let order = [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| order.decode_u32(magic) == BYTE_ORDER_MAGIC);
        self.order = order.ok_or(StopReason::Broken(begin, "a section has no byte-order magic"))?;
        let left = block_length(self.order.decode_u32(length), begin)?.checked_sub(12);
        input.rest(left.ok_or(StopReason::Broken(begin, "a section header is too short"))?)?;
        Ok(())
    }

    /// Returns the body of a block whose type has been read. draft-ietf-opsawg-pcapng, section 3.1.
    fn body(&self, input: &mut Input<impl Read>, begin: u64) -> Result<Vec<u8>, StopReason> {
        let length = block_length(self.order.decode_u32(take_rest(input)?), begin)?;
        let mut body = input.rest(length - 8)?;
        body.truncate(length - 12);
        Ok(body)
    }

    /// Reads an interface description. draft-ietf-opsawg-pcapng, section 4.2.
    fn read_interface(&mut self, body: &[u8]) -> Option<()> {
        let (fields, options) = body.split_first_chunk::<8>()?;
        let link = LinkType(self.order.decode_u16([fields[0], fields[1]]).into());
        let (mut name, mut clock) = (None, Clock { ticks: 1_000_000, offset: 0 });
        for (code, value) in self.options(options) {
            match (code, value) {
                (option::INTERFACE_NAME, name_octets) => {
                    name = Some(String::from_utf8_lossy(name_octets).into_owned());
                }
                (option::TIME_RESOLUTION, [resolution, ..]) => clock.ticks = ticks(*resolution)?,
                (option::TIME_OFFSET, &[a, b, c, d, e, f, g, h]) => {
                    clock.offset = self.long([a, b, c, d, e, f, g, h]).cast_signed();
                }
                _ => {}
            }
        }
        self.interfaces.push(CaptureInterface { name, link });
        self.clocks.push(clock);
        Some(())
    }

    fn long(&self, octets: [u8; 8]) -> u64 {
        match self.order {
            ByteOrder::Little => u64::from_le_bytes(octets),
            ByteOrder::Big => u64::from_be_bytes(octets),
        }
    }

    /// Returns the options of a block. draft-ietf-opsawg-pcapng, section 3.5.
    fn options<'o>(&self, mut octets: &'o [u8]) -> impl Iterator<Item = (u16, &'o [u8])> {
        let order = self.order;
        std::iter::from_fn(move || {
            let (head, rest) = octets.split_first_chunk::<4>()?;
            let (code, length) =
                (order.decode_u16([head[0], head[1]]), order.decode_u16([head[2], head[3]]).into());
            let value = rest.get(..length)?;
            octets = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            (code != option::END).then_some((code, value))
        })
    }

    /// Returns the packet of an Enhanced Packet Block, whose interface number has `width` octets.
    /// draft-ietf-opsawg-pcapng, section 4.3.
    fn enhanced(&self, body: &[u8], width: usize) -> Option<CapturedPacket> {
        let (head, rest) = body.split_first_chunk::<20>()?;
        let (fields, _) = head.as_chunks::<4>();
        let number = match width {
            2 => self.order.decode_u16([head[0], head[1]]).into(),
            _ => self.order.decode_u32(fields[0]),
        };
        let interface = self.section.checked_add(number as usize)?;
        let [high, low, length, original] = [1, 2, 3, 4].map(|at| self.order.decode_u32(fields[at]));
        let cut = original.saturating_sub(length);
        let length = (length as usize).min(MAX_RECORD);
        let time = self.clocks.get(interface)?.nanoseconds(u64::from(high) << 32 | u64::from(low));
        let link = self.interfaces[interface].link;
        Some(CapturedPacket { time, interface, link, octets: rest.get(..length)?.to_vec(), cut })
    }
}

impl Clock {
    fn nanoseconds(self, ticks: u64) -> u64 {
        let within = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks);
        let since_epoch = within.cast_signed() + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(since_epoch.max(0)).unwrap_or(u64::MAX)
    }
}

/// Returns the number of ticks per second: a power of ten, or a power of two if the highest bit of `resolution` is
/// set. draft-ietf-opsawg-pcapng, section 4.2.
const fn ticks(resolution: u8) -> Option<u64> {
    let exponent = (resolution & 0x7f) as u32;
    if resolution & 0x80 == 0 { 10u64.checked_pow(exponent) } else { 2u64.checked_pow(exponent) }
}

fn take_rest(input: &mut Input<impl Read>) -> Result<[u8; 4], StopReason> {
    Ok(input.rest(4)?.try_into().expect("the slice has the requested length"))
}

/// Checks the length in octets of a block, including its type and both copies of the length: at least 12, and a
/// multiple of 4.
fn block_length(length: u32, begin: u64) -> Result<usize, StopReason> {
    let length = length as usize;
    match length {
        12..=MAX_BLOCK if length.is_multiple_of(4) => Ok(length),
        _ => Err(StopReason::Broken(begin, "a block has an invalid length")),
    }
}
