//! A line in operation: a chain of queueing disciplines on the interface of a router. tc(8).

use hol_base::Seed;
use hol_netlink::{CREATE, Message, REPLACE};
use hol_network::{Change, Settings};

use super::bpf::Program;
use super::namespace::Namespace;
use super::netlink::Routing;
use super::{Trouble, emulator, filter};
use crate::stages::{self, Filter, Line, Stage};

/// linux/rtnetlink.h
const RTM_NEWQDISC: u16 = 36;
const RTM_NEWTFILTER: u16 = 44;
/// linux/rtnetlink.h, attributes of both.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// linux/pkt_sched.h
const ROOT: u32 = u32::MAX;
const CLSACT: u32 = 0xffff_fff1;
const INGRESS: u32 = 0xffff_fff2;

/// An interface, and the way to its namespace's routing.
#[derive(Debug)]
pub(super) struct Port {
    routing: Routing,
    interface: u32,
}

impl Port {
    /// The interface of this number there.
    pub(super) fn new(there: &Namespace, interface: u32) -> Result<Self, Trouble> {
        there.enter()?;
        Ok(Self { routing: Routing::here()?, interface })
    }
}

/// A line, from the interface that has its stages to the one where packets arrive.
#[derive(Debug)]
pub(super) struct Chain {
    line: Line,
    seed: Seed,
    start: Port,
    end: Port,
    /// What it is now; empty while the line is down.
    stages: Vec<Stage>,
    settings: Settings,
    /// How often it has changed; seeds and handles derive from it.
    changes: u32,
    /// It goes on counting when the line has been down.
    drops: Option<Program>,
}

impl Chain {
    /// The line with nothing but what its floor is made of.
    pub(super) fn new(line: Line, seed: Seed, start: Port, end: Port) -> Result<Self, Trouble> {
        let (settings, floor) = (line.settings.clone(), line.floor());
        let stages = Vec::new();
        let mut chain = Self { line, seed, start, end, stages, settings, changes: 0, drops: None };
        chain.install(&floor)?;
        Ok(chain)
    }

    /// Makes it what the run starts with.
    pub(super) fn begin(&mut self) -> Result<(), Trouble> {
        self.copy()?;
        self.install(&self.line.stages(&self.settings))
    }

    /// Something about the line changes.
    pub(super) fn change(&mut self, change: &Change) -> Result<(), Trouble> {
        stages::apply(&mut self.settings, change);
        let stages = self.line.stages(&self.settings);
        match change {
            Change::Down => self.cut(),
            Change::Up if self.stages.is_empty() => self.install(&stages),
            _ if self.stages.is_empty() => Ok(()),
            _ => self.adjust(stages),
        }
    }

    /// Puts a new chain in the place of the old one, whose packets are lost.
    fn install(&mut self, stages: &[Stage]) -> Result<(), Trouble> {
        self.changes += 1;
        let mut parent = ROOT;
        let mut release = None;
        for (place, stage) in stages.iter().enumerate() {
            let handle = self.handle(place);
            match stage {
                Stage::Emulator(_) => self.emulate(place, stage, parent)?,
                Stage::Filter(Filter::Admit(limit)) => {
                    let [admit, after] = filter::room(*limit)?;
                    release = Some(after);
                    self.filter(handle, parent, &admit)?;
                }
                Stage::Filter(Filter::Release) => {
                    let release = release.take().ok_or("a queue has a way out but no way in")?;
                    self.filter(handle, parent, &release)?;
                }
                Stage::Filter(Filter::Drop(numbers)) => {
                    let drops = self.drops.take().map_or_else(|| filter::drops(numbers), Ok)?;
                    self.filter(handle, parent, &drops)?;
                    self.drops = Some(drops);
                }
            }
            // The one class that an emulator has, and the only one of a filter's that is used.
            parent = handle | 1;
        }
        self.stages = stages.to_vec();
        Ok(())
    }

