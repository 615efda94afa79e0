//! What is told to a pace and to the queue behind it. tc-cbs(8), tc-red(8), tc-pfifo(8).

use hol_base::{ByteCount, QueueLimit};
use hol_netlink::Message;

use super::chain::TCA_OPTIONS;
use crate::early::{Early, Pace};

/// What an interface counts beyond IP.
const ETHERNET: i64 = 14;

/// Has packets be as long as they are on a line, for all disciplines of an interface; told to the first of them.
pub(super) fn lengths(message: Message, overhead: ByteCount) -> Message {
    const TCA_STAB: u16 = 8;
    const STAB_BASE: u16 = 1;
    // linux/pkt_sched.h, `struct tc_sizespec`: the overhead is the second number.
    let overhead = i32::try_from(overhead.0 as i64 - ETHERNET).unwrap_or(i32::MAX);
    let sizes = [&[0; 4], &overhead.to_ne_bytes()[..], &[0; 16]].concat();
    message.with_nested(TCA_STAB, &[], |stab| stab.with(STAB_BASE, &sizes))
}

/// How fast packets may go.
pub(super) fn pace(message: Message, pace: &Pace) -> Message {
    const PARAMETERS: u16 = 1;
    /// Enough for any packet.
    const CREDIT: i32 = 1 << 20;
    // linux/pkt_sched.h, `struct tc_cbs_qopt`: in software; most and least credit in octets, gain and loss in kbit/s.
    let parameters = [0, CREDIT, -CREDIT, pace.gain, -Pace::PORT].map(i32::to_ne_bytes).concat();
    message.with_nested(TCA_OPTIONS, &[], |options| options.with(PARAMETERS, &parameters))
}

/// Who is dropped early.
pub(super) fn early(message: Message, early: &Early) -> Message {
    const PARAMETERS: u16 = 1;
    const DAMPING: u16 = 2;
    const PROBABILITY: u16 = 3;
    let Early { min, max, weight_log, damping, .. } = *early;
    // linux/pkt_sched.h, `struct tc_red_qopt`: limit, thresholds, four octets. Without a limit the queue has to be told of.
    let thresholds = [0, min, max].map(u32::to_ne_bytes).concat();
    let parameters = [&thresholds[..], &[weight_log, 0, damping.step_log, 0]].concat();
    let probability = (early.drop.value() * f64::from(u32::MAX)).round() as u32;
    message.with_nested(TCA_OPTIONS, &[], |options| {
        let options = options.with(PARAMETERS, &parameters).with(DAMPING, &damping.halvings);
        options.with_number(PROBABILITY, probability)
    })
}

/// The kind of a queue, and its parameter: what it holds beside the packet in transmission.
pub(super) fn fifo(limit: QueueLimit) -> (&'static str, u32) {
    let number = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
    match limit {
        QueueLimit::Packets(packets) => ("pfifo", number(packets.saturating_sub(1).max(1))),
        QueueLimit::Bytes(octets) => ("bfifo", number(octets)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_holds_what_is_left_beside_the_packet_in_transmission() {
        assert_eq!(fifo(QueueLimit::Packets(50)), ("pfifo", 49));
        assert_eq!(fifo(QueueLimit::Packets(1)), ("pfifo", 1));
        assert_eq!(fifo(QueueLimit::Bytes(9000)), ("bfifo", 9000));
    }
}
