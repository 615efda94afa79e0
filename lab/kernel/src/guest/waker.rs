//! Wakes the queueing disciplines of an interface after a change.
//!
//! A discipline whose packets must wait sets a timer, which a change of its rate does not move. It checks its
//! queue again when a packet is sent, so the waker sends an empty frame. The first discipline drops the
//! frame, so that it neither counts as a packet nor occupies the transmitter.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, setsockopt, socket, sockopt};

use super::{GuestError, packet_ring, tc_bpf};

/// The EtherType for local experiments. IEEE 802, section 9.2.3.
pub(super) const ETHER_TYPE: u16 = 0x88b5;

/// An Ethernet header.
const FRAME: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0xb5];

/// A socket that sends frames to an interface.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    /// Opens the socket, which receives nothing, because no such frame arrives.
    pub(super) fn open(interface: u32) -> Result<Self, GuestError> {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
        // Filters see the EtherType of the socket; before Linux 5.1 not that of the frame.
        packet_ring::bind(&socket, interface, ETHER_TYPE)?;
        // On the interface of a link the frame must not take the detour through the queue.
        setsockopt(&socket, sockopt::Mark, &tc_bpf::RETURNED_MARK.cast_unsigned())?;
        Ok(Self(socket))
    }

    /// Makes the queueing disciplines check their queues: sends them an empty frame.
    pub(super) fn wake(&self) -> Result<(), GuestError> {
        send(self.0.as_raw_fd(), &FRAME, MsgFlags::empty())?;
        Ok(())
    }
}
