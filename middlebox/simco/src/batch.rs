//! What requests come to, before it is true: changes to be made, and messages that wait for them.

use std::collections::VecDeque;

use crate::{AgentId, Body, Message, Pid, PortMapping, Refusal, Request, Rule, Shortage, Tid};

/// A connection to the middlebox, as long as it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// A rule begins, is replaced or ends. A packet filter puts it in force, a store writes it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The rule that goes.
    pub before: Option<Rule>,
    /// The rule that comes; it has the PID of the one before.
    pub after: Option<Rule>,
}

impl Change {
    pub(crate) fn begin(rule: Rule) -> Self {
        Self { before: None, after: Some(rule) }
    }

    pub(crate) fn replace(before: Rule, after: Rule) -> Self {
        Self { before: Some(before), after: Some(after) }
    }

    pub(crate) fn end(rule: Rule) -> Self {
        Self { before: Some(rule), after: None }
    }

    /// What takes it back.
    pub fn inverse(self) -> Self {
        Self { before: self.after, after: self.before }
    }

    /// The rule that it is about, as it last was.
    pub(crate) fn rule(&self) -> &Rule {
        self.after.as_ref().or(self.before.as_ref()).expect("a change is about a rule")
    }
}

/// What is to happen on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The message goes out.
    Send(SessionId, Message),
    /// The connection is closed behind what went out.
    Close(SessionId),
}

/// What whoever runs the middlebox may want to know of a step; agents are told in their own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A session is open.
    Opened(SessionId, AgentId),
    /// Somebody was refused one.
    NotOpened(SessionId, Refusal),
    /// An agent wanted more than its quota, or than there is.
    Short(AgentId, Shortage),
}

/// A request about rules, and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// Who asked, and where.
    pub session: SessionId,
    /// As whom.
    pub agent: AgentId,
    /// What for.
    pub request: &'a Request,
    /// What it was told.
    pub answer: &'a Body,
}

impl Output {
    fn octets(&self) -> usize {
        match self {
            Self::Send(_, message) => message.length(),
            Self::Close(_) => 0,
        }
    }
}

/// The steps that inputs led to, each with its changes and its messages.
///
/// A positive reply promises that a rule is in force, so make the [`changes`](Self::changes) first, all of them or
/// none, then [`release`](Self::release) the messages. If that cannot be, [`Middlebox::undo`](crate::Middlebox::undo)
/// the batch.
#[derive(Debug)]
pub struct Batch {
    pub(crate) steps: Vec<Step>,
    pub(crate) changes: Vec<Change>,
    pub(crate) outputs: Vec<Output>,
    /// What the steps came of that are to be done anew, and what they said.
    pub(crate) undone: VecDeque<(Cause, Vec<Output>)>,
    notices: Vec<Notice>,
    octets: usize,
    room: usize,
    work: u64,
    most_work: u64,
    share: u64,
    /// The work at which the share of whoever is heard is used up.
    share_end: u64,
}

/// Where a step's changes and outputs begin; they end where those of the next begin.
#[derive(Debug)]
pub(crate) struct Step {
    pub cause: Cause,
    pub first_change: usize,
    pub first_output: usize,
}

/// What a step came of.
#[derive(Debug, Clone)]
pub(crate) enum Cause {
    /// A request of an open session.
    Asked(Asked),
    /// The lifetime of a rule.
    Expired(Pid),
    /// The will of whoever runs the middlebox.
    Ended(Pid),
    /// Session control, which changes no rule.
    Session,
}

/// A request of an open session.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub session: SessionId,
    pub agent: AgentId,
    pub tid: Tid,
    pub request: Request,
    /// More than the protocol has words for.
    pub mapping: Option<PortMapping>,
}

impl Default for Batch {
    /// A batch that is never full.
    fn default() -> Self {
        Self::with_room(usize::MAX)
    }
}

