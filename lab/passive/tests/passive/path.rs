//! Arbitrary captured packets, as input of path estimates and message reconstruction.

use hol_passive::{EstimateError, MessageReconstructor, PathEstimator};
use proptest::prelude::*;

/// Generates packets and fragments with nearly correct headers and arbitrary numbers.
fn packet() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let octets = proptest::collection::vec(any::<u8>(), 0..80);
    let gap = prop_oneof![0..1_000_000_u64, 0..1_000_000_u64, any::<u64>()];
    let protocol = prop::sample::select(vec![6_u8, 17, 132, 1, 4, 47]);
    // Don't fragment, or a multiple of 8 octets with more fragments or not.
    let place =
        prop::sample::select(vec![[0x40, 0], [0x40, 0], [0x20, 0], [0x20, 1], [0, 1], [0, 2], [0, 3]]);
    (gap, protocol, place, any::<bool>(), octets).prop_map(|(gap, protocol, place, turned, mut octets)| {
        if place[0] == 0x20 {
            octets.truncate(octets.len() / 8 * 8);
        }
        let mut packet = vec![0x45, 0, 0, 20 + octets.len() as u8, 0, 0];
        packet.extend([place[0], place[1], 64, protocol, 0, 0]);
        let hosts = if turned { [[10, 0, 0, 1], [10, 0, 0, 2]] } else { [[10, 0, 0, 2], [10, 0, 0, 1]] };
        packet.extend(hosts.concat());
        // Most packets have the same two ports, so that they belong to one conversation.
        let ports = if protocol == 4 { 0 } else { 4 };
        octets.iter_mut().take(ports).for_each(|port| *port &= 1);
        // IP in IP.
        octets.iter_mut().take(1).filter(|_| protocol == 4).for_each(|version| *version = 0x45);
        packet.append(&mut octets);
        (gap, packet)
    })
}

proptest! {
    #[test]
    fn packets_with_arbitrary_numbers_are_accepted(packets in proptest::collection::vec(packet(), 0..60)) {
        let (mut learner, mut listener, mut at) = (PathEstimator::default(), MessageReconstructor::default(), 0);
        for (gap, packet) in &packets {
            at = gap.checked_add(at).unwrap_or(*gap);
            learner.handle_packet(at, packet);
            listener.handle_packet(at, packet);
        }
        match learner.finish(None) {
            Ok(learned) => drop(learned.to_string()),
            Err(EstimateError::NoPackets) => prop_assert!(packets.is_empty()),
            Err(EstimateError::NothingAcknowledged { .. } | EstimateError::Cut { .. }) => {}
        }
        let _ = listener.finish(None);
    }
}
