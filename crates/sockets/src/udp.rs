//! UDP: a message is a datagram, and nobody sends it again.

use std::collections::BTreeSet;
use std::io::{self, Read};

use bytes::Bytes;
use hol_transport::Passage;
use hol_workloads::{Delivery, Outgoing};
use socket2::{Protocol, Socket, Type};

use crate::plan::{Counts, Site, SocketsError};
use crate::transceiver::{self, Family, Fault, Heard, Opener, Sent, Transceiver, whole_or_nothing};

/// Opens pairs of UDP sockets, each connected to the other.
#[derive(Debug)]
pub(crate) struct Udp;

impl Udp {
    const FAMILY: Family =
        Family { name: "UDP", kind: Type::DGRAM, protocol: Protocol::UDP, cure: "use a kernel with IPv4" };
    /// The longest message: an IPv4 packet without its headers.
    pub(crate) const LONGEST: u64 = 65_507;
}

impl Opener for Udp {
    fn listen(&self, server: &Site) -> Result<Socket, SocketsError> {
        Self::FAMILY.socket(server)
    }

    fn connect(&self, client: &Site, server: &Site) -> Result<Socket, SocketsError> {
        let socket = Self::FAMILY.socket(client)?;
        transceiver::begin(socket.connect(&transceiver::address(server)), server)?;
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, _stream: u16, _peer: &Site) -> Box<dyn Transceiver> {
        Box::new(Datagrams { socket, seen: BTreeSet::new(), counts: Counts::default() })
    }
}

/// One end of a pair of sockets.
#[derive(Debug)]
struct Datagrams {
    socket: Socket,
    /// The first octets of what came, by which every workload tells its messages apart: the network may
    /// deliver a datagram twice, an application expects it once.
    seen: BTreeSet<[u8; 8]>,
    counts: Counts,
}

impl Transceiver for Datagrams {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn send(&mut self, message: &Outgoing) -> io::Result<Sent> {
        let sent = whole_or_nothing(self.socket.send(&message.payload))?;
        self.counts.packets_sent += u64::from(sent == Sent::Whole);
        Ok(sent)
    }

    fn receive(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        let length = (&self.socket).read(buffer)?;
        self.counts.packets_received += 1;
        let datagram = &buffer[..length];
        if datagram.first_chunk().is_some_and(|name| self.seen.insert(*name)) {
            let payload = Bytes::copy_from_slice(datagram);
            take(Heard::Message(Delivery { stream: 0, payload, passage: Passage::default() }));
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    #[test]
    fn a_datagram_that_comes_twice_is_told_once() {
        let site = Site { addresses: vec![Ipv4Addr::LOCALHOST], port: 0 };
        let socket = Udp.listen(&site).unwrap();
        socket.set_nonblocking(false).unwrap();
        let to = (Ipv4Addr::LOCALHOST, transceiver::own_port(&socket).unwrap());
        let mut datagrams = Udp.transceiver(socket, 0, &site);
        let network = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut heard = Vec::new();
        for message in [b"message1", b"message1", b"message2", b"message1"] {
            network.send_to(message, to).unwrap();
            datagrams.receive(&mut [0; 100], &mut |one| heard.push(one)).unwrap();
        }
        let payload = |heard: Heard| match heard {
            Heard::Message(delivery) => delivery.payload,
            Heard::Path(..) => unreachable!("datagrams have no paths"),
        };
        let heard: Vec<Bytes> = heard.into_iter().map(payload).collect();
        assert_eq!(heard, ["message1", "message2"]);
        assert_eq!(datagrams.counts().packets_received, 4);
    }
}
