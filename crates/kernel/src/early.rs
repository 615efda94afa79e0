//! Random early detection as Linux has it: a queue whose average decides who is dropped, behind a pace that lets packets
//! go as fast as the line does. tc-red(8), tc-cbs(8).
//!
//! The emulator that is the transmitter comes after, on an interface of its own: packets that are in it have left the queue,
//! as in the model. Of Linux's shapers only that for credits will do: it takes a packet out of the queue no earlier than the
//! line is free for it, and asks an empty queue too, which thereby learns that it is idle.
//!
//! What Linux decides otherwise is refused by name. Its weights are powers of two, it counts octets with the overhead of the
//! line, and while the line is idle the average falls by rough steps.

use hol_base::{QueueLimit, Ratio};
use hol_network::{Discipline, RedSpec, Settings};

/// What makes packets wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// What a sender gains while it waits, in kbit/s.
    pub(crate) gain: i32,
}

/// Who is dropped early.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Early {
    /// Octets.
    pub(crate) min: u32,
    /// Octets.
    pub(crate) max: u32,
    /// The weight of the newest sample is one half to the power of this.
    pub(crate) weight_log: u8,
    /// The probability as the average comes to `max`.
    pub(crate) drop: Ratio,
    pub(crate) damping: Damping,
}

/// How the average falls while the line is idle: a table by time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Damping {
    /// A step of the table takes 2 to the power of this, in µs.
    pub(crate) step_log: u8,
    /// How often it is halved after so many steps; before the first it falls in proportion.
    pub(crate) halvings: [u8; 256],
}

/// A key for which the kernel has no words, and what to do.
pub(crate) type Refusal = (&'static str, String);

/// How far the weight may be from a power of two: as much as ns-2's default of 0.002 is from 1/512.
const WEIGHT_TOLERANCE: f64 = 0.025;
/// A longer step's table would not fit into the kernel's 32 bits.
const LONGEST_STEP: f64 = 23.0;
/// The kernel refuses more.
const MOST_HALVINGS: f64 = 31.0;

/// The queue of a line that began with `start` and now has `settings`, if it drops early. Its average falls at the rate that
/// there was in the beginning, for Linux would have it begin anew.
pub(crate) fn queue(start: &Settings, settings: &Settings) -> Option<Result<(Pace, Early), Refusal>> {
    let Discipline::Red(spec) = &start.discipline else { return None };
    Some(Early::of(spec, start).and_then(|early| Ok((Pace::of(settings)?, early))))
}

impl Pace {
    /// What the interfaces say they carry, in kbit/s: a packet takes so long, and then until its octets are gained.
    pub(crate) const PORT: i32 = 10_000_000;
    /// The pace may be slower than the line by this part.
    const TOLERANCE: f64 = 0.001;

    /// The pace of a line, if the kernel has words for it.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Refusal> {
        let (rate, port) = (settings.rate.bits_per_second() as f64 / 1e3, f64::from(Self::PORT));
        let exact = rate * port / (port - rate);
        // Never faster, or packets would pile up behind the pace.
        let gain = exact.floor();
        if rate >= port || gain < exact * (1.0 - Self::TOLERANCE) {
            let why = "below Linux's RED a line has whole kbit/s, and less than 10 Gbit/s; round it";
            return Err(("network.rate", why.to_owned()));
        }
        Ok(Self { gain: gain as i32 })
    }
}

impl Early {
    /// The same as `spec` on a line with `settings`, if the kernel has words for it.
    pub(crate) fn of(spec: &RedSpec, settings: &Settings) -> Result<Self, Refusal> {
        if spec.gentle {
            let why = "Linux's RED drops everybody from `max` on; leave `gentle` out";
            return Err(("network.discipline: gentle", why.to_owned()));
        }
        let (QueueLimit::Bytes(min), QueueLimit::Bytes(max)) = (spec.min, spec.max) else {
            let why = "Linux's RED counts octets; give both so, as in min = \"7500B\", max = \"22500B\"";
            return Err(("network.discipline: min, max", why.to_owned()));
        };
        let weight_log = (-spec.weight.log2()).round().max(0.0);
        let nearest = (-weight_log).exp2();
        if (spec.weight / nearest - 1.0).abs() > WEIGHT_TOLERANCE {
            let why = format!("Linux's weights are powers of two; take {nearest}");
            return Err(("network.discipline: weight", why));
        }
        let weight_log = weight_log as u8;
        // What the kernel takes for thresholds: with the fraction of the average they have 31 bits.
        let most = (1_u64 << 31_u8.saturating_sub(weight_log)) - 1;
        if max > most {
            let why = format!("with this weight Linux takes {most}B at most; lower it");
            return Err(("network.discipline: max", why));
        }
        let transmission = settings.rate.serialization(spec.packet.0, 0).0;
        let damping = Damping::of(transmission.as_secs_f64() * 1e6 / nearest);
        Ok(Self { min: min as u32, max: max as u32, weight_log, drop: spec.drop, damping })
    }
}

