//! SCTP in the one-to-one style (RFC 6458 section 4): a socket an association, and the kernel keeps messages whole.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::BytesMut;
use hol_transport::Reliability;
use hol_workloads::{Outgoing, Terms};
use socket2::{MsgHdr, Protocol, Socket, Type};

use crate::assignment::{Counts, Site, SocketsError};
use crate::sctp_structures::{self as structures, SOL_SCTP};
use crate::transceiver::{self, Family, Fault, Heard, Opener, Sent, Transceiver, refused, whole_or_nothing};
use hol_system as system;

/// Opens SCTP associations.
#[derive(Debug)]
pub(crate) struct Sctp {
    pub(crate) config: hol_sctp::Config,
    /// How many there are.
    pub(crate) associations: u16,
    pub(crate) single_homed: bool,
    pub(crate) unordered: bool,
    pub(crate) reliability: Reliability,
}

impl Sctp {
    const FAMILY: Family = Family {
        name: "SCTP",
        kind: Type::STREAM,
        protocol: Protocol::SCTP,
        cure: "load its module (modprobe sctp), or use the kernel world (--world kernel)",
    };

    /// Those of an end's addresses that take part.
    fn addresses<'s>(&self, site: &'s Site) -> &'s [Ipv4Addr] {
        if self.single_homed { &site.addresses[..1] } else { &site.addresses }
    }

    /// A socket that is bound to all of them and behaves as asked; what a listener accepts inherits it.
    fn socket(&self, site: &Site) -> Result<Socket, SocketsError> {
        let socket = Self::FAMILY.socket(site)?;
        for option in structures::options(&self.config) {
            system::set_option(&socket, SOL_SCTP, option.name, &option.value)
                .map_err(refused(option.doing))?;
        }
        structures::set_buffers(&socket, &self.config)?;
        if let [_, more @ ..] = self.addresses(site)
            && !more.is_empty()
        {
            let more = structures::addresses(more, transceiver::own_port(&socket)?);
            system::set_option(&socket, SOL_SCTP, structures::BINDX_ADD, &more)
                .map_err(refused("bind SCTP to all addresses"))?;
        }
        Ok(socket)
    }
}

impl Opener for Sctp {
    fn listen(&self, server: &Site) -> Result<Socket, SocketsError> {
        let socket = self.socket(server)?;
        socket.listen(self.associations.into()).map_err(refused("listen"))?;
        Ok(socket)
    }

    fn connect(&self, client: &Site, server: &Site) -> Result<Socket, SocketsError> {
        let socket = self.socket(client)?;
        let all = structures::addresses(self.addresses(server), server.port);
        transceiver::begin(system::set_option(&socket, SOL_SCTP, structures::CONNECTX, &all), server)?;
        Ok(socket)
    }

    fn transceiver(&self, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        let control = structures::send_information(self.unordered, self.reliability);
        let primary = peer.addresses[0];
        Box::new(Association { socket, primary, control, partial: BytesMut::new() })
    }
}

/// One end of an association.
#[derive(Debug)]
struct Association {
    socket: Socket,
    /// The peer's address that is to be used while it works.
    primary: Ipv4Addr,
    /// What goes with each message, but for the stream.
    control: Vec<u8>,
    /// What has come of a message that is delivered in parts.
    partial: BytesMut,
}

impl Transceiver for Association {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn opened(&mut self) -> Result<(), Fault> {
        let port = self.socket.peer_addr()?.as_socket().map_or(0, |peer| peer.port());
        let primary = structures::primary(SocketAddrV4::new(self.primary, port));
        Ok(system::set_option(&self.socket, SOL_SCTP, structures::PRIMARY_ADDR, &primary)?)
    }

    fn send(&mut self, message: &Outgoing) -> io::Result<Sent> {
        let of_its_own = |terms: Terms| structures::send_information(terms.unordered, terms.reliability);
        let mut own = message.terms.map(of_its_own);
        let control = own.as_mut().unwrap_or(&mut self.control);
        structures::set_stream(control, message.stream);
        let parts = [IoSlice::new(&message.payload)];
        let message = MsgHdr::new().with_buffers(&parts).with_control(control);
        whole_or_nothing(self.socket.sendmsg(&message, libc::MSG_NOSIGNAL))
    }

    fn receive(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        let mut control = [0; structures::RECEIVE_INFORMATION];
        let read = system::receive(&self.socket, buffer, &mut control)?;
        let data = &buffer[..read.length];
        if read.flags & structures::MSG_NOTIFICATION != 0 {
            return structures::notification(data).map(|path| path.into_iter().for_each(take));
        }
        if data.is_empty() {
            return Err(Fault::PeerClosed);
        }
        self.partial.extend_from_slice(data);
        if read.flags & libc::MSG_EOR != 0 {
            let stream = structures::stream(&control[..read.control_length]);
            take(Heard::Message(stream, self.partial.split().freeze()));
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        structures::counts(&self.socket)
    }
}
