//! Captures packets at the endpoints: a ring for each interface, read at the end of the run.

use hol_base::Time;
use hol_measure::RecordKind;
use hol_scenario::Scenario;

use super::GuestError;
use super::packet_ring::Ring;
use super::topology::Topology;
use crate::captured_packet;
use crate::job::Job;

/// Total size of all packet rings in octets, a quarter of the guest's memory.
const RING_MEMORY: usize = 128 << 20;

/// Size of the mailbox's part for packets, in octets.
const MAX_PACKET_OCTETS: usize = 48 << 20;

/// The rings of a capture, each with the index of its interface.
#[derive(Debug)]
pub(super) struct Capture(Vec<(u16, Ring)>);

impl Capture {
    /// Starts the capture at every interface of the client and the server.
    pub(super) fn start(topology: &Topology, mtu: u32, job: &Job) -> Result<Self, GuestError> {
        let octets = mtu as usize;
        let frames = estimate_frames(job).min(RING_MEMORY / topology.captured_interfaces().count() / octets);
        let rings = topology.captured_interfaces().map(|(interface, namespace, index)| {
            namespace.enter()?;
            let ring = Ring::open(index, frames, octets);
            let ring = ring.map_err(|e| format!("cannot capture at interface {}: {e}", interface.0))?;
            Ok((interface.0, ring))
        });
        Ok(Self(rings.collect::<Result<_, GuestError>>()?))
    }

    /// Returns the captured packets, packed. Times are relative to `epoch`, in ns since 1970. An error is a complete
    /// sentence.
    pub(super) fn finish(&self, epoch: u64) -> Result<Vec<u8>, String> {
        let mut packets = Vec::new();
        for (interface, ring) in &self.0 {
            if ring.is_full() {
                let max = ring.frame_count();
                return Err(format!("an interface captured more packets than the maximum of {max}"));
            }
            for frame in ring.frames() {
                let time = Time::from_nanos(frame.wall.saturating_sub(epoch));
                captured_packet::pack(&mut packets, time, *interface, frame.received, frame.octets);
            }
            if packets.len() > MAX_PACKET_OCTETS {
                return Err(format!(
                    "the packets of the run exceed {} MiB, the maximum of a capture",
                    MAX_PACKET_OCTETS >> 20
                ));
            }
        }
        Ok(packets)
    }
}

/// Estimates the largest number of packets at an endpoint: those of the messages, as many for the replies, an
/// acknowledgment for each of them, and as many again for retransmissions.
fn estimate_frames(job: &Job) -> usize {
    /// Number of packets in addition to those of messages, such as those of handshakes.
    const OPENING_FRAMES: u64 = 10_000;
    /// The smallest payload that a full packet may have, in octets.
    const MIN_MSS: u64 = 500;
    let Scenario { workload, messages, .. } = &job.scenario;
    if !job.scenario.programs.is_empty() || !job.scenario.background.is_empty() {
        // The number of packets of programs and of greedy flows is unknown.
        return usize::MAX;
    }
    // SIMCO's messages are short, and the number and sizes of a page's or a batch's files are unknown.
    let unknown = if workload.record_kind() == RecordKind::Transaction { 1 } else { 100 };
    let packets = workload.longest_message().map_or(unknown, |longest| longest.div_ceil(MIN_MSS));
    (OPENING_FRAMES + messages.saturating_mul(8 * packets)) as usize
}
