//! Disables an interface's offloads, so that packets are counted, delayed and lost one by one.
//!
//! SCTP still builds trains of packets, as on every Linux, because these switches do not affect `tx-sctp-segmentation`; Linux splits the
//! trains before they leave the sender.

use std::os::fd::AsRawFd;

use nix::libc::{self, c_char, ifreq, ioctl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::GuestError;

/// Offloads by name, each with the ethtool command that sets it and the one that reads it. linux/ethtool.h
const OFFLOADS: [(&str, u32, u32); 6] = [
    ("receive checksums", 0x15, 0x14),
    ("transmit checksums", 0x17, 0x16),
    ("scatter-gather", 0x19, 0x18),
    ("TSO", 0x1f, 0x1e),
    ("GSO", 0x24, 0x23),
    ("GRO", 0x2c, 0x2b),
];

/// The kernel's `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Disables all offloads of `interface` in this namespace, and verifies that they are off.
pub(super) fn turn_off(interface: &str) -> Result<(), GuestError> {
    // The order is reversed, because segmentation needs scatter-gather, which needs checksums.
    for (name, set, get) in OFFLOADS.iter().rev() {
        ethtool(interface, &mut Value { command: *set, data: 0 })
            .map_err(|e| format!("{interface}: cannot turn {name} off: {e}"))?;
        let mut now = Value { command: *get, data: 1 };
        ethtool(interface, &mut now).map_err(|e| format!("{interface}: cannot read {name}: {e}"))?;
        if now.data != 0 {
            return Err(format!("{interface}: the kernel did not turn {name} off").into());
        }
    }
    Ok(())
}

fn ethtool(interface: &str, value: &mut Value) -> nix::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    name.iter_mut().zip(interface.bytes()).for_each(|(place, octet)| *place = octet as c_char);
    let data = (&raw mut *value).cast::<c_char>();
    let request = ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data } };
    #[expect(unsafe_code, reason = "SIOCETHTOOL has no safe wrapper")]
    // SAFETY: the name ends with a zero, and the pointer is to an `ethtool_value`, which these commands require.
    let result = unsafe { ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw const request) };
    nix::Error::result(result).map(drop)
}