impl Batch {
    /// A batch that is [full](Self::is_full) when its messages have so many octets.
    pub fn with_room(octets: usize) -> Self {
        let (steps, changes, outputs, notices) = Default::default();
        let undone = VecDeque::new();
        let (work, most_work, share, share_end) = (0, u64::MAX, u64::MAX, u64::MAX);
        Self {
            steps,
            changes,
            outputs,
            undone,
            notices,
            octets: 0,
            room: octets,
            work,
            most_work,
            share,
            share_end,
        }
    }

    /// A batch that is also full when it is so much [work](Self::work), of which nobody has more than a share before
    /// others are heard.
    pub fn with_work(self, most: u64, share: u64) -> Self {
        Self { most_work: most, share, share_end: share, ..self }
    }

    /// What the batch costs, counted in units of about a nanosecond of a processor.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Somebody else has a share from now on.
    pub fn begin_share(&mut self) {
        self.share_end = self.work.saturating_add(self.share);
    }

    /// All changes, in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The changes of the last step: what one request wants, or the end of one rule.
    pub fn last_step(&self) -> &[Change] {
        let first = self.steps.last().map_or(0, |step| step.first_change);
        &self.changes[first..]
    }

    /// The requests about rules, each with its answer.
    pub fn answers(&self) -> impl Iterator<Item = Answered<'_>> {
        self.steps.iter().filter_map(|step| match (&step.cause, self.outputs.get(step.first_output)) {
            (Cause::Asked(Asked { session, agent, request, .. }), Some(Output::Send(_, answer))) => {
                Some(Answered { session: *session, agent: *agent, request, answer: &answer.body })
            }
            _ => None,
        })
    }

    /// What is worth a word beside changes and messages.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Octets of the messages that wait.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// True if messages that arrive are to wait for the next batch: a reply can be eight thousand times as long as its
    /// request, and a request can be a thousand times the work of another.
    pub fn is_full(&self) -> bool {
        self.octets >= self.room || self.work >= self.most_work
    }

    /// True as long as whoever is heard may be heard further.
    pub fn has_room(&self) -> bool {
        !self.is_full() && self.work < self.share_end
    }

    /// What is to be sent and closed, in order, now that every change is in force and recorded. Empties the batch.
    pub fn release(&mut self) -> impl Iterator<Item = Output> {
        self.steps.clear();
        self.changes.clear();
        self.notices.clear();
        (self.octets, self.work, self.share_end) = (0, 0, self.share);
        self.outputs.drain(..)
    }

    /// Begins a step: what is added from now on is its own.
    pub(crate) fn begin(&mut self, cause: Cause) {
        self.end_step(self.here(), cause);
    }

    /// Ends a step that began [here](Self::here).
    pub(crate) fn end_step(&mut self, (first_change, first_output): (usize, usize), cause: Cause) {
        self.steps.push(Step { cause, first_change, first_output });
    }

    /// The ends of the changes and of the outputs.
    pub(crate) fn here(&self) -> (usize, usize) {
        (self.changes.len(), self.outputs.len())
    }

    /// Takes out the last step; what it came of, and what it said.
    pub(crate) fn pop_step(&mut self) -> Option<(Cause, Vec<Output>)> {
        let Step { cause, first_change, first_output } = self.steps.pop()?;
        self.changes.truncate(first_change);
        let said = self.outputs.split_off(first_output);
        self.octets -= said.iter().map(Output::octets).sum::<usize>();
        Some((cause, said))
    }

    /// Counts work that has been done, here or for it: what the layers below do for a session is work as well.
    pub fn count(&mut self, work: u64) {
        self.work = self.work.saturating_add(work);
    }

    pub(crate) fn note(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    pub(crate) fn send(&mut self, session: SessionId, message: Message) {
        self.say(Output::Send(session, message));
    }

    /// Adds what is to be sent or closed.
    pub(crate) fn say(&mut self, output: Output) {
        self.octets += output.octets();
        self.outputs.push(output);
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.say(Output::Close(session));
    }
}
