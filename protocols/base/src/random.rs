//! Named random streams: a run has one seed, from which every component derives its own stream.
//!
//! Two transports that use `"link/up/loss"` see the same losses, and a new component does not change the
//! numbers of another. The generator is our own because the generator of a library may change with its
//! version.

/// A seed; the seeds of named components and random number generators are derived from it.
///
/// ```
/// use hol_base::Seed;
///
/// let run = Seed(7);
/// let (mut loss, mut jitter) = (run.derive("link/loss").rng(), run.derive("link/jitter").rng());
/// assert_ne!(loss.next_u64(), jitter.next_u64());
/// let lost = (0..1000).filter(|_| loss.chance(0.1)).count();
/// assert!((70..130).contains(&lost));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

/// A random number generator, xoshiro256++ (Blackman and Vigna): fast, 256 bits of state, passes BigCrush.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

/// Performs one step of splitmix64. It initialises the state of generators, and makes the seeds of different
/// names independent.
const fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Seed {
    /// Derives the seed of the component with this name.
    pub fn derive(self, name: &str) -> Seed {
        let mut state = self.0;
        let mut mixed = splitmix(&mut state);
        for byte in name.bytes() {
            state ^= u64::from(byte);
            mixed ^= splitmix(&mut state);
        }
        Seed(mixed)
    }

    /// Derives the seed of the `index`-th of several similar components.
    pub fn derive_for_index(self, index: u64) -> Seed {
        let mut state = self.0 ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93);
        Seed(splitmix(&mut state))
    }

    /// Returns a random number generator with this seed.
    pub fn rng(self) -> Rng {
        let mut state = self.0;
        Rng { state: [(); 4].map(|()| splitmix(&mut state)) }
    }
}

impl Rng {
    /// Returns a generator with this state. Programs that use a real network fill the state with random
    /// octets from the operating system, because the 64 bits of a [`Seed`] are too few to derive keys from.
    /// RFC 4086.
    ///
    /// # Panics
    /// If the state is zero, which xoshiro never leaves.
    pub fn from_state(state: [u64; 4]) -> Self {
        assert!(state != [0; 4], "the state of a generator is not zero");
        Self { state }
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        result
    }
    /// Returns the next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
    /// Returns a random number, uniform in `[0, 1)`, with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Returns true with `probability`. Always draws one random number, so the number of draws does not
    /// depend on `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
    /// Returns a random number from an exponential distribution with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
    /// Returns a random number from the normal distribution with mean 0 and variance 1. Box and Muller 1958;
    /// the second number of each pair is not used.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
    /// Returns a random integer from 0 to `bound - 1`. The bias is negligible if `bound` is far below 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_independent_repeatable_streams() {
        let draw = |name: &str| Seed(7).derive(name).rng().next_u64();
        assert_eq!(draw("up/loss"), draw("up/loss"));
        assert_ne!(draw("up/loss"), draw("down/loss"));
        assert_ne!(Seed(7).derive_for_index(0), Seed(7).derive_for_index(1));
        assert_ne!(Seed(7).derive_for_index(1), Seed(8).derive_for_index(1));
    }

    #[test]
    fn generator_output_never_changes() {
        // A change here changes every digest that was ever published.
        let mut rng = Seed(1).rng();
        let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(drawn, [0xcfc5_d07f_6f03_c29b, 0xbf42_4132_963f_e08d, 0x19a3_7d57_57aa_f520]);
    }

    #[test]
    fn a_state_continues_its_stream() {
        let mut rng = Seed(1).rng();
        rng.next_u64();
        let mut continued = Rng::from_state(rng.state);
        assert_eq!(continued.next_u64(), rng.next_u64());
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut rng = Seed(3).rng();
        let n = 200_000;
        let uniform: f64 = (0..n).map(|_| rng.uniform()).sum::<f64>() / f64::from(n);
        let exponential: f64 = (0..n).map(|_| rng.exponential(2.0)).sum::<f64>() / f64::from(n);
        let normal: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let moment = |power| normal.iter().map(|x| x.powi(power)).sum::<f64>() / f64::from(n);
        assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.01 && (moment(4) - 3.0).abs() < 0.05);
        assert!((uniform - 0.5).abs() < 0.003, "{uniform}");
        assert!((exponential - 2.0).abs() < 0.02, "{exponential}");
    }
}
