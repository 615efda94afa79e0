//! The random numbers of ns, so that a script draws the same numbers as in ns. The generator is MRG32k3a with
//! streams and substreams (L'Ecuyer, Simard, Chen and Kelton 2002; ns 2.35, `tools/rng.cc`).

/// The moduli of the two components of the generator MRG32k3a.
const MODULI: [u64; 2] = [4_294_967_087, 4_294_944_443];

/// A matrix that advances the state of one component by multiplication.
type Matrix = [[u64; 3]; 3];

/// The matrices that advance the state to the next stream, by 2^127 numbers: `A1p127` and `A2p127` of ns.
const STREAM_STEP: [Matrix; 2] = [
    [
        [2_427_906_178, 3_580_155_704, 949_770_784],
        [226_153_695, 1_230_515_664, 3_580_155_704],
        [1_988_835_001, 986_791_581, 1_230_515_664],
    ],
    [
        [1_464_411_153, 277_697_599, 1_610_723_613],
        [32_183_930, 1_464_411_153, 1_022_607_788],
        [2_824_425_944, 32_183_930, 2_093_834_863],
    ],
];

/// The matrices that advance the state to the next substream, by 2^76 numbers: `A1p76` and `A2p76` of ns.
const SUBSTREAM_STEP: [Matrix; 2] = [
    [
        [82_758_667, 1_871_391_091, 4_127_413_238],
        [3_672_831_523, 69_195_019, 1_871_391_091],
        [3_672_091_415, 3_528_743_235, 69_195_019],
    ],
    [
        [1_511_326_704, 3_759_209_742, 1_610_795_712],
        [4_292_754_251, 1_511_326_704, 3_889_917_532],
        [3_859_662_829, 4_292_754_251, 3_708_466_080],
    ],
];

/// The largest number that [`RngStream::next`] returns: `MAXINT`.
pub(crate) const MAX_RANDOM: u64 = 2_147_483_647;

/// The state of the generator's two components.
type State = [[u64; 3]; 2];

/// Creates the independent streams of random numbers of a script.
#[derive(Debug)]
pub(crate) struct RngStreams {
    /// The state of the generator at which the next stream begins.
    next: State,
}

/// A stream of random numbers: an `RNG` of ns.
#[derive(Debug, Clone)]
pub(crate) struct RngStream {
    state: State,
    /// The state of the generator at the beginning of the current substream.
    substream: State,
    /// The state of the generator at the beginning of the stream.
    start: State,
}

impl Default for RngStreams {
    fn default() -> Self {
        Self { next: [[12345; 3]; 2] }
    }
}

impl RngStreams {
    /// Returns the next random stream.
    pub fn stream(&mut self) -> RngStream {
        let start = self.next;
        self.next = advance(start, &STREAM_STEP);
        RngStream { state: start, substream: start, start }
    }

    /// Returns the stream of a seed, as in `RNG::set_seed`. Streams that are created later follow this stream.
    pub fn seeded(&mut self, seed: u64) -> RngStream {
        self.next = [[seed; 3]; 2];
        self.stream()
    }
}

impl RngStream {
    /// Returns a number above 0 and below 1.
    pub fn uniform(&mut self) -> f64 {
        let [first, second] = &mut self.state;
        let step = |state: &mut [u64; 3], ahead: u64, behind: u64, modulus: u64| {
            *state = [state[1], state[2], (ahead + (modulus << 21) - behind) % modulus];
            state[2]
        };
        let one = step(first, 1_403_580 * first[1], 810_728 * first[0], MODULI[0]);
        let two = step(second, 527_612 * second[2], 1_370_589 * second[0], MODULI[1]);
        let difference = if one > two { one - two } else { one + MODULI[0] - two };
        difference as f64 / (MODULI[0] + 1) as f64
    }

    /// Returns a whole number from 0 to [`MAX_RANDOM`].
    pub fn next(&mut self) -> u64 {
        ((MAX_RANDOM + 1) as f64 * self.uniform()) as u64
    }

    /// Returns an exponentially distributed random number.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        mean * -self.uniform().ln()
    }

    /// Returns a random number with a Pareto distribution, above `scale`.
    pub fn pareto(&mut self, scale: f64, shape: f64) -> f64 {
        scale * (1.0 / self.uniform().powf(1.0 / shape))
    }

    /// Returns a random number with a Pareto distribution of the second kind, at least 0.
    pub fn pareto_from_zero(&mut self, scale: f64, shape: f64) -> f64 {
        scale * (1.0 / self.uniform().powf(1.0 / shape) - 1.0)
    }

    /// Returns a random number with a normal distribution. The polar method yields two numbers; `spare` stores the
    /// second one for the next call.
    pub fn normal(&mut self, spare: &mut Option<f64>, mean: f64, deviation: f64) -> f64 {
        if deviation == 0.0 {
            return mean;
        }
        if let Some(second) = spare.take() {
            return second * deviation + mean;
        }
        loop {
            let (one, two) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = one * one + two * two;
            if square < 1.0 {
                let radius = (-2.0 * square.ln() / square).sqrt();
                *spare = Some(two * radius);
                return one * radius * deviation + mean;
            }
        }
    }

    /// Returns a random number with a Weibull distribution.
    pub fn weibull(&mut self, shape: f64, scale: f64) -> f64 {
        (-self.uniform().ln()).powf(1.0 / shape) * scale
    }

    /// Returns the first number of the state, which ns calls the seed.
    pub fn seed(&self) -> u64 {
        self.state[0][0]
    }

    /// Continues with the next substream of the stream.
    pub fn next_substream(&mut self) {
        self.substream = advance(self.substream, &SUBSTREAM_STEP);
        self.state = self.substream;
    }

    /// Goes back to the beginning of the current substream.
    pub fn restart_substream(&mut self) {
        self.state = self.substream;
    }

    /// Goes back to the beginning of the stream.
    pub fn restart(&mut self) {
        (self.state, self.substream) = (self.start, self.start);
    }
}

/// Returns the state after multiplication of each component by its matrix.
fn advance(state: State, step: &[Matrix; 2]) -> State {
    let mut result = state;
    for component in 0..2 {
        let modulus = u128::from(MODULI[component]);
        for (row, factors) in step[component].iter().enumerate() {
            let products = factors.iter().zip(&state[component]);
            let sum: u128 = products.map(|(a, b)| u128::from(*a) * u128::from(*b)).sum();
            result[component][row] = (sum % modulus) as u64;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of `ns-random`, `new RNG` and `$rng seed 7` in Debian's ns 2.35.
    #[test]
    fn the_streams_are_those_of_ns() {
        let mut streams = RngStreams::default();
        let mut usual = streams.seeded(1);
        assert_eq!([(); 4].map(|()| usual.next()), [729_236, 1_193_744_747, 30_504_276, 189_241_995]);
        let mut first = streams.stream();
        assert_eq!((first.next(), first.seed()), (357_444_843, 741_857_976));
        assert_eq!(streams.stream().next(), 879_475_696);
        let mut seeded = streams.seeded(7);
        assert_eq!([seeded.next(), seeded.next()], [5_036_723, 1_913_728_326]);
        assert_eq!(streams.stream().next(), 354_584_971);
        first.next_substream();
        assert_eq!(first.next(), 1_793_471_126);
    }
}
