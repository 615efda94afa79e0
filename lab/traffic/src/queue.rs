//! The options of a shaper and of the queue behind it. tc-cbs(8), tc-red(8), tc-codel(8), tc-fq_codel(8),
//! tc-pie(8), tc-dualpi2(8), tc-pfifo(8).

use hol_base::{ByteCount, Duration, QueueLimit};
use hol_netlink::Message;
use hol_network::{CodelSpec, DualPi2Spec, FairSpec, PieSpec};

use crate::discipline::TCA_OPTIONS;
use crate::red::RedParameters;
use crate::shaper::{Shaper, ShaperQueue, queue_without_transmission};

/// Length of the link-layer header, which an interface counts as part of a packet, in octets.
const ETHERNET_HEADER: i64 = 14;

/// Sets the overhead that the kernel adds to the length of each packet. The message for the first discipline of an
/// interface sets it for all disciplines of the interface.
pub fn with_overhead(message: Message, overhead: ByteCount) -> Message {
    const TCA_STAB: u16 = 8;
    const STAB_BASE: u16 = 1;
    // linux/pkt_sched.h, `struct tc_sizespec`: the overhead is the second number.
    let overhead = i32::try_from(overhead.0 as i64 - ETHERNET_HEADER).unwrap_or(i32::MAX);
    let sizes = [&[0; 4], &overhead.to_ne_bytes()[..], &[0; 16]].concat();
    message.with_nested(TCA_STAB, &[], |stab| stab.with(STAB_BASE, &sizes))
}

/// Adds the rate of a shaper to the message that sets its discipline.
pub fn with_rate(message: Message, shaper: &Shaper) -> Message {
    const TCA_CBS_PARMS: u16 = 1;
    /// A token-bucket credit that suffices for any packet, in octets.
    const ENOUGH_CREDIT: i32 = 1 << 20;
    // linux/pkt_sched.h, `struct tc_cbs_qopt`: in software; maximum and minimum credit in octets, gain and
    // loss in kbit/s, all scaled.
    let Shaper { gain, scale } = *shaper;
    let credit = ENOUGH_CREDIT * scale;
    let parameters =
        [0, credit, -credit, gain, -Shaper::INTERFACE_RATE_KBPS * scale].map(i32::to_ne_bytes).concat();
    message.with_nested(TCA_OPTIONS, &[], |options| options.with(TCA_CBS_PARMS, &parameters))
}

/// Returns the kind of the discipline for a queue, and the kernel module that provides it.
pub const fn kind(waiting: &ShaperQueue) -> (&'static str, &'static str) {
    match waiting {
        ShaperQueue::Fifo(QueueLimit::Packets(_)) => ("pfifo", "sch_fifo"),
        ShaperQueue::Fifo(QueueLimit::Bytes(_)) => ("bfifo", "sch_fifo"),
        ShaperQueue::Early(_) => ("red", "sch_red"),
        ShaperQueue::Codel { .. } => ("codel", "sch_codel"),
        ShaperQueue::FairCodel { .. } => ("fq_codel", "sch_fq_codel"),
        ShaperQueue::Pie { .. } => ("pie", "sch_pie"),
        ShaperQueue::DualPi2 { .. } => ("dualpi2", "sch_dualpi2"),
    }
}

/// Adds the options of a queue to the message that sets its discipline.
pub fn with_queue_options(message: Message, waiting: &ShaperQueue) -> Message {
    match waiting {
        ShaperQueue::Fifo(limit) => message.with_number(TCA_OPTIONS, fifo(*limit)),
        ShaperQueue::Early(red) => with_red_options(message, red),
        ShaperQueue::Codel { spec, limit } => codel(message, spec, *limit),
        ShaperQueue::FairCodel { spec, limit } => fair(message, spec, *limit),
        ShaperQueue::Pie { spec, limit } => pie(message, spec, *limit),
        ShaperQueue::DualPi2 { spec, limit } => dualpi2(message, spec, *limit),
    }
}

// linux/pkt_sched.h: options common to CoDel and FQ-CoDel.
const TCA_CODEL_TARGET: u16 = 1;
const TCA_CODEL_LIMIT: u16 = 2;
const TCA_CODEL_INTERVAL: u16 = 3;
const TCA_CODEL_ECN: u16 = 4;

