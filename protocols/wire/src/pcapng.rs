//! Writes captures for Wireshark: pcapng, draft-ietf-opsawg-pcapng.
//!
//! One section with the run's description, one interface per link direction, times in nanoseconds. Always
//! little endian, so that the same run gives the same file.

use std::io::{self, Write};

use bytes::BufMut;
use hol_base::Time;

/// Writes packets to a pcapng file.
///
/// ```
/// use hol_base::Time;
/// use hol_wire::{Packet, PcapngWriter, SendTimes, capture::CaptureReader, ipv4, udp::Datagram};
///
/// let datagram =
///     Datagram { source_port: 1, destination_port: 2, payload: "hello".into(), stamp: SendTimes::default() };
/// let packet = Packet::new(ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2), datagram);
/// let mut writer = PcapngWriter::new(Vec::new(), "one datagram", &["client:1"])?;
/// writer.packet(0, Time::from_millis(5), &packet.to_bytes(), None)?;
/// let file = writer.finish()?;
///
/// let mut reader = CaptureReader::new(&file[..])?;
/// let captured = reader.next().unwrap()?;
/// assert_eq!(Packet::parse(captured.octets.into())?, packet);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    out: W,
    /// The block under construction. Its memory is reused for the next block.
    block: Vec<u8>,
}

/// The time at which runs start: 2020-01-01T00:00:00Z, in nanoseconds since 1970.
const RUN_START: u64 = 1_577_836_800 * 1_000_000_000;
/// LINKTYPE_RAW: packets start with their IP header.
const LINKTYPE_RAW: u16 = 101;

/// Block types. draft-ietf-opsawg-pcapng, sections 4.1 to 4.4, 4.7 and appendix A.
pub(crate) mod block_type {
    pub const SECTION_HEADER: u32 = 0x0A0D_0D0A;
    pub const INTERFACE_DESCRIPTION: u32 = 1;
    pub const OBSOLETE_PACKET: u32 = 2;
    pub const SIMPLE_PACKET: u32 = 3;
    pub const ENHANCED_PACKET: u32 = 6;
    pub const DECRYPTION_SECRETS: u32 = 10;
}

/// The byte-order magic of a Section Header Block. draft-ietf-opsawg-pcapng, section 4.1.
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;

/// Option codes. draft-ietf-opsawg-pcapng, sections 3.5, 4.1 and 4.2.
pub(crate) mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const USER_APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const TIME_RESOLUTION: u16 = 9;
    pub const TIME_OFFSET: u16 = 14;
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a capture. `comment` describes the run, and `interfaces` are the names of the interfaces, in the
    /// order of their numbers.
    pub fn new(out: W, comment: &str, interfaces: &[&str]) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::new() };
        writer.write_block(block_type::SECTION_HEADER, |block| {
            const LENGTH_UNKNOWN: u64 = u64::MAX;
            block.put_u32_le(BYTE_ORDER_MAGIC);
            block.put_u16_le(1);
            block.put_u16_le(0);
            block.put_u64_le(LENGTH_UNKNOWN);
            put_option(block, option::COMMENT, comment.as_bytes());
            put_option(block, option::USER_APPLICATION, b"headofline");
            put_option(block, option::END, b"");
        })?;
        for name in interfaces {
            writer.write_block(block_type::INTERFACE_DESCRIPTION, |block| {
                const NANOSECONDS: u8 = 9;
                const NO_SNAP_LENGTH: u32 = 0;
                block.put_u16_le(LINKTYPE_RAW);
                block.put_u16_le(0);
                block.put_u32_le(NO_SNAP_LENGTH);
                put_option(block, option::INTERFACE_NAME, name.as_bytes());
                put_option(block, option::TIME_RESOLUTION, &[NANOSECONDS]);
                put_option(block, option::END, b"");
            })?;
        }
        Ok(writer)
    }

    /// Writes a packet, from its IP header on, that passed `interface` at `time`; `comment` may describe what happened
    /// to the packet.
    pub fn packet(
        &mut self,
        interface: u32,
        time: Time,
        octets: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let timestamp = RUN_START + time.as_nanos();
        self.write_block(block_type::ENHANCED_PACKET, |block| {
            let length = octets.len() as u32;
            block.put_u32_le(interface);
            block.put_u32_le((timestamp >> 32) as u32);
            block.put_u32_le(timestamp as u32);
            block.put_u32_le(length);
            block.put_u32_le(length);
            put_padded(block, octets);
            if let Some(comment) = comment {
                put_option(block, option::COMMENT, comment.as_bytes());
                put_option(block, option::END, b"");
            }
        })
    }

    /// Writes the secrets that decrypt the following packets, in the lines of a TLS key log.
    /// draft-ietf-opsawg-pcapng, section 4.7.
    pub fn key_log(&mut self, lines: &str) -> io::Result<()> {
        const TLS_KEY_LOG: u32 = 0x544c_534b;
        self.write_block(block_type::DECRYPTION_SECRETS, |block| {
            block.put_u32_le(TLS_KEY_LOG);
            block.put_u32_le(lines.len() as u32);
            put_padded(block, lines.as_bytes());
        })
    }

    /// Flushes the capture and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes a block: type, length, body, length again. draft-ietf-opsawg-pcapng, section 3.1.
    fn write_block(&mut self, block_type: u32, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        const LENGTH_RANGE: std::ops::Range<usize> = 4..8;
        let block = &mut self.block;
        block.clear();
        block.put_u32_le(block_type);
        block.put_u32_le(0);
        body(block);
        let length = (block.len() + LENGTH_RANGE.len()) as u32;
        block.put_u32_le(length);
        block[LENGTH_RANGE].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(block)
    }
}

