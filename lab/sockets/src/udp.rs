//! UDP: a message is a datagram, without retransmission.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use bytes::Bytes;
use hol_base::Time;
use hol_wire::Ecn;
use hol_workloads::Outgoing;
use socket2::Socket;

use crate::datagrams::DatagramSocket;
use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::receive_timestamps::{self, TimestampedReader};
use crate::transceiver::{
    ConnectionFault, Opener, SendOutcome, SocketEvent, Transceiver, complete_or_blocked,
};
use crate::turns::read_up_to;

/// Opens pairs of UDP sockets, each connected to the other.
#[derive(Debug)]
pub(crate) struct Udp {
    /// Maximum number of datagrams read in a turn of the event loop.
    pub(crate) reads: usize,
    /// Whether the kernel reports when it received datagrams.
    pub(crate) reports_receive_time: bool,
}

impl Udp {
    /// Maximum number of octets of a message: the longest IPv4 packet without its headers.
    pub(crate) const MAX_MESSAGE: u64 = 65_507;

    fn open_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = DatagramSocket::PROTOCOL.open_socket(site)?;
        if self.reports_receive_time {
            receive_timestamps::enable(&socket);
        }
        Ok(socket)
    }
}

impl Opener for Udp {
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError> {
        self.open_socket(server)
    }

    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError> {
        DatagramSocket::connect(self.open_socket(client)?, server)
    }

    fn transceiver(&self, socket: Socket, _peer: &EndAddresses) -> Box<dyn Transceiver> {
        Box::new(Messages {
            socket,
            reads: self.reads,
            reader: TimestampedReader::new(self.reports_receive_time),
            early_datagrams: VecDeque::new(),
            received: BTreeSet::new(),
            counts: SocketCounters::default(),
        })
    }

    fn accepts(&self) -> bool {
        false
    }
}

/// One end of a pair of connected UDP sockets.
#[derive(Debug)]
struct Messages {
    socket: Socket,
    reads: usize,
    reader: TimestampedReader,
    /// Datagrams that arrived before the socket existed; they are read first.
    early_datagrams: VecDeque<Bytes>,
    /// The first 8 octets of each received message, which identify it in every workload. They serve to drop duplicates
    /// of datagrams, which an application does not expect.
    received: BTreeSet<[u8; 8]>,
    counts: SocketCounters,
}

impl Transceiver for Messages {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn send(&mut self, message: &Outgoing, _now: Time) -> io::Result<SendOutcome> {
        let mut sent = self.socket.send(&message.payload);
        if sent.as_ref().is_err_and(is_port_unreachable) {
            // The error belongs to an earlier datagram; this one has not been sent yet.
            sent = self.socket.send(&message.payload);
        }
        let sent = if sent.as_ref().is_err_and(is_port_unreachable) {
            SendOutcome::Complete
        } else {
            complete_or_blocked(sent)?
        };
        self.counts.packets_sent += u64::from(sent == SendOutcome::Complete);
        Ok(sent)
    }

    fn receive(
        &mut self,
        buffer: &mut [u8],
        _now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        read_up_to(self.reads, || self.receive_one(buffer, take))
    }

    fn handle_early_datagram(&mut self, octets: Bytes, _ecn: Ecn) {
        self.early_datagrams.push_back(octets);
    }

    fn counts(&self) -> SocketCounters {
        self.counts
    }
}

impl Messages {
    fn receive_one(
        &mut self,
        buffer: &mut [u8],
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        let early = self.early_datagrams.pop_front();
        let (datagram, received_at) = match &early {
            Some(datagram) => (&datagram[..], None),
            None => match self.reader.read(&self.socket, buffer) {
                Err(e) if is_port_unreachable(&e) => return Ok(()),
                read => {
                    let (length, received_at) = read?;
                    (&buffer[..length], received_at)
                }
            },
        };
        self.counts.packets_received += 1;
        if datagram.first_chunk().is_some_and(|name| self.received.insert(*name)) {
            take(SocketEvent::ReceivedAt(received_at));
            take(SocketEvent::Message(0, Bytes::copy_from_slice(datagram)));
        }
        Ok(())
    }
}

/// Returns whether the error is an ICMP report that a datagram was undeliverable. Such a datagram counts as lost; the socket
/// remains open. RFC 1122 section 4.1.3.3.
fn is_port_unreachable(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    use crate::transceiver;

    #[test]
    fn a_duplicate_datagram_is_delivered_once() {
        let site = EndAddresses { addresses: vec![Ipv4Addr::LOCALHOST.into()], port: 0 };
        let udp = Udp { reads: 1, reports_receive_time: false };
        let socket = udp.listen(&site).unwrap();
        socket.set_nonblocking(false).unwrap();
        let to = (Ipv4Addr::LOCALHOST, transceiver::own_port(&socket).unwrap());
        let mut datagrams = udp.transceiver(socket, &site);
        let network = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut events = Vec::new();
        for message in [b"message1", b"message1", b"message2", b"message1"] {
            network.send_to(message, to).unwrap();
            datagrams.receive(&mut [0; 100], Time::ZERO, &mut |one| events.push(one)).unwrap();
        }
        let payload = |events: SocketEvent| match events {
            SocketEvent::Message(_, payload) => Some(payload),
            SocketEvent::ReceivedAt(None) => None,
            other => unreachable!("unexpected event {other:?}"),
        };
        let events: Vec<Bytes> = events.into_iter().filter_map(payload).collect();
        assert_eq!(events, ["message1", "message2"]);
        assert_eq!(datagrams.counts().packets_received, 4);
    }
}
