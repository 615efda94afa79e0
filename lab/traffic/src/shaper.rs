//! The shaper in front of a queue, which releases packets at the rate of the link. tc-cbs(8).
//!
//! The transmitter is an emulator after it, on its own interface: packets in it have left the queue, as in
//! the model. So queued packets may be dropped early or overtaken, and leave at the link's current rate.
//!
//! Of Linux's shapers only the credit-based one works: it takes a packet from the queue no earlier than the
//! link is free, and also polls an empty queue, which thus learns that it is idle.

use hol_base::QueueLimit;
use hol_network::{CodelSpec, Discipline, DualPi2Spec, FairSpec, PieSpec, Settings};

use crate::red::RedParameters;

/// A shaper, which releases packets at the rate of a link; others wait in the queue behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shaper {
    /// Credit that the shaper gains while no packet passes, in kbit/s, multiplied by `scale`.
    pub gain: i32,
    /// Factor by which all values are multiplied, because Linux counts credits in whole octets and loses up to one
    /// octet whenever a packet arrives or leaves.
    pub scale: i32,
}

/// The queue behind a shaper.
#[derive(Debug, Clone, PartialEq)]
pub enum ShaperQueue {
    /// A first-in, first-out queue with this limit.
    Fifo(QueueLimit),
    /// A queue with RED, and another queue after it.
    Early(Box<RedParameters>),
    /// A queue with CoDel.
    Codel {
        /// The settings of CoDel.
        spec: CodelSpec,
        /// Maximum number of packets in the queue.
        limit: u32,
    },
    /// Queues with FQ-CoDel: CoDel with a queue per flow.
    FairCodel {
        /// The settings of FQ-CoDel.
        spec: FairSpec,
        /// Maximum number of packets in all queues.
        limit: u32,
    },
    /// A queue with PIE.
    Pie {
        /// The settings of PIE.
        spec: PieSpec,
        /// Maximum number of packets in the queue.
        limit: u32,
    },
    /// Queues with DualPI2, which Linux supports since 6.17.
    DualPi2 {
        /// The settings of DualPI2.
        spec: DualPi2Spec,
        /// Maximum number of packets in the queues.
        limit: u32,
    },
}

