//! Traces in mahimahi's format: each line is the millisecond at which a packet of MTU size may leave.
//! <https://github.com/ravinet/mahimahi>

use hol_base::Duration;

use crate::event_rate::EventRate;
use crate::trace::{MAX_LINES, Round, Step, TraceError, lines, repeat, trace_error};

/// Octets of the packet that an opportunity lets pass, including the link-layer header.
const OPPORTUNITY_OCTETS: u64 = 1500 + 14;
/// The opportunities within this time determine a rate.
const BIN_WIDTH: Duration = Duration::from_millis(100);
/// The latest time in a trace of opportunities, in ms: 100 years, the maximum of other times.
const MAX_MS: u64 = 36_500 * 86_400_000;

/// Reads a trace of opportunities. Those within a tenth of a second give a rate; in a gap the rate is 0.
pub(crate) fn read(text: &str) -> Result<Round, TraceError> {
    let mut counts: Vec<(u64, usize)> = Vec::new();
    let bin = BIN_WIDTH.as_millis_f64() as u64;
    let (mut last, mut end) = (0, 0);
    for (count, (line, words)) in lines(text).enumerate() {
        let ms: u64 = words.trim().parse().map_err(|_| {
            trace_error(
                line,
                &format!("{words:?} is not a whole number of milliseconds, as the first line is; each line of a mahimahi trace must be \
                    one"),
            )
        })?;
        if count == MAX_LINES {
            return Err(trace_error(line, &format!("the trace has more than {MAX_LINES} lines; shorten it")));
        }
        if ms < last {
            return Err(trace_error(
                line,
                &format!("{ms} ms is before {last} ms in the line before; sort the lines"),
            ));
        }
        if ms > MAX_MS {
            return Err(trace_error(
                line,
                &format!("{ms} ms is more than 100 years; count from the start of the trace"),
            ));
        }
        (last, end) = (ms, end.max(ms));
        match counts.last_mut() {
            Some((slot, count)) if *slot == ms / bin => *count += 1,
            _ => counts.push((ms / bin, 1)),
        }
    }
    if end == 0 {
        return Err(trace_error(1, "the trace ends at 0 ms; add later times"));
    }
    // The last slot ends with the trace, which begins again there.
    let slots = end.div_ceil(bin);
    // The last opportunity may be at the end, after the last slot.
    if let Some((_, late)) = counts.pop_if(|(slot, _)| *slot == slots) {
        match counts.last_mut() {
            Some((slot, count)) if *slot == slots - 1 => *count += late,
            _ => counts.push((slots - 1, late)),
        }
    }
    Ok(repeat(rates(&counts, end), Duration::from_millis(end)))
}

/// Returns the rate of each slot of a tenth of a second until `end`, in ms.
fn rates(counts: &[(u64, usize)], end: u64) -> Vec<Step> {
    let bin = BIN_WIDTH.as_millis_f64() as u64;
    let step = |slot: u64, bits_per_second| Step {
        at: BIN_WIDTH.saturating_mul(slot),
        rate: Some(EventRate::from_bits_per_second(bits_per_second)),
        ..Step::default()
    };
    let mut steps = Vec::new();
    let mut next = 0;
    for &(slot, count) in counts {
        if slot > next {
            steps.push(step(next, 0));
        }
        let bits = count as u64 * OPPORTUNITY_OCTETS * 8;
        // Rounded up, because a packet that lacks a fraction of a bit would wait for the next opportunity.
        steps.push(step(slot, (bits * 1000).div_ceil(bin.min(end - slot * bin))));
        next = slot + 1;
    }
    steps
}