fn codel(message: Message, spec: &CodelSpec, limit: u32) -> Message {
    const TCA_CODEL_CE_THRESHOLD: u16 = 5;
    let CodelSpec { target, interval, ecn, ce_threshold } = *spec;
    message.with_nested(TCA_OPTIONS, &[], |options| {
        let options = options
            .with_number(TCA_CODEL_TARGET, micros(target))
            .with_number(TCA_CODEL_INTERVAL, micros(interval));
        let options = options.with_number(TCA_CODEL_LIMIT, limit).with_number(TCA_CODEL_ECN, u32::from(ecn));
        ce_threshold
            .map(micros)
            .into_iter()
            .fold(options, |options, micros| options.with_number(TCA_CODEL_CE_THRESHOLD, micros))
    })
}

fn fair(message: Message, spec: &FairSpec, limit: u32) -> Message {
    const TCA_FQ_CODEL_FLOWS: u16 = 5;
    const TCA_FQ_CODEL_QUANTUM: u16 = 6;
    const TCA_FQ_CODEL_CE_THRESHOLD: u16 = 7;
    const TCA_FQ_CODEL_MEMORY_LIMIT: u16 = 9;
    let FairSpec { target, interval, quantum, ecn, ce_threshold, flows } = *spec;
    message.with_nested(TCA_OPTIONS, &[], |options| {
        let options = options
            .with_number(TCA_CODEL_TARGET, micros(target))
            .with_number(TCA_CODEL_INTERVAL, micros(interval));
        let options = options.with_number(TCA_CODEL_LIMIT, limit).with_number(TCA_CODEL_ECN, u32::from(ecn));
        let quantum = u32::try_from(quantum.0).unwrap_or(u32::MAX);
        // No memory limit, only the limit in packets.
        let options = options
            .with_number(TCA_FQ_CODEL_FLOWS, flows)
            .with_number(TCA_FQ_CODEL_QUANTUM, quantum)
            .with_number(TCA_FQ_CODEL_MEMORY_LIMIT, u32::MAX);
        ce_threshold
            .map(micros)
            .into_iter()
            .fold(options, |options, micros| options.with_number(TCA_FQ_CODEL_CE_THRESHOLD, micros))
    })
}

fn pie(message: Message, spec: &PieSpec, limit: u32) -> Message {
    // linux/pkt_sched.h
    const TCA_PIE_TARGET: u16 = 1;
    const TCA_PIE_LIMIT: u16 = 2;
    const TCA_PIE_TUPDATE: u16 = 3;
    const TCA_PIE_ALPHA: u16 = 4;
    const TCA_PIE_BETA: u16 = 5;
    const TCA_PIE_ECN: u16 = 6;
    /// The tick of Linux's timers: a timer fires at the first tick after its time, and the kernels of both engines
    /// (QEMU and User-Mode Linux) have 250 ticks per second.
    const TICK: Duration = Duration::from_millis(4);
    let PieSpec { target, update, alpha, beta, ecn } = *spec;
    let update = update.saturating_sub(TICK).max(TICK);
    message.with_nested(TCA_OPTIONS, &[], |options| {
        let options =
            options.with_number(TCA_PIE_TARGET, micros(target)).with_number(TCA_PIE_TUPDATE, micros(update));
        let options = options.with_number(TCA_PIE_LIMIT, limit).with_number(TCA_PIE_ECN, u32::from(ecn));
        options.with_number(TCA_PIE_ALPHA, u32::from(alpha)).with_number(TCA_PIE_BETA, u32::from(beta))
    })
}

