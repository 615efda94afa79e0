//! Wakes the queueing disciplines of an interface after a change.
//!
//! A discipline whose packets must wait sets a timer, which a change of its rate does not move. It checks its
//! queue again when a packet is sent, so the waker sends an empty frame. The first discipline drops the
//! frame, so that it neither counts as a packet nor occupies the transmitter.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, setsockopt, socket, sockopt};

use super::{GuestError, packet_ring, tc_bpf};

/// The EtherType that IEEE 802 reserves for local experiments. IEEE 802, section 9.2.3.
pub(super) const ETHER_TYPE: u16 = 0x88b5;

/// A frame that consists only of an Ethernet header.
const FRAME: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0xb5];

/// A socket that sends empty frames to an interface, so that its queueing disciplines send waiting packets.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    /// Opens the socket. It receives nothing, because no frame with its EtherType arrives.
    pub(super) fn open(interface: u32) -> Result<Self, GuestError> {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
        // Filters see the EtherType of the socket; before Linux 5.1 not that of the frame.
        packet_ring::bind(&socket, interface, ETHER_TYPE)?;
        // On the interface of a link the frame must not take the detour through the queue.
        setsockopt(&socket, sockopt::Mark, &tc_bpf::RETURNED_MARK.cast_unsigned())?;
        Ok(Self(socket))
    }

    /// Sends an empty frame, which makes the queueing disciplines of the interface check their queues.
    pub(super) fn wake(&self) -> Result<(), GuestError> {
        send(self.0.as_raw_fd(), &FRAME, MsgFlags::empty())?;
        Ok(())
    }
}
