//! One end of a one-to-one SCTP association, for programs that send whole messages. RFC 6458 section 4.

use std::io::{self, IoSlice};

use bytes::{Bytes, BytesMut};
use socket2::{MsgHdr, Socket};

use crate::{calls, octets};

/// A connected SCTP socket, in blocking or non-blocking mode.
#[derive(Debug)]
pub struct Association {
    socket: Socket,
    /// The parts of an incomplete message that have been received.
    partial: BytesMut,
}

/// Constant of `linux/sctp.h`.
const SOL_SCTP: i32 = libc::IPPROTO_SCTP;
const NODELAY: i32 = 3;
const STATUS: i32 = 14;
const SNDINFO: i32 = 2;
const MSG_NOTIFICATION: i32 = 0x8000;

impl Association {
    /// Takes over a connected socket and turns off Nagle's algorithm (RFC 6458 section 8.1.5).
    pub fn new(socket: Socket) -> io::Result<Self> {
        calls::set_option(&socket, SOL_SCTP, NODELAY, &1i32.to_ne_bytes())?;
        Ok(Self { socket, partial: BytesMut::new() })
    }

    /// Returns the socket, so that the caller can wait on it and set timeouts.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns the number of outgoing streams. RFC 6458 section 8.2.1.
    pub fn streams(&self) -> io::Result<u16> {
        const OUTBOUND_OFFSET: usize = 18;
        let mut status = [0; 256];
        calls::read_option(&self.socket, SOL_SCTP, STATUS, &mut status)?;
        octets::u16_at(&status, OUTBOUND_OFFSET).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Sends a message in order on this stream. The kernel takes the whole message, or the call fails.
    pub fn send(&self, message: &[u8], stream: u16, payload_protocol: u32) -> io::Result<()> {
        let control = send_information(stream, payload_protocol);
        let parts = [IoSlice::new(message)];
        let message = MsgHdr::new().with_buffers(&parts).with_control(&control);
        self.socket.sendmsg(&message, libc::MSG_NOSIGNAL).map(drop)
    }

    /// Reads once and returns a complete message, or `None` while parts are missing. `buffer` is scratch space.
    ///
    /// If the peer has closed, the error is [`UnexpectedEof`](io::ErrorKind::UnexpectedEof).
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Bytes>> {
        let read = calls::receive(&self.socket, buffer, &mut [])?;
        if read.flags & MSG_NOTIFICATION != 0 {
            return Ok(None);
        }
        // A message has at least one octet. RFC 9260 section 3.3.1.
        if read.length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.partial.extend_from_slice(&buffer[..read.length]);
        let is_whole = read.flags & libc::MSG_EOR != 0;
        Ok(is_whole.then(|| self.partial.split().freeze()))
    }

    /// Returns how many octets of an incomplete message have been received.
    pub fn partial_length(&self) -> usize {
        self.partial.len()
    }
}

/// Returns a `struct sctp_sndinfo`, which contains the parameters of a message. RFC 6458 section 5.3.4.
fn send_information(stream: u16, payload_protocol: u32) -> Vec<u8> {
    const IN_ORDER: u16 = 0;
    const CONTEXT_AND_ASSOCIATION: [u8; 8] = [0; 8];
    let (stream, flags) = (stream.to_ne_bytes(), IN_ORDER.to_ne_bytes());
    // The kernel sends the identifier unchanged, so it must be in network byte order.
    let protocol = payload_protocol.to_be_bytes();
    let mut control = Vec::new();
    let information = [&stream[..], &flags, &protocol, &CONTEXT_AND_ASSOCIATION].concat();
    octets::push_item(&mut control, SOL_SCTP, SNDINFO, &information);
    control
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6458 section 5.3.4, and RFC 9260 section 3.3.1 for the byte order of the payload protocol identifier.
    #[test]
    fn send_parameters_hold_stream_and_payload_protocol() {
        let control = send_information(7, 15);
        let [(level, kind, information)] = octets::items(&control).collect::<Vec<_>>()[..] else {
            panic!("{control:?}")
        };
        assert_eq!((level, kind, information.len()), (132, SNDINFO, 16));
        assert_eq!(octets::u16_at(information, 0), Some(7));
        assert_eq!(information[4..8], [0, 0, 0, 15]);
    }
}
