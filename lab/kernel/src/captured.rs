//! Packets as the ends of a run saw them, also as octets for the way out of the guest.

use hol_base::Time;
use hol_network::{Fate, TapPoint};
use hol_scenario::{Packet, Sighting, Witness};

/// A packet that passed an interface of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// When, counted from the first attempt to connect.
    pub time: Time,
    /// The interface, by its place in [`Scenario::interfaces`](hol_scenario::Scenario::interfaces).
    pub interface: usize,
    /// Sent or received; `lost` and `corrupted` follow from what the other end saw.
    pub fate: Fate,
    /// The packet from its IP header on.
    pub octets: Vec<u8>,
}

/// The packets of a run, if they were wanted.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) packets: Vec<Captured>,
    /// What decrypts them, in the lines of a TLS key log.
    pub(crate) secrets: String,
}

/// Octets before those of the packet: time, interface, received, length.
const HEAD: usize = 8 + 2 + 1 + 2;

/// Appends the packet that was sent, or received, on an interface.
pub(crate) fn pack(out: &mut Vec<u8>, time: Time, interface: u16, received: bool, octets: &[u8]) {
    // An IP packet has at most 65,535 octets.
    let length = octets.len() as u16;
    out.extend_from_slice(&time.as_nanos().to_le_bytes());
    out.extend_from_slice(&interface.to_le_bytes());
    out.push(received.into());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(octets);
}

/// Has the `witness` see these packets, at interfaces of these names, and learn before what decrypts them.
pub(crate) fn show(Seen { packets, secrets }: Seen, names: &[String], witness: &mut dyn Witness) {
    witness.learn(&secrets);
    for Captured { time, interface, fate, octets } in packets {
        let point = TapPoint { interface, name: &names[interface] };
        witness.see(&Sighting { time, point, fate, packet: Packet::Octets(&octets) });
    }
}

/// All packets in `octets`, in order of time; `None` if that is not what they are.
pub(crate) fn unpack(mut octets: &[u8]) -> Option<Vec<Captured>> {
    let mut packets = Vec::new();
    while !octets.is_empty() {
        let (head, rest) = octets.split_at_checked(HEAD)?;
        let [time @ .., i0, i1, received, l0, l1] = head else { return None };
        let (packet, behind) = rest.split_at_checked(u16::from_le_bytes([*l0, *l1]).into())?;
        packets.push(Captured {
            time: Time::from_nanos(u64::from_le_bytes(time.try_into().ok()?)),
            interface: u16::from_le_bytes([*i0, *i1]).into(),
            fate: if *received == 1 { Fate::Received } else { Fate::Sent },
            octets: packet.to_vec(),
        });
        octets = behind;
    }
    packets.sort_by_key(|packet: &Captured| packet.time);
    Some(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_in_order_of_time() {
        let captured = |ms, interface, fate, octets: &[u8]| Captured {
            time: Time::from_millis(ms),
            interface,
            fate,
            octets: octets.to_vec(),
        };
        let late = captured(2, 1, Fate::Received, &[1; 1500]);
        let early = captured(1, 0, Fate::Sent, &[]);
        let mut octets = Vec::new();
        for Captured { time, interface, fate, octets: packet } in [&late, &early] {
            pack(&mut octets, *time, *interface as u16, *fate == Fate::Received, packet);
        }
        assert_eq!(unpack(&octets), Some(vec![early, late]));
        assert_eq!(unpack(&octets[1..]), None);
    }
}
