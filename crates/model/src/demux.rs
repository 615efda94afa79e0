//! Which endpoint of a host a packet is for.

/// The endpoints of one host by local and remote port. Ports alone tell them apart, also for a multihomed
/// peer, because the world gives every connection a client port of its own.
#[derive(Debug, Default)]
pub(crate) struct Demux {
    /// Ascending by local, then remote port.
    bound: Vec<((u16, u16), usize)>,
    /// Local port and endpoint, in the order in which they accept.
    listening: Vec<(u16, usize)>,
}

impl Demux {
    /// `endpoint` speaks from `local` to `remote`.
    pub(crate) fn bind(&mut self, local: u16, remote: u16, endpoint: usize) {
        let at = self.bound.partition_point(|(ports, _)| *ports < (local, remote));
        self.bound.insert(at, ((local, remote), endpoint));
    }

    /// `endpoint` waits at `local` for a peer.
    pub(crate) fn listen(&mut self, local: u16, endpoint: usize) {
        self.listening.push((local, endpoint));
    }

    /// The endpoint for a packet to `local` from `remote`; a new peer gets the first that listens.
    pub(crate) fn endpoint(&mut self, local: u16, remote: u16) -> Option<usize> {
        if let Ok(at) = self.bound.binary_search_by_key(&(local, remote), |(ports, _)| *ports) {
            return Some(self.bound[at].1);
        }
        let free = self.listening.iter().position(|(port, _)| *port == local)?;
        let (_, endpoint) = self.listening.remove(free);
        self.bind(local, remote, endpoint);
        Some(endpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_new_peer_gets_an_endpoint_that_listens_and_keeps_it() {
        let mut demux = Demux::default();
        demux.listen(80, 7);
        demux.listen(80, 8);
        demux.bind(5000, 80, 3);
        assert_eq!(demux.endpoint(80, 6002), Some(7));
        assert_eq!(demux.endpoint(80, 6001), Some(8));
        assert_eq!(demux.endpoint(80, 6002), Some(7));
        assert_eq!(demux.endpoint(80, 6003), None);
        assert_eq!(demux.endpoint(5000, 80), Some(3));
        assert_eq!(demux.endpoint(81, 6002), None);
    }
}