/// The key of a setting that the kernel does not support, and the remedy.
pub(crate) type UnsupportedKey = (&'static str, String);

impl ShaperQueue {
    const UNLIMITED_QUEUE: QueueLimit = QueueLimit::Packets(1_000_000);

    /// Returns the disciplines nested in the shaper of a link that started with the settings `start`. RED's average
    /// decays at the initial rate of the link, because Linux would restart the average after a change of the rate.
    pub(crate) fn nested_queues(start: &Settings) -> Result<Vec<Self>, UnsupportedKey> {
        Ok(match (&start.discipline, start.queue) {
            // Filters count the queued octets before the shaper, and release them after the transmitter.
            (Discipline::DropTail, QueueLimit::Bytes(_)) => vec![Self::Fifo(Self::UNLIMITED_QUEUE)],
            (Discipline::DropTail, queue) => vec![Self::Fifo(queue)],
            (Discipline::Red(spec), queue) => {
                vec![Self::Early(Box::new(RedParameters::from_spec(spec, start)?)), Self::Fifo(queue)]
            }
            (Discipline::Codel(spec), queue) => vec![Self::Codel { spec: *spec, limit: packets(queue)? }],
            (Discipline::FairCodel(spec), queue) => {
                vec![Self::FairCodel { spec: *spec, limit: packets(queue)? }]
            }
            (Discipline::Pie(spec), queue) => vec![Self::Pie { spec: *spec, limit: packets(queue)? }],
            (Discipline::DualPi2(spec), queue) => vec![Self::DualPi2 { spec: *spec, limit: packets(queue)? }],
        })
    }
}

/// Returns the maximum number of packets in a queue, without the packet in transmission.
fn packets(queue: QueueLimit) -> Result<u32, UnsupportedKey> {
    match queue {
        QueueLimit::Packets(packets) => Ok(queue_without_transmission(packets)),
        QueueLimit::Bytes(_) => {
            let why = "Linux's CoDel, PIE and DualPI2 count packets; give the limit in packets, as in queue = \"1000p\"";
            Err(("network.queue", why.to_owned()))
        }
    }
}

/// Returns the limit of a queue without the packet in transmission, both in packets; `packets` includes that packet.
pub(crate) fn queue_without_transmission(packets: u64) -> u32 {
    u32::try_from(packets.saturating_sub(1).max(1)).unwrap_or(u32::MAX)
}

impl Shaper {
    /// The assumed rate of interfaces in kbit/s. The shaper gains credit only after the time that a packet takes at
    /// this rate.
    pub(crate) const INTERFACE_RATE_KBPS: i32 = 10_000_000;
    /// The largest scale with which the rate of interfaces fits into 32 bits.
    const MAX_SCALE: i32 = i32::MAX / Self::INTERFACE_RATE_KBPS;
    /// The slowest possible shaper, with which a packet of 1500 octets takes 40 minutes.
    pub(crate) const SLOWEST: Self = Self { gain: 1, scale: Self::MAX_SCALE };
    /// The smallest scale; with a smaller one the octets that are lost to rounding would slow the link down.
    const MIN_SCALE: f64 = 64.0;
    /// Maximum relative difference by which the shaper may be slower than the link's rate.
    const MAX_RATE_SHORTFALL: f64 = 0.001;

    /// Returns the shaper of a link, or an error if the kernel does not support it.
    pub(crate) fn new(settings: &Settings) -> Result<Self, UnsupportedKey> {
        let (rate, port) =
            (settings.rate.bits_per_second() as f64 / 1e3, f64::from(Self::INTERFACE_RATE_KBPS));
        let exact = rate * port / (port - rate);
        let scale = (f64::from(i32::MAX) / exact).floor().clamp(1.0, f64::from(Self::MAX_SCALE));
        // Rounded down: if the shaper were faster, packets would queue after it.
        let gain = (exact * scale).floor();
        if rate >= port || scale < Self::MIN_SCALE || gain < exact * scale * (1.0 - Self::MAX_RATE_SHORTFALL)
        {
            let why = "the rate of a link with a queueing discipline, or with a rate that changes, must be 5 kbit/s to 7 Gbit/s";
            return Err(("network.rate", why.to_owned()));
        }
        Ok(Self { gain: gain as i32, scale: scale as i32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shaper_paces_packets_at_the_link_rate() {
        for rate in ["5kbit", "16kbit", "64500bit", "400kbit", "10Mbit", "1Gbit", "7Gbit"] {
            let settings = Settings { rate: rate.parse().unwrap(), ..Settings::default() };
            let Shaper { gain, scale } = Shaper::new(&settings).unwrap();
            let gain = f64::from(gain) / f64::from(scale);
            let slower = (1.0 / gain + 1.0 / f64::from(Shaper::INTERFACE_RATE_KBPS))
                * settings.rate.bits_per_second() as f64
                / 1e3;
            assert!((1.0..1.001).contains(&slower), "{rate}: {slower}");
        }
        for rate in ["700bit", "9Gbit", "10Gbit"] {
            let settings = Settings { rate: rate.parse().unwrap(), ..Settings::default() };
            assert_eq!(Shaper::new(&settings).unwrap_err().0, "network.rate");
        }
    }

    #[test]
    fn queue_limit_excludes_the_packet_in_transmission() {
        assert_eq!([50, 2, 1].map(queue_without_transmission), [49, 1, 1]);
    }

    #[test]
    fn codel_counts_packets() {
        let settings = |queue| Settings {
            discipline: Discipline::FairCodel(FairSpec::default()),
            queue,
            ..Settings::default()
        };
        assert!(ShaperQueue::nested_queues(&settings(QueueLimit::Packets(50))).is_ok());
        assert_eq!(
            ShaperQueue::nested_queues(&settings(QueueLimit::Bytes(50_000))).unwrap_err().0,
            "network.queue"
        );
    }
}
