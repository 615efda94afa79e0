//! Parses netlink messages.

use crate::message::HEADER_LENGTH;

/// Message types of linux/netlink.h: `NLMSG_ERROR` contains a result, `NLMSG_DONE` ends a list.
const ERROR_MESSAGE: u16 = 2;
const DONE_MESSAGE: u16 = 3;
/// Flag of each message of a list that changed while the kernel sent it (`NLM_F_DUMP_INTR`).
const INTERRUPTED_FLAG: u16 = 0x10;
/// Flag in the type of an attribute with nested attributes.
const NESTED_FLAG: u16 = 0x8000;

/// A message from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelMessage<'a> {
    /// Type of the message.
    pub kind: u16,
    /// True if the message belongs to a list that changed while the kernel sent it, so that the list may be
    /// incomplete.
    pub is_interrupted: bool,
    /// Sequence number of the message that this message answers.
    pub sequence: u32,
    /// Port of the socket that sent the request. If the message reports a change, port of the socket that caused
    /// the change.
    pub port: u32,
    /// The octets that follow the message header.
    pub body: &'a [u8],
}

impl KernelMessage<'_> {
    /// Returns the result of a request as an error number, 0 for success; `None` if the message contains no
    /// result. The message that ends a list may report that an error cut the list short (net/netlink/af_netlink.c,
    /// `netlink_dump_done`).
    pub fn outcome(&self) -> Option<i32> {
        let code = self.body.first_chunk().map(|octets| -i32::from_ne_bytes(*octets));
        match self.kind {
            ERROR_MESSAGE => code,
            DONE_MESSAGE => Some(code.unwrap_or(0)),
            _ => None,
        }
    }
}

/// Returns the messages of a datagram.
pub fn messages(octets: &[u8]) -> impl Iterator<Item = KernelMessage<'_>> {
    split_pieces(octets, HEADER_LENGTH, |head| {
        u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize
    })
    .map(|(head, body)| KernelMessage {
        kind: u16::from_ne_bytes([head[4], head[5]]),
        is_interrupted: u16::from_ne_bytes([head[6], head[7]]) & INTERRUPTED_FLAG != 0,
        sequence: u32::from_ne_bytes([head[8], head[9], head[10], head[11]]),
        port: u32::from_ne_bytes([head[12], head[13], head[14], head[15]]),
        body,
    })
}

/// Returns the type and the value of each attribute.
pub fn attributes(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    split_pieces(octets, 4, |head| u16::from_ne_bytes([head[0], head[1]]).into())
        .map(|(head, value)| (u16::from_ne_bytes([head[2], head[3]]) & !NESTED_FLAG, value))
}

/// Splits octets into pieces that start with their length; returns the header and the content of each.
fn split_pieces(
    mut octets: &[u8],
    head: usize,
    length_of: impl Fn(&[u8]) -> usize,
) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let start = octets.get(..head)?;
        let length = length_of(start);
        let rest = octets.get(head..length)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((start, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CREATE, Message};

    #[test]
    fn nested_attributes_are_parsed_as_written() {
        let message = Message::new(16, CREATE, &[0; 16])
            .with_name(3, "up")
            .with_nested(18, &[], |inner| inner.with(1, b"veth").with_number(2, 7));
        let octets = message.finish(5);
        let KernelMessage { kind, sequence, body, .. } = messages(&octets).next().unwrap();
        assert_eq!((kind, sequence, octets.len()), (16, 5, octets[0].into()));
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

    #[test]
    fn a_length_shorter_than_the_header_ends_the_list() {
        assert_eq!(messages(&[0; 16]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
    }

    #[test]
    fn an_error_is_distinguished_from_an_acknowledgment() {
        let answer = |kind, code: i32| {
            let octets = Message::new(kind, 0, &code.to_ne_bytes()).finish(0);
            messages(&octets).next().unwrap().outcome()
        };
        assert_eq!(answer(ERROR_MESSAGE, -1), Some(1));
        assert_eq!(answer(ERROR_MESSAGE, 0), Some(0));
        assert_eq!(answer(16, 0), None);
    }

    /// The kernel ends the list of a set that is deleted meanwhile with this error, after the entries listed
    /// so far.
    #[test]
    fn a_list_ended_by_an_error_is_incomplete() {
        let end = |code: &[u8]| {
            let octets = Message::new(DONE_MESSAGE, 0, code).finish(0);
            messages(&octets).next().unwrap().outcome()
        };
        assert_eq!(end(&(-2_i32).to_ne_bytes()), Some(2));
        assert_eq!(end(&0_i32.to_ne_bytes()), Some(0));
        assert_eq!(end(&[]), Some(0));
    }

    #[test]
    fn a_list_that_changed_meanwhile_is_marked_interrupted() {
        let is_interrupted = |flags| {
            let octets = Message::new(DONE_MESSAGE, flags, &[0; 4]).finish(0);
            messages(&octets).next().unwrap().is_interrupted
        };
        assert!(is_interrupted(INTERRUPTED_FLAG | 2) && !is_interrupted(2));
    }
}
