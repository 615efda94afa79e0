//! Demultiplexing: which endpoint of a host receives a packet.

use hol_scenario::FIRST_CLIENT_PORT;

/// Finds the endpoint or server of one host that receives a packet, by the client's port. The port suffices, even
/// for a multihomed peer, because the model gives every connection its own client port.
#[derive(Debug, Default)]
pub(crate) struct Demux {
    /// For each client port, from the lowest bound port on: local port, remote port and index of the endpoint;
    /// `None` if the client port is not used.
    bound: Vec<Option<((u16, u16), usize)>>,
    /// Local ports on which servers accept connections, each with the flow of its server.
    listening: Vec<(u16, usize)>,
}

/// The receiver of a packet that arrives at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketReceiver {
    /// The endpoint with this index receives the packet.
    Endpoint(usize),
    /// The server of this flow receives the packet, which comes from a new peer.
    Server(usize),
    /// Nobody receives the packet, because the port is closed.
    Nobody,
}

impl Demux {
    /// Binds `endpoint` to its `local` and `remote` port.
    pub(crate) fn bind(&mut self, local: u16, remote: u16, endpoint: usize) {
        let index = index_of(local, remote).expect("one of the ends is a client");
        if index >= self.bound.len() {
            self.bound.resize(index + 1, None);
        }
        self.bound[index] = Some(((local, remote), endpoint));
    }

    /// Makes the server of `flow` accept connections to port `local`.
    pub(crate) fn listen(&mut self, local: u16, flow: usize) {
        self.listening.push((local, flow));
    }

    /// Returns the receiver of a packet that arrives at port `local` from port `remote`.
    pub(crate) fn packet_receiver(&self, local: u16, remote: u16) -> PacketReceiver {
        let bound = index_of(local, remote).and_then(|index| *self.bound.get(index)?);
        if let Some((ports, endpoint)) = bound
            && ports == (local, remote)
        {
            return PacketReceiver::Endpoint(endpoint);
        }
        let flow = self.listening.iter().find(|(port, _)| *port == local);
        flow.map_or(PacketReceiver::Nobody, |(_, flow)| PacketReceiver::Server(*flow))
    }
}

/// Returns the index in `bound` for two ports. It depends on the client's port, which is the higher one, because all
/// server ports are lower.
fn index_of(local: u16, remote: u16) -> Option<usize> {
    local.max(remote).checked_sub(FIRST_CLIENT_PORT).map(usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_new_peers_go_to_the_server_until_an_endpoint_is_bound() {
        let mut demux = Demux::default();
        demux.listen(80, 7);
        demux.bind(50000, 80, 3);
        assert_eq!(demux.packet_receiver(80, 50002), PacketReceiver::Server(7));
        demux.bind(80, 50002, 4);
        assert_eq!(demux.packet_receiver(80, 50002), PacketReceiver::Endpoint(4));
        assert_eq!(demux.packet_receiver(80, 50001), PacketReceiver::Server(7));
        assert_eq!(demux.packet_receiver(50000, 80), PacketReceiver::Endpoint(3));
        assert_eq!(
            [demux.packet_receiver(81, 50002), demux.packet_receiver(81, 82)],
            [PacketReceiver::Nobody; 2]
        );
    }
}
