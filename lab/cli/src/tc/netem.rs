//! netem, and what its limit means for a queue. tc-netem(8).

use std::fmt::Write;

use hol_base::{BitRate, Duration, Ratio};

use super::words::{Words, parse_count, parse_percentage, parse_rate, parse_time};
use super::{FULL_PACKET_OCTETS, ORDER_ONLY_RATE, ShapedDirection, UNLIMITED_RATE};

/// netem's default limit in packets. tc-netem(8).
const NETEM_DEFAULT_LIMIT: u64 = 1000;

const OVERHEAD_UNSUPPORTED: &str =
    "rate with an overhead is not supported; use network.overhead in the experiment";

/// netem's limit on the number of packets that wait in it or are in transit (net/sched/sch_netem.c,
/// netem_enqueue).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TransitLimit {
    packets: u64,
    delay: Duration,
}

impl TransitLimit {
    /// Returns the rate in bit/s at which as many full packets as the limit allows are in transit.
    fn max_rate(&self) -> f64 {
        self.packets as f64 * FULL_PACKET_OCTETS as f64 * 8.0 / self.delay.as_secs_f64()
    }

    /// Returns the rate to which the limit restricts a link; `None` if it does not. `rate` is the rate of the
    /// link itself, 10 Gbit/s by default.
    pub(super) fn restricted_rate(&self, rate: Option<BitRate>) -> Option<BitRate> {
        let rate = rate.map_or(UNLIMITED_RATE, |rate| rate.bits_per_second() as f64);
        let max = self.max_rate();
        BitRate::from_bits_per_second(max as u64).filter(|_| max < rate)
    }

    /// Returns the number of packets that may wait when full packets are sent at `rate` (in bit/s) and fill the
    /// path.
    fn waiting(&self, rate: f64) -> u64 {
        let in_transit = (rate * self.delay.as_secs_f64() / 8.0 / FULL_PACKET_OCTETS as f64) as u64;
        self.packets.saturating_sub(in_transit).max(1)
    }
}

/// Parses the options of netem. tc-netem(8).
pub(super) fn parse_netem(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let (mut delay, mut speed, mut limit) = (Duration::ZERO, None, NETEM_DEFAULT_LIMIT);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit = words.parse_value(word, parse_count)?,
            "delay" | "latency" => {
                delay = words.parse_value(word, parse_time)?;
                if let Some(jitter) = words.parse_optional(parse_time).filter(|jitter| *jitter > Duration::ZERO) {
                    shaped.set("jitter", jitter);
                    shaped.notes.push(
                        "netem reorders packets if the delay varies by more than the interval between them; hol keeps their order"
                            .to_owned(),
                    );
                    if let Some(correlation) = words.parse_optional(parse_percentage) {
                        shaped.set("jitter_correlation", correlation);
                    }
                }
            }
            "distribution" => {
                let kind = words.value(word)?;
                if !["uniform", "normal", "pareto", "paretonormal"].contains(&kind) {
                    return Err(format!("distribution {kind} is not supported; use uniform, normal, pareto or paretonormal, or set \
                        network.jitter_distribution to a file"));
                }
                shaped.set("jitter_distribution", kind);
            }
            "loss" | "drop" => loss(shaped, words)?,
            "duplicate" | "corrupt" => {
                let key = if word == "corrupt" { "corrupt" } else { "duplicate" };
                let own = words.parse_value(word, parse_percentage)?;
                shaped.set(key, own);
                if words.parse_optional(parse_percentage).is_some_and(|correlation| !correlation.is_zero()) {
                    return Err(format!("{word} with a correlation is not supported, because hol draws each packet independently; omit the correlation"));
                }
            }
            "rate" => {
                speed = Some(words.parse_value(word, parse_rate)?);
                if words.parse_optional(parse_count).is_some_and(|overhead| overhead > 0) {
                    return Err(OVERHEAD_UNSUPPORTED.to_owned());
                }
            }
            "ecn" => return Err("netem's ecn is not supported, because hol marks packets only in queues; use discipline = { codel = { ecn = true } }".to_owned()),
            "packetoverhead" => {
                if words.parse_value(word, parse_count)? > 0 {
                    return Err(OVERHEAD_UNSUPPORTED.to_owned());
                }
            }
            "slot" => {
                let problem = "netem's slot is not supported, because it releases packets in bursts at fixed times";
                return Err(problem.to_owned());
            }
            "reorder" | "gap" if words.parse_optional(|word| parse_percentage(word).filter(|share| share.is_zero())).is_some() => {
                words.parse_optional(parse_percentage);
            }
            "reorder" | "gap" => {
                return Err(format!(
                    "netem's {word} is not supported, because it sends some packets at once and delays the others; use the keys `reorder` \
                    and `reorder_by`, which delay some packets more than the others"
                ));
            }
            "seed" => drop(words.next()),
            other => return Err(format!("option {other:?} of netem is not supported")),
        }
    }
    if !delay.is_zero() || shaped.keys.is_empty() && speed.is_none() {
        shaped.keys.insert(0, ("delay", format!("\"{delay}\"")));
    }
    set_rate_and_queue(shaped, speed, delay, limit);
    Ok(())
}

