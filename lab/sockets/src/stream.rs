//! A byte-stream socket with framed messages: TCP, MPTCP and UNIX sockets.

use std::io;
use std::net::Shutdown;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{DeliveryTimes, Framer};
use hol_workloads::{FramingFn, Outgoing};
use socket2::Socket;

use crate::flow_parameters::SocketCounters;
use crate::host_addresses::AddressChange;
use crate::receive_timestamps::TimestampedReader;
use crate::transceiver::{ConnectionFault, SendOutcome, SenderState, SocketEvent, Transceiver};

/// One end of a connection with framed messages over a byte stream.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    framer: Framer,
    /// Octets of the current message that the kernel has accepted; 0 once it has accepted the whole message.
    accepted_octets: usize,
    /// Messages that wait to be sent together; `None` if each message is sent at once.
    batch: Option<MessageBatch>,
    /// Reads from the socket, with the kernel's receive timestamps if they are enabled.
    reader: TimestampedReader,
}

/// Messages that are sent with one system call.
#[derive(Debug, Default)]
struct MessageBatch {
    octets: Vec<u8>,
    /// Whether the kernel has accepted only a part of the batch.
    is_blocked: bool,
    /// Whether sending ends after this batch.
    is_last: bool,
}

/// A connection with messages over a byte stream.
#[derive(Debug)]
pub(crate) struct Connection<K> {
    pub(crate) stream: Stream,
    /// What is specific to the kind of socket.
    pub(crate) kind: K,
}

/// What differs between the kinds of stream sockets (TCP, MPTCP, UNIX); the methods are those of [`Transceiver`].
pub(crate) trait StreamKind {
    fn opened(&self, _socket: &Socket) -> Result<(), ConnectionFault> {
        Ok(())
    }

    fn change_address(&self, _socket: &Socket, _change: AddressChange) -> Result<(), ConnectionFault> {
        Ok(())
    }

    fn counts(&self, socket: &Socket) -> SocketCounters;

    fn sending(&self, _socket: &Socket) -> Option<SenderState> {
        None
    }
}

impl<K: StreamKind> Transceiver for Connection<K> {
    fn socket(&self) -> &Socket {
        &self.stream.socket
    }

    fn opened(&mut self) -> Result<(), ConnectionFault> {
        self.kind.opened(&self.stream.socket)
    }

    fn send(&mut self, message: &Outgoing, _now: Time) -> io::Result<SendOutcome> {
        self.stream.send(&message.payload)
    }

    fn send_all(&mut self, _now: Time) -> io::Result<()> {
        self.stream.send_all()
    }

    fn receive(
        &mut self,
        buffer: &mut [u8],
        _now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        self.stream.receive(buffer, take)
    }

    fn shutdown(&mut self, _now: Time) -> io::Result<()> {
        self.stream.shutdown()
    }

    fn waits_for_room(&self) -> bool {
        self.stream.waits_for_room()
    }

    fn change_address(&mut self, change: AddressChange) -> Result<(), ConnectionFault> {
        self.kind.change_address(&self.stream.socket, change)
    }

    fn counts(&self) -> SocketCounters {
        self.kind.counts(&self.stream.socket)
    }

    fn sending(&self) -> Option<SenderState> {
        self.kind.sending(&self.stream.socket)
    }
}

impl Stream {
    /// Wraps a socket that is, or will be, connected. With `is_batching` it holds messages back until
    /// [`Self::send_all`]; with `reports_receive_time` it reports when the kernel received the data that it reads.
    pub(crate) fn new(
        socket: Socket,
        framing_fn: FramingFn,
        is_batching: bool,
        reports_receive_time: bool,
    ) -> Self {
        let batch = is_batching.then(MessageBatch::default);
        Self {
            socket,
            framer: Framer::new(framing_fn),
            accepted_octets: 0,
            batch,
            reader: TimestampedReader::new(reports_receive_time),
        }
    }

    /// Sends a message. After the result `WouldBlock`, the same message must be sent again before any other.
    fn send(&mut self, message: &[u8]) -> io::Result<SendOutcome> {
        if let Some(batch) = &mut self.batch {
            return batch.push(&self.socket, message);
        }
        let (taken, sent) = send(&self.socket, &message[self.accepted_octets..]);
        self.accepted_octets =
            if matches!(sent, Ok(SendOutcome::Complete)) { 0 } else { self.accepted_octets + taken };
        sent
    }

    /// Sends all messages that were held back, as far as the send buffer has room.
    fn send_all(&mut self) -> io::Result<()> {
        self.batch.as_mut().map_or(Ok(()), |batch| batch.send(&self.socket))
    }

