//! Disciplines that limit a rate or hold a queue.

use hol_base::ByteCount;

use super::words::{Words, parse_count, parse_number, parse_octets, parse_rate, parse_time};
use super::{FULL_PACKET_OCTETS, ShapedDirection};

/// Parses the options of tbf. tc-tbf(8).
pub(super) fn parse_tbf(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let (mut speed, mut burst, mut limit, mut latency) = (None, 0, None, None);
    while let Some(word) = words.next() {
        match word {
            "rate" => speed = Some(words.parse_value(word, parse_rate)?),
            "burst" | "buffer" | "maxburst" => {
                let own = words.value(word)?;
                burst = parse_octets(own.split('/').next().unwrap_or_default())
                    .ok_or_else(|| format!("{word} {own}: write a size such as 32kbit"))?;
            }
            "limit" => limit = Some(words.parse_value(word, parse_octets)?),
            "latency" | "lat" => latency = Some(words.parse_value(word, parse_time)?),
            "mtu" | "minburst" | "mpu" | "linklayer" => drop(words.next()),
            other => {
                return Err(format!(
                    "option {other:?} of tbf is not supported; supported are rate, burst, limit and latency"
                ));
            }
        }
    }
    let speed = speed.ok_or("tbf has no rate; add one, such as rate 10mbit")?;
    let waits = latency.map(|latency| {
        let octets = (latency.as_secs_f64() * speed.bits_per_second() as f64 / 8.0) as u64;
        octets.saturating_add(burst)
    });
    shaped.has_inner_queue = true;
    shaped.set("rate", speed);
    shaped.set(
        "queue",
        ByteCount(
            limit
                .or(waits)
                .ok_or("tbf has neither limit nor latency; add one of them")?
                .max(FULL_PACKET_OCTETS),
        ),
    );
    if burst > 10 * FULL_PACKET_OCTETS {
        shaped.notes.push(format!(
            "after a pause tbf sends a burst of {burst} octets at once; hol's link sends it at the link's rate"
        ));
    }
    Ok(())
}

/// Parses the rate of an HTB class. tc-htb(8).
pub(super) fn parse_htb_class(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let (mut speed, mut ceiling) = (None, None);
    while let Some(word) = words.next() {
        match word {
            "rate" => speed = Some(words.parse_value(word, parse_rate)?),
            "ceil" => ceiling = Some(words.parse_value(word, parse_rate)?),
            "default"
            | "burst"
            | "cburst"
            | "prio"
            | "r2q"
            | "quantum"
            | "direct_packets_stat"
            | "direct_qlen"
            | "linklayer"
            | "overhead"
            | "mpu"
            | "level" => {
                words.next();
            }
            other => {
                return Err(format!("option {other:?} of htb is not supported; supported are rate and ceil"));
            }
        }
    }
    // A class without competitors can borrow up to its ceiling.
    shaped.set(
        "rate",
        ceiling.or(speed).ok_or("this line of htb has no rate; use the line of its class, which has one")?,
    );
    Ok(())
}

pub(super) fn parse_fifo(
    shaped: &mut ShapedDirection,
    words: &mut Words<'_>,
    unit: &str,
) -> Result<(), String> {
    while let Some(word) = words.next() {
        match word {
            "limit" => {
                let limit =
                    words.parse_value(word, |text| parse_octets(text.strip_suffix('p').unwrap_or(text)))?;
                shaped.set("queue", format!("{limit}{unit}"));
            }
            other => return Err(format!("option {other:?} of a fifo is not supported; supported is limit")),
        }
    }
    Ok(())
}

/// Parses the options of an active queue management discipline. tc-codel(8), tc-fq_codel(8), tc-pie(8),
/// tc-dualpi2(8).
pub(super) fn parse_aqm(
    shaped: &mut ShapedDirection,
    words: &mut Words<'_>,
    name: &'static str,
) -> Result<(), String> {
    let (mut keys, mut ecn) = (Vec::new(), None);
    while let Some(word) = words.next() {
        match (name, word) {
            (_, "limit") => {
                let limit =
                    words.parse_value(word, |text| parse_count(text.strip_suffix('p').unwrap_or(text)))?;
                shaped.set("queue", format!("{limit}p"));
            }
            (_, "target") | ("codel" | "fq_codel", "interval" | "ce_threshold") => {
                let own = words.parse_value(word, parse_time)?;
                keys.push(format!("{word} = \"{own}\""));
            }
            ("dualpi2", "step_thresh") => {
                keys.push(format!("step = \"{}\"", words.parse_value(word, parse_time)?));
            }
            ("dualpi2", "coupling_factor") => {
                keys.push(format!("coupling = {}", words.parse_value(word, parse_count)?));
            }
            ("dualpi2", "classic_protection") => {
                let percent =
                    words.parse_value(word, |text| parse_count(text.strip_suffix('%').unwrap_or(text)))?;
                keys.push(format!("classic_protection = {percent}"));
            }
            ("dualpi2", "any_ect") => keys.push("any_ect = true".to_owned()),
            // These are the defaults of dualpi2.
            ("dualpi2", "drop_on_overload" | "drop_dequeue" | "l4s_ect" | "split_gso") => {}
            ("pie" | "dualpi2", "tupdate") => {
                keys.push(format!("update = \"{}\"", words.parse_value(word, parse_time)?));
            }
            // In pie the value is a number without a unit, in dualpi2 it is in Hz, as in hol.
            ("pie" | "dualpi2", "alpha" | "beta") => {
                keys.push(format!("{word} = {}", words.parse_value(word, parse_number)?));
            }
            ("dualpi2", "memlimit" | "min_qlen_step") => {
                words.next();
            }
            ("fq_codel", "flows") => keys.push(format!("flows = {}", words.parse_value(word, parse_count)?)),
            ("fq_codel", "quantum") => {
                keys.push(format!("quantum = \"{}B\"", words.parse_value(word, parse_octets)?));
            }
            ("codel" | "fq_codel" | "pie", "ecn" | "noecn") => ecn = Some(word == "ecn"),
            ("fq_codel", "memory_limit" | "drop_batch") => drop(words.next()),
            (_, other) => return Err(format!("option {other:?} of {name} is not supported")),
        }
    }
    keys.extend(ecn.map(|ecn| format!("ecn = {ecn}")));
    if name == "fq_codel" && shaped.keys.is_empty() {
        // Its default; the others' is 1000.
        shaped.set("queue", "10240p");
    }
    let table = format!("{{ {name} = {{ {} }} }}", keys.join(", "));
    shaped.keys.push(("discipline", if keys.is_empty() { format!("\"{name}\"") } else { table }));
    Ok(())
}
