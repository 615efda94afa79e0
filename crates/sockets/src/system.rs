//! The system calls that have no safe wrapper: socket options as octets, and messages with ancillary data.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::AsRawFd;

use libc::{c_int, c_void, iovec, msghdr, socklen_t};
use socket2::Socket;

/// What one `recvmsg` gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    /// Octets of data.
    pub(crate) length: usize,
    /// Octets of ancillary data.
    pub(crate) control_length: usize,
    /// `MSG_EOR`, `MSG_NOTIFICATION` and the like.
    pub(crate) flags: c_int,
}

/// Sets a socket option to the octets of its structure.
#[expect(unsafe_code, reason = "setsockopt with a structure of any kind has no safe wrapper")]
pub(crate) fn set_option(socket: &Socket, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let length = value.len() as socklen_t;
    // SAFETY: the kernel reads `length` octets from a slice that has as many.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast::<c_void>(), length) };
    // SCTP_SOCKOPT_CONNECTX returns the association's number.
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks for a socket option; the octets of `value` go in and come out. Returns how many came.
#[expect(unsafe_code, reason = "getsockopt with a structure of any kind has no safe wrapper")]
pub(crate) fn option(socket: &Socket, level: c_int, name: c_int, value: &mut [u8]) -> io::Result<usize> {
    let mut length = value.len() as socklen_t;
    let start = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: the kernel writes at most `length` octets to a slice that has as many.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, start, &raw mut length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}

/// Reads a message, or a part of one, with its ancillary data.
#[expect(unsafe_code, reason = "recvmsg with SCTP's ancillary data and flags has no safe wrapper")]
pub(crate) fn receive(socket: &Socket, data: &mut [u8], control: &mut [u8]) -> io::Result<Read> {
    let mut parts = iovec { iov_base: data.as_mut_ptr().cast::<c_void>(), iov_len: data.len() };
    // SAFETY: all zeros is a valid msghdr, one without buffers.
    let mut header: msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut parts;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast::<c_void>();
    header.msg_controllen = control.len();
    // SAFETY: the header names two slices by their true lengths, and both outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok(Read { length, control_length: header.msg_controllen, flags: header.msg_flags })
}

/// Octets of the header of an item of ancillary data: length, level, type.
const ITEM_HEADER: usize = size_of::<libc::cmsghdr>();

/// Appends an item to ancillary data.
pub(crate) fn push_item(control: &mut Vec<u8>, level: c_int, kind: c_int, value: &[u8]) {
    control.extend((ITEM_HEADER + value.len()).to_ne_bytes());
    control.extend(level.to_ne_bytes());
    control.extend(kind.to_ne_bytes());
    control.extend(value);
    control.resize(control.len().next_multiple_of(size_of::<usize>()), 0);
}

/// The items of ancillary data: level, type and value.
pub(crate) fn items(mut control: &[u8]) -> impl Iterator<Item = (c_int, c_int, &[u8])> {
    std::iter::from_fn(move || {
        let (length, rest) = control.split_first_chunk()?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let value = control.get(ITEM_HEADER..length)?;
        control = control.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        Some((c_int::from_ne_bytes(*level), c_int::from_ne_bytes(*kind), value))
    })
}

/// The 16-bit number at an offset of a structure.
pub(crate) fn u16_at(structure: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*structure.get(offset..)?.first_chunk()?))
}

/// The 32-bit number at an offset of a structure.
pub(crate) fn u32_at(structure: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*structure.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancillary_data_reads_back_as_written() {
        let mut control = Vec::new();
        push_item(&mut control, 132, 2, &[7; 16]);
        push_item(&mut control, 132, 5, &[9; 6]);
        assert_eq!(control.len(), 32 + 24);
        let read: Vec<_> = items(&control).collect();
        assert_eq!(read, [(132, 2, &[7u8; 16][..]), (132, 5, &[9u8; 6][..])]);
    }

    #[test]
    fn broken_ancillary_data_ends_the_items() {
        assert_eq!(items(&[0; 40]).count(), 0);
        assert_eq!(items(&[255; 40]).count(), 0);
        assert_eq!(items(&[1, 2, 3]).count(), 0);
    }
}
