//! Queues behind a pace, which lets packets go as fast as the line does. tc-cbs(8).
//!
//! The emulator that is the transmitter comes after, on an interface of its own: packets that are in it have left the queue,
//! as in the model. So who waits may be dropped early, may be overtaken, and leaves at the rate that the line has by then.
//!
//! Of Linux's shapers only that for credits will do: it takes a packet out of the queue no earlier than the
//! line is free for it, and asks an empty queue too, which thereby learns that it is idle.

use hol_base::QueueLimit;
use hol_network::{CodelSpec, Discipline, FairSpec, PieSpec, Settings};

use crate::early::Early;

/// What makes packets wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// What a sender gains while it waits, in parts of a kbit/s: 64 of them.
    pub gain: i32,
}

/// Who goes next of those that wait, and who is dropped.
#[derive(Debug, Clone, PartialEq)]
pub enum Waiting {
    /// First in first out; who finds it full.
    Fifo(QueueLimit),
    /// Some who come to the queue that follows.
    Early(Box<Early>),
    /// Who has waited for long, as CoDel has it.
    Codel {
        /// Its settings.
        spec: CodelSpec,
        /// Packets that wait at most.
        limit: u32,
    },
    /// The same, a queue for each flow.
    FairCodel {
        /// Its settings.
        spec: FairSpec,
        /// Packets that wait at most.
        limit: u32,
    },
    /// Who comes when those before have long to wait, as PIE has it.
    Pie {
        /// Its settings.
        spec: PieSpec,
        /// Packets that wait at most.
        limit: u32,
    },
}

/// A key for which the kernel has no words, and what to do.
pub(crate) type Refusal = (&'static str, String);

impl Waiting {
    const ALL: QueueLimit = QueueLimit::Packets(1_000_000);

    /// The disciplines behind the pace of a line that began with `start`, one in the other. What RED has averaged falls at the
    /// rate that there was in the beginning, for Linux would have it begin anew.
    pub(crate) fn of(start: &Settings) -> Result<Vec<Self>, Refusal> {
        Ok(match (&start.discipline, start.queue) {
            // Its octets are counted before the pace, and given back behind the transmitter.
            (Discipline::DropTail, QueueLimit::Bytes(_)) => vec![Self::Fifo(Self::ALL)],
            (Discipline::DropTail, queue) => vec![Self::Fifo(queue)],
            (Discipline::Red(spec), queue) => {
                vec![Self::Early(Box::new(Early::of(spec, start)?)), Self::Fifo(queue)]
            }
            (Discipline::Codel(spec), queue) => vec![Self::Codel { spec: *spec, limit: packets(queue)? }],
            (Discipline::FairCodel(spec), queue) => {
                vec![Self::FairCodel { spec: *spec, limit: packets(queue)? }]
            }
            (Discipline::Pie(spec), queue) => vec![Self::Pie { spec: *spec, limit: packets(queue)? }],
        })
    }
}

/// How many packets wait at most, beside the one in transmission.
fn packets(queue: QueueLimit) -> Result<u32, Refusal> {
    match queue {
        QueueLimit::Packets(packets) => Ok(beside_one(packets)),
        QueueLimit::Bytes(_) => {
            let why = "Linux's CoDel and PIE have queues of packets; give it so, as in queue = \"1000p\"";
            Err(("network.queue", why.to_owned()))
        }
    }
}

/// What is left of a queue of so many packets beside the one in transmission.
pub(crate) fn beside_one(packets: u64) -> u32 {
    u32::try_from(packets.saturating_sub(1).max(1)).unwrap_or(u32::MAX)
}

impl Pace {
    /// What the interfaces say they carry, in kbit/s: a packet takes so long, and then until its octets are gained.
    pub(crate) const PORT: i32 = 10_000_000;
    /// Linux counts credits in whole octets, which for a short packet is a part in a hundred: so it is told of so many times as
    /// many.
    pub(crate) const SCALE: i32 = 64;
    /// The pace may be slower than the line by this part.
    const TOLERANCE: f64 = 0.001;

    /// The pace of a line, if the kernel has words for it.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Refusal> {
        let (rate, port) = (settings.rate.bits_per_second() as f64 / 1e3, f64::from(Self::PORT));
        let exact = rate * port / (port - rate) * f64::from(Self::SCALE);
        // Never faster, or packets would pile up behind the pace.
        let gain = exact.floor();
        if rate >= port || gain > f64::from(i32::MAX) || gain < exact * (1.0 - Self::TOLERANCE) {
            let why = "a line whose queue drops early, or whose rate changes, has 16 kbit/s to 7 Gbit/s here";
            return Err(("network.rate", why.to_owned()));
        }
        Ok(Self { gain: gain as i32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_as_long_at_the_pace_as_on_the_line() {
        for rate in ["16kbit", "64500bit", "400kbit", "10Mbit", "1Gbit", "7Gbit"] {
            let settings = Settings { rate: rate.parse().unwrap(), ..Settings::default() };
            let gain = f64::from(Pace::of(&settings).unwrap().gain) / f64::from(Pace::SCALE);
            let slower =
                (1.0 / gain + 1.0 / f64::from(Pace::PORT)) * settings.rate.bits_per_second() as f64 / 1e3;
            assert!((1.0..1.001).contains(&slower), "{rate}: {slower}");
        }
        for rate in ["1010bit", "9Gbit", "10Gbit"] {
            let settings = Settings { rate: rate.parse().unwrap(), ..Settings::default() };
            assert_eq!(Pace::of(&settings).unwrap_err().0, "network.rate");
        }
    }

    #[test]
    fn a_queue_holds_what_is_left_beside_the_packet_in_transmission() {
        assert_eq!([50, 2, 1].map(beside_one), [49, 1, 1]);
    }

    #[test]
    fn codel_counts_packets() {
        let settings = |queue| Settings {
            discipline: Discipline::FairCodel(FairSpec::default()),
            queue,
            ..Settings::default()
        };
        assert!(Waiting::of(&settings(QueueLimit::Packets(50))).is_ok());
        assert_eq!(Waiting::of(&settings(QueueLimit::Bytes(50_000))).unwrap_err().0, "network.queue");
    }
}
