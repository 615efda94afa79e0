//! The socket to the kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::sockopt::{RcvBufForce, SndBufForce};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, getsockname, recv, sendto,
    setsockopt, socket,
};

use crate::message::{ACK, DUMP};
use crate::{Message, Received, messages};

/// The kernel's datagrams have 32 KiB at most.
const LONGEST_DATAGRAM: usize = 64 * 1024;

/// A socket to one subsystem of the kernel, in the network namespace of the thread that made it.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// A socket to the routing subsystem, rtnetlink(7).
    pub fn routing() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute, 0)
    }

    /// A socket that hears what the routing subsystem tells to `groups`, a bit each.
    pub fn routing_events(groups: u32) -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute, groups)
    }

    /// A socket to the subsystems that have no protocol of their own.
    pub fn generic() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkGeneric, 0)
    }

    /// A socket to the netfilter subsystems, such as nftables.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkNetFilter, 0)
    }

    /// A socket that hears what those subsystems tell to `groups`, a bit each.
    pub fn netfilter_events(groups: u32) -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkNetFilter, groups)
    }

    /// The kernel chooses its port.
    fn open(protocol: SockProtocol, groups: u32) -> io::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self(socket))
    }

    /// The port that what it sends comes from.
    pub fn port(&self) -> io::Result<u32> {
        Ok(getsockname::<NetlinkAddr>(self.0.as_raw_fd())?.pid())
    }

    /// Lets datagrams of so many octets out, and answers of so many wait. Needs `CAP_NET_ADMIN`.
    pub fn set_buffers(&self, sent: usize, waiting: usize) -> io::Result<()> {
        setsockopt(&self.0, SndBufForce, &sent)?;
        Ok(setsockopt(&self.0, RcvBufForce, &waiting)?)
    }

    /// Hands messages to the kernel; when this returns, it has dealt with them, and its answers wait.
    pub fn send(&self, octets: &[u8]) -> io::Result<()> {
        sendto(self.0.as_raw_fd(), octets, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        Ok(())
    }

    /// Takes all answers that wait. If there were more than can wait, says so behind those that did: `ENOBUFS`.
    pub fn answers(&self, mut take: impl FnMut(Received<'_>)) -> io::Result<()> {
        let mut buffer = vec![0; LONGEST_DATAGRAM];
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

    /// Has the kernel do what one message says.
    pub fn tell(&self, message: Message) -> io::Result<()> {
        self.get(message, |_| {})
    }

    /// Has the kernel say what one message asks for; `take` gets the body of its answer.
    pub fn get(&self, message: Message, take: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(&message.flagged(ACK).finish(0), take).map(drop)
    }

    /// Has the kernel list what one message asks for; `take` gets the body of each entry. A list that changed meanwhile is
    /// asked for again.
    pub fn list(&self, message: Message, take: impl FnMut(&[u8])) -> io::Result<()> {
        const ATTEMPTS: usize = 16;
        let question = message.flagged(DUMP).finish(0);
        for _ in 0..ATTEMPTS {
            let mut entries = Vec::new();
            if self.ask(&question, |body| entries.push(body.to_vec()))? == Answer::Whole {
                entries.iter().map(Vec::as_slice).for_each(take);
                return Ok(());
            }
        }
        Err(io::Error::new(
            io::ErrorKind::Interrupted,
            format!(
                "what the kernel was to list changed each of {ATTEMPTS} times; try again when less changes"
            ),
        ))
    }

    /// The same, entry by entry as they come, for lists that are long: what changes meanwhile may come twice, or not at all.
    pub fn look_through(&self, message: Message, take: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(&message.flagged(DUMP).finish(0), take).map(drop)
    }

    fn ask(&self, question: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<Answer> {
        self.send(question)?;
        let (mut outcome, mut is_interrupted) = (None, false);
        self.answers(|answer| {
            is_interrupted |= answer.is_interrupted;
            match answer.outcome() {
                Some(error) => outcome = Some(error),
                None => take(answer.body),
            }
        })?;
        match outcome {
            Some(0) if is_interrupted => Ok(Answer::Interrupted),
            Some(0) => Ok(Answer::Whole),
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel did not answer to the end")),
        }
    }
}

/// What came in answer to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Whole,
    /// What it tells has changed since it began.
    Interrupted,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
