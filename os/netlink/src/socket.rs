//! A netlink socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::sockopt::{RcvBufForce, SndBufForce};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, getsockname, recv, sendto,
    setsockopt, socket,
};

use crate::message::{ACK, DUMP};
use crate::{KernelMessage, Message, messages};

/// Size of the receive buffer in octets, more than the kernel's maximum of 32 KiB per datagram.
const BUFFER_SIZE: usize = 64 * 1024;

/// A netlink socket to one subsystem of the kernel, in the network namespace of the thread that created it.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens a socket to the routing subsystem, rtnetlink(7).
    pub fn routing() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute, 0)
    }

    /// Opens a socket that receives the events of the routing subsystem for `groups`, one bit each.
    pub fn routing_events(groups: u32) -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute, groups)
    }

    /// Opens a socket to the subsystems that use generic netlink.
    pub fn generic() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkGeneric, 0)
    }

    /// Opens a socket to the netfilter subsystems, such as nftables.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkNetFilter, 0)
    }

    /// Opens a socket that receives the events of the netfilter subsystems for `groups`, one bit each.
    pub fn netfilter_events(groups: u32) -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkNetFilter, groups)
    }

    /// Opens a socket whose port the kernel chooses.
    fn open(protocol: SockProtocol, groups: u32) -> io::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self(socket))
    }

    /// Returns the port of the socket, which is the source of its messages.
    pub fn port(&self) -> io::Result<u32> {
        Ok(getsockname::<NetlinkAddr>(self.0.as_raw_fd())?.pid())
    }

    /// Sets the sizes in octets of the buffers for sent datagrams and for waiting answers. Needs `CAP_NET_ADMIN`.
    pub fn set_buffers(&self, send_size: usize, receive_size: usize) -> io::Result<()> {
        setsockopt(&self.0, SndBufForce, &send_size)?;
        Ok(setsockopt(&self.0, RcvBufForce, &receive_size)?)
    }

    /// Sends messages to the kernel. On return, the kernel has processed them, and its answers wait in the
    /// socket.
    pub fn send(&self, octets: &[u8]) -> io::Result<()> {
        sendto(self.0.as_raw_fd(), octets, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        Ok(())
    }

    /// Passes all waiting answers to `take`. Returns the error `ENOBUFS` afterwards if the kernel has dropped
    /// answers for lack of room.
    pub fn read_answers(&self, mut take: impl FnMut(KernelMessage<'_>)) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_SIZE];
        let mut lost = Ok(());
        loop {
            match recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => messages(&buffer[..length]).for_each(&mut take),
                Err(nix::Error::EAGAIN) => return lost,
                Err(nix::Error::ENOBUFS) => lost = Err(nix::Error::ENOBUFS.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends one message and waits until the kernel has executed it.
    pub fn execute(&self, message: Message) -> io::Result<()> {
        self.get(message, |_| {})
    }

    /// Sends one request, and passes the body of its answer to `take`.
    pub fn get(&self, message: Message, take: impl FnMut(&[u8])) -> io::Result<()> {
        self.request(&message.with_flags(ACK).finish(0), take).map(drop)
    }

    /// Requests a list, and passes the body of each entry to `take`. If the list changed during the request,
    /// requests it again.
    pub fn list(&self, message: Message, take: impl FnMut(&[u8])) -> io::Result<()> {
        const MAX_ATTEMPTS: usize = 16;
        let request = message.with_flags(DUMP).finish(0);
        for _ in 0..MAX_ATTEMPTS {
            let mut entries = Vec::new();
            if self.request(&request, |body| entries.push(body.to_vec()))? == Answer::Complete {
                entries.iter().map(Vec::as_slice).for_each(take);
                return Ok(());
            }
        }
        Err(io::Error::new(
            io::ErrorKind::Interrupted,
            format!(
                "the list changed during each of {MAX_ATTEMPTS} attempts to read it; try again when fewer changes occur"
            ),
        ))
    }

    /// Requests a list like [`Self::list`], but passes entries to `take` as they arrive, which suits long lists.
    /// Entries that change during the request may appear twice or not at all.
    pub fn stream_list(&self, message: Message, take: impl FnMut(&[u8])) -> io::Result<()> {
        self.request(&message.with_flags(DUMP).finish(0), take).map(drop)
    }

    fn request(&self, request: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<Answer> {
        self.send(request)?;
        let (mut outcome, mut is_interrupted) = (None, false);
        self.read_answers(|answer| {
            is_interrupted |= answer.is_interrupted;
            match answer.outcome() {
                Some(error) => outcome = Some(error),
                None => take(answer.body),
            }
        })?;
        match outcome {
            Some(0) if is_interrupted => Ok(Answer::Interrupted),
            Some(0) => Ok(Answer::Complete),
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel's answer is incomplete")),
        }
    }
}

/// The kernel's answer to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Complete,
    /// The list changed while the kernel sent it.
    Interrupted,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
