//! One direction of a link: a chain of queueing disciplines on a router's interface. tc(8).

use std::collections::BTreeMap;

use hol_base::Seed;
use hol_netlink::{CREATE, Message};
use hol_network::{EventRate, LinkChange, Settings};
use hol_traffic::discipline::{TC_H_ROOT, TCA_KIND, TCA_OPTIONS};
use hol_traffic::{DropFilter, ShapedLink, Stage, apply, discipline, emulator, queue};

use super::bpf::Program;
use super::namespace::Namespace;
use super::netlink::RoutingSocket;
use super::queue_sampler::LinkQueueStatistics;
use super::waker::Waker;
use super::{GuestError, handle, tc_bpf};

/// Number of the message that creates a traffic filter. linux/rtnetlink.h
const RTM_NEWTFILTER: u16 = 44;
/// Handle of the parent of the discipline `clsact`. linux/pkt_sched.h
const CLSACT: u32 = 0xffff_fff1;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

/// An interface, with a routing socket in its namespace.
#[derive(Debug)]
pub(super) struct InterfaceHandle {
    routing: RoutingSocket,
    interface: u32,
}

impl InterfaceHandle {
    /// Opens the interface with this index.
    pub(super) fn new(there: &Namespace, interface: u32) -> Result<Self, GuestError> {
        there.enter()?;
        Ok(Self { routing: RoutingSocket::open()?, interface })
    }
}

/// A detour through two interfaces of the router, for a queue that cannot be on the same interface as the link's other
/// stages.
#[derive(Debug)]
pub(super) struct Detour {
    /// The interface of the detour that has the queue.
    pub(super) queue: InterfaceHandle,
    /// The interface at which packets return from the detour.
    pub(super) back: InterfaceHandle,
}

/// The emulation of one direction of a link. Its stages are on the interface at which the direction begins;
/// packets leave it at the interface at which they arrive.
#[derive(Debug)]
pub(super) struct Chain {
    link: ShapedLink,
    seed: Seed,
    /// The interface that has the stages of the link direction.
    start: InterfaceHandle,
    /// The interface at which packets arrive at the end of the link direction.
    end: InterfaceHandle,
    detour: Option<Detour>,
    /// The installed stages; empty while the link is down.
    stages: Vec<Stage>,
    settings: Settings,
    /// Whether the rate is 0, so that packets wait.
    is_stopped: bool,
    /// The wakers of the interfaces with the transmitter and with the queue; empty unless the rate may become 0.
    wakers: Vec<Waker>,
    /// Number of changes so far, from which seeds and handles are derived.
    changes: u32,
    /// The BPF programs that count packets, by the index of their stage. A program and its count survive while the
    /// link is down; it is reinstalled when the link comes up again.
    counters: BTreeMap<usize, Program>,
}

impl Chain {
    /// Creates the chain with only those stages that the measurement of the baseline delay needs.
    pub(super) fn new(
        link: ShapedLink,
        seed: Seed,
        start: InterfaceHandle,
        end: InterfaceHandle,
        detour: Option<Detour>,
    ) -> Result<Self, GuestError> {
        let (settings, floor) = (link.settings.clone(), link.baseline_stages());
        let (stages, counters) = (Vec::new(), BTreeMap::new());
        let (is_stopped, wakers) = (false, Vec::new());
        let mut chain = Self {
            link,
            seed,
            start,
            end,
            detour,
            stages,
            settings,
            is_stopped,
            wakers,
            changes: 0,
            counters,
        };
        chain.install(&floor)?;
        Ok(chain)
    }

