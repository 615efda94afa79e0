//! Queues of ns: their classes and attributes, and the corresponding discipline.
//!
//! The defaults are ns's (`ns-default.tcl` of 2.35; `queue/red.cc` `REDQueue::initialize_params`) or
//! Emulab's.

use hol_base::{BitRate, ByteCount, Duration, QueueLimit, Ratio};
use hol_network::{CodelSpec, Discipline, FairSpec, PieSpec, RedSpec};

use crate::network_builder::DEFAULT_QUEUE;
use crate::quantity::{at_least_one, positive, seconds, switch};
use crate::tcl::{Word, WordError, error_at};

/// The attributes of a queue, in ns's units; `None` where the script does not set them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    kind: Kind,
    limit: Option<u64>,
    in_bytes: Option<bool>,
    gentle: Option<bool>,
    min: Option<f64>,
    max: Option<f64>,
    weight: Option<f64>,
    /// The inverse of the maximum probability of an early drop by RED.
    inverse_max_probability: Option<f64>,
    packet: Option<u64>,
    marks_ecn: bool,
    target: Option<Duration>,
    interval: Option<Duration>,
}

/// The queueing discipline of a queue in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    DropTail,
    Red,
    Codel,
    FairCodel,
    Pie,
}

/// Attributes of queues that have no effect on the packets that are sent.
const IDLE_ATTRIBUTES: [&str; 5] =
    ["summarystats_", "util_check_intv_", "util_weight_", "util_records_", "idle_pktsize_"];

/// Attributes of queues that hol supports only with the listed values.
const FIXED_ATTRIBUTES: [(&str, &[&str]); 22] = [
    ("blocked_", &["0", "false"]),
    ("unblock_on_resume_", &["1", "true"]),
    ("interleave_", &["0", "false"]),
    ("acksfirst_", &["0", "false"]),
    ("ackfromfront_", &["0", "false"]),
    ("filteracks_", &["0", "false"]),
    ("replace_head_", &["0", "false"]),
    ("priority_drop_", &["0", "false"]),
    ("random_drop_", &["0", "false"]),
    ("wait_", &["1", "true"]),
    ("drop-tail_", &["1", "true", "0", "false"]),
    ("drop_tail_", &["1", "true", "0", "false"]),
    ("drop_front_", &["0", "false"]),
    ("drop-front_", &["0", "false"]),
    ("drop_rand_", &["0", "false"]),
    ("drop-rand_", &["0", "false"]),
    ("bytes_", &["1", "true"]),
    ("adaptive_", &["0", "false"]),
    ("ns1_compat_", &["0", "false"]),
    ("cautious_", &["0", "false"]),
    ("feng_adaptive_", &["0", "false"]),
    ("targetdelay_", &["0.005"]),
];

impl Queue {
    /// Creates a queue of an ns class.
    pub fn of(class: &Word) -> Result<Self, WordError> {
        let (kind, gentle) = match class.text.as_str() {
            "DropTail" => (Kind::DropTail, None),
            "RED" => (Kind::Red, None),
            "GRED" => (Kind::Red, Some(true)),
            "CoDel" => (Kind::Codel, None),
            "sfqCoDel" | "FqCoDel" => (Kind::FairCodel, None),
            "PIE" => (Kind::Pie, None),
            "SFQ" => {
                let problem = "SFQ gives flows equally many packets, which no queue of hol does; sfqCoDel gives them equally many octets";
                return error_at(class.at, problem);
            }
            other => {
                let problem = format!(
                    "{other:?} is not a supported queue; use DropTail, RED, GRED, CoDel, sfqCoDel or PIE"
                );
                return error_at(class.at, problem);
            }
        };
        Ok(Self { kind, gentle, ..Self::default() })
    }

    /// Sets an attribute of the queue, such as `limit_`.
    pub fn set(&mut self, attribute: &Word, value: &Word, is_emulab: bool) -> Result<(), WordError> {
        match attribute.text.as_str() {
            "limit_" | "maxqlen_" => {
                let limit = positive(value)?;
                // queue/drop-tail.cc, enque: a packet is dropped if the queue would hold as many as its limit.
                if limit == 1 && self.kind == Kind::DropTail && !is_emulab {
                    return error_at(
                        value.at,
                        "ns's DropTail with a limit of 1 drops all packets; use at least 2",
                    );
                }
                self.limit = Some(limit);
            }
            "queue-in-bytes_" | "queue_in_bytes_" => self.in_bytes = Some(switch(value)?),
            "red_" => self.kind = if switch(value)? { Kind::Red } else { Kind::DropTail },
            "gentle_" => self.gentle = Some(switch(value)?),
            // At zero or below, ns computes the value.
            "thresh_" | "minthresh_" => self.min = positive_or_default(value)?,
            "maxthresh_" => self.max = positive_or_default(value)?,
            "q_weight_" => self.weight = positive_or_default(value)?,
            "linterm_" => self.inverse_max_probability = Some(at_least_one(value)?),
            "mean_pktsize_" => self.packet = Some(positive(value)?),
            "setbit_" => self.marks_ecn = switch(value)?,
            "target_" if self.kind != Kind::Red => self.target = Some(seconds(value)?),
            "interval_" if self.kind != Kind::Red => self.interval = Some(seconds(value)?),
            name if IDLE_ATTRIBUTES.contains(&name) => {}
            // Only ns's RED has this attribute; Emulab's RED does not count octets.
            "bytes_" if is_emulab || self.kind != Kind::Red => {}
            name => match FIXED_ATTRIBUTES.iter().find(|(known, _)| *known == name) {
                Some((_, values)) if values.contains(&value.text.as_str()) => {}
                Some((_, values)) => {
                    return error_at(
                        value.at,
                        format!(
                            "{name} {} changes which packets are dropped; only {} is supported",
                            value.text, values[0]
                        ),
                    );
                }
                None => {
                    return error_at(
                        attribute.at,
                        format!("{name:?} is not an attribute of a queue; use limit_"),
                    );
                }
            },
        }
        Ok(())
    }

