//! The packets of the streamer: interleaved frames in RTP, with parity after each group.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_rtp::{AduConverter, Header, Interleaver, mpa, odd_numbers_first};
use hol_transport::FramingError;

use super::{Fec, Media, Packing, clock};

/// RTP payload type of MPEG audio. RFC 3551 table 4.
const MPA_PAYLOAD_TYPE: u8 = 14;
/// RTP payload types that RFC 3551 does not assign; a session description would announce them (RFC 3551 section 3).
const ADU_PAYLOAD_TYPE: u8 = 96;
pub(super) const PARITY_PAYLOAD_TYPE: u8 = 97;
/// SSRC of the media packets, and of their parity packets although these have their own sequence numbers. RFC 5109
/// section 7.2.
const MEDIA_SSRC: u32 = 0x6d70_3300;

/// Length of the prefix of a packet in a byte stream, in octets; the prefix contains the packet's length. RFC 4571
/// section 2.
pub(super) const LENGTH_PREFIX: usize = 2;

/// Returns the length of the packet that starts with `octets` in a byte stream, including its length prefix; `None` if
/// too few octets are known.
pub(super) fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    let Some(length) = octets.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length))) else {
        return Ok(None);
    };
    if length < Header::OCTETS {
        Err(FramingError("an invalid length"))
    } else {
        Ok(Some(LENGTH_PREFIX + length))
    }
}

/// Returns by how many frame durations interleaving in cycles of this size delays the playout. Units are sent later than
/// in the order of the medium; the result is the longest such delay, relative to that of the first unit.
pub(super) fn max_interleaving_wait(cycle: u8) -> u64 {
    let order = odd_numbers_first(cycle);
    let waits: Vec<i64> = order.iter().zip(0..).map(|(unit, place)| place - i64::from(*unit)).collect();
    waits.iter().max().zip(waits.first()).map_or(0, |(longest, first)| longest.abs_diff(*first))
}

/// A packet that is ready to be sent.
#[derive(Debug)]
pub(super) struct Packet {
    /// Frame in the packet; `None` for a parity packet.
    pub(super) frame: Option<u32>,
    pub(super) octets: Bytes,
}

/// Divides frames or data units into packets.
#[derive(Debug)]
pub(super) struct Packetizer {
    packing: Packing,
    adus: AduConverter,
    interleaver: Option<Interleaver>,
    /// Number of the first unit of the current interleaving cycle.
    cycle: u32,
    /// Frames or units that have not been sent yet, in the order of transmission.
    waiting: VecDeque<(u32, Vec<u8>)>,
    room: usize,
    fec: Option<Fec>,
    /// The packets sent since the last parity packets.
    group: Vec<Vec<u8>>,
    /// The next sequence number of media packets, and that of parity packets.
    sequences: [u16; 2],
    is_stream: bool,
}

impl Packetizer {
    /// Creates a packetizer for the settings of a workload.
    pub(super) fn new(media: &Media, is_stream: bool) -> Self {
        let interleaver =
            (media.interleave > 1).then(|| Interleaver::new(odd_numbers_first(media.interleave)));
        Self {
            packing: media.packing,
            adus: AduConverter::default(),
            interleaver,
            cycle: 0,
            waiting: VecDeque::new(),
            room: media.max_payload(),
            fec: media.fec,
            group: Vec::new(),
            sequences: [0; 2],
            is_stream,
        }
    }

    /// Adds the next frame of the medium.
    pub(super) fn add_frame(&mut self, number: u32, frame: Vec<u8>) {
        if self.packing == Packing::Mpa {
            return self.waiting.push_back((number, frame));
        }
        let adu = self
            .adus
            .next(&frame)
            .expect("the encoder produces valid frames")
            .expect("the stream starts with its first frame");
        match &mut self.interleaver {
            None => self.waiting.push_back((number, adu)),
            Some(interleaver) => {
                let cycle = interleaver.push(adu).expect("the encoder produces valid headers");
                self.queue_cycle(number + 1, cycle);
            }
        }
    }

    /// Ends the media stream after `frames` frames, so the last interleaving cycle may be shorter.
    pub(super) fn finish(&mut self, frames: u32) {
        if let Some(interleaver) = self.interleaver.take() {
            self.queue_cycle(frames, interleaver.finish());
        }
    }

    /// Queues the units of an interleaving cycle in their order of transmission; the next cycle starts with unit
    /// `next`.
    fn queue_cycle(&mut self, next: u32, cycle: Vec<Vec<u8>>) {
        if !cycle.is_empty() {
            let first = std::mem::replace(&mut self.cycle, next);
            self.waiting.extend(cycle.into_iter().map(|adu| (first + u32::from(adu[0]), adu)));
        }
    }

    /// Returns whether all frames or units have been sent.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the packets of the next frame or unit, and parity packets after each full group and after the last
    /// packet.
    pub(super) fn next(&mut self, is_last: bool) -> Vec<Packet> {
        let Some((number, unit)) = self.waiting.pop_front() else { return Vec::new() };
        let payloads: Vec<Vec<u8>> = match self.packing {
            Packing::Mpa => mpa::split_into_payloads(&unit, self.room).collect(),
            Packing::Adu => hol_rtp::split(&unit, self.room).collect(),
        };
        let is_last = is_last && self.waiting.is_empty();
        let count = payloads.len();
        let mut packets = Vec::new();
        for (index, payload) in payloads.into_iter().enumerate() {
            let octets = self.media_packet(number, &payload);
            packets.push(Packet { frame: Some(number), octets: self.framed(&octets) });
            self.protect(number, octets, is_last && index + 1 == count, &mut packets);
        }
        packets
    }

