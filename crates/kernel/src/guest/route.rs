//! What is told to the routing subsystem: interfaces, addresses, routes, neighbours, emulators. rtnetlink(7).

use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use hol_base::Ratio;

use super::Trouble;
use super::namespace::Namespace;
use super::netlink::{CREATE, Message, Routing};
use crate::netem::{Loss, Stage};

/// linux/rtnetlink.h
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTM_NEWQDISC: u16 = 36;
const AF_INET: u8 = 2;

/// An interface at one end of a link.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) hardware: [u8; 6],
}

/// linux/rtnetlink.h, `struct ifinfomsg`.
fn link(index: u32, flags: u32, change: u32) -> Vec<u8> {
    [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), change.to_ne_bytes()].concat()
}

/// A cable between `own`, here, and `peer` in another namespace.
pub(super) fn cable(
    here: &Routing,
    own: &Interface,
    there: &Namespace,
    peer: &Interface,
    mtu: u32,
) -> Result<(), Trouble> {
    const ADDRESS: u16 = 1;
    const IFNAME: u16 = 3;
    const MTU: u16 = 4;
    const LINKINFO: u16 = 18;
    const NET_NS_FD: u16 = 28;
    const INFO_KIND: u16 = 1;
    const INFO_DATA: u16 = 2;
    const VETH_INFO_PEER: u16 = 1;
    let describe = |message: Message, interface: &Interface| {
        message.with_name(IFNAME, &interface.name).with(ADDRESS, &interface.hardware).with_number(MTU, mtu)
    };
    let message = describe(Message::new(RTM_NEWLINK, CREATE, &link(0, 0, 0)), own);
    let message = message.with_nested(LINKINFO, &[], |info| {
        info.with_name(INFO_KIND, "veth").with_nested(INFO_DATA, &[], |data| {
            data.with_nested(VETH_INFO_PEER, &link(0, 0, 0), |far| {
                let descriptor = there.file.as_raw_fd().cast_unsigned();
                describe(far, peer).with_number(NET_NS_FD, descriptor)
            })
        })
    });
    here.tell(message, &format!("make the link {} – {}", own.name, peer.name))
}

/// Switches an interface on.
pub(super) fn up(here: &Routing, index: u32) -> Result<(), Trouble> {
    const UP: u32 = 1;
    here.tell(Message::new(RTM_NEWLINK, 0, &link(index, UP, UP)), "switch an interface on")
}

/// Gives an interface an address, without a subnet.
pub(super) fn address(here: &Routing, index: u32, address: Ipv4Addr) -> Result<(), Trouble> {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    let [a, b, c, d] = index.to_ne_bytes();
    let message = Message::new(RTM_NEWADDR, CREATE, &[AF_INET, 32, 0, 0, a, b, c, d]);
    let octets = address.octets();
    here.tell(
        message.with(IFA_LOCAL, &octets).with(IFA_ADDRESS, &octets),
        &format!("add the address {address}"),
    )
}

/// `address` is reached through an interface, by way of `next`; nobody ever has to ask for it.
pub(super) fn host(here: &Routing, index: u32, address: Ipv4Addr, next: [u8; 6]) -> Result<(), Trouble> {
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
    const NDA_DST: u16 = 1;
    const NDA_LLADDR: u16 = 2;
    const MAIN: u8 = 254;
    const STATIC: u8 = 4;
    const ON_LINK: u8 = 253;
    const UNICAST: u8 = 1;
    const PERMANENT: u8 = 0x80;
    let route = [AF_INET, 32, 0, 0, MAIN, STATIC, ON_LINK, UNICAST, 0, 0, 0, 0];
    let message = Message::new(RTM_NEWROUTE, CREATE, &route).with(RTA_DST, &address.octets());
    here.tell(message.with_number(RTA_OIF, index), &format!("add the route to {address}"))?;
    let [a, b, c, d] = index.to_ne_bytes();
    let neighbour = [AF_INET, 0, 0, 0, a, b, c, d, PERMANENT, 0, 0, 0];
    let message = Message::new(RTM_NEWNEIGH, CREATE, &neighbour).with(NDA_DST, &address.octets());
    here.tell(message.with(NDA_LLADDR, &next), &format!("add the neighbour {address}"))
}

