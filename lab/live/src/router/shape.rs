//! The queueing disciplines of a router's interfaces during a run: emulators with handles that identify them. tc-netem(8)

use std::io;

use hol_base::Seed;
use hol_netlink::{Message, Socket};
use hol_traffic::discipline::{self, TC_H_ROOT};
use hol_traffic::{Discipline, ShapedLink, Stage, emulator};

use super::interfaces::Interface;
use crate::control::LinkCounters;

/// The first of sixteen handles that identify hol's disciplines. By default, `tc` gives a user's disciplines other
/// handles.
const FIRST_HANDLE: u32 = 0x7640;

/// Returns the handle of the emulator with index `place` in the chain of a link's emulators.
const fn handle(place: usize) -> u32 {
    (FIRST_HANDLE + place as u32) << 16
}

fn is_ours(discipline: &Discipline) -> bool {
    (FIRST_HANDLE..FIRST_HANDLE + 16).contains(&(discipline.handle >> 16))
        && discipline.kind == emulator::KIND
}

/// Checks that emulators can be set up on this host; otherwise returns the reason and the remedy.
pub(crate) fn check_support() -> Result<(), String> {
    /// Index of the loopback interface, which is the first interface in every network namespace.
    const LOOPBACK: u32 = 1;
    // netem itself rejects a message without settings, after the kernel has found netem and checked permissions; nothing has changed then.
    let tried = Socket::routing()
        .and_then(|socket| socket.execute(discipline::add(LOOPBACK, 0, TC_H_ROOT, emulator::KIND)));
    match tried.map_err(|problem| (problem.raw_os_error().map(rustix::io::Errno::from_raw_os_error), problem))
    {
        Ok(()) | Err((Some(rustix::io::Errno::INVAL | rustix::io::Errno::EXIST), _)) => Ok(()),
        Err((Some(rustix::io::Errno::PERM), _)) => {
            Err("a router changes the queues of its interfaces, which needs CAP_NET_ADMIN: run it as root, or run `sudo setcap cap_net_admin+ep FILE` with the file of this program"
                .to_owned())
        }
        Err((Some(rustix::io::Errno::NOENT | rustix::io::Errno::OPNOTSUPP), _)) => {
            Err("this kernel has no netem: \
            `modprobe sch_netem`, which is in an extra package (linux-modules-extra-…, kernel-modules-extra)"
                .to_owned())
        }
        Err((_, problem)) => Err(format!("cannot find out whether this kernel has netem: {problem}")),
    }
}

/// Returns an error for an interface whose root discipline was set by a user.
pub(super) fn check_unused(interface: &Interface) -> Result<(), String> {
    let all =
        list_disciplines().map_err(|problem| format!("cannot list the queues of the router: {problem}"))?;
    let taken = all.iter().find(|one| one.interface == interface.index && is_set_by_user(one));
    taken.map_or(Ok(()), |one| {
        let (Interface { name, .. }, Discipline { kind, handle, .. }) = (interface, one);
        Err(format!(
            "the router's interface {name} has a queueing discipline that hol did not set ({kind} {:x}:) and does not replace; to remove it, run `tc qdisc del dev {name} root` there",
            handle >> 16
        ))
    })
}

/// Returns whether a user has set the discipline. The disciplines that the kernel sets by itself have no handle.
fn is_set_by_user(discipline: &Discipline) -> bool {
    discipline.is_root() && discipline.handle != 0 && !is_ours(discipline)
}

/// Sets up the emulators of a link, for packets that leave through `interface`.
pub(super) fn set_up(interface: &Interface, line: &ShapedLink, seed: Seed) -> Result<(), String> {
    let told = Socket::routing().and_then(|socket| {
        messages(interface.index, line, seed).try_for_each(|message| socket.execute(message))
    });
    told.map_err(|problem| format!("cannot set up the emulators (netem) of {}: {problem}", interface.name))
}

