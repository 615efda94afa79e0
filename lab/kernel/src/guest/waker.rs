//! Wakes the queueing disciplines of an interface after a change.
//!
//! A discipline whose packets must wait sets a timer, which a change of its rate does not move. It checks its
//! queue again when a packet is sent, so the waker sends an empty frame, which every receiver drops.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, setsockopt, socket, sockopt};

use super::{GuestError, packet_ring, tc_bpf};

/// An Ethernet header with the EtherType for local experiments. IEEE 802, section 9.2.3.
const FRAME: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0xb5];

/// A socket that sends frames to an interface.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    /// Opens the socket, which receives nothing.
    pub(super) fn open(interface: u32) -> Result<Self, GuestError> {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
        packet_ring::bind(&socket, interface, 0)?;
        // On the interface of a link the frame must not take the detour through the queue.
        setsockopt(&socket, sockopt::Mark, &tc_bpf::RETURNED_MARK.cast_unsigned())?;
        Ok(Self(socket))
    }

    /// Sends a frame.
    pub(super) fn wake(&self) -> Result<(), GuestError> {
        send(self.0.as_raw_fd(), &FRAME, MsgFlags::empty())?;
        Ok(())
    }
}