fn dualpi2(message: Message, spec: &DualPi2Spec, limit: u32) -> Message {
    // linux/netlink.h: `nla_parse_nested`, which newer disciplines use, requires this flag.
    const NLA_F_NESTED: u16 = 1 << 15;
    // linux/pkt_sched.h
    const TCA_DUALPI2_LIMIT: u16 = 1;
    const TCA_DUALPI2_MEMORY_LIMIT: u16 = 2;
    const TCA_DUALPI2_TARGET: u16 = 3;
    const TCA_DUALPI2_TUPDATE: u16 = 4;
    const TCA_DUALPI2_ALPHA: u16 = 5;
    const TCA_DUALPI2_BETA: u16 = 6;
    const TCA_DUALPI2_STEP_THRESH_US: u16 = 8;
    const TCA_DUALPI2_COUPLING: u16 = 10;
    const TCA_DUALPI2_C_PROTECTION: u16 = 13;
    const TCA_DUALPI2_ECN_MASK: u16 = 14;
    const ECN_MASK_L4S_ECT: u8 = 1;
    const ECN_MASK_ANY_ECT: u8 = 3;
    let DualPi2Spec { target, update, alpha, beta, step, coupling, classic_protection, any_ect } = *spec;
    let ecn_mask = if any_ect { ECN_MASK_ANY_ECT } else { ECN_MASK_L4S_ECT };
    let [alpha, beta] = [alpha, beta].map(|hertz| (hertz * 256.0).round() as u32);
    message.with_nested(TCA_OPTIONS | NLA_F_NESTED, &[], |options| {
        // No memory limit, only the limit in packets.
        let options =
            options.with_number(TCA_DUALPI2_LIMIT, limit).with_number(TCA_DUALPI2_MEMORY_LIMIT, u32::MAX);
        let options = options
            .with_number(TCA_DUALPI2_TARGET, micros(target))
            .with_number(TCA_DUALPI2_TUPDATE, micros(update));
        let options = options
            .with_number(TCA_DUALPI2_ALPHA, alpha)
            .with_number(TCA_DUALPI2_BETA, beta)
            .with_number(TCA_DUALPI2_STEP_THRESH_US, micros(step));
        options
            .with(TCA_DUALPI2_COUPLING, &[coupling])
            .with(TCA_DUALPI2_C_PROTECTION, &[classic_protection])
            .with(TCA_DUALPI2_ECN_MASK, &[ecn_mask])
    })
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos() / 1000).unwrap_or(u32::MAX)
}

/// Adds the options of RED to the message that sets its discipline.
fn with_red_options(message: Message, early: &RedParameters) -> Message {
    const TCA_RED_PARMS: u16 = 1;
    const TCA_RED_STAB: u16 = 2;
    const TCA_RED_MAX_P: u16 = 3;
    let RedParameters { min, max, weight_log, idle_decay, ecn, .. } = *early;
    // `TC_RED_ECN`.
    let flags = u8::from(ecn);
    // linux/pkt_sched.h, `struct tc_red_qopt`: limit, thresholds, four octets. Without a limit the discipline
    // needs an inner queue.
    let thresholds = [0, min, max].map(u32::to_ne_bytes).concat();
    let parameters = [&thresholds[..], &[weight_log, 0, idle_decay.step_log, flags]].concat();
    let probability = (early.drop.value() * f64::from(u32::MAX)).round() as u32;
    message.with_nested(TCA_OPTIONS, &[], |options| {
        let options = options.with(TCA_RED_PARMS, &parameters).with(TCA_RED_STAB, &idle_decay.halvings);
        options.with_number(TCA_RED_MAX_P, probability)
    })
}

/// Returns the limit of a FIFO queue, which does not include the packet in transmission.
fn fifo(limit: QueueLimit) -> u32 {
    match limit {
        QueueLimit::Packets(packets) => queue_without_transmission(packets),
        QueueLimit::Bytes(octets) => u32::try_from(octets).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use hol_netlink::attributes;

    use super::*;

    /// Without the flag for nested attributes, Linux 7.3 refuses the options of DualPI2, because `dualpi2_change` uses
    /// `nla_parse_nested`.
    #[test]
    fn options_of_dualpi2_are_marked_as_nested() {
        const HEADER: usize = 16;
        for (any_ect, mask) in [(false, 1), (true, 3)] {
            let spec = DualPi2Spec { any_ect, ..DualPi2Spec::default() };
            let queue = ShaperQueue::DualPi2 { spec, limit: 99 };
            let octets = with_queue_options(Message::new(0, 0, &[]), &queue).finish(0);
            let kind = u16::from_ne_bytes([octets[HEADER + 2], octets[HEADER + 3]]);
            assert_eq!(kind, 0x8000 | TCA_OPTIONS);
            let options: Vec<(u16, &[u8])> = attributes(&octets[HEADER + 4..]).collect();
            // TCA_DUALPI2_LIMIT, TCA_DUALPI2_ALPHA (41/256 Hz) and TCA_DUALPI2_ECN_MASK.
            for expected in [(1, &99_u32.to_ne_bytes()[..]), (5, &41_u32.to_ne_bytes()), (14, &[mask])] {
                assert!(options.contains(&expected), "{expected:?} in {options:?}");
            }
        }
    }
}
