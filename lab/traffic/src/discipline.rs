//! A queueing discipline: its position, and the kernel's report on it. rtnetlink(7)

use hol_netlink::{CREATE, Message, REPLACE, attributes};

/// Types of netlink messages about queueing disciplines. linux/rtnetlink.h
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
/// The netlink attribute with the kind of a discipline or filter. linux/rtnetlink.h
pub const TCA_KIND: u16 = 1;
/// The netlink attribute with the options of a discipline or filter, which depend on its kind. linux/rtnetlink.h
pub const TCA_OPTIONS: u16 = 2;
/// The parent handle of an interface's root discipline. linux/pkt_sched.h
pub const TC_H_ROOT: u32 = u32::MAX;
/// Length of `struct tcmsg`, with which each message starts, in octets.
const HEADER_LENGTH: usize = 20;

/// Returns the message that sets the discipline with this handle to this kind, and replaces an existing discipline.
pub fn set(interface: u32, handle: u32, parent: u32, kind: &str) -> Message {
    Message::new(RTM_NEWQDISC, CREATE | REPLACE, &encode_position(interface, handle, parent, 0))
        .with_name(TCA_KIND, kind)
}

/// Returns the message that adds a discipline of this kind with this handle, unless there is already one.
pub fn add(interface: u32, handle: u32, parent: u32, kind: &str) -> Message {
    const EXCLUSIVE: u16 = hol_netlink::EXCLUSIVE;
    Message::new(RTM_NEWQDISC, CREATE | EXCLUSIVE, &encode_position(interface, handle, parent, 0))
        .with_name(TCA_KIND, kind)
}

/// Returns the message that replaces the root discipline of an interface with the default one, if the root
/// discipline has this handle.
pub fn remove(interface: u32, handle: u32) -> Message {
    Message::new(RTM_DELQDISC, 0, &encode_position(interface, handle, TC_H_ROOT, 0))
}

/// Returns the message that lists all disciplines of all interfaces: see [`Discipline::read`].
pub fn list() -> Message {
    Message::new(RTM_GETQDISC, 0, &[0; HEADER_LENGTH])
}

/// Encodes the interface, handle and parent of a discipline: `struct tcmsg` of linux/rtnetlink.h.
pub fn encode_position(interface: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, interface, handle, parent, info].map(u32::to_ne_bytes).concat()
}

/// The state of a queueing discipline, as the kernel reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discipline {
    /// Index of the discipline's interface.
    pub interface: u32,
    /// Handle of the discipline; 0 for the interface's default discipline.
    pub handle: u32,
    /// Handle of the discipline's parent.
    pub parent: u32,
    /// Kind of the discipline, such as `netem`.
    pub kind: String,
    /// Number of packets that have left the discipline.
    pub passed: u64,
    /// Number of packets in the discipline's queue.
    pub packets: u64,
    /// Number of octets in the discipline's queue.
    pub octets: u64,
    /// Number of packets dropped by the discipline, or by one nested in it.
    pub drops: u64,
}

impl Discipline {
    /// Parses an entry of the kernel's list of disciplines; `None` if it is invalid. linux/gen_stats.h
    pub fn read(entry: &[u8]) -> Option<Self> {
        const TCA_STATS2: u16 = 7;
        const BASIC_STATISTICS: u16 = 1;
        const QUEUE_STATISTICS: u16 = 3;
        const PACKETS_IN_64_BITS: u16 = 8;
        let (message, rest) = entry.split_at_checked(HEADER_LENGTH)?;
        let mut read = Self {
            interface: read_u32(message, 1)?,
            handle: read_u32(message, 2)?,
            parent: read_u32(message, 3)?,
            ..Self::default()
        };
        for (kind, value) in attributes(rest) {
            match kind {
                TCA_KIND => {
                    read.kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
                }
                TCA_STATS2 => {
                    for (kind, value) in attributes(value) {
                        match kind {
                            // `struct gnet_stats_basic`: octets in 64 bits, packets in 32.
                            BASIC_STATISTICS => read.passed = read_u32(value, 2)?.into(),
                            PACKETS_IN_64_BITS => read.passed = u64::from_ne_bytes(*value.first_chunk()?),
                            // `struct gnet_stats_queue`.
                            QUEUE_STATISTICS => {
                                let at = |place| read_u32(value, place).map(u64::from);
                                (read.packets, read.octets, read.drops) = (at(0)?, at(1)?, at(2)?);
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Some(read)
    }

    /// Returns whether this is the root discipline of its interface.
    pub fn is_root(&self) -> bool {
        self.parent == TC_H_ROOT
    }
}

fn read_u32(octets: &[u8], place: usize) -> Option<u32> {
    octets.get(4 * place..)?.first_chunk().map(|octets| u32::from_ne_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use hol_netlink::messages;

    use super::*;

    /// Returns an entry of the kernel's list: a discipline with these statistics.
    fn entry(statistics: impl FnOnce(Message) -> Message) -> Vec<u8> {
        let message = set(3, 0x7640_0000, TC_H_ROOT, "netem").with_nested(7, &[], statistics);
        messages(&message.finish(0)).next().unwrap().body.to_vec()
    }

    #[test]
    fn the_kernels_statistics_of_a_discipline_are_parsed() {
        let octets = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
        let entry = entry(|statistics| {
            statistics.with(1, &octets(&[1500, 0, 9, 0])).with(3, &octets(&[2, 120, 4, 0, 0]))
        });
        let read = Discipline::read(&entry).unwrap();
        let expected = Discipline {
            interface: 3,
            handle: 0x7640_0000,
            parent: TC_H_ROOT,
            kind: "netem".to_owned(),
            passed: 9,
            packets: 2,
            octets: 120,
            drops: 4,
        };
        assert_eq!(read, expected);
        assert!(read.is_root());
    }

    #[test]
    fn packet_count_has_64_bits_if_the_kernel_reports_them() {
        let many = 1_u64 << 33;
        let entry = entry(|statistics| statistics.with(1, &[0; 16]).with(8, &many.to_ne_bytes()));
        assert_eq!(Discipline::read(&entry).unwrap().passed, many);
    }

    #[test]
    fn invalid_statistics_are_not_parsed() {
        assert_eq!(Discipline::read(&[0; 19]), None);
        assert_eq!(Discipline::read(&entry(|statistics| statistics.with(3, &[0; 5]))), None);
    }
}
