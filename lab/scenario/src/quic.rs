//! QUIC's requirements on the MTU of a path and on the size of messages, in every world.

use hol_network::Topology;
use hol_quic::{Config, MessageMapping};
use hol_stack::{Protocol, TransportSpec};
use hol_wire::udp::Datagram;
use hol_workloads::WorkloadSpec;

/// Checks QUIC's requirements; accepts every other transport. The path must carry datagrams of 1200 octets
/// (RFC 9000 section 14). If DATAGRAM frames are used, each message must fit into one, because they are never
/// fragmented.
pub fn check_quic(
    transport: &TransportSpec,
    workload: &WorkloadSpec,
    network: &Topology,
) -> Result<(), String> {
    /// Octets of a short header, the authentication tag, and the type and length of the frame.
    const PACKET_OVERHEAD: u64 = 1 + 8 + 4 + 16 + 9;
    let Protocol::Quic { config, mapping, .. } = transport.protocol() else { return Ok(()) };
    let (mtu, headers) =
        (network.smallest_mtu(), (network.ip().header_length() + Datagram::HEADER_LENGTH) as u64);
    let min = Config::MIN_MTU + headers;
    if mtu < min {
        return Err(format!(
            "QUIC needs an MTU of at least {min} octets (RFC 9000 section 14), but the network has {mtu}; raise `mtu`"
        ));
    }
    let room = config.mtu.0.min(mtu - headers) - PACKET_OVERHEAD;
    match workload.longest_message() {
        Some(size) if *mapping == MessageMapping::Datagrams && size > room => Err(format!(
            "a message of {size} octets does not fit into a DATAGRAM frame of {room}; lower `size`, or `packet` of media, raise the transport's `mtu`, or use quic without datagrams"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(transport: &str, workload: &str, mtu: u64) -> Result<(), String> {
        on(&format!("mtu = '{mtu}B'"), transport, workload)
    }

    fn on(network: &str, transport: &str, workload: &str) -> Result<(), String> {
        let network = Topology::new(&toml::from_str(network).unwrap()).unwrap();
        check_quic(&transport.parse().unwrap(), &toml::from_str(workload).unwrap(), &network)
    }

    /// RFC 9000 section 14: the path must carry UDP datagrams of 1200 octets, plus 28 octets of UDP and IP headers.
    #[test]
    fn quic_needs_a_path_that_carries_1200_octets() {
        let oneway = "kind = 'oneway'";
        assert!(check("quic", oneway, 1227).unwrap_err().contains("at least 1228 octets"));
        assert_eq!(check("quic", oneway, 1228), Ok(()));
        assert!(
            on("ip = 'v6'\nmtu = '1280B'", "quic", oneway).is_ok(),
            "an IPv6 link has at least 1280 octets, of which the headers take 48"
        );
        assert_eq!(check("tcp", oneway, 600), Ok(()), "only QUIC needs this MTU");
    }

    /// RFC 9221 section 5: a DATAGRAM frame is never fragmented. 1500 octets less 28 of UDP and IP headers and 38 of QUIC.
    #[test]
    fn a_message_fits_into_a_datagram_frame() {
        let sized =
            |transport, size, mtu| check(transport, &format!("kind = 'oneway'\nsize = '{size}B'"), mtu);
        assert_eq!(sized("quic:datagrams,mtu=9000B,mtu_discovery=9000B", 1434, 1500), Ok(()));
        let refused = sized("quic:datagrams,mtu=9000B,mtu_discovery=9000B", 1435, 1500).unwrap_err();
        assert!(refused.contains("frame of 1434"), "{refused}");
        assert_eq!(sized("quic:datagrams,mtu=1200B", 1162, 1500), Ok(()));
        assert!(sized("quic:datagrams,mtu=1200B", 1163, 1500).is_err());
        assert_eq!(sized("quic", 100_000, 1500), Ok(()), "a stream takes a message of any size");
    }
}
