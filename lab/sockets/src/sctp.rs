//! One-to-one SCTP sockets (RFC 6458 section 4): a socket per association; the kernel preserves message
//! boundaries.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use hol_base::Time;
use hol_transport::Reliability;
use hol_workloads::{DeliveryOptions, Outgoing};
use socket2::{MsgHdr, Protocol, SockAddr, Socket, Type};

use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::host_addresses::AddressChange;
use crate::mobile_association::{self, MobileAssociation};
use crate::sctp_structures::{self as structures, SOL_SCTP};
use crate::transceiver::{
    self, ConnectionFault, Opener, SendOutcome, SenderState, SocketEvent, SocketProtocol, Transceiver,
    complete_or_blocked, failed_to,
};
use hol_system as system;

/// Opens SCTP associations on one-to-one sockets.
#[derive(Debug)]
pub(crate) struct Sctp {
    pub(crate) family: SocketProtocol,
    pub(crate) config: hol_sctp::Config,
    /// Number of parallel associations.
    pub(crate) associations: u16,
    /// Whether only the first address of each end is used.
    pub(crate) single_homed: bool,
    /// Whether messages are sent unordered.
    pub(crate) unordered: bool,
    pub(crate) reliability: Reliability,
}

impl Sctp {
    pub(crate) const PROTOCOL: SocketProtocol = SocketProtocol {
        name: "SCTP",
        kind: Type::STREAM,
        protocol: Protocol::SCTP,
        cure: "load its module (modprobe sctp), use sctp:socket=own, or use the kernel world (--world kernel)",
    };

    /// Returns the addresses of an end that are used: only the first one if single-homed.
    fn addresses<'s>(&self, site: &'s EndAddresses) -> &'s [IpAddr] {
        if self.single_homed { &site.addresses[..1] } else { &site.addresses }
    }

    /// Opens a socket that is bound to all used addresses, with all options. Accepted sockets inherit both.
    fn open_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = self.family.open_socket(site)?;
        for option in structures::socket_options(&self.config) {
            system::set_option(&socket, SOL_SCTP, option.name, &option.value)
                .map_err(failed_to(option.doing))?;
        }
        structures::set_buffers(&socket, &self.config)?;
        if let [_, more @ ..] = self.addresses(site)
            && !more.is_empty()
        {
            let more = structures::addresses(more, transceiver::own_port(&socket)?);
            system::set_option(&socket, SOL_SCTP, structures::BINDX_ADD, &more)
                .map_err(failed_to("bind SCTP to all addresses"))?;
        }
        Ok(socket)
    }

    /// Creates the association that runs on this socket.
    pub(crate) fn association(&self, socket: Socket, peer: &EndAddresses) -> Association {
        let control = structures::send_ancillary_data(self.unordered, self.reliability);
        let primary = peer.addresses[0];
        let mobility = self.config.addip.then(MobileAssociation::default);
        let parts = BTreeMap::new();
        Association { socket, number: 0, primary, mobility, control, config: self.config.clone(), parts }
    }
}

impl Opener for Sctp {
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = self.open_socket(server)?;
        socket.listen(self.associations.into()).map_err(failed_to("listen"))?;
        Ok(socket)
    }

    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = self.open_socket(client)?;
        if self.config.addip {
            mobile_association::prepare(&socket)?;
        }
        let all = structures::addresses(self.addresses(server), server.port);
        transceiver::check_connecting(
            system::set_option(&socket, SOL_SCTP, structures::CONNECTX, &all),
            server,
        )?;
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver> {
        Box::new(self.association(socket, peer))
    }
}

/// One end of an association over the kernel's SCTP.
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) socket: Socket,
    /// Number of the association on a one-to-many socket; otherwise 0.
    pub(crate) number: u32,
    /// The primary address of the peer, which is used as long as it is reachable.
    primary: IpAddr,
    /// The state of an association whose host may change its addresses; `None` for other associations.
    mobility: Option<MobileAssociation>,
    /// Ancillary data that is sent with each message; only the stream differs.
    control: Vec<u8>,
    config: hol_sctp::Config,
    /// Partially delivered messages, by stream and whether they are unordered. With interleaving there may be one
    /// ordered and one unordered message per stream.
    parts: BTreeMap<(u16, bool), BytesMut>,
}