/// Puts a chain of emulators on an interface, each with its seed.
pub(super) fn emulate(here: &Routing, index: u32, stages: &[(Stage, u64)]) -> Result<(), Trouble> {
    const ROOT: u32 = u32::MAX;
    const TCA_KIND: u16 = 1;
    const TCA_OPTIONS: u16 = 2;
    let mut parent = ROOT;
    for ((stage, seed), major) in stages.iter().zip(1_u32..) {
        let handle = major << 16;
        let structure = [[0; 4], index.to_ne_bytes(), handle.to_ne_bytes(), parent.to_ne_bytes(), [0; 4]];
        let message =
            Message::new(RTM_NEWQDISC, CREATE, structure.as_flattened()).with_name(TCA_KIND, "netem");
        let message =
            message.with_nested(TCA_OPTIONS, &parameters(stage), |options| attributes(options, stage, *seed));
        here.tell(message, "set an emulator (netem) up")?;
        // The one class that an emulator has.
        parent = handle | 1;
    }
    Ok(())
}

/// linux/pkt_sched.h, `struct tc_netem_qopt`: latency, limit, loss, gap, duplicate, jitter.
fn parameters(stage: &Stage) -> Vec<u8> {
    let loss = if let Loss::Independent(loss) = stage.loss { share(loss) } else { 0 };
    let gap = u32::from(stage.overtaking.is_some());
    [0, stage.limit, loss, gap, 0, 0].map(u32::to_ne_bytes).concat()
}

fn attributes(options: Message, stage: &Stage, seed: u64) -> Message {
    const REORDER: u16 = 3;
    const CORRUPT: u16 = 4;
    const LOSS: u16 = 5;
    const RATE: u16 = 6;
    const RATE64: u16 = 8;
    const LATENCY64: u16 = 10;
    const JITTER64: u16 = 11;
    const SEED: u16 = 14;
    const GILBERT_ELLIOTT: u16 = 2;
    let with_correlation = |share: u32| [share, 0].map(u32::to_ne_bytes).concat();
    let mut options = options
        .with(LATENCY64, &stage.delay.as_nanos().to_ne_bytes())
        .with(JITTER64, &stage.jitter.as_nanos().to_ne_bytes())
        .with(SEED, &seed.to_ne_bytes());
    if let Some(overtaking) = stage.overtaking {
        options = options.with(REORDER, &with_correlation(share(overtaking)));
    }
    if !stage.corrupt.is_zero() {
        options = options.with(CORRUPT, &with_correlation(share(stage.corrupt)));
    }
    if let Loss::Bursts([good_to_bad, bad_to_good, loss_good, loss_bad]) = stage.loss {
        // The kernel wants to know what survives while bad, and what is lost while good.
        let bursts = [share(good_to_bad), share(bad_to_good), u32::MAX - share(loss_bad), share(loss_good)];
        let bursts = bursts.map(u32::to_ne_bytes).concat();
        options = options.with_nested(LOSS, &[], |inner| inner.with(GILBERT_ELLIOTT, &bursts));
    }
    if stage.rate > 0 {
        let low = u32::try_from(stage.rate).unwrap_or(u32::MAX);
        let rate = [low.to_ne_bytes(), stage.overhead.to_ne_bytes(), [0; 4], [0; 4]];
        options = options.with(RATE, rate.as_flattened()).with(RATE64, &stage.rate.to_ne_bytes());
    }
    options
}

/// A probability as the kernel has it: a part of 2³² − 1.
fn share(ratio: Ratio) -> u32 {
    (ratio.value() * f64::from(u32::MAX)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_is_all_bits_and_never_is_none() {
        assert_eq!(share(Ratio::new(1.0).unwrap()), u32::MAX);
        assert_eq!(share(Ratio::ZERO), 0);
        assert_eq!(share(Ratio::new(0.01).unwrap()), 42_949_673);
    }
}
