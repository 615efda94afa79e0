//! Packets captured at the endpoints of a run, and their binary format between guest and host.

use hol_base::Time;
use hol_network::{TapEvent, TapPoint};
use hol_scenario::{Packet, PacketEvent, PacketObserver};

/// A packet captured at an interface of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Time at which the packet was captured, since the first attempt to connect.
    pub time: Time,
    /// Index of the interface in [`Scenario::interfaces`](hol_scenario::Scenario::interfaces).
    pub interface: usize,
    /// Whether the packet was sent or received. A packet that was lost or corrupted is recognised from the capture
    /// at the other end.
    pub event: TapEvent,
    /// The packet, starting with its IP header.
    pub octets: Vec<u8>,
}

/// The captured packets of a run; empty unless the job requests them.
#[derive(Debug, Default)]
pub(crate) struct PacketCapture {
    pub(crate) packets: Vec<CapturedPacket>,
    /// TLS secrets of the packets, as a TLS key log.
    pub(crate) secrets: String,
}

/// Length of the header of a packed packet in octets. The header contains time, interface, direction and length.
const HEADER_LENGTH: usize = 8 + 2 + 1 + 2;

/// Appends a packet that `interface` has received (if `received`) or sent.
pub(crate) fn pack(out: &mut Vec<u8>, time: Time, interface: u16, received: bool, octets: &[u8]) {
    // An IP packet has at most 65,535 octets.
    let length = octets.len() as u16;
    out.extend_from_slice(&time.as_nanos().to_le_bytes());
    out.extend_from_slice(&interface.to_le_bytes());
    out.push(received.into());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(octets);
}

/// Passes the TLS secrets and then all packets to the `observer`; `names` are the names of the interfaces.
pub(crate) fn pass_to_observer(
    PacketCapture { packets, secrets }: PacketCapture,
    names: &[String],
    observer: &mut dyn PacketObserver,
) {
    observer.add_secrets(&secrets);
    for CapturedPacket { time, interface, event, octets } in packets {
        let point = TapPoint { interface, name: &names[interface] };
        observer.observe(&PacketEvent { time, point, event, packet: Packet::Octets(&octets) });
    }
}

/// Reads packed packets and sorts them by time; `None` if `octets` is malformed.
pub(crate) fn unpack(mut octets: &[u8]) -> Option<Vec<CapturedPacket>> {
    let mut packets = Vec::new();
    while !octets.is_empty() {
        let (head, rest) = octets.split_at_checked(HEADER_LENGTH)?;
        let [time @ .., i0, i1, received, l0, l1] = head else { return None };
        let (packet, behind) = rest.split_at_checked(u16::from_le_bytes([*l0, *l1]).into())?;
        packets.push(CapturedPacket {
            time: Time::from_nanos(u64::from_le_bytes(time.try_into().ok()?)),
            interface: u16::from_le_bytes([*i0, *i1]).into(),
            event: if *received == 1 { TapEvent::Received } else { TapEvent::Sent },
            octets: packet.to_vec(),
        });
        octets = behind;
    }
    packets.sort_by_key(|packet: &CapturedPacket| packet.time);
    Some(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_in_order_of_time() {
        let captured = |ms, interface, event, octets: &[u8]| CapturedPacket {
            time: Time::from_millis(ms),
            interface,
            event,
            octets: octets.to_vec(),
        };
        let late = captured(2, 1, TapEvent::Received, &[1; 1500]);
        let early = captured(1, 0, TapEvent::Sent, &[]);
        let mut octets = Vec::new();
        for CapturedPacket { time, interface, event, octets: packet } in [&late, &early] {
            pack(&mut octets, *time, *interface as u16, *event == TapEvent::Received, packet);
        }
        assert_eq!(unpack(&octets), Some(vec![early, late]));
        assert_eq!(unpack(&octets[1..]), None);
    }
}