    /// Opens the wakers of a chain whose rate may become 0; the stages are in the namespace `router`.
    pub(super) fn open_wakers(&mut self, router: &Namespace) -> Result<(), GuestError> {
        router.enter()?;
        let queue = self.detour.as_ref().map(|detour| &detour.queue);
        let ports = [&self.start].into_iter().chain(queue);
        self.wakers = ports.map(|port| Waker::open(port.interface)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Returns the disciplines from which the statistics of the link's queue are read, with a netlink socket to
    /// read them.
    pub(super) fn queue_statistics(&self, router: &Namespace) -> Result<LinkQueueStatistics, GuestError> {
        router.enter()?;
        let queue = self.detour.as_ref().map(|detour| detour.queue.interface);
        let overhead = self.settings.overhead.0;
        Ok(LinkQueueStatistics::new(
            RoutingSocket::open()?,
            &self.stages,
            (queue, self.start.interface),
            overhead,
        ))
    }

    /// Installs the stages with which the run starts.
    pub(super) fn install_settings(&mut self) -> Result<(), GuestError> {
        self.duplicate()?;
        self.redirect_to_detour()?;
        self.install(&self.link.stages(&self.settings))
    }

    /// Applies a change of the link.
    pub(super) fn change(&mut self, change: &LinkChange) -> Result<(), GuestError> {
        apply(&mut self.settings, change);
        let was_stopped = self.is_stopped;
        if let LinkChange::Rate(rate) = change {
            self.is_stopped = *rate == EventRate::Zero;
        }
        let stages = match self.is_stopped {
            true => self.link.stopped_stages(&self.settings),
            false => self.link.stages(&self.settings),
        };
        match change {
            LinkChange::Down => self.drop_all(),
            LinkChange::Up if self.stages.is_empty() => self.install(&stages),
            _ if self.stages.is_empty() => Ok(()),
            _ => self.adjust(stages),
        }?;
        if was_stopped && !self.is_stopped { self.wakers.iter().try_for_each(Waker::wake) } else { Ok(()) }
    }

    /// Replaces the stages. Packets that are in the old stages are lost.
    fn install(&mut self, stages: &[Stage]) -> Result<(), GuestError> {
        self.changes += 1;
        let mut release = None;
        self.stages = stages.to_vec();
        for (place, stage) in stages.iter().enumerate() {
            match stage {
                Stage::Filter(DropFilter::Admit(limit)) => {
                    let [admit, after] = tc_bpf::octet_limit_programs(*limit)?;
                    release = Some(after);
                    self.install_filter(place, &admit)?;
                }
                Stage::Filter(DropFilter::Release) => {
                    let release = release.take().ok_or(
                        "a filter counts packets that leave a queue, but none counts those that enter it",
                    )?;
                    self.install_filter(place, &release)?;
                }
                Stage::Filter(DropFilter::Wake) => {
                    self.install_filter(place, &tc_bpf::wake_frame_drop_program()?)?;
                }
                Stage::Filter(DropFilter::Drop(numbers)) => {
                    self.install_counter(place, || tc_bpf::drop_program(numbers))?;
                }
                Stage::Filter(DropFilter::Police(bucket)) => {
                    self.install_counter(place, || tc_bpf::policer_program(*bucket))?;
                }
                _ => self.install_stage(place)?,
            }
        }
        Ok(())
    }

    /// Changes those stages whose settings differ. Packets that are in these stages stay there.
    fn adjust(&mut self, stages: Vec<Stage>) -> Result<(), GuestError> {
        let old = std::mem::replace(&mut self.stages, stages);
        let differs = |place: &usize| old.get(*place) != self.stages.get(*place);
        (0..self.stages.len()).filter(differs).try_for_each(|place| self.install_stage(place))
    }

    /// Drops the packets in the chain, and all packets that arrive from now on.
    fn drop_all(&mut self) -> Result<(), GuestError> {
        self.changes += 1;
        self.stages.clear();
        let queue = self.detour.as_ref().map(|detour| &detour.queue);
        queue.into_iter().chain([&self.start]).try_for_each(|port| {
            let message = discipline::set(port.interface, self.handle(0), TC_H_ROOT, "blackhole");
            port.routing.request(message, "take a link down")
        })
    }

    fn handle(&self, place: usize) -> u32 {
        handle::stage_handle(self.changes, place)
    }

    /// Returns the interface of the stage at index `place`, and the start of a message that sets a discipline of
    /// this kind there.
    fn discipline_message(&self, place: usize, kind: &str) -> (&InterfaceHandle, Message) {
        let crossed = self.stages[..place].contains(&Stage::Transit);
        let before = self.detour.as_ref().filter(|_| !crossed).map(|detour| &detour.queue);
        let port = before.unwrap_or(&self.start);
        // The parent is the one class of an emulator or a queue, or the only used class of a filter.
        let above = place.checked_sub(1).filter(|above| self.stages[*above] != Stage::Transit);
        let parent = above.map_or(TC_H_ROOT, |above| self.handle(above) | 1);
        let message = discipline::set(port.interface, self.handle(place), parent, kind);
        let message = match before {
            Some(_) if place == 0 => queue::with_overhead(message, self.settings.overhead),
            _ => message,
        };
        (port, message)
    }

    /// Installs the stage at index `place`, unless it is a filter.
    fn install_stage(&self, place: usize) -> Result<(), GuestError> {
        let discipline_message = |kind| self.discipline_message(place, kind);
        let name = &self.link.name;
        match &self.stages[place] {
            Stage::Emulator(settings) => {
                let seed = self.link.seed(self.seed, place, self.changes.into());
                let (port, message) = discipline_message(emulator::KIND);
                port.routing.request(
                    emulator::encode(message, settings, seed),
                    &format!("set up an emulator (netem) of {name}"),
                )
            }
            Stage::Shaper(pace) => {
                let (port, message) = discipline_message("cbs");
                port.routing.request(queue::with_rate(message, pace), &self.needs("a shaper", "sch_cbs"))
            }
            Stage::Queue(waiting) => {
                let (kind, module) = queue::kind(waiting);
                let (port, message) = discipline_message(kind);
                port.routing
                    .request(queue::with_queue_options(message, waiting), &self.needs("a queue", module))
            }
            Stage::Filter(_) | Stage::Transit => Ok(()),
        }
    }

    /// Installs, at index `place`, a discipline whose only effect is to run `program`.
    fn install_filter(&self, place: usize, program: &Program) -> Result<(), GuestError> {
        // linux/pkt_sched.h, `struct tc_prio_qopt`: two bands, and all packets into the first.
        let bands = [&2_u32.to_ne_bytes()[..], &[0; 16]].concat();
        let (port, message) = self.discipline_message(place, "prio");
        port.routing.request(message.with(TCA_OPTIONS, &bands), &self.needs("a filter", "sch_prio"))?;
        self.attach(port, self.handle(place), program)
    }

    /// Installs a program that counts packets. If it was installed before, the same program is used, so that its
    /// count continues.
    fn install_counter(
        &mut self,
        place: usize,
        program: impl FnOnce() -> Result<Program, GuestError>,
    ) -> Result<(), GuestError> {
        let program = self.counters.remove(&place).map_or_else(program, Ok)?;
        self.install_filter(place, &program)?;
        self.counters.insert(place, program);
        Ok(())
    }

    /// Redirects all packets to the detour, if the chain has one.
    fn redirect_to_detour(&self) -> Result<(), GuestError> {
        let Some(Detour { queue, back }) = &self.detour else { return Ok(()) };
        self.attach_to_interface(&self.start, EGRESS, &tc_bpf::redirect_to_detour(queue.interface)?)?;
        self.attach_to_interface(back, INGRESS, &tc_bpf::return_from_detour(self.start.interface)?)
    }

    /// Attaches a program that duplicates a share of the packets, if the link has the setting `duplicate`.
    fn duplicate(&self) -> Result<(), GuestError> {
        let share = self.settings.duplicate;
        if share.is_zero() {
            return Ok(());
        }
        let program =
            tc_bpf::duplication_program(share, self.seed.derive(&self.link.name).derive("duplicate").0)?;
        self.attach_to_interface(&self.end, INGRESS, &program)
    }

    /// Attaches a BPF program to all packets that arrive at an interface (`INGRESS`) or leave it (`EGRESS`).
    fn attach_to_interface(
        &self,
        port: &InterfaceHandle,
        side: u32,
        program: &Program,
    ) -> Result<(), GuestError> {
        let message = discipline::set(port.interface, 0xffff_0000, CLSACT, "clsact");
        port.routing.request(message, &self.needs("a filter", "sch_ingress"))?;
        self.attach(port, side, program)
    }

    fn attach(&self, port: &InterfaceHandle, parent: u32, program: &Program) -> Result<(), GuestError> {
        const FD_ATTRIBUTE: u16 = 6;
        const FLAGS_ATTRIBUTE: u16 = 8;
        /// Flag of the filter: the program's return value is the action on the packet.
        const DIRECT_ACTION: u32 = 1;
        const FIRST_PRIORITY: u32 = 1 << 16;
        const ALL_PROTOCOLS: u16 = 3;
        let which = FIRST_PRIORITY | u32::from(ALL_PROTOCOLS.to_be());
        let message = Message::new(
            RTM_NEWTFILTER,
            CREATE,
            &discipline::encode_position(port.interface, 0, parent, which),
        );
        let message = message.with_name(TCA_KIND, "bpf").with_nested(TCA_OPTIONS, &[], |options| {
            options
                .with_number(FD_ATTRIBUTE, program.descriptor().cast_unsigned())
                .with_number(FLAGS_ATTRIBUTE, DIRECT_ACTION)
        });
        port.routing.request(message, &self.needs("a filter", "cls_bpf"))
    }

    fn needs(&self, what: &str, module: &str) -> String {
        let name = &self.link.name;
        format!("set up {what} of {name} (it needs the module {module}, which `hol kernel fetch` downloads)")
    }
}
