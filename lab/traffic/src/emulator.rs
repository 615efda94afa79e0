//! The options of a network emulator. tc-netem(8).

use hol_base::Ratio;
use hol_netlink::Message;

use crate::discipline::TCA_OPTIONS;
use crate::shaped_link::{Emulator, Gate, Loss};

/// The kind of the emulator's discipline.
pub const KIND: &str = "netem";

/// Adds the options of an emulator to the message that sets its discipline. The seed restarts the emulator's random
/// stream if the kernel supports that (since Linux 6.6).
pub fn encode(message: Message, emulator: &Emulator, seed: u64) -> Message {
    message.with_nested(TCA_OPTIONS, &encode_parameters(emulator), |options| {
        add_attributes(options, emulator, seed)
    })
}

/// Encodes `struct tc_netem_qopt` of linux/pkt_sched.h: latency, limit, loss, gap, duplication and jitter.
fn encode_parameters(emulator: &Emulator) -> Vec<u8> {
    let loss = if let Loss::Independent(loss) = emulator.loss { encode_probability(loss) } else { 0 };
    let gap = u32::from(emulator.overtaking.is_some());
    [0, emulator.limit, loss, gap, 0, 0].map(u32::to_ne_bytes).concat()
}

/// Adds netem's attributes to the options, after `struct tc_netem_qopt`.
fn add_attributes(options: Message, emulator: &Emulator, seed: u64) -> Message {
    const TCA_NETEM_DELAY_DIST: u16 = 2;
    const TCA_NETEM_REORDER: u16 = 3;
    const TCA_NETEM_CORRUPT: u16 = 4;
    const TCA_NETEM_LOSS: u16 = 5;
    const TCA_NETEM_RATE: u16 = 6;
    const TCA_NETEM_RATE64: u16 = 8;
    const TCA_NETEM_LATENCY64: u16 = 10;
    const TCA_NETEM_JITTER64: u16 = 11;
    const TCA_NETEM_SLOT: u16 = 12;
    const TCA_NETEM_PRNG_SEED: u16 = 14;
    const NETEM_LOSS_GE: u16 = 2;
    let with_correlation = |share: u32| [share, 0].map(u32::to_ne_bytes).concat();
    let mut options = options
        .with(TCA_NETEM_LATENCY64, &emulator.delay.as_nanos().to_ne_bytes())
        .with(TCA_NETEM_JITTER64, &emulator.jitter.as_nanos().to_ne_bytes())
        .with(TCA_NETEM_PRNG_SEED, &seed.to_ne_bytes());
    if let Some(numbers) = &emulator.distribution {
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        options = options.with(TCA_NETEM_DELAY_DIST, &numbers);
    }
    if let Some(overtaking) = emulator.overtaking {
        options = options.with(TCA_NETEM_REORDER, &with_correlation(encode_probability(overtaking)));
    }
    if !emulator.corrupt.is_zero() {
        options = options.with(TCA_NETEM_CORRUPT, &with_correlation(encode_probability(emulator.corrupt)));
    }
    if let Loss::Bursts([good_to_bad, bad_to_good, loss_good, loss_bad]) = emulator.loss {
        // The kernel expects the share that survives in the bad state, and the loss in the good state.
        let bursts = [
            encode_probability(good_to_bad),
            encode_probability(bad_to_good),
            u32::MAX - encode_probability(loss_bad),
            encode_probability(loss_good),
        ];
        let bursts = bursts.map(u32::to_ne_bytes).concat();
        options = options.with_nested(TCA_NETEM_LOSS, &[], |inner| inner.with(NETEM_LOSS_GE, &bursts));
    }
    if emulator.rate > 0 {
        let low = u32::try_from(emulator.rate).unwrap_or(u32::MAX);
        let rate = [low.to_ne_bytes(), emulator.overhead.to_ne_bytes(), [0; 4], [0; 4]];
        options = options
            .with(TCA_NETEM_RATE, rate.as_flattened())
            .with(TCA_NETEM_RATE64, &emulator.rate.to_ne_bytes());
    }
    match emulator.gate {
        Gate::None => options,
        Gate::Open => options.with(TCA_NETEM_SLOT, &encode_slot(0)),
        Gate::Closed => options.with(TCA_NETEM_SLOT, &encode_slot(NEVER)),
    }
}

/// A time in ns that is longer than any run: 30 years.
const NEVER: i64 = 1_000_000_000_000_000_000;

/// Encodes `struct tc_netem_slot` of linux/pkt_sched.h: a packet that is due waits for the next slot, which begins
/// `wait` ns later; with 0 there are no slots. The limits of a slot are 0: unlimited.
fn encode_slot(wait: i64) -> Vec<u8> {
    [wait, wait, 0, 0, 0].map(i64::to_ne_bytes).concat()
}

/// Returns a probability as the kernel encodes it: as a fraction whose denominator is 2³² − 1.
fn encode_probability(ratio: Ratio) -> u32 {
    (ratio.value() * f64::from(u32::MAX)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probability_one_is_all_ones_and_zero_is_zero() {
        assert_eq!(encode_probability(Ratio::new(1.0).unwrap()), u32::MAX);
        assert_eq!(encode_probability(Ratio::ZERO), 0);
        assert_eq!(encode_probability(Ratio::new(0.01).unwrap()), 42_949_673);
    }
}
