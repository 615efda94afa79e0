//! Messages to the kernel's routing subsystem: a header, attributes, an acknowledgment. RFC 3549.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

use super::Trouble;

/// linux/netlink.h
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// Create what the message describes.
pub(super) const CREATE: u16 = 0x400;
/// … in the place of what is there.
pub(super) const REPLACE: u16 = 0x100;
const NLMSG_ERROR: u16 = 2;
const HEADER: usize = 16;

/// A message under construction.
#[derive(Debug)]
pub(super) struct Message {
    octets: Vec<u8>,
}

impl Message {
    /// A request of type `kind`, with the structure that belongs to it.
    pub(super) fn new(kind: u16, flags: u16, structure: &[u8]) -> Self {
        let flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut octets = vec![0; HEADER];
        octets[4..6].copy_from_slice(&kind.to_ne_bytes());
        octets[6..8].copy_from_slice(&flags.to_ne_bytes());
        octets.extend_from_slice(structure);
        let mut message = Self { octets };
        message.pad();
        message
    }

    /// Adds an attribute.
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.attribute(kind, |octets| octets.octets.extend_from_slice(value));
        self
    }

    /// Adds an attribute that holds a number.
    pub(super) fn with_number(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that holds a name.
    pub(super) fn with_name(self, kind: u16, name: &str) -> Self {
        self.with(kind, &[name.as_bytes(), &[0]].concat())
    }

    /// Adds an attribute that begins with `structure` and goes on with what `fill` adds.
    pub(super) fn with_nested(
        mut self,
        kind: u16,
        structure: &[u8],
        fill: impl FnOnce(Self) -> Self,
    ) -> Self {
        self.attribute(kind, |message| {
            message.octets.extend_from_slice(structure);
            message.pad();
            let inner = std::mem::replace(message, Self { octets: Vec::new() });
            *message = fill(inner);
        });
        self
    }

    fn attribute(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.octets.len();
        self.octets.extend_from_slice(&[0; 4]);
        fill(self);
        let length = (self.octets.len() - start) as u16;
        self.octets[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.octets[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.pad();
    }

    fn pad(&mut self) {
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.octets.len() as u32;
        self.octets[..4].copy_from_slice(&length.to_ne_bytes());
        self.octets
    }
}

/// A socket to the routing subsystem of one namespace.
#[derive(Debug)]
pub(super) struct Routing(OwnedFd);

impl Routing {
    /// For the namespace of this thread.
    pub(super) fn here() -> Result<Self, Trouble> {
        let protocol = SockProtocol::NetlinkRoute;
        Ok(Self(socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?))
    }

    /// Has something done; `doing` names it in an error.
    pub(super) fn tell(&self, message: Message, doing: &str) -> Result<(), Trouble> {
        self.send(message)?;
        let mut buffer = [0; 8192];
        let length = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let (kind, body) = messages(&buffer[..length]).next().ok_or("the kernel answered nothing")?;
        match (kind, error_of(body)) {
            (NLMSG_ERROR, Some(0)) => Ok(()),
            (NLMSG_ERROR, Some(code)) => {
                Err(format!("cannot {doing}: {}", nix::Error::from_raw(-code)).into())
            }
            _ => Err(format!("cannot {doing}: the kernel answered something else").into()),
        }
    }

    fn send(&self, message: Message) -> Result<(), Trouble> {
        let kernel = NetlinkAddr::new(0, 0);
        sendto(self.0.as_raw_fd(), &message.finish(), &kernel, MsgFlags::empty())?;
        Ok(())
    }
}

fn error_of(body: &[u8]) -> Option<i32> {
    Some(i32::from_ne_bytes(body.get(..4)?.try_into().ok()?))
}

/// Type and body of each message.
fn messages(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    pieces(octets, HEADER, |head| {
        let length = u32::from_ne_bytes(head[..4].try_into().expect("4 octets"));
        (length as usize, u16::from_ne_bytes([head[4], head[5]]))
    })
}

/// Type and value of each attribute.
#[cfg(test)]
fn attributes(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NESTED: u16 = 0x8000;
    pieces(octets, 4, |head| {
        let length = u16::from_ne_bytes([head[0], head[1]]);
        (length.into(), u16::from_ne_bytes([head[2], head[3]]) & !NESTED)
    })
}

/// Cuts octets into pieces that begin with their length and type.
fn pieces(
    mut octets: &[u8],
    head: usize,
    read: impl Fn(&[u8]) -> (usize, u16),
) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = read(octets.get(..head)?);
        let piece = octets.get(head..length)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_nest_and_come_out_again() {
        let message = Message::new(16, CREATE, &[0; 16])
            .with_name(3, "up")
            .with_nested(18, &[], |inner| inner.with(1, b"veth").with_number(2, 7));
        let octets = message.finish();
        let (kind, body) = messages(&octets).next().unwrap();
        assert_eq!((kind, octets.len()), (16, octets[0].into()));
        let outer: Vec<_> = attributes(&body[16..]).collect();
        assert_eq!(outer[0], (3, &b"up\0"[..]));
        let inner: Vec<_> = attributes(outer[1].1).collect();
        assert_eq!(inner, [(1, &b"veth"[..]), (2, &7_u32.to_ne_bytes()[..])]);
    }

    #[test]
    fn a_truncated_message_ends_the_list() {
        assert_eq!(messages(&[20, 0, 0, 0, 2, 0]).count(), 0);
        assert_eq!(attributes(&[9, 0, 1, 0, 5]).count(), 0);
    }
}
