//! One-to-many SCTP sockets (RFC 6458 section 3): messages may be sent before the association is up, together
//! with the COOKIE ECHO.
//!
//! A client still has a socket per association, because each may have its own port. A server has one, and
//! branches off each association (section 9.2) to its own socket.

use std::io;
use std::net::SocketAddr;

use hol_base::Time;
use hol_system as system;
use hol_workloads::Outgoing;
use socket2::{MsgHdr, SockAddr, Socket, Type};

use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::sctp::{Association, Sctp};
use crate::sctp_structures as structures;
use crate::transceiver::{
    ConnectionFault, Opener, SendOutcome, SenderState, SocketEvent, SocketProtocol, Transceiver,
};

/// Opens SCTP associations on one-to-many sockets.
#[derive(Debug)]
pub(crate) struct OneToMany(pub(crate) Sctp);

impl OneToMany {
    pub(crate) const PROTOCOL: SocketProtocol = SocketProtocol { kind: Type::SEQPACKET, ..Sctp::PROTOCOL };
}

impl Opener for OneToMany {
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = self.0.listen(server)?;
        structures::subscribe_to_shutdown(&socket)?;
        Ok(socket)
    }

    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = self.0.connect(client, server)?;
        structures::subscribe_to_shutdown(&socket)?;
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver> {
        let to = SocketAddr::new(peer.addresses[0], peer.port);
        Box::new(Member { association: self.0.association(socket, peer), to })
    }

    /// Returns true, because Linux branches off an association only within one network namespace.
    fn accepts_in_server_network(&self) -> bool {
        true
    }

    fn accept(
        &self,
        listener: &Socket,
        client: &EndAddresses,
        _: bool,
    ) -> io::Result<(Option<SocketAddr>, Box<dyn Transceiver>)> {
        let number = loop {
            let mut notification = [0; structures::LONGEST_NOTIFICATION];
            let read = system::receive(listener, &mut notification, &mut [])?;
            if read.flags & structures::MSG_NOTIFICATION != 0
                && let Some(number) = structures::established_association(&notification[..read.length])
            {
                break number;
            }
        };
        let socket = system::peel_off(listener, number)?;
        let peer = socket.peer_addr()?.as_socket();
        Ok((peer, Box::new(Branch(self.0.association(socket, client)))))
    }
}

/// An association on a one-to-many socket, which has no other association.
#[derive(Debug)]
struct Member {
    association: Association,
    /// The first address of the peer, to which messages are sent until the association has a number.
    to: SocketAddr,
}

impl Transceiver for Member {
    fn socket(&self) -> &Socket {
        self.association.socket()
    }

    /// Returns false, because a one-to-many socket is always writable.
    fn is_open_when_writable(&self) -> bool {
        false
    }

    fn opened(&mut self) -> Result<(), ConnectionFault> {
        self.association.set_primary(self.to.port())?;
        Ok(self.association.set_stream_values()?)
    }

    /// Sends a message; specifies the peer's address only until the association has a number. A message with an address
    /// would start a new association if this one had ended. RFC 6458 section 3.1.4.
    fn send(&mut self, message: &Outgoing, _now: Time) -> io::Result<SendOutcome> {
        let to = SockAddr::from(self.to);
        let is_up = self.association.number != 0;
        self.association.send_to(Some(&to).filter(|_| !is_up), message)
    }

    fn receive(
        &mut self,
        buffer: &mut [u8],
        now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        let mut number = self.association.number;
        let received = self.association.receive(buffer, now, &mut |event| {
            if let SocketEvent::Up(own) = event {
                number = own;
            }
            take(event);
        });
        self.association.number = number;
        received
    }

    fn shutdown(&mut self, _now: Time) -> io::Result<()> {
        shut_down(&self.association)
    }

    fn counts(&self) -> SocketCounters {
        self.association.counts()
    }

    fn sending(&self) -> Option<SenderState> {
        self.association.sending()
    }
}

/// An association branched off from a one-to-many socket, with its own socket. It must be ended like an association on
/// a one-to-many socket.
#[derive(Debug)]
struct Branch(Association);

impl Transceiver for Branch {
    fn socket(&self) -> &Socket {
        self.0.socket()
    }

    fn opened(&mut self) -> Result<(), ConnectionFault> {
        self.0.opened()
    }

    fn send(&mut self, message: &Outgoing, now: Time) -> io::Result<SendOutcome> {
        self.0.send(message, now)
    }

    fn receive(
        &mut self,
        buffer: &mut [u8],
        now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        self.0.receive(buffer, now, take)
    }

    fn shutdown(&mut self, _now: Time) -> io::Result<()> {
        shut_down(&self.0)
    }

    fn counts(&self) -> SocketCounters {
        self.0.counts()
    }

    fn sending(&self) -> Option<SenderState> {
        self.0.sending()
    }
}

/// Sends SCTP_EOF with an empty message to shut the association down, because `shutdown` does nothing on one-to-many
/// sockets. RFC 6458 section 3.1.5.
fn shut_down(association: &Association) -> io::Result<()> {
    let control = structures::eof_sndinfo(association.number);
    let end = MsgHdr::new().with_control(&control);
    association.socket.sendmsg(&end, libc::MSG_NOSIGNAL).map(|_| ())
}
