//! Measures the baseline of each link direction: its delay and rate before the run, without loss,
//! duplication and reordering.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use hol_network::{Interface, Medium};
use hol_scenario::BaselineDelay;
use hol_traffic::ShapedLink;
use hol_wire::udp::Datagram;

use super::GuestError;
use super::clock::VirtualInstant;
use super::topology::Topology;
use crate::netem::BuildableNetwork;

/// Number of datagrams that are sent back to back; the intervals between their arrivals give the rate.
const TRAIN_LENGTH: u64 = 10;
/// Number of attempts to measure a link. The fastest attempt counts, because the kernel may have been busy during
/// the others.
const MAX_ATTEMPTS: usize = 3;
/// Largest datagram that is sent, in octets; most packets of a run have this size.
const MAX_DATAGRAM: u32 = 1500;

/// Returns the measured delay and spacing of each link direction without other traffic.
pub(super) fn measure_baselines(
    topology: &Topology,
    plan: &BuildableNetwork,
) -> Result<Vec<BaselineDelay>, GuestError> {
    let mut measure_baselines = Vec::new();
    for segment in plan.network.segments() {
        let [first, second] = [0, 1].map(|end| {
            let interface = segment.interfaces[end];
            plan.network.interfaces()[usize::from(interface.0)]
        });
        let directions = match segment.medium {
            Medium::Link { up, down } => vec![(up, first, second), (down, second, first)],
            Medium::Lan(link) => vec![(link, first, second)],
        };
        for (link, from, to) in directions {
            measure_baselines.push(measure_baseline(
                topology,
                plan,
                &plan.links[usize::from(link.0)],
                [from, to],
            )?);
        }
    }
    Ok(measure_baselines)
}

fn measure_baseline(
    topology: &Topology,
    plan: &BuildableNetwork,
    link: &ShapedLink,
    [from, to]: [Interface; 2],
) -> Result<BaselineDelay, GuestError> {
    let packet = plan.mtu.min(MAX_DATAGRAM);
    let serialization = link.serialization(packet.into()).as_nanos();
    let delay = link.settings.delay.as_nanos() + serialization;
    let timeout = Duration::from_nanos(delay + TRAIN_LENGTH * serialization) + Duration::from_secs(5);
    let wire = SocketPair {
        sender: socket(topology, from, from.address)?,
        receiver: socket(topology, to, to.address)?,
        payload: vec![0; packet as usize - plan.network.ip().header_length() - Datagram::HEADER_LENGTH],
    };
    wire.sender.connect(wire.receiver.local_addr()?)?;
    wire.receiver.set_read_timeout(Some(timeout))?;
    let lost = |e| format!("{}: a probe packet was lost before the run: {e}", link.name);
    let one = wire.shortest_time(1).map_err(lost)?;
    let train = wire.shortest_time(TRAIN_LENGTH).map_err(lost)?;
    Ok(BaselineDelay {
        name: link.name.clone(),
        delay: one,
        expected_delay: delay,
        spacing: train.saturating_sub(one) / (TRAIN_LENGTH - 1),
        expected_spacing: serialization,
    })
}

fn socket(topology: &Topology, at: Interface, address: IpAddr) -> Result<UdpSocket, GuestError> {
    topology.node(at.node).enter()?;
    Ok(UdpSocket::bind((address, 0))?)
}

/// A socket at each end of a link direction.
struct SocketPair {
    sender: UdpSocket,
    receiver: UdpSocket,
    payload: Vec<u8>,
}

impl SocketPair {
    fn shortest_time(&self, count: u64) -> std::io::Result<u64> {
        (0..MAX_ATTEMPTS).try_fold(u64::MAX, |shortest_time, _| Ok(shortest_time.min(self.send(count)?)))
    }

    /// Sends datagrams back to back; returns the time until the last has arrived, in ns.
    fn send(&self, count: u64) -> std::io::Result<u64> {
        let mut buffer = vec![0; self.payload.len()];
        let start = VirtualInstant::now();
        for _ in 0..count {
            self.sender.send(&self.payload)?;
        }
        for _ in 0..count {
            self.receiver.recv(&mut buffer)?;
        }
        Ok(start.elapsed().as_nanos() as u64)
    }
}
