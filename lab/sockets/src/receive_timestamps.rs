//! The kernel's receive timestamps. Documentation/networking/timestamping.rst

use std::io::{self, Read};

use hol_system as system;
use socket2::Socket;

/// Enables receive timestamps on a socket; a kernel without support reports no timestamps.
pub(crate) fn enable(socket: &Socket) {
    let asked = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
    let _ = system::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &asked.to_ne_bytes());
}

/// Reads from a socket, with the kernel's receive timestamps if they are enabled.
#[derive(Debug)]
pub(crate) struct TimestampedReader {
    is_enabled: bool,
    reads: u64,
}

impl TimestampedReader {
    /// The reader requests a timestamp for one of this many reads, because timestamps for all reads cost a busy host a
    /// tenth of its throughput. The number of messages sent together is never a multiple of it, so every position in a
    /// group of messages is sampled.
    const READS_PER_TIMESTAMP: u64 = 7;

    /// Creates the reader of a socket; `is_enabled` says whether timestamps were enabled on it.
    pub(crate) fn new(is_enabled: bool) -> Self {
        Self { is_enabled, reads: 0 }
    }

    /// Reads from the socket. Also returns when the last octets arrived, in ns of the wall clock, if known.
    pub(crate) fn read(
        &mut self,
        mut socket: &Socket,
        buffer: &mut [u8],
    ) -> io::Result<(usize, Option<u64>)> {
        let read = if self.is_enabled && self.reads.is_multiple_of(Self::READS_PER_TIMESTAMP) {
            // Room for `struct scm_timestamping` only; nothing else was enabled.
            let mut control = [0; 64];
            let read = system::receive(socket, buffer, &mut control)?;
            (read.length, kernel_time(&control[..read.control_length]))
        } else {
            (socket.read(buffer)?, None)
        };
        self.reads += 1;
        Ok(read)
    }
}

/// Returns the kernel's software timestamp, in ns: the first time of `struct scm_timestamping`. `None` if it is zero.
fn kernel_time(control: &[u8]) -> Option<u64> {
    let is_stamp = |item: &(i32, i32, &[u8])| (item.0, item.1) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
    let (_, _, times) = system::items(control).find(is_stamp)?;
    let number = |at: usize| Some(u64::from_ne_bytes(*times.get(at..)?.first_chunk()?));
    let nanos = number(0)?.checked_mul(1_000_000_000)?.checked_add(number(8)?)?;
    Some(nanos).filter(|nanos| *nanos > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(kind: i32, numbers: &[u64]) -> Vec<u8> {
        let mut control = Vec::new();
        let octets: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        system::push_item(&mut control, libc::SOL_SOCKET, kind, &octets);
        control
    }

    #[test]
    fn only_valid_kernel_timestamps_are_accepted() {
        let stamp = |numbers: &[u64]| kernel_time(&control(libc::SCM_TIMESTAMPING, numbers));
        assert_eq!(stamp(&[1_700_000_000, 7, 0, 0, 0, 0]), Some(1_700_000_000_000_000_007));
        assert_eq!(stamp(&[0; 6]), None, "there was none");
        assert_eq!(stamp(&[u64::MAX, 0, 0, 0, 0, 0]), None);
        assert_eq!((stamp(&[1]), kernel_time(&[])), (None, None));
        assert_eq!(kernel_time(&control(libc::SCM_TIMESTAMPNS, &[1, 2])), None);
    }
}
