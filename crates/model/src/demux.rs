//! Which endpoint of a host a packet is for.

/// The endpoints of one host by local and remote port. Ports alone tell them apart, also for a multihomed
/// peer, because the world gives every connection a client port of its own.
#[derive(Debug, Default)]
pub(crate) struct Demux {
    /// Ascending by local, then remote port.
    bound: Vec<((u16, u16), usize)>,
    /// Local port and the flow whose server accepts there.
    listening: Vec<(u16, usize)>,
}

/// Who takes a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taker {
    /// An endpoint.
    Endpoint(usize),
    /// The server of a flow: a new peer.
    Server(usize),
    /// Nobody: the port is closed.
    Nobody,
}

impl Demux {
    /// `endpoint` speaks from `local` to `remote`.
    pub(crate) fn bind(&mut self, local: u16, remote: u16, endpoint: usize) {
        let at = self.bound.partition_point(|(ports, _)| *ports < (local, remote));
        self.bound.insert(at, ((local, remote), endpoint));
    }

    /// The server of `flow` accepts whoever comes to `local`.
    pub(crate) fn listen(&mut self, local: u16, flow: usize) {
        self.listening.push((local, flow));
    }

    /// Who takes a packet to `local` from `remote`.
    pub(crate) fn taker(&self, local: u16, remote: u16) -> Taker {
        if let Ok(at) = self.bound.binary_search_by_key(&(local, remote), |(ports, _)| *ports) {
            return Taker::Endpoint(self.bound[at].1);
        }
        let flow = self.listening.iter().find(|(port, _)| *port == local);
        flow.map_or(Taker::Nobody, |(_, flow)| Taker::Server(*flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_new_peer_is_the_servers_until_an_endpoint_is_bound_to_it() {
        let mut demux = Demux::default();
        demux.listen(80, 7);
        demux.bind(5000, 80, 3);
        assert_eq!(demux.taker(80, 6002), Taker::Server(7));
        demux.bind(80, 6002, 4);
        assert_eq!(demux.taker(80, 6002), Taker::Endpoint(4));
        assert_eq!(demux.taker(80, 6001), Taker::Server(7));
        assert_eq!(demux.taker(5000, 80), Taker::Endpoint(3));
        assert_eq!(demux.taker(81, 6002), Taker::Nobody);
    }
}