impl Association {
    /// Makes the kernel prefer the peer's first address.
    pub(crate) fn set_primary(&self, port: u16) -> io::Result<()> {
        let primary = structures::encode_primary(self.number, SocketAddr::new(self.primary, port));
        let set = || system::set_option(&self.socket, SOL_SCTP, structures::PRIMARY_ADDR, &primary);
        if !self.config.interleaving {
            return set();
        }
        // With I-DATA, the notification of this change would be the last wake-up before the next chunk has been read:
        // Linux marks the socket as signalled although a system call owns it (`net/sctp/stream_interleave.c`
        // sctp_enqueue_event, unlike `ulpqueue.c` sctp_ulpq_tail_event).
        structures::set_path_notifications(&self.socket, self.number, false)?;
        set()?;
        structures::set_path_notifications(&self.socket, self.number, true)
    }

    /// Sets the priorities or weights of the streams.
    pub(crate) fn set_stream_values(&self) -> io::Result<()> {
        structures::stream_values(&self.config, self.number).iter().try_for_each(|value| {
            system::set_option(&self.socket, SOL_SCTP, structures::STREAM_SCHEDULER_VALUE, value)
        })
    }

    /// Sends a message; `to` is the peer's address if the association has no number yet.
    pub(crate) fn send_to(&mut self, to: Option<&SockAddr>, message: &Outgoing) -> io::Result<SendOutcome> {
        let of_its_own = |delivery: DeliveryOptions| {
            structures::send_ancillary_data(delivery.unordered, delivery.reliability)
        };
        let mut own = message.delivery.map(of_its_own);
        let control = own.as_mut().unwrap_or(&mut self.control);
        structures::set_association_and_stream(control, self.number, message.stream);
        let parts = [IoSlice::new(&message.payload)];
        let header = MsgHdr::new().with_buffers(&parts).with_control(control);
        let header = match to {
            Some(to) => header.with_addr(to),
            None => header,
        };
        complete_or_blocked(self.socket.sendmsg(&header, libc::MSG_NOSIGNAL))
    }
}

impl Transceiver for Association {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn opened(&mut self) -> Result<(), ConnectionFault> {
        let port = self.socket.peer_addr()?.as_socket().map_or(0, |peer| peer.port());
        self.set_primary(port)?;
        self.set_stream_values()?;
        self.mobility.as_mut().map_or(Ok(()), |mobility| mobility.send_pending_changes(&self.socket))
    }

    fn change_address(&mut self, change: AddressChange) -> Result<(), ConnectionFault> {
        self.mobility.as_mut().map_or(Ok(()), |mobility| mobility.change(&self.socket, change))
    }

    fn send(&mut self, message: &Outgoing, _now: Time) -> io::Result<SendOutcome> {
        self.send_to(None, message)
    }

    fn receive(
        &mut self,
        buffer: &mut [u8],
        _now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        let mut control = [0; structures::RECEIVE_INFORMATION];
        let read = system::receive(&self.socket, buffer, &mut control)?;
        let data = &buffer[..read.length];
        if read.flags & structures::MSG_NOTIFICATION != 0 {
            return structures::parse_notification(data).map(|path| path.into_iter().for_each(take));
        }
        if data.is_empty() {
            return Err(ConnectionFault::PeerClosed);
        }
        let (stream, unordered) = structures::stream(&control[..read.control_length]);
        let part = self.parts.entry((stream, unordered)).or_default();
        part.extend_from_slice(data);
        if read.flags & libc::MSG_EOR != 0 {
            take(SocketEvent::Message(stream, part.split().freeze()));
        }
        Ok(())
    }

    fn counts(&self) -> SocketCounters {
        structures::counts(&self.socket, self.number)
    }

    fn sending(&self) -> Option<SenderState> {
        structures::sender_state(&self.socket, self.number)
    }
}
