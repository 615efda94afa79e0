//! Traces in mahimahi's format: each line is a time in milliseconds when a packet of MTU size may leave.
//! <https://github.com/ravinet/mahimahi>

use hol_base::Duration;

use crate::event_rate::EventRate;
use crate::trace::{ChangeLimit, MAX_LINES, TraceError, TracePass, TraceStep, lines, repeat, trace_error};

/// Length in octets, including the link-layer header, of the packet that each delivery opportunity of a trace lets
/// pass.
const OPPORTUNITY_OCTETS: u64 = 1500 + 14;
/// Width of the slots of time into which a trace is divided; the delivery opportunities in a slot determine its rate.
const BIN_WIDTH: Duration = Duration::from_millis(100);
/// The latest time in a trace of delivery opportunities, in ms: 100 years, as for all other times.
const MAX_MS: u64 = 36_500 * 86_400_000;

/// Counts the delivery opportunities within a slot of 100 ms.
struct SlotCount {
    slot: u64,
    count: u64,
    /// The line number of the slot's first delivery opportunity.
    line: usize,
}

/// Reads a trace of delivery opportunities in mahimahi's format. The number of opportunities in each slot of 100 ms
/// gives the rate in that slot, which is 0 if there are none.
pub(crate) fn read(text: &str) -> Result<TracePass, TraceError> {
    let mut counts: Vec<SlotCount> = Vec::new();
    let bin = BIN_WIDTH.as_millis_f64() as u64;
    let mut end = 0;
    for (count, (line, words)) in lines(text).enumerate() {
        let ms: u64 = words.trim().parse().map_err(|_| {
            trace_error(
                line,
                &format!("{words:?} is not a whole number of milliseconds; the first line is one, so this is a mahimahi trace, in which \
                    each line must be one"),
            )
        })?;
        if count == MAX_LINES {
            return Err(trace_error(line, &format!("the trace has more than {MAX_LINES} lines; shorten it")));
        }
        if ms < end {
            return Err(trace_error(
                line,
                &format!("{ms} ms is before {end} ms in the line before; sort the lines"),
            ));
        }
        if ms > MAX_MS {
            return Err(trace_error(
                line,
                &format!("{ms} ms is more than 100 years; count from the start of the trace"),
            ));
        }
        end = ms;
        match counts.last_mut() {
            Some(last) if last.slot == ms / bin => last.count += 1,
            _ => counts.push(SlotCount { slot: ms / bin, count: 1, line }),
        }
    }
    if end == 0 {
        return Err(trace_error(1, "the trace ends at 0 ms; add later times"));
    }
    // The last slot ends with the trace, which begins again there.
    let slots = end.div_ceil(bin);
    // The last opportunity may be at the end, after the last slot.
    if let Some(late) = counts.pop_if(|last| last.slot == slots) {
        match counts.last_mut() {
            Some(last) if last.slot == slots - 1 => last.count += late.count,
            _ => counts.push(SlotCount { slot: slots - 1, ..late }),
        }
    }
    Ok(repeat(rates(&counts, end)?, Duration::from_millis(end)))
}

/// Returns the rate of each slot of 100 ms; the trace ends at `end`, in ms.
fn rates(counts: &[SlotCount], end: u64) -> Result<Vec<TraceStep>, TraceError> {
    let bin = BIN_WIDTH.as_millis_f64() as u64;
    let mut limit = ChangeLimit::default();
    let mut steps = Vec::new();
    let mut push = |line, slot, bits_per_second| {
        let rate = Some(EventRate::from_bits_per_second(bits_per_second));
        let step = TraceStep { line, at: BIN_WIDTH.saturating_mul(slot), rate, ..TraceStep::default() };
        limit.check(&step)?;
        steps.push(step);
        Ok(())
    };
    let mut next = 0;
    for &SlotCount { slot, count, line } in counts {
        if slot > next {
            push(line, next, 0)?;
        }
        let bits = count * OPPORTUNITY_OCTETS * 8;
        // Rounded up, because a packet that lacks a fraction of a bit would wait for the next opportunity.
        push(line, slot, (bits * 1000).div_ceil(bin.min(end - slot * bin)))?;
        next = slot + 1;
    }
    Ok(steps)
}
