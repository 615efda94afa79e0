//! Seeds the kernel's random number generator from the run's seed: initial sequence numbers, verification
//! tags, and on kernels before 6.6 also netem.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;

use hol_base::Seed;
use nix::libc::{c_int, c_ulong, ioctl};

use super::GuestError;

/// ioctl number of random(4) that adds entropy and increases the entropy count.
const RNDADDENTROPY: c_ulong = 0x4008_5203;
/// ioctl number of random(4) that reseeds the generator at once.
const RNDRESEEDCRNG: c_ulong = 0x5207;

/// Number of octets of entropy that are added.
const ENTROPY_OCTETS: usize = 64;

/// The kernel's `struct rand_pool_info`.
#[repr(C)]
struct Pool {
    bits: c_int,
    octets: c_int,
    content: [u8; ENTROPY_OCTETS],
}

/// Seeds the kernel's random number generator.
pub(super) fn inject(seed: Seed) -> Result<(), GuestError> {
    let mut rng = seed.derive("kernel").rng();
    let mut content = [0; ENTROPY_OCTETS];
    content.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&rng.next_u64().to_le_bytes()));
    let pool = Pool { bits: ENTROPY_OCTETS as c_int * 8, octets: ENTROPY_OCTETS as c_int, content };
    let random = OpenOptions::new().write(true).open("/dev/urandom")?;
    #[expect(unsafe_code, reason = "RNDADDENTROPY and RNDRESEEDCRNG have no safe wrapper")]
    // SAFETY: the first request reads a `rand_pool_info`, whose length field is correct; the second takes no argument.
    let done = unsafe {
        ioctl(random.as_raw_fd(), RNDADDENTROPY as _, &raw const pool) == 0
            && ioctl(random.as_raw_fd(), RNDRESEEDCRNG as _) == 0
    };
    if done {
        Ok(())
    } else {
        Err(format!("cannot seed the kernel: {}", std::io::Error::last_os_error()).into())
    }
}
