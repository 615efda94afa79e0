//! Reads captures: pcap and pcapng, of either byte order.
//!
//! `pcap` and `pcapng` are the two formats (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng), `link` removes
//! the link-layer header, `input` counts octets.

mod input;
mod link;
mod pcap;
mod pcapng;

use std::io::{self, Read};

use input::{ByteOrder, Input, StopReason};
pub use link::{LinkType, UnsupportedLinkType};
use pcap::Pcap;
use pcapng::Pcapng;

/// A packet that was read from a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When the packet was captured, in ns since 1970.
    pub time: u64,
    /// Index of the interface that captured the packet.
    pub interface: usize,
    /// Link type of the packet.
    pub link: LinkType,
    /// The captured octets.
    pub octets: Vec<u8>,
    /// Number of octets at the end of the packet that were not captured.
    pub cut: u32,
}

/// An interface on which packets were captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Name of the interface, if known.
    pub name: Option<String>,
    /// Link type of the interface.
    pub link: LinkType,
}

/// Why a capture cannot be read completely.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file is empty.
    #[error("is empty")]
    Empty,
    /// The file is not a capture.
    #[error("is not a capture: it begins with {0:02x?}, neither pcap's nor pcapng's magic number{hint}", hint = hint(.0))]
    NotACapture([u8; 4]),
    /// The file ends inside a packet or block.
    #[error("is truncated at octet {offset}, after packet {packets}")]
    Truncated {
        /// Length of the file in octets.
        offset: u64,
        /// Number of complete packets before the error.
        packets: u64,
    },
    /// The file contains an invalid packet or block.
    #[error("is invalid at octet {offset}, after packet {packets}: {problem}")]
    Broken {
        /// Offset in octets of the invalid packet or block.
        offset: u64,
        /// Number of complete packets before the error.
        packets: u64,
        /// What is invalid.
        problem: &'static str,
    },
    /// The input cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// Returns advice for a file of another format whose magic number is known; empty for other files.
const fn hint(magic: &[u8; 4]) -> &'static str {
    match magic {
        [0x1f, 0x8b, ..] => "; the file is compressed: decompress it with gunzip",
        [0x28, 0xb5, 0x2f, 0xfd] => "; the file is compressed: decompress it with unzstd",
        [b'P', b'K', ..] => "; the file is an archive: unpack it with unzip",
        _ => "",
    }
}

/// Reads the packets of a capture one after the other. The iterator ends after an error.
#[derive(Debug)]
pub struct CaptureReader<R> {
    input: Input<R>,
    layout: Layout,
    packets: u64,
    is_over: bool,
}

/// The format of a capture.
#[derive(Debug)]
enum Layout {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl<R: Read> CaptureReader<R> {
    /// Opens a capture and reads the start of the file, which determines the format.
    pub fn new(input: R) -> Result<Self, CaptureError> {
        let mut input = Input::new(input);
        let magic = match input.take::<4>() {
            Ok(magic) => magic,
            Err(StopReason::End) => return Err(CaptureError::Empty),
            Err(halt) => return Err(explain(halt, input.offset(), 0)),
        };
        let layout = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => Pcapng::read_header(&mut input).map(Layout::Pcapng),
            _ => match Pcap::byte_order(magic) {
                Some((order, ticks)) => Pcap::read_header(&mut input, order, ticks).map(Layout::Pcap),
                None => return Err(CaptureError::NotACapture(magic)),
            },
        };
        let layout = layout.map_err(|halt| explain(halt, input.offset(), 0))?;
        Ok(Self { input, layout, packets: 0, is_over: false })
    }

    /// Returns the interfaces found so far.
    pub fn interfaces(&self) -> &[CaptureInterface] {
        match &self.layout {
            Layout::Pcap(pcap) => pcap.interfaces(),
            Layout::Pcapng(pcapng) => pcapng.interfaces(),
        }
    }
}

impl<R: Read> Iterator for CaptureReader<R> {
    type Item = Result<CapturedPacket, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let packet = match &mut self.layout {
            Layout::Pcap(pcap) => pcap.packet(&mut self.input),
            Layout::Pcapng(pcapng) => pcapng.packet(&mut self.input),
        };
        match packet {
            Ok(packet) => {
                self.packets += 1;
                Some(Ok(packet))
            }
            Err(halt) => {
                self.is_over = true;
                let is_end = matches!(halt, StopReason::End);
                (!is_end).then(|| Err(explain(halt, self.input.offset(), self.packets)))
            }
        }
    }
}