    /// Tells those stages whose settings differ. What they hold stays.
    fn adjust(&mut self, stages: Vec<Stage>) -> Result<(), Trouble> {
        for (place, stage) in stages.iter().enumerate() {
            if self.stages.get(place) != Some(stage) {
                let parent = place.checked_sub(1).map_or(ROOT, |above| self.handle(above) | 1);
                self.emulate(place, stage, parent)?;
            }
        }
        self.stages = stages;
        Ok(())
    }

    /// Loses all that is under way, and all that comes.
    fn cut(&mut self) -> Result<(), Trouble> {
        self.changes += 1;
        self.stages.clear();
        let message = discipline(self.start.interface, self.handle(0), ROOT, "blackhole");
        self.start.routing.tell(message, "take a line down")
    }

    /// Handles of one installation, sixteen at most, are not those of the one that it takes the place of.
    fn handle(&self, place: usize) -> u32 {
        let major = 1 + (self.changes % 2048) * 16 + place as u32;
        major << 16
    }

    fn emulate(&self, place: usize, stage: &Stage, parent: u32) -> Result<(), Trouble> {
        let Stage::Emulator(settings) = stage else { return Ok(()) };
        let seed = self.line.seed(self.seed, place, self.changes.into());
        let message = discipline(self.start.interface, self.handle(place), parent, "netem");
        let message = message.with_nested(TCA_OPTIONS, &emulator::parameters(settings), |options| {
            emulator::attributes(options, settings, seed)
        });
        self.start.routing.tell(message, &format!("set an emulator (netem) of {} up", self.line.name))
    }

    /// A discipline that does nothing but ask a program.
    fn filter(&self, handle: u32, parent: u32, program: &Program) -> Result<(), Trouble> {
        // linux/pkt_sched.h, `struct tc_prio_qopt`: two bands, and all packets into the first.
        let bands = [&2_u32.to_ne_bytes()[..], &[0; 16]].concat();
        let message = discipline(self.start.interface, handle, parent, "prio").with(TCA_OPTIONS, &bands);
        self.start.routing.tell(message, &self.needs("a filter", "sch_prio"))?;
        self.attach(&self.start, handle, program)
    }

    /// Has a share of the packets arrive twice.
    fn copy(&self) -> Result<(), Trouble> {
        let share = self.settings.duplicate;
        if share.is_zero() {
            return Ok(());
        }
        let program = filter::copies(share, self.seed.derive(&self.line.name).derive("duplicate").0)?;
        let message = discipline(self.end.interface, 0xffff_0000, CLSACT, "clsact");
        self.end.routing.tell(message, &self.needs("copies", "sch_ingress"))?;
        self.attach(&self.end, INGRESS, &program)
    }

    fn attach(&self, port: &Port, parent: u32, program: &Program) -> Result<(), Trouble> {
        const FD: u16 = 6;
        const FLAGS: u16 = 8;
        /// What the program returns is what is done.
        const DIRECT: u32 = 1;
        const FIRST: u32 = 1 << 16;
        const ALL_PROTOCOLS: u16 = 3;
        let which = FIRST | u32::from(ALL_PROTOCOLS.to_be());
        let message = Message::new(RTM_NEWTFILTER, CREATE, &traffic(port.interface, 0, parent, which));
        let message = message.with_name(TCA_KIND, "bpf").with_nested(TCA_OPTIONS, &[], |options| {
            options.with_number(FD, program.descriptor().cast_unsigned()).with_number(FLAGS, DIRECT)
        });
        port.routing.tell(message, &self.needs("a filter", "cls_bpf"))
    }

    fn needs(&self, what: &str, module: &str) -> String {
        let name = &self.line.name;
        format!("set {what} of {name} up (it needs the module {module}, which `hol kernel fetch` gets)")
    }
}

fn discipline(interface: u32, handle: u32, parent: u32, kind: &str) -> Message {
    Message::new(RTM_NEWQDISC, CREATE | REPLACE, &traffic(interface, handle, parent, 0))
        .with_name(TCA_KIND, kind)
}

/// linux/rtnetlink.h, `struct tcmsg`.
fn traffic(interface: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, interface, handle, parent, info].map(u32::to_ne_bytes).concat()
}