impl Damping {
    /// Falls to 1/e in `time`, in µs: as if packets came to an empty queue one after the other.
    fn of(time: f64) -> Self {
        let step_log = time.log2().round().clamp(0.0, LONGEST_STEP);
        let halvings_a_step = step_log.exp2() / time * std::f64::consts::LOG2_E;
        let halvings = |steps: usize| (steps as f64 * halvings_a_step).round().min(MOST_HALVINGS) as u8;
        Self { step_log: step_log as u8, halvings: std::array::from_fn(halvings) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets() -> RedSpec {
        RedSpec { min: QueueLimit::Bytes(7500), max: QueueLimit::Bytes(22_500), ..RedSpec::default() }
    }

    fn of(spec: &RedSpec) -> Result<Early, Refusal> {
        Early::of(spec, &Settings::default())
    }

    #[test]
    fn the_default_weight_is_taken_for_the_nearest_power_of_two() {
        let early = of(&octets()).unwrap();
        assert_eq!((early.min, early.max, early.weight_log), (7500, 22_500, 9));
        assert_eq!(of(&RedSpec { weight: 1.0, ..octets() }).unwrap().weight_log, 0);
    }

    #[test]
    fn while_idle_the_average_is_halved_as_often_as_the_model_has_it_fall() {
        // 500 octets at 100 Mbit/s take 40 µs, and 512 such times are 20.48 ms.
        let Damping { step_log, halvings } = of(&octets()).unwrap().damping;
        let fallen = |steps: f64| (1.0 - 1.0 / 512.0_f64).powf(steps * f64::from(1 << step_log) / 40.0);
        for steps in [4, 8, 12] {
            let halvings = f64::from(halvings[steps]);
            assert!((halvings + fallen(steps as f64).log2()).abs() <= 0.51, "{steps} steps, {halvings}");
        }
        assert_eq!((step_log, halvings[0], halvings[255]), (14, 0, 31));
    }

    #[test]
    fn what_linux_does_otherwise_is_refused_with_the_key_and_the_cure() {
        let refused = [
            (RedSpec::default(), "min, max", "octets"),
            (RedSpec { gentle: true, ..octets() }, "gentle", "leave"),
            (RedSpec { weight: 0.003, ..octets() }, "weight", "0.00390625"),
            (RedSpec { max: QueueLimit::Bytes(1 << 22), ..octets() }, "max", "4194303B"),
        ];
        for (spec, key, cure) in refused {
            let (what, why) = of(&spec).unwrap_err();
            assert!(what.contains(key) && why.contains(cure), "{what}: {why}");
        }
    }

    #[test]
    fn a_packet_takes_as_long_at_the_pace_as_on_the_line() {
        for rate in ["64kbit", "400kbit", "10Mbit", "1Gbit"] {
            let settings = Settings { rate: rate.parse().unwrap(), ..Settings::default() };
            let gain = f64::from(Pace::of(&settings).unwrap().gain);
            let slower =
                (1.0 / gain + 1.0 / f64::from(Pace::PORT)) * settings.rate.bits_per_second() as f64 / 1e3;
            assert!((1.0..1.001).contains(&slower), "{rate}: {slower}");
        }
        for rate in ["64500bit", "10Gbit"] {
            let settings = Settings { rate: rate.parse().unwrap(), ..Settings::default() };
            assert_eq!(Pace::of(&settings).unwrap_err().0, "network.rate");
        }
    }
}
