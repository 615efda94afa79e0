//! A peer with an association that sends arbitrary chunks.

use bytes::Bytes;
use hol_base::{Duration, Rng, Seed, Time};
use hol_sctp::wire::sctp::{Chunk, Packet};
use hol_sctp_udp::{Port, Role, parse};

use super::stranger::{PORT, Stranger};

/// Chunk types of RFC 9260 and its extensions, and unknown ones.
const KINDS: [u8; 28] =
    [0, 0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 64, 128, 130, 192, 193, 194, 63, 255];

fn octets(rng: &mut Rng, max: u64) -> Vec<u8> {
    let length = rng.below(max + 1);
    (0..length).map(|_| rng.next_u32() as u8).collect()
}

/// Returns a chunk whose value is arbitrary, but whose numbers are near those of the association.
fn chunk(rng: &mut Rng) -> Chunk {
    let kind = KINDS[rng.below(KINDS.len() as u64) as usize];
    let near = |rng: &mut Rng| (rng.below(100) as u32).to_be_bytes();
    let value = match kind {
        0 => {
            let stream = (rng.below(12) as u16).to_be_bytes();
            let ssn = (rng.below(8) as u16).to_be_bytes();
            [&near(rng)[..], &stream, &ssn, &[0; 4], &octets(rng, 40)].concat()
        }
        3 => {
            let (gaps, duplicates) = (rng.below(4) as u16, rng.below(3) as u16);
            let counts = [gaps.to_be_bytes(), duplicates.to_be_bytes()].concat();
            let rest = vec![1; 4 * usize::from(gaps + duplicates)];
            [&near(rng)[..], &near(rng), &counts, &rest].concat()
        }
        7 | 12 | 13 => near(rng).to_vec(),
        _ => octets(rng, 60),
    };
    Chunk::Unknown { kind, flags: rng.next_u32() as u8, value: value.into() }
}

/// RFC 9260 section 3.2: an endpoint survives every chunk, and holds no more than its window and what messages shorter than SIMCO's
/// header would need.
#[test]
fn arbitrary_chunks_do_no_harm() {
    let mut ends = 0;
    for seed in 0..300 {
        let rng = &mut Seed(seed).rng();
        let mut port = Port::<u32>::new("192.0.2.1".parse().unwrap(), PORT);
        let peer = Stranger::new("198.51.100.7:9899");
        let invitation = peer.invitation(&mut port);
        let mut association = peer.accepted(&mut port, &invitation).unwrap();
        let mut now = Time::ZERO;
        for _ in 0..100 {
            now += Duration::from_millis(rng.below(500));
            association.advance(now);
            let chunks: Vec<Chunk> = (0..1 + rng.below(4)).map(|_| chunk(rng)).collect();
            let packet = Packet {
                source_port: peer.port,
                destination_port: PORT,
                verification_tag: if rng.chance(0.1) { peer.tag } else { invitation.0 },
                zero_checksum: false,
                chunks: chunks.into(),
            };
            if let Some(packet) = parse(&packet.to_bytes()) {
                association.receive(now, packet);
            }
            if rng.chance(0.3) {
                association.next_message();
            }
            if rng.chance(0.3) && association.queue(0, 15, Bytes::from_static(b"an answer")) {
                association.flush();
            }
            if rng.chance(0.01) {
                association.close();
            }
            while let Some(datagram) = association.next_datagram() {
                assert!(datagram.len() <= 1280 - 20 - 8, "{}", datagram.len());
            }
            assert!(association.held_data().octets < 2 * Role::Middlebox.receive_buffer());
        }
        ends += u32::from(association.has_ended());
    }
    assert!((1..300).contains(&ends), "some associations end by chance, {ends}");
}
