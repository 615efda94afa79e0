//! The throughput that a point cannot exceed: its bottleneck's rate less the transport's headers.

use hol_base::Duration;
use hol_lab::Point;
use hol_network::{Ip, Settings, Topology};
use hol_stack::{ProtocolKind, TransportSpec};
use hol_theory::ConstantRateFlow;

/// Returns the largest possible throughput in kbit/s. It is known only if messages of the same size go in one
/// direction over a single path of constant rate, by TCP, SCTP or UDP; otherwise `None`.
pub fn ceiling_kbps(point: &Point) -> Option<f64> {
    // With a trace, runs may begin at different positions, but the rate changes in every run, so run 0 stands for all.
    let (workload, topology) = (&point.workload, Topology::new(&point.network_of(0)).ok()?);
    if workload.has_replies() || !point.network.paths.is_empty() {
        return None;
    }
    let [from, to] = [workload.client_node(), workload.server_node()].map(|name| topology.node(name));
    let (from, to) = (from?, to?);
    if topology.has_variable_rate(from, to) {
        return None;
    }
    let path: Vec<&Settings> = topology.path(from, to).into_iter().map(|line| &line.settings).collect();
    let bottleneck = *path.iter().min_by_key(|line| line.rate.bits_per_second())?;
    let size = workload.size()?;
    let delays = path.iter().map(|line| line.delay.as_secs_f64());
    let stream = ConstantRateFlow {
        messages: point.messages_in(0),
        size,
        wire_octets: wire_octets(&point.transport, size, topology.ip(), bottleneck)?,
        interval: workload
            .rate()
            .map_or(Duration::ZERO, |rate| rate.period() / u64::from(workload.source_count())),
        rate: bottleneck.rate,
        delay: Duration::from_secs_f64(delays.sum()),
    };
    Some(stream.ceiling_kbps())
}

/// Returns the number of octets that a message takes on the link, headers included, if packets are full.
fn wire_octets(transport: &TransportSpec, size: u64, ip: Ip, line: &Settings) -> Option<f64> {
    let (mtu, overhead, ip) = (line.mtu.0, line.overhead.0, ip.header_length() as u64);
    match transport.kind() {
        // RFC 9293 section 3.1; the timestamps option with its padding (RFC 7323 appendix A).
        ProtocolKind::Tcp => {
            let options = if transport.option_values().get("timestamps")?.as_bool()? { 12 } else { 0 };
            let payload = mtu - ip - 20 - options;
            Some(size as f64 * (mtu + overhead) as f64 / payload as f64)
        }
        // A chunk for each message, as many as fit (RFC 9260 sections 3.3.1 and 6.10).
        ProtocolKind::Sctp => {
            let chunk = 16 + size.next_multiple_of(4);
            let bundled = (mtu - ip - 12) / chunk;
            (bundled > 0).then(|| (ip + 12 + overhead) as f64 / bundled as f64 + chunk as f64)
        }
        ProtocolKind::Udp => Some((ip + 8 + size + overhead) as f64),
        // Unknown: the fill of packets depends on the discovered MTU and on the encoded length of packet numbers.
        ProtocolKind::Quic | ProtocolKind::Mptcp | ProtocolKind::Unix => None,
    }
}
