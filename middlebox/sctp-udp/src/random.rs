//! Random numbers for tags, TSNs and the keys of cookies. RFC 9260 sections 5.1.3 and 5.3.1.

use hol_base::Rng;
use rustix::rand::{GetRandomFlags, getrandom};

/// Returns a random generator that nobody can predict, because its state of 256 bits comes from the kernel. RFC 4086.
pub(crate) fn secure_rng() -> Rng {
    Rng::from_state([(); 4].map(|()| {
        let mut octets = [0; 8];
        let length = getrandom(&mut octets, GetRandomFlags::empty());
        assert_eq!(length, Ok(octets.len()), "getrandom returns up to 256 octets completely");
        u64::from_ne_bytes(octets)
    }))
}