/// Appends an option: code, length, value. draft-ietf-opsawg-pcapng, section 3.5. Longer values are cut after
/// 65,535 octets.
fn put_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    block.put_u16_le(code);
    block.put_u16_le(value.len() as u16);
    put_padded(block, value);
}

/// Appends octets, padded with zeros to a multiple of four.
fn put_padded(block: &mut Vec<u8>, octets: &[u8]) {
    block.put_slice(octets);
    block.put_bytes(0, octets.len().next_multiple_of(4) - octets.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Flags, Options, Segment, SeqNum};
    use crate::{Packet, SendTimes};
    use bytes::Bytes;

    fn reset() -> Packet {
        let segment = Segment {
            source_port: 1,
            destination_port: 2,
            seq: SeqNum(3),
            ack: SeqNum(0),
            flags: Flags::RST,
            window: 0,
            options: Options::default(),
            payload: Bytes::from_static(b"x"),
            stamp: SendTimes::default(),
        };
        Packet::new(crate::ipv4(10, 0, 0, 1), crate::ipv4(10, 0, 0, 2), segment)
    }

    /// Sections 4.1 and 4.2 of the pcapng draft, by hand.
    #[test]
    fn a_capture_starts_with_its_section_and_interfaces() {
        let out = PcapngWriter::new(Vec::new(), "run", &["up"]).unwrap().finish().unwrap();
        let section = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 56, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
            &[0xff; 8],
            b"\x01\0\x03\0run\0\x04\0\x0a\0headofline\0\0\0\0\0\0",
            &[56, 0, 0, 0],
        ]
        .concat();
        let interface = [
            &[1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0][..],
            b"\x02\0\x02\0up\0\0\x09\0\x01\0\x09\0\0\0\0\0\0\0",
            &[40, 0, 0, 0],
        ]
        .concat();
        assert_eq!(out, [section, interface].concat());
    }

    /// Section 4.3 of the pcapng draft: the time is two words, the high one first.
    #[test]
    fn a_packet_block_carries_nanoseconds_and_its_comment() {
        let mut writer = PcapngWriter::new(Vec::new(), "", &["up", "down"]).unwrap();
        let start = writer.out.len();
        writer.packet(1, Time::from_nanos(5), &reset().to_bytes(), Some("lost")).unwrap();
        let out = writer.finish().unwrap();
        let fields: Vec<u32> =
            out[start..start + 28].as_chunks().0.iter().map(|field| u32::from_le_bytes(*field)).collect();
        let time = 1_577_836_800_000_000_005u64;
        assert_eq!(fields, [6, 88, 1, (time >> 32) as u32, time as u32, 41, 41]);
        assert_eq!(out[start + 28..start + 69], reset().to_bytes());
        assert_eq!(out[start + 69..], *b"\0\0\0\x01\0\x04\0lost\0\0\0\0\x58\0\0\0");
    }
}
