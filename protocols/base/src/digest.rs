//! A digest over all records of a run: same seed, same digest, on any machine.

use std::fmt;

use twox_hash::xxhash3_128::Hasher;

/// A 128-bit digest of everything that a run measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

/// Builds a [`Digest`] from numbers, independent of the machine's byte order.
pub struct Digester(Hasher);

impl Digester {
    /// Creates an empty digest.
    pub fn new() -> Self {
        Self(Hasher::new())
    }
    /// Adds a number to the digest.
    pub fn add(&mut self, value: u64) {
        self.0.write(&value.to_le_bytes());
    }
    /// Adds several numbers at once.
    pub fn add_all<const N: usize>(&mut self, values: [u64; N]) {
        // One long write is three times as fast as many short ones.
        let mut octets = [[0; 8]; N];
        for (octets, value) in octets.iter_mut().zip(values) {
            *octets = value.to_le_bytes();
        }
        self.0.write(octets.as_flattened());
    }
    /// Adds octets, eight per number; the last number is padded with zeros.
    pub fn add_octets(&mut self, octets: &[u8]) {
        let (numbers, rest) = octets.as_chunks::<8>();
        self.0.write(numbers.as_flattened());
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(word));
        }
    }
    /// Returns the digest of all numbers and octets added.
    pub fn finish(&self) -> Digest {
        Digest(self.0.finish_128())
    }
}

impl Default for Digester {
    fn default() -> Self {
        Self::new()
    }
}
impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digester({})", self.finish())
    }
}
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl std::str::FromStr for Digest {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_order_and_round_trips_through_text() {
        let of = |values: &[u64]| {
            let mut digester = Digester::new();
            values.iter().for_each(|v| digester.add(*v));
            digester.finish()
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_eq!(of(&[1, 2]).to_string().parse(), Ok(of(&[1, 2])));
    }

    #[test]
    fn octets_are_digested_as_little_endian_words() {
        let (mut numbers, mut octets) = (Digester::new(), Digester::new());
        numbers.add_all([0x0807_0605_0403_0201, 9]);
        octets.add_octets(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(numbers.finish(), octets.finish());
    }
}
