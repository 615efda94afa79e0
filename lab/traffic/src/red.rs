//! Random early detection (RED) in Linux, which drops packets by the average length of the queue. tc-red(8).
//!
//! A setting that Linux cannot express is an error that names the setting. Linux supports only weights that are powers of two.
//! It counts octets including the overhead of the link, and while the link is idle the average falls in coarse steps.

use hol_base::{QueueLimit, Ratio};
use hol_network::{RedSpec, Settings};

use crate::shaper::UnsupportedKey;

/// The parameters of a RED queue, as Linux expects them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedParameters {
    /// Lower threshold of the average queue length, in octets.
    pub min: u32,
    /// Upper threshold of the average queue length, in octets.
    pub max: u32,
    /// Binary logarithm of the inverse weight of the newest sample: the weight is 2 to the power of minus this number.
    pub weight_log: u8,
    /// Drop probability when the average approaches `max`.
    pub drop: Ratio,
    /// Whether packets are marked (ECN) instead of dropped.
    pub ecn: bool,
    /// How the average queue length decays while the link is idle.
    pub idle_decay: IdleAverageDecay,
}

/// The table by which RED's average queue length decays while the link is idle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleAverageDecay {
    /// Binary logarithm of the duration of a table step in µs.
    pub step_log: u8,
    /// For each number of steps that the link was idle, how often the average is halved. If it is 0, the average falls
    /// linearly.
    pub halvings: [u8; 256],
}

/// Maximum relative deviation of the weight from a power of two: that of ns-2's default 0.002 from 1/512.
const WEIGHT_TOLERANCE: f64 = 0.025;
/// Maximum binary logarithm of the table's step in µs; longer steps would not fit into the kernel's 32 bits.
const MAX_STEP_LOG: f64 = 23.0;
/// Maximum number of halvings that the kernel accepts.
const MAX_HALVINGS: f64 = 31.0;

impl RedParameters {
    /// Converts `spec` for a link with `settings`; returns an error if the kernel does not support it.
    pub(crate) fn from_spec(spec: &RedSpec, settings: &Settings) -> Result<Self, UnsupportedKey> {
        if spec.gentle {
            let why = "Linux's RED drops every packet from `max` on; remove `gentle`";
            return Err(("network.discipline: gentle", why.to_owned()));
        }
        let (QueueLimit::Bytes(min), QueueLimit::Bytes(max)) = (spec.min, spec.max) else {
            let why =
                "Linux's RED counts octets; give both in octets, as in min = \"7500B\", max = \"22500B\"";
            return Err(("network.discipline: min, max", why.to_owned()));
        };
        let weight_log = (-spec.weight.log2()).round().max(0.0);
        let nearest = (-weight_log).exp2();
        if (spec.weight / nearest - 1.0).abs() > WEIGHT_TOLERANCE {
            let why = format!("Linux's RED supports only powers of two; use {nearest}");
            return Err(("network.discipline: weight", why));
        }
        let weight_log = weight_log as u8;
        // The kernel's maximum for thresholds, which share 31 bits with the fraction of the average.
        let limit = (1_u64 << 31_u8.saturating_sub(weight_log)) - 1;
        if max > limit {
            let why = format!("with this weight Linux supports thresholds of at most {limit}B; lower `max`");
            return Err(("network.discipline: max", why));
        }
        let transmission = settings.rate.serialization_time(spec.packet.0, 0).0;
        let idle_decay = IdleAverageDecay::with_time_constant(transmission.as_secs_f64() * 1e6 / nearest);
        Ok(Self { min: min as u32, max: max as u32, weight_log, drop: spec.drop, ecn: spec.ecn, idle_decay })
    }
}

impl IdleAverageDecay {
    /// Creates a table with which the average decays to 1/e in `time` µs, as if packets arrived back to back at an
    /// empty queue.
    fn with_time_constant(time: f64) -> Self {
        let step_log = time.log2().round().clamp(0.0, MAX_STEP_LOG);
        let halvings_a_step = step_log.exp2() / time * std::f64::consts::LOG2_E;
        let halvings = |steps: usize| (steps as f64 * halvings_a_step).round().min(MAX_HALVINGS) as u8;
        Self { step_log: step_log as u8, halvings: std::array::from_fn(halvings) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets() -> RedSpec {
        RedSpec { min: QueueLimit::Bytes(7500), max: QueueLimit::Bytes(22_500), ..RedSpec::default() }
    }

    fn of(spec: &RedSpec) -> Result<RedParameters, UnsupportedKey> {
        RedParameters::from_spec(spec, &Settings::default())
    }

    #[test]
    fn default_weight_is_rounded_to_the_nearest_power_of_two() {
        let early = of(&octets()).unwrap();
        assert_eq!((early.min, early.max, early.weight_log), (7500, 22_500, 9));
        assert_eq!(of(&RedSpec { weight: 1.0, ..octets() }).unwrap().weight_log, 0);
    }

    #[test]
    fn idle_average_decays_as_in_the_model() {
        // 500 octets at 100 Mbit/s take 40 µs, and 512 such times are 20.48 ms.
        let IdleAverageDecay { step_log, halvings } = of(&octets()).unwrap().idle_decay;
        let fallen = |steps: f64| (1.0 - 1.0 / 512.0_f64).powf(steps * f64::from(1 << step_log) / 40.0);
        for steps in [4, 8, 12] {
            let halvings = f64::from(halvings[steps]);
            assert!((halvings + fallen(steps as f64).log2()).abs() <= 0.51, "{steps} steps, {halvings}");
        }
        assert_eq!((step_log, halvings[0], halvings[255]), (14, 0, 31));
    }

    #[test]
    fn settings_that_linux_treats_differently_are_refused_with_a_remedy() {
        let refused = [
            (RedSpec::default(), "min, max", "octets"),
            (RedSpec { gentle: true, ..octets() }, "gentle", "remove"),
            (RedSpec { weight: 0.003, ..octets() }, "weight", "0.00390625"),
            (RedSpec { max: QueueLimit::Bytes(1 << 22), ..octets() }, "max", "4194303B"),
        ];
        for (spec, key, cure) in refused {
            let (what, why) = of(&spec).unwrap_err();
            assert!(what.contains(key) && why.contains(cure), "{what}: {why}");
        }
    }
}