    /// Builds a media packet.
    fn media_packet(&mut self, number: u32, payload: &[u8]) -> Vec<u8> {
        let payload_type = if self.packing == Packing::Mpa { MPA_PAYLOAD_TYPE } else { ADU_PAYLOAD_TYPE };
        // The marker bit marks the first packet of a talkspurt (RFC 2250 section 3.3); RFC 3119 section 3.4
        // does not use it.
        let marker = payload_type == MPA_PAYLOAD_TYPE && self.sequences[0] == 0 && number == 0;
        self.packet(0, payload_type, marker, number, payload)
    }

    fn packet(
        &mut self,
        stream: usize,
        payload_type: u8,
        marker: bool,
        number: u32,
        payload: &[u8],
    ) -> Vec<u8> {
        let (sequence, timestamp) = (self.sequences[stream], clock::timestamp(number));
        self.sequences[stream] = sequence.wrapping_add(1);
        let header = Header { payload_type, marker, sequence, timestamp, source: MEDIA_SSRC };
        [&header.octets()[..], payload].concat()
    }

    /// Adds a packet to its group, and appends the parity packets once the group is full.
    fn protect(&mut self, number: u32, octets: Vec<u8>, is_last: bool, packets: &mut Vec<Packet>) {
        let Some(fec) = self.fec else { return };
        self.group.push(octets);
        if self.group.len() < fec.group_size().into() && !is_last {
            return;
        }
        let group = std::mem::take(&mut self.group);
        let first = self.sequences[0].wrapping_sub(group.len() as u16);
        for payload in fec.parity_payloads(first, &group) {
            let octets = self.packet(1, PARITY_PAYLOAD_TYPE, false, number, &payload);
            packets.push(Packet { frame: None, octets: self.framed(&octets) });
        }
    }

    /// Returns the packet in the form in which the transport sends it: with a length prefix on a byte stream.
    fn framed(&self, packet: &[u8]) -> Bytes {
        let length = (packet.len() as u16).to_be_bytes();
        let before: &[u8] = if self.is_stream { &length } else { &[] };
        Bytes::from([before, packet].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(text: &str) -> Media {
        serde_json::from_str(text).expect("keys of media")
    }

    /// Returns the frame numbers of the packets that are sent after each added frame, and finally of all others; -1
    /// stands for a parity packet.
    fn order(media: &Media, frames: u32) -> Vec<Vec<i64>> {
        let mut packets = Packetizer::new(media, false);
        let mut stream = hol_rtp::Stream::new(192).unwrap();
        let of =
            |packets: Vec<Packet>| packets.iter().map(|packet| packet.frame.map_or(-1, i64::from)).collect();
        let mut left = Vec::new();
        for number in 0..frames {
            packets.add_frame(number, stream.next().unwrap());
            if number + 1 == frames {
                packets.finish(frames);
            }
            left.push(of(packets.next(number + 1 == frames)));
        }
        while !packets.is_empty() {
            left.push(of(packets.next(true)));
        }
        left
    }

    #[test]
    fn frame_is_sent_as_soon_as_it_is_produced() {
        assert_eq!(order(&media("{}"), 3), [[0], [1], [2]]);
    }

    /// RFC 3119 section 6.
    #[test]
    fn interleaving_cycle_is_sent_when_full_and_the_rest_at_the_end() {
        let media = media("{\"packing\":\"adu\",\"interleave\":4}");
        let left: Vec<i64> = order(&media, 10).concat();
        assert_eq!(left, [1, 3, 0, 2, 5, 7, 4, 6, 9, 8]);
        assert!(order(&media, 10)[..3].iter().all(Vec::is_empty));
    }

    #[test]
    fn parity_follows_its_group_and_the_last_group_is_shorter() {
        let media = media("{\"packing\":\"adu\",\"fec\":\"3/5\"}");
        assert_eq!(order(&media, 4), [vec![0], vec![1], vec![2, -1, -1], vec![3, -1, -1]]);
        let media = self::media("{\"packing\":\"adu\",\"fec\":\"ulpfec:3/4\"}");
        assert_eq!(order(&media, 4), [vec![0], vec![1], vec![2, -1], vec![3, -1]]);
    }

    #[test]
    fn no_packet_exceeds_the_maximum_length() {
        for keys in [
            "",
            ",\"packing\":\"adu\",\"fec\":\"5/7\"",
            ",\"fec\":\"ulpfec:16/17\"",
            ",\"fec\":\"ulpfec:17/18\"",
        ] {
            let text = format!("{{\"packet\":\"300B\"{keys}}}");
            let mut packets = Packetizer::new(&media(&text), false);
            let mut longest = 0;
            for (number, frame) in (0..50).zip(hol_rtp::Stream::new(192).unwrap()) {
                packets.add_frame(number, frame);
                longest =
                    packets.next(false).iter().map(|packet| packet.octets.len()).max().unwrap().max(longest);
            }
            assert_eq!(longest, 300, "{text}");
        }
    }

    /// RFC 4571 section 2.
    #[test]
    fn packet_in_a_byte_stream_follows_its_length() {
        let mut packets = Packetizer::new(&media("{}"), true);
        packets.add_frame(0, hol_rtp::Stream::new(192).unwrap().next().unwrap());
        let octets = packets.next(true).remove(0).octets;
        assert_eq!((octets.len(), &octets[..3]), (2 + 12 + 4 + 626, &[2, 130, 0x80][..]));
        assert_eq!(length_of(&octets), Ok(Some(octets.len())));
        assert_eq!(length_of(&octets[..1]), Ok(None));
        assert!(length_of(&[0, 11]).is_err());
    }

    #[test]
    fn interleaving_needs_a_buffer_of_half_a_cycle_plus_one_frame() {
        assert_eq!([1, 2, 4, 8, 9].map(max_interleaving_wait), [0, 2, 3, 5, 5]);
    }
}
