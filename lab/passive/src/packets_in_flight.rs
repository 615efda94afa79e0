//! Matches arriving packets with those sent.

use std::collections::BTreeMap;
use std::ops::Range;

use hol_base::Time;
use smallvec::SmallVec;

/// Packets that are in flight or were lost.
#[derive(Debug, Default)]
pub(crate) struct PacketsInFlight {
    /// The packets, by fingerprint and then by the order of transmission.
    in_flight: BTreeMap<(Fingerprint, u64), SentPacket>,
    sent: u64,
}

/// A packet that has been sent and has not been matched yet.
#[derive(Debug, Clone)]
pub(crate) struct SentPacket {
    /// The time at which the packet was sent.
    pub sent: Time,
    /// What the packet carries for its connection.
    pub content: PacketContent,
}

/// What a packet carries for its connection.
#[derive(Debug, Clone)]
pub(crate) struct PacketContent {
    /// Index of the connection.
    pub connection: usize,
    /// Direction: 0 from the host that opened the connection, 1 to it.
    pub direction: usize,
    /// Ranges of the direction's sequence space that the packet carries.
    pub ranges: SmallVec<[Range<u64>; 2]>,
    /// Whether the packet says that its sender has nothing more to send (FIN, DATA_FIN or SHUTDOWN).
    pub closes: bool,
    /// Number of retransmitted segments or chunks.
    pub repeated: u64,
}

/// Identifies a packet by fields that no router changes: length, identification and addresses (RFC 791 section 3.1),
/// and the first 20 octets after the IP header, whose checksum represents the rest of the packet. IPv6 has no
/// identification, and the ends of its addresses replace it (RFC 8200 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint; `None` if there are too few octets for a packet.
    pub fn from_packet(packet: &[u8]) -> Option<Self> {
        let mut print = [0; 32];
        let header = match packet.first()? >> 4 {
            6 => {
                print[..4].copy_from_slice(packet.get(4..8)?);
                print[3] = 6;
                print[4..8].copy_from_slice(packet.get(20..24)?);
                print[8..12].copy_from_slice(packet.get(36..40)?);
                40
            }
            _ => {
                print[..4].copy_from_slice(packet.get(2..6)?);
                print[4..12].copy_from_slice(packet.get(12..20)?);
                usize::from(packet.first()? & 0x0f) * 4
            }
        };
        let rest = packet.get(header..)?;
        let length = rest.len().min(20);
        print[12..12 + length].copy_from_slice(&rest[..length]);
        Some(Self(print))
    }
}

impl PacketsInFlight {
    /// Adds a packet that was sent.
    pub fn add(&mut self, print: Fingerprint, packet: SentPacket) {
        self.in_flight.insert((print, self.sent), packet);
        self.sent += 1;
    }

    /// Removes and returns the oldest packet with this fingerprint, which has arrived. Links keep the order of
    /// indistinguishable packets.
    pub fn take_oldest(&mut self, print: Fingerprint) -> Option<SentPacket> {
        let key = *self.in_flight.range((print, 0)..=(print, u64::MAX)).next()?.0;
        self.in_flight.remove(&key)
    }

    /// Removes and returns the newest packet with this fingerprint, which was lost on the way; losses are reported at the
    /// time of sending.
    pub fn take_newest(&mut self, print: Fingerprint) -> Option<SentPacket> {
        let key = *self.in_flight.range((print, 0)..=(print, u64::MAX)).next_back()?.0;
        self.in_flight.remove(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Vec<u8> {
        let mut packet = vec![7; 60];
        packet[0] = 0x45;
        packet
    }

    /// RFC 791 section 3.1: a router decrements the time to live, and so changes the header checksum.
    #[test]
    fn fingerprint_is_the_same_behind_a_router() {
        let print = |at: usize| {
            let mut packet = packet();
            packet[at] ^= 1;
            Fingerprint::from_packet(&packet)
        };
        let whole = Fingerprint::from_packet(&packet());
        assert!([8, 10, 11, 50].into_iter().all(|at| print(at) == whole));
        assert!([3, 4, 12, 19, 20, 36].into_iter().all(|at| print(at) != whole));
        assert_eq!(Fingerprint::from_packet(&packet()[..19]), None);
    }

    #[test]
    fn first_of_equal_packets_arrives_and_last_is_lost() {
        let mut packets = PacketsInFlight::default();
        let print = Fingerprint::from_packet(&packet()).unwrap();
        let content = PacketContent {
            connection: 0,
            direction: 0,
            ranges: SmallVec::new(),
            closes: false,
            repeated: 0,
        };
        for ms in [1, 2, 3] {
            packets.add(print, SentPacket { sent: Time::from_millis(ms), content: content.clone() });
        }
        let sent = |packet: Option<SentPacket>| packet.map(|packet| packet.sent.as_millis());
        assert_eq!(sent(packets.take_newest(print)), Some(3));
        assert_eq!([1, 2].map(|_| sent(packets.take_oldest(print))), [Some(1), Some(2)]);
        assert!(packets.take_oldest(print).is_none());
    }
}