fn explain(halt: StopReason, offset: u64, packets: u64) -> CaptureError {
    match halt {
        StopReason::End | StopReason::Truncated => CaptureError::Truncated { offset, packets },
        StopReason::Broken(offset, problem) => CaptureError::Broken { offset, packets, problem },
        StopReason::Read(error) => CaptureError::Read(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PcapngWriter;
    use hol_base::Time;

    fn read(octets: &[u8]) -> (Vec<CapturedPacket>, Option<String>) {
        let mut packets = Vec::new();
        let reader = match CaptureReader::new(octets) {
            Ok(reader) => reader,
            Err(error) => return (packets, Some(error.to_string())),
        };
        for packet in reader {
            match packet {
                Ok(packet) => packets.push(packet),
                Err(error) => return (packets, Some(error.to_string())),
            }
        }
        (packets, None)
    }

    fn written() -> Vec<u8> {
        let mut writer = PcapngWriter::new(Vec::new(), "a run", &["client:1", "server:1"]).unwrap();
        writer.packet(1, Time::from_nanos(5), b"first", None).unwrap();
        writer.key_log("CLIENT_RANDOM 1 2").unwrap();
        writer.packet(0, Time::from_millis(7), b"second one", Some("lost")).unwrap();
        writer.finish().unwrap()
    }

    /// Section 4.2 of the pcapng draft: the offset of an interface is a signed number of seconds.
    #[test]
    fn negative_offset_moves_times_back() {
        let block = |kind: u32, body: &[u8]| {
            let length = (body.len() as u32 + 12).to_le_bytes();
            [&kind.to_le_bytes()[..], &length, body, &length].concat()
        };
        let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
        // Link type 101 is raw IP; option 14 is the offset, in seconds; times are in microseconds.
        let interface =
            [&[101, 0, 0, 0, 0, 0, 0, 0][..], &[14, 0, 8, 0], &(-3600_i64).to_le_bytes()].concat();
        let packet = |seconds: u64| {
            let ticks = seconds * 1_000_000;
            let words = [0, (ticks >> 32) as u32, ticks as u32, 4, 4].map(u32::to_le_bytes);
            [words.as_flattened(), b"data"].concat()
        };
        let blocks = [(0x0a0d_0d0a, section), (1, interface), (6, packet(3601)), (6, packet(7))];
        let octets: Vec<u8> = blocks.iter().flat_map(|(kind, body)| block(*kind, body)).collect();
        let (packets, problem) = read(&octets);
        let times: Vec<_> = packets.iter().map(|packet| packet.time).collect();
        assert_eq!((times, problem), (vec![1_000_000_000, 0], None), "before the epoch is the epoch");
    }

    #[test]
    fn written_capture_is_read_back() {
        let (packets, problem) = read(&written());
        assert_eq!(problem, None);
        let seen: Vec<_> =
            packets.iter().map(|p| (p.time % 1_000_000_000, p.interface, &p.octets[..])).collect();
        assert_eq!(seen, [(5, 1, &b"first"[..]), (7_000_000, 0, b"second one")]);
        let octets = written();
        let mut reader = CaptureReader::new(&octets[..]).unwrap();
        assert!(reader.by_ref().all(|packet| packet.is_ok()));
        let names: Vec<_> = reader.interfaces().iter().map(|i| i.name.as_deref()).collect();
        assert_eq!(names, [Some("client:1"), Some("server:1")]);
    }

    /// draft-ietf-opsawg-pcap section 4, laid out by hand: microseconds and nanoseconds, both orders.
    #[test]
    fn pcap_is_read_in_either_order_and_resolution() {
        let words = |words: &[u32], swap: bool| -> Vec<u8> {
            words.iter().flat_map(|w| if swap { w.to_be_bytes() } else { w.to_le_bytes() }).collect()
        };
        for (magic, nanos) in [(0xa1b2_c3d4_u32, 1000), (0xa1b2_3c4d, 1)] {
            for swap in [false, true] {
                let mut octets = words(&[magic, 0, 0, 0, 0, 1], swap);
                octets.extend(words(&[2, 3, 4, 60], swap));
                octets.extend(b"abcd");
                let (packets, problem) = read(&octets);
                assert_eq!((packets.len(), problem), (1, None));
                assert_eq!((packets[0].time, packets[0].link), (2_000_000_000 + 3 * nanos, LinkType(1)));
                assert_eq!((&packets[0].octets[..], packets[0].cut), (&b"abcd"[..], 56));
            }
        }
    }

    #[test]
    fn truncated_capture_yields_earlier_packets_and_an_error() {
        let octets = written();
        let (mut seen, all) = (0, 2);
        for cut in 0..octets.len() {
            let (packets, problem) = read(&octets[..cut]);
            assert!(packets.len() >= seen && packets.len() <= all);
            seen = packets.len();
            // A capture may end between two blocks.
            let problem = problem.unwrap_or("between blocks".to_owned());
            let words = ["is empty", "is truncated at octet", "between blocks"];
            assert!(words.iter().any(|words| problem.starts_with(words)), "{cut}: {problem}");
        }
        assert_eq!(seen, 2 - 1);
    }

    #[test]
    fn error_for_a_non_capture_names_the_likely_format() {
        for (octets, words) in [
            (&b""[..], "is empty"),
            (b"transports = ['tcp']", "is not a capture"),
            (&[0x1f, 0x8b, 8, 0, 0], "gunzip"),
            (&[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 2, 3, 4], "invalid at octet 8"),
        ] {
            let (packets, problem) = read(octets);
            assert!(packets.is_empty() && problem.clone().unwrap().contains(words), "{problem:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_octets_do_not_panic_the_reader(mut octets: Vec<u8>, at: usize, flip: u8) {
            let _ = read(&octets);
            let whole = written();
            let at = at % whole.len();
            let mut broken = whole;
            broken[at] ^= flip;
            broken.append(&mut octets);
            let _ = read(&broken);
        }
    }
}
