//! Lines that somebody thinks of while the network stands still: each runs as a program does, one after the other.
//!
//! The door is where time stands. Between two steps nothing in here waits, and without that no time passes.

use std::time::Duration as StdDuration;

use hol_base::Duration;
use hol_network::{EventSpec, NetworkSpec};
use hol_scenario::{Command, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::process::{Process, Status};
use super::running::{Programs, to_std};
use super::surroundings;
use crate::dialogue::{Ended, Letter, Order, Reply, Step};
use crate::guest::Trouble;
use crate::guest::capture::Capture;
use crate::guest::clock::{Clock, wall};
use crate::guest::door::{self, Door};
use crate::guest::schedule::Schedule;
use crate::netem;

/// So soon it is looked what a line has printed and whether it is to be interrupted, and then less and less often, for a tenth of
/// the time that it has taken is not long for who waits.
const FIRST_LOOK: StdDuration = StdDuration::from_millis(10);
const PART: u32 = 10;

/// The network while lines run on its nodes.
#[derive(Debug)]
pub(in crate::guest) struct Shell<'s> {
    programs: Programs<'s>,
    schedule: Schedule,
    capture: Capture,
    /// With all that has been changed.
    network: NetworkSpec,
    begin: Clock,
    /// The same by the wall clock, in ns since 1970.
    epoch: u64,
    /// The lines of which something still runs.
    lines: Vec<Process>,
    /// How many have been started.
    started: usize,
    door: &'static dyn Door,
}

impl<'s> Shell<'s> {
    /// Time counts from now.
    pub(in crate::guest) fn begin(programs: Programs<'s>, schedule: Schedule, capture: Capture) -> Self {
        let (begin, epoch) = (Clock::now(), wall());
        let network = programs.scenario.network.clone();
        let (lines, started, door) = (Vec::new(), 0, door::here());
        Self { programs, schedule, capture, network, begin, epoch, lines, started, door }
    }

    /// Takes one step after the other, as long as the host has some.
    pub(in crate::guest) fn serve(mut self) -> Result<(), Trouble> {
        self.tell(&Letter::Reply(Reply::default()))?;
        while let Some(step) = self.door.next()? {
            let step = serde_json::from_slice(&step)?;
            let reply = self.take(&step)?;
            self.forward()?;
            self.forget();
            self.tell(&Letter::Reply(reply))?;
        }
        Ok(())
    }

    fn tell(&self, letter: &Letter) -> Result<(), Trouble> {
        self.door.tell(&letter.to_octets())
    }

    fn now(&self) -> Duration {
        in_ns(self.begin.elapsed())
    }

    fn take(&mut self, Step { order, interrupted }: &Step) -> Result<Reply, Trouble> {
        let mut reply = Reply { began: self.now(), ..Reply::default() };
        let mut interrupts = interrupted.iter().copied().map(to_std);
        match order {
            Order::Run(program) => match self.start(program) {
                Ok(()) => {
                    while let Some(at) = self.pass(true, None, interrupts.next())? {
                        reply.interrupted.push(at);
                        self.lines.last().into_iter().for_each(Process::interrupt);
                    }
                    reply.ended = self.ended(&program.node)?;
                }
                Err(problem) => reply.refused = Some(problem.to_string()),
            },
            Order::Wait(time) => {
                let due = to_std(reply.began + *time);
                reply.interrupted.extend(self.pass(false, Some(due), interrupts.next())?);
            }
            Order::Change(event) => reply.refused = self.change(event, reply.began)?,
            Order::Packets => match self.capture.finish(self.epoch) {
                Ok(packets) => self.tell(&Letter::Packets(packets))?,
                Err(problem) => reply.refused = Some(problem),
            },
        }
        reply.now = self.now();
        Ok(reply)
    }

