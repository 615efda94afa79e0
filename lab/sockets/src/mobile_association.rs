//! An SCTP association whose host gets and loses addresses. RFC 5061 sections 5.1 and 5.3, as in Linux.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hol_system as system;
use socket2::Socket;

use crate::error::SocketsError;
use crate::host_addresses::AddressChange;
use crate::sctp_structures::{self as structures, BINDX_ADD, BINDX_REM, PEER_PRIMARY_ADDR, SOL_SCTP};
use crate::transceiver::{self, ConnectionFault, failed_to};

/// Changes the addresses of an SCTP association when the addresses of its host change.
///
/// In Linux's SCTP_AUTO_ASCONF mode the kernel itself follows the host's addresses, but half a second late. Therefore
/// each change is made explicitly when it happens (RFC 6458 section 9.1).
#[derive(Debug, Default)]
pub(crate) struct MobileAssociation {
    /// Whether the association is established. Before, there is no peer to be informed of changes. RFC 5061 section
    /// 5.1.1 C4.
    is_up: bool,
    /// Changes of the host's addresses that the peer will be told once the association is established.
    pending: Vec<AddressChange>,
    /// The last address of the association if it was removed from the host; the peer still uses it.
    removed_last: Option<IpAddr>,
}

/// An address that keeps the socket bound: Linux does not allow the last address of a socket to be removed, although an
/// association may survive without one until an ASCONF from its next address (RFC 5061 section 5.3 F1). The peer never
/// learns the anchor address.
const ANCHOR_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Adds [`ANCHOR_ADDRESS`] to a socket that is bound but not yet connected.
pub(crate) fn prepare(socket: &Socket) -> Result<(), SocketsError> {
    // The loopback interface of a namespace may be down.
    socket.set_freebind_v4(true).map_err(failed_to("set IP_FREEBIND"))?;
    bindx(socket, BINDX_ADD, ANCHOR_ADDRESS).map_err(failed_to("bind SCTP to the loopback address"))
}

impl MobileAssociation {
    /// Informs the peer of the changes of addresses that happened before the association was established.
    pub(crate) fn send_pending_changes(&mut self, socket: &Socket) -> Result<(), ConnectionFault> {
        self.is_up = true;
        std::mem::take(&mut self.pending).into_iter().try_for_each(|change| self.change(socket, change))
    }

    /// Handles an added or removed address of the host.
    pub(crate) fn change(&mut self, socket: &Socket, change: AddressChange) -> Result<(), ConnectionFault> {
        if self.is_up {
            return Ok(self.send_change(socket, change)?);
        }
        if let AddressChange::Removed(address) = change
            && own_addresses(socket)? == [address]
        {
            return Err(ConnectionFault::Protocol("the local address is gone"));
        }
        self.pending.push(change);
        Ok(())
    }

    fn send_change(&mut self, socket: &Socket, change: AddressChange) -> io::Result<()> {
        match change {
            AddressChange::Added(address) => {
                bindx(socket, BINDX_ADD, address)?;
                // Asks the peer to send there: section 5.4.
                let primary = SocketAddr::new(address, port(socket)?);
                system::set_option(
                    socket,
                    SOL_SCTP,
                    PEER_PRIMARY_ADDR,
                    &structures::encode_primary(0, primary),
                )?;
                self.removed_last.take().map_or(Ok(()), |removed| {
                    // Linux deletes the last address in the ASCONF that adds the next one. But a Linux peer
                    // refuses that, because it finds the association by this address. So a second ASCONF
                    // deletes it.
                    bindx(socket, BINDX_ADD, removed)?;
                    bindx(socket, BINDX_REM, removed)
                })
            }
            AddressChange::Removed(address) => {
                bindx(socket, BINDX_REM, address)?;
                self.removed_last = own_addresses(socket)?.is_empty().then_some(address);
                Ok(())
            }
        }
    }
}

/// Returns the addresses of a socket, without [`ANCHOR_ADDRESS`].
fn own_addresses(socket: &Socket) -> io::Result<Vec<IpAddr>> {
    let mut addresses = structures::local_addresses(socket)?;
    addresses.retain(|address| *address != ANCHOR_ADDRESS);
    Ok(addresses)
}

fn bindx(socket: &Socket, what: i32, address: IpAddr) -> io::Result<()> {
    system::set_option(socket, SOL_SCTP, what, &structures::addresses(&[address], port(socket)?))
}

fn port(socket: &Socket) -> io::Result<u16> {
    transceiver::own_port(socket).map_err(io::Error::other)
}
