//! RED, and the defaults that tc computes. tc-red(8).

use hol_base::{ByteCount, Ratio};

use super::ShapedDirection;
use super::words::{Words, parse_count, parse_octets};

/// Parses the options of RED. tc-red(8).
pub(super) fn parse_red(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let mut keys = Vec::new();
    let (mut limit, mut min, mut max, mut packet, mut burst, mut probability) =
        (None, None, None, None, None, None);
    let mut exponent = None;
    while let Some(word) = words.next() {
        match word {
            "limit" => limit = Some(words.parse_value(word, parse_octets)?),
            "min" => min = Some(words.parse_value(word, parse_octets)?),
            "max" => max = Some(words.parse_value(word, parse_octets)?),
            "avpkt" => packet = Some(words.parse_value(word, parse_octets)?),
            "burst" => burst = Some(words.parse_value(word, parse_count)?),
            "probability" => {
                probability = Some(words.parse_value(word, |word| Ratio::new(word.parse().ok()?))?);
            }
            // `tc -d` prints the weight as the exponent of two.
            "ewma" => exponent = Some(words.parse_value(word, parse_count)?),
            "bandwidth" | "Scell_log" | "Plog" => drop(words.next()),
            "ecn" => keys.push("ecn = true".to_owned()),
            other => return Err(format!("option {other:?} of red is not supported")),
        }
    }
    // The defaults of tc/q_red.c in iproute2; what tc prints has both thresholds.
    let max = max.or(min.map(|min| min * 3)).or(limit.map(|limit| limit / 4));
    let min = min.or(max.map(|max| max / 3));
    let thresholds = [("min", min), ("max", max), ("packet", packet)];
    keys.extend(thresholds.into_iter().filter_map(|(key, octets)| Some(format!("{key} = \"{}B\"", octets?))));
    match (min, max, packet.filter(|packet| *packet > 0)) {
        _ if let Some(exponent) = exponent => keys.push(format!("weight = {}", 0.5f64.powi(exponent as i32))),
        // A line to execute, to which tc adds its defaults.
        (Some(min), Some(max), Some(packet)) => {
            let burst = burst.unwrap_or((2 * min + max) / (3 * packet));
            keys.push(format!("weight = {}", red_weight(min, burst, packet)?));
            probability = probability.or(Ratio::new(0.02));
        }
        _ => shaped
            .notes
            .push("the line lacks RED's averaging weight, which only `tc -d` shows; add weight = … if it is not 0.002".to_owned()),
    }
    match probability {
        Some(drop) => keys.push(format!("drop = \"{drop}\"")),
        None => shaped.notes.push(
            "the line has no probability, which tc does not show; add drop = \"…\" if it is not 10 %"
                .to_owned(),
        ),
    }
    if let Some(limit) = limit {
        shaped.set("queue", ByteCount(limit));
    }
    shaped.keys.push(("discipline", format!("{{ red = {{ {} }} }}", keys.join(", "))));
    Ok(())
}

/// Returns the weight of RED's average queue length: the largest power of two with which a burst of `burst` packets
/// does not reach `min`. As in `tc_red_eval_ewma` of iproute2 (tc_red.c).
fn red_weight(min: u64, burst: u64, packet: u64) -> Result<f64, String> {
    let above = burst as f64 + 1.0 - min as f64 / packet as f64;
    if above < 1.0 {
        return Err(format!(
            "burst {burst} is too short for RED's min of {min} octets; raise burst, or omit it"
        ));
    }
    let weights = (1..32).map(|exponent| 0.5f64.powi(exponent));
    weights
        .into_iter()
        .find(|weight| above <= (1.0 - (1.0 - weight).powf(burst as f64)) / weight)
        .ok_or_else(|| format!("no weight of RED fits a burst of {burst} packets; lower it"))
}
