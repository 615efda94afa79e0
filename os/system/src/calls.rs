//! Socket options that are structures, and messages with ancillary data.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, iovec, msghdr, socklen_t};
use socket2::Socket;

/// The result of `recvmsg`.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveResult {
    /// Number of octets of data.
    pub length: usize,
    /// Number of octets of ancillary data.
    pub control_length: usize,
    /// Flags of the message, such as `MSG_EOR` and `MSG_NOTIFICATION`.
    pub flags: c_int,
}

/// Sets a socket option; `value` contains the octets of the option's structure.
#[expect(unsafe_code, reason = "setsockopt with a structure of any kind has no safe wrapper")]
pub fn set_option(socket: &Socket, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let length = value.len() as socklen_t;
    // SAFETY: the kernel reads `length` octets from a slice that has as many.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast::<c_void>(), length) };
    // SCTP_SOCKOPT_CONNECTX returns the association's number.
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads a socket option into `value`, which may contain input for the option. Returns the number of
/// octets written.
#[expect(unsafe_code, reason = "getsockopt with a structure of any kind has no safe wrapper")]
pub fn read_option(socket: &Socket, level: c_int, name: c_int, value: &mut [u8]) -> io::Result<usize> {
    let mut length = value.len() as socklen_t;
    let start = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: the kernel writes at most `length` octets to a slice that has as many.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, start, &raw mut length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}

/// Reads a message, or a part of one, with its ancillary data.
#[expect(unsafe_code, reason = "recvmsg with SCTP's ancillary data and flags has no safe wrapper")]
pub fn receive(socket: &Socket, data: &mut [u8], control: &mut [u8]) -> io::Result<ReceiveResult> {
    let mut parts = iovec { iov_base: data.as_mut_ptr().cast::<c_void>(), iov_len: data.len() };
    // SAFETY: all zeros is a valid msghdr, one without buffers.
    let mut header: msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut parts;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast::<c_void>();
    header.msg_controllen = control.len() as _;
    // SAFETY: the header names two slices by their true lengths, and both outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok(ReceiveResult { length, control_length: header.msg_controllen as _, flags: header.msg_flags })
}

/// Branches an association off a one-to-many SCTP socket to its own non-blocking socket. RFC 6458 section
/// 9.2.
#[expect(
    unsafe_code,
    reason = "the kernel returns the socket as a file descriptor, which no other value owns"
)]
pub fn peel_off(socket: &Socket, association: u32) -> io::Result<Socket> {
    const SOL_SCTP: c_int = 132;
    const PEELOFF_FLAGS: c_int = 122;
    let flags = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u32;
    // `sctp_peeloff_flags_arg_t`: the association, the new socket, its flags.
    let mut argument = [association, 0, flags].map(u32::to_ne_bytes).concat();
    read_option(socket, SOL_SCTP, PEELOFF_FLAGS, &mut argument)?;
    let number = crate::u32_at(&argument, 4).ok_or(io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just made this file for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number as c_int) }.into())
}
