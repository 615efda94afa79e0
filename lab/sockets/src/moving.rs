//! An association whose host gets and loses addresses. RFC 5061 sections 5.1 and 5.3, as Linux does it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hol_system as system;
use socket2::Socket;

use crate::error::SocketsError;
use crate::presence::Change;
use crate::sctp_structures::{self as structures, BINDX_ADD, BINDX_REM, PEER_PRIMARY_ADDR, SOL_SCTP};
use crate::transceiver::{self, Fault, refused};

/// What an association has of its host.
///
/// Linux has a mode in which the kernel follows the host's addresses by itself (SCTP_AUTO_ASCONF), but it waits half a second
/// before it does. So this says each change at its time (RFC 6458 section 9.1).
#[derive(Debug, Default)]
pub(crate) struct Moving {
    /// Until the association is up there is nobody to tell. RFC 5061 section 5.1.1 C4.
    is_up: bool,
    waiting: Vec<Change>,
    /// Went as the last one, and the peer has it still.
    left: Option<IpAddr>,
}

/// Linux lets nobody remove the last address of a socket, though the association may outlive it: an ASCONF from the next one
/// moves it (section 5.3 F1). With this the socket always has one more. It never leaves the host, so the peer is not told.
const ANCHOR: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Prepares a socket that is bound, and not connected yet.
pub(crate) fn prepare(socket: &Socket) -> Result<(), SocketsError> {
    // A namespace may have its loopback interface switched off.
    socket.set_freebind_v4(true).map_err(refused("set IP_FREEBIND"))?;
    bindx(socket, BINDX_ADD, ANCHOR).map_err(refused("bind SCTP to the loopback address"))
}

impl Moving {
    /// The association is up: the peer is told of what has changed meanwhile.
    pub(crate) fn begin(&mut self, socket: &Socket) -> Result<(), Fault> {
        self.is_up = true;
        std::mem::take(&mut self.waiting).into_iter().try_for_each(|change| self.change(socket, change))
    }

    /// The host has an address more, or less.
    pub(crate) fn change(&mut self, socket: &Socket, change: Change) -> Result<(), Fault> {
        if self.is_up {
            return Ok(self.tell(socket, change)?);
        }
        if let Change::Went(address) = change
            && own(socket)? == [address]
        {
            return Err(Fault::Protocol("the local address is gone"));
        }
        self.waiting.push(change);
        Ok(())
    }

    fn tell(&mut self, socket: &Socket, change: Change) -> io::Result<()> {
        match change {
            Change::Came(address) => {
                bindx(socket, BINDX_ADD, address)?;
                // The peer is asked to send to there: section 5.3 G4.
                let primary = SocketAddr::new(address, port(socket)?);
                system::set_option(socket, SOL_SCTP, PEER_PRIMARY_ADDR, &structures::primary(0, primary))?;
                self.left.take().map_or(Ok(()), |left| {
                    // Linux deletes the last address in the ASCONF that adds the next. But its peer refuses to, since it finds the
                    // association by that address; so it is asked once more.
                    bindx(socket, BINDX_ADD, left)?;
                    bindx(socket, BINDX_REM, left)
                })
            }
            Change::Went(address) => {
                bindx(socket, BINDX_REM, address)?;
                self.left = own(socket)?.is_empty().then_some(address);
                Ok(())
            }
        }
    }
}

/// What a socket is bound to, but for the anchor.
fn own(socket: &Socket) -> io::Result<Vec<IpAddr>> {
    let mut addresses = structures::local_addresses(socket)?;
    addresses.retain(|address| *address != ANCHOR);
    Ok(addresses)
}

fn bindx(socket: &Socket, what: i32, address: IpAddr) -> io::Result<()> {
    system::set_option(socket, SOL_SCTP, what, &structures::addresses(&[address], port(socket)?))
}

fn port(socket: &Socket) -> io::Result<u16> {
    transceiver::own_port(socket).map_err(io::Error::other)
}