    /// Returns whether the queue draws random numbers.
    pub fn draws_random_numbers(&self) -> bool {
        matches!(self.kind, Kind::Red | Kind::Pie)
    }

    /// Returns the limit of the queue in packets or octets.
    pub fn limit(&self, is_emulab: bool) -> QueueLimit {
        let limit = self.limit.unwrap_or(DEFAULT_QUEUE);
        match (self.is_in_bytes(is_emulab), is_emulab) {
            (false, _) => QueueLimit::Packets(limit),
            (true, true) => QueueLimit::Bytes(limit),
            // queue/drop-tail.cc, queue/red.cc: the limit counts packets of the mean size.
            (true, false) => QueueLimit::Bytes(limit.saturating_mul(self.packet())),
        }
    }

    /// Returns the queueing discipline for a link with this rate and delay.
    pub fn discipline(&self, is_emulab: bool, rate: BitRate, delay: Duration) -> Discipline {
        match self.kind {
            Kind::DropTail => Discipline::DropTail,
            Kind::Red => Discipline::Red(self.red(is_emulab, rate, delay)),
            Kind::Codel => {
                let usual = CodelSpec::default();
                let target = self.target.unwrap_or(usual.target);
                Discipline::Codel(CodelSpec {
                    target,
                    interval: self.interval.unwrap_or(usual.interval),
                    ..usual
                })
            }
            Kind::FairCodel => {
                let usual = FairSpec::default();
                let target = self.target.unwrap_or(usual.target);
                Discipline::FairCodel(FairSpec {
                    target,
                    interval: self.interval.unwrap_or(usual.interval),
                    ..usual
                })
            }
            Kind::Pie => {
                let usual = PieSpec::default();
                Discipline::Pie(PieSpec { target: self.target.unwrap_or(usual.target), ..usual })
            }
        }
    }

    fn red(&self, is_emulab: bool, rate: BitRate, delay: Duration) -> RedSpec {
        let packet = self.packet();
        // Packets of the mean size per second.
        let per_second = rate.bits_per_second() as f64 / (8.0 * packet as f64);
        let usual_min = if is_emulab { 5.0 } else { (0.005 * per_second / 2.0).max(5.0) };
        let min = self.min.unwrap_or(usual_min);
        let max = self.max.unwrap_or(if is_emulab { 15.0 } else { 3.0 * min });
        let round_trip = (3.0 * (delay.as_secs_f64() + 1.0 / per_second)).max(0.1);
        let usual_weight =
            if is_emulab { 0.002 } else { 1.0 - (-1.0 / (10.0 * round_trip * per_second)).exp() };
        let threshold = |packets: f64| match self.is_in_bytes(is_emulab) {
            true => QueueLimit::Bytes((packets * packet as f64).round() as u64),
            false => QueueLimit::Packets(packets.round() as u64),
        };
        RedSpec {
            min: threshold(min),
            max: threshold(max),
            weight: self.weight.unwrap_or(usual_weight),
            drop: Ratio::new(1.0 / self.inverse_max_probability.unwrap_or(10.0)).unwrap_or_default(),
            gentle: self.gentle.unwrap_or(!is_emulab),
            packet: ByteCount(packet),
            ecn: self.marks_ecn,
        }
    }

    fn packet(&self) -> u64 {
        self.packet.unwrap_or(500)
    }

    /// Returns whether the queue counts octets instead of packets, which is RED's default in ns 2.35.
    fn is_in_bytes(&self, is_emulab: bool) -> bool {
        self.in_bytes.unwrap_or(self.kind == Kind::Red && !is_emulab)
    }
}

/// Parses a number above zero; `None` for other numbers, which tell ns to compute the value by a rule.
fn positive_or_default(value: &Word) -> Result<Option<f64>, WordError> {
    match value.text.parse::<f64>() {
        Ok(number) if number <= 0.0 => Ok(None),
        _ => positive(value).map(Some),
    }
}