/// Returns the messages that set up the emulators. Each emulator is a child of the one before.
fn messages(interface: u32, line: &ShapedLink, seed: Seed) -> impl Iterator<Item = Message> {
    let stages = line.stages(&line.settings).into_iter();
    let emulators =
        stages.filter_map(|stage| if let Stage::Emulator(one) = stage { Some(one) } else { None });
    emulators.enumerate().map(move |(place, emulator)| {
        let parent = place.checked_sub(1).map_or(TC_H_ROOT, |above| handle(above) | 1);
        let message = discipline::add(interface, handle(place), parent, emulator::KIND);
        emulator::encode(message, &emulator, line.seed(seed, place, 0))
    })
}

/// Returns the counters of the packets that have passed each of two interfaces since the emulators were set up. The
/// counters of an interface's outermost emulator include the losses in the emulators inside it.
pub(super) fn counters(interfaces: [&Interface; 2]) -> io::Result<[LinkCounters; 2]> {
    let all = list_disciplines()?;
    let of = |interface: &Interface| {
        let first = all.iter().find(|one| one.interface == interface.index && one.is_root() && is_ours(one));
        first.map_or(LinkCounters::default(), |one| LinkCounters { carried: one.passed, dropped: one.drops })
    };
    Ok(interfaces.map(of))
}

/// Restores the kernel's own disciplines on all interfaces that have emulators of hol.
pub(super) fn restore() -> io::Result<()> {
    let socket = Socket::routing()?;
    let all = list_disciplines()?;
    let ours = all.iter().filter(|one| one.is_root() && is_ours(one));
    let removed = ours.map(|one| socket.execute(discipline::remove(one.interface, one.handle)));
    // All interfaces are restored, even if one fails.
    removed.collect::<Vec<_>>().into_iter().collect()
}

fn list_disciplines() -> io::Result<Vec<Discipline>> {
    let mut all = Vec::new();
    Socket::routing()?.list(discipline::list(), |entry| all.extend(Discipline::read(entry)))?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discipline(handle: u32, kind: &str) -> Discipline {
        Discipline { interface: 2, handle, parent: TC_H_ROOT, kind: kind.to_owned(), ..Discipline::default() }
    }

    #[test]
    fn disciplines_of_the_kernel_the_user_and_this_program_are_distinguished() {
        for (handle, kind, users) in [
            (0, "fq_codel", false),
            (0, "mq", false),
            (0x0001_0000, "htb", true),
            (0x8001_0000, "netem", true),
            (0x7640_0000, "fq_codel", true),
            (handle(0), "netem", false),
            (handle(3), "netem", false),
        ] {
            assert_eq!(is_set_by_user(&discipline(handle, kind)), users, "{kind} {handle:x}");
        }
        assert!(is_ours(&discipline(handle(0), "netem")) && !is_ours(&discipline(0x8001_0000, "netem")));
    }

    #[test]
    fn each_emulator_is_the_child_of_the_previous_one() {
        let network =
            toml::from_str("delay = '20ms'\nloss = '3%'\nreorder = '1%'\nreorder_by = '5ms'").unwrap();
        let [up, down] = super::super::shaped_links(&network).unwrap();
        let seats: Vec<_> = messages(7, &up, Seed(1))
            .map(|message| {
                let octets = message.finish(0);
                let entry = hol_netlink::messages(&octets).next().unwrap();
                let Discipline { interface, handle, parent, kind, .. } =
                    Discipline::read(entry.body).unwrap();
                assert_eq!((interface, kind.as_str()), (7, "netem"));
                (handle, parent)
            })
            .collect();
        let inside = |place| (handle(place), handle(place - 1) | 1);
        assert_eq!(seats, [(handle(0), TC_H_ROOT), inside(1), inside(2), inside(3)]);
        let octets = |line, seed| messages(7, line, Seed(seed)).map(|m| m.finish(0)).collect::<Vec<_>>();
        assert_eq!(octets(&up, 1), octets(&up, 1));
        assert!(octets(&up, 1) != octets(&up, 2) && octets(&up, 1) != octets(&down, 1));
    }
}