    /// Starts a line, which is the last then.
    fn start(&mut self, program: &Program) -> Result<(), Trouble> {
        let place = self.programs.places.get(program.node.as_str());
        let place = place.ok_or_else(|| format!("{} has no place for programs", program.node))?;
        let number = self.programs.processes.len() + self.started;
        self.started += 1;
        let command = Command::Line(surroundings::leaving(&program.command.line()));
        self.lines.push(Process::start(&Program { command, ..program.clone() }, number, place)?);
        Ok(())
    }

    /// How the last line ended.
    fn ended(&mut self, node: &str) -> Result<Option<Ended>, Trouble> {
        let Some(line) = self.lines.last_mut() else { return Ok(None) };
        let code = line.look()?.map_or(0, Status::code);
        let (was_out_of_memory, left) = (line.was_out_of_memory(), surroundings::left(node));
        Ok(Some(Ended { code, was_out_of_memory, left }))
    }

    /// Lets time pass until the last line has ended if it `is_awaited`, or a time has come; or until an interrupt, whose time is
    /// returned: that which is known from the first time, or the host's.
    fn pass(
        &mut self,
        is_awaited: bool,
        due: Option<StdDuration>,
        interrupt: Option<StdDuration>,
    ) -> Result<Option<Duration>, Trouble> {
        let from = self.begin.elapsed();
        let mut look = from + FIRST_LOOK;
        loop {
            let now = self.begin.elapsed();
            let next = self.programs.attend(now)?;
            let change = self.schedule.attend()?.map(|left| now + left);
            let line = self.lines.last_mut().filter(|_| is_awaited);
            let has_ended = line.map(Process::look).transpose()?.is_some_and(|status| status.is_some());
            if has_ended || due.is_some_and(|due| due <= now) {
                return Ok(None);
            }
            if look <= now {
                self.forward()?;
                // Where computing takes time, the same look may come some ns sooner when it is known what it will find.
                let is_due = interrupt.is_some_and(|at| at <= now + FIRST_LOOK / 2);
                if self.door.is_interrupted() || is_due {
                    return Ok(Some(in_ns(now)));
                }
                look = now + FIRST_LOOK.max((now - from) / PART);
            }
            let wake = [Some(look), change, due].into_iter().flatten().fold(next, StdDuration::min);
            self.wait(is_awaited, wake)?;
        }
    }

    /// Waits until a time, or until something has become of the last line if it `is_awaited`.
    fn wait(&self, is_awaited: bool, until: StdDuration) -> Result<(), Trouble> {
        let line = self.lines.last().filter(|_| is_awaited);
        let mut wanted: Vec<PollFd<'_>> =
            line.map(|line| PollFd::new(line, PollFlags::IN)).into_iter().collect();
        let patience = Timespec::try_from(until.saturating_sub(self.begin.elapsed())).ok();
        poll(&mut wanted, patience.as_ref())?;
        Ok(())
    }

    /// Tells the host what has been printed.
    fn forward(&mut self) -> Result<(), Trouble> {
        let programs = self.programs.processes.iter_mut().flatten();
        for process in programs.chain(&mut self.lines) {
            for (output, letter) in [Letter::Out, Letter::Err].into_iter().enumerate() {
                while let Some(text) = process.news(output)? {
                    self.door.tell(&letter(text).to_octets())?;
                }
            }
        }
        Ok(())
    }

    /// Forgets lines of which nothing is left, with what they printed.
    fn forget(&mut self) {
        self.lines.iter().filter(|line| line.is_deserted()).for_each(Process::forget);
        self.lines.retain(|line| !line.is_deserted());
    }

    /// Changes lines of the network now; returns why not.
    fn change(&mut self, event: &EventSpec, now: Duration) -> Result<Option<String>, Trouble> {
        let mut network = self.network.clone();
        network.events.push(EventSpec { at: now, ..event.clone() });
        match netem::plan(&network) {
            Ok(plan) => {
                self.network = network;
                self.schedule.change(plan.changes);
                self.schedule.attend()?;
                Ok(None)
            }
            Err(problem) => Ok(Some(problem.to_string())),
        }
    }
}

const fn in_ns(time: StdDuration) -> Duration {
    Duration::from_nanos(time.as_nanos() as u64)
}