    /// Returns whether messages that were held back wait for room in the send buffer.
    fn waits_for_room(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.is_blocked)
    }

    /// Closes the connection for sending after all messages that were held back have been sent.
    fn shutdown(&mut self) -> io::Result<()> {
        match &mut self.batch {
            None => self.socket.shutdown(Shutdown::Write),
            Some(batch) => {
                batch.is_last = true;
                batch.send(&self.socket)
            }
        }
    }

    /// Reads once from the socket, and passes the messages that are complete now to `take`.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        let (length, received_at) = self.reader.read(&self.socket, buffer)?;
        if length == 0 {
            return Err(ConnectionFault::PeerClosed);
        }
        take(SocketEvent::ReceivedAt(received_at));
        self.framer.push(Bytes::copy_from_slice(&buffer[..length]), DeliveryTimes::default());
        while let Some(framed) = self.framer.next()? {
            take(SocketEvent::Message(0, framed.payload));
        }
        Ok(())
    }
}

impl MessageBatch {
    /// A batch is sent once it has this many octets, even before [`Stream::send_all`].
    const MAX_WRITE: usize = 1 << 14;

    fn push(&mut self, socket: &Socket, message: &[u8]) -> io::Result<SendOutcome> {
        if self.is_blocked {
            return Ok(SendOutcome::WouldBlock);
        }
        self.octets.extend_from_slice(message);
        if self.octets.len() >= Self::MAX_WRITE {
            self.send(socket)?;
        }
        Ok(SendOutcome::Complete)
    }

    fn send(&mut self, socket: &Socket) -> io::Result<()> {
        let (taken, sent) = send(socket, &self.octets);
        self.octets.drain(..taken);
        self.is_blocked = sent? == SendOutcome::WouldBlock;
        if !self.is_blocked && std::mem::take(&mut self.is_last) {
            socket.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }
}

/// Sends octets; returns how many the kernel accepted, and whether it accepted all of them.
fn send(socket: &Socket, octets: &[u8]) -> (usize, io::Result<SendOutcome>) {
    let mut taken = 0;
    while taken < octets.len() {
        match socket.send_with_flags(&octets[taken..], libc::MSG_NOSIGNAL) {
            Ok(octets) => taken += octets,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return (taken, Ok(SendOutcome::WouldBlock)),
            Err(e) => return (taken, Err(e)),
        }
    }
    (taken, Ok(SendOutcome::Complete))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use hol_workloads::WorkloadSpec;

    use super::*;

    /// Returns both ends of a connection; `is_batching` applies to the first end.
    fn pair(is_batching: bool) -> (Stream, Socket) {
        let workload: WorkloadSpec = toml::from_str("kind = 'oneway'").unwrap();
        let (own, peer) = Socket::pair(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        own.set_nonblocking(true).unwrap();
        peer.set_nonblocking(true).unwrap();
        (Stream::new(own, workload.kind.workload().framing_fn(), is_batching, false), peer)
    }

    fn read(peer: &Socket) -> Vec<u8> {
        let mut octets = Vec::new();
        let _would_block = (&*peer).read_to_end(&mut octets);
        octets
    }

    #[test]
    fn batched_messages_are_sent_together_before_the_end() {
        let (mut stream, peer) = pair(true);
        for message in [b"one", b"two"] {
            assert_eq!(stream.send(message).unwrap(), SendOutcome::Complete);
        }
        assert_eq!(read(&peer), b"");
        stream.shutdown().unwrap();
        assert_eq!(read(&peer), b"onetwo");
        assert_eq!((&peer).read(&mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn messages_without_room_and_the_end_wait_in_order() {
        for is_batching in [false, true] {
            let (mut stream, peer) = pair(is_batching);
            let message = |number: u32| number.to_be_bytes().repeat(10_000);
            let (mut sent, mut received_at, mut had_no_room) = (0, Vec::new(), 0);
            while sent < 100 {
                match stream.send(&message(sent)).unwrap() {
                    SendOutcome::Complete => sent += 1,
                    SendOutcome::WouldBlock => {
                        had_no_room += 1;
                        received_at.extend(read(&peer));
                        stream.send_all().unwrap();
                    }
                }
            }
            assert!(had_no_room > 0);
            stream.shutdown().unwrap();
            for _ in 0..100 {
                received_at.extend(read(&peer));
                stream.send_all().unwrap();
            }
            assert_eq!(received_at, (0..100).flat_map(message).collect::<Vec<u8>>(), "{is_batching}");
            assert!(!stream.waits_for_room());
            assert_eq!((&peer).read(&mut [0; 1]).unwrap(), 0);
        }
    }
}