/// Returns the options that netem has after a `change` (net/sched/sch_netem.c, netem_change). A change replaces
/// all options, but netem keeps its rate and its corruption if the change does not name them. If the delay still
/// varies, netem also keeps the correlation and the distribution of the delay.
pub(super) fn apply_netem_change(before: &ShapedDirection, mut changed: ShapedDirection) -> ShapedDirection {
    let varies = changed.keys.iter().any(|(key, _)| *key == "jitter");
    for (key, value) in &before.keys {
        let is_kept = match *key {
            "corrupt" => true,
            "jitter_correlation" | "jitter_distribution" => varies,
            _ => false,
        };
        if is_kept && !changed.keys.iter().any(|(named, _)| named == key) {
            changed.keys.push((*key, value.clone()));
        }
    }
    if let (Some(rate), None) = (before.rate(), changed.rate())
        && let Some(TransitLimit { packets, delay }) = changed.transit_limit.take()
    {
        // A delay of 0 stands for a line without other keys.
        changed.keys.retain(|(key, _)| *key != "delay" || !delay.is_zero());
        set_rate_and_queue(&mut changed, Some(rate), delay, packets);
    }
    let (handle, place) = (before.handle.clone(), before.place.clone());
    ShapedDirection { handle, place, ..changed }
}

/// Derives rate and queue from netem's limit. The limit also counts packets in transit, whereas hol's queue counts
/// only waiting packets.
fn set_rate_and_queue(shaped: &mut ShapedDirection, speed: Option<BitRate>, delay: Duration, packets: u64) {
    let limit = TransitLimit { packets, delay };
    // netem with a rate, however high, does not reorder packets whose delays vary.
    let Some(speed) = speed.filter(|speed| speed.bits_per_second() < ORDER_ONLY_RATE) else {
        shaped.transit_limit = Some(limit);
        return;
    };
    shaped.set("rate", speed);
    if limit.restricted_rate(Some(speed)).is_some() {
        shaped.transit_limit = Some(limit);
        return;
    }
    let waiting = limit.waiting(speed.bits_per_second() as f64);
    shaped.set("queue", format!("{waiting}p"));
    if waiting < packets {
        shaped.notes.push(format!(
            "netem's limit of {packets} packets includes {} full-size packets in transit, which hol's limit does not include",
            packets - waiting
        ));
    }
}

fn loss(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    match words.value("loss")? {
        "gemodel" => {
            let begins = words.skip_label("p").parse_value("gemodel", parse_percentage)?;
            let end = words.skip_label("r").parse_optional(parse_percentage);
            // tc-netem(8): r is 1 - p by default; then 1 - h, the loss in the bad state, and 1 - k, that in the good one.
            let ends = end.or_else(|| Ratio::new(1.0 - begins.value())).unwrap_or_default();
            let mut table = format!("{{ good_to_bad = \"{begins}\", bad_to_good = \"{ends}\"");
            if let Some(bad) = words.skip_label("1-h").parse_optional(parse_percentage) {
                let _ = write!(table, ", loss_bad = \"{bad}\"");
            }
            if let Some(good) = words.skip_label("1-k").parse_optional(parse_percentage) {
                let _ = write!(table, ", loss_good = \"{good}\"");
            }
            shaped.keys.push(("loss", table + " }"));
        }
        "state" => return Err("loss state is not supported; use gemodel, a Gilbert-Elliott link".to_owned()),
        first => {
            let word = if first == "random" { words.value("loss random")? } else { first };
            let own = parse_percentage(word)
                .ok_or_else(|| format!("loss {word}: write a percentage such as 1%"))?;
            if words.parse_optional(parse_percentage).is_some_and(|correlation| !correlation.is_zero()) {
                return Err(
                    "loss with a correlation is not supported, because netem then drops fewer packets than configured; use loss gemodel"
                        .to_owned(),
                );
            }
            shaped.set("loss", own);
        }
    }
    Ok(())
}

/// Returns the keys `rate` and `queue` that have the same effect as netem's limit, as lines for the table of a
/// direction.
pub(super) fn transit_limit(
    limit: &TransitLimit,
    rate: Option<BitRate>,
    restricted: Option<BitRate>,
    has_queue: bool,
) -> String {
    let TransitLimit { packets, delay } = limit;
    let mut text = String::new();
    if let Some(max) = restricted {
        let instead = rate.map_or(String::new(), |rate| format!(" instead of {rate}"));
        let _ = writeln!(
            text,
            "# netem drops packets when it holds {packets}, including those in transit, so a delay of {delay} limits the rate to \
            {max}{instead}.\n# A burst passes as with netem; a transfer that fills this queue waits up to {delay} longer.\nrate = \"{max}\""
        );
    }
    let queue = match (restricted, rate) {
        (None, Some(rate)) => limit.waiting(rate.bits_per_second() as f64),
        // Without a delay the limit is that of a queue in front of the link.
        (None, None) if *packets == NETEM_DEFAULT_LIMIT => return text,
        _ => *packets,
    };
    if !has_queue {
        let _ = writeln!(text, "queue = \"{queue}p\"");
    }
    text
}
