//! The result of requests before they take effect: changes to apply, and messages that must be sent after them.

use std::collections::VecDeque;

use crate::{AgentId, Body, ExhaustedResource, Message, Pid, PortMapping, Refusal, Request, Rule, Tid, work};

/// Identifies a connection to the middlebox and its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// The beginning, replacement or end of a rule. A packet filter enforces each change, and a store records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The rule before the change; `None` if the rule begins.
    pub before: Option<Rule>,
    /// The rule after the change, with the same PID; `None` if the rule ends.
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

    /// Returns the change that undoes this one.
    pub fn inverse(self) -> Self {
        Self { before: self.after, after: self.before }
    }

    /// Returns the rule after the change, or before it if the rule ends.
    pub(crate) fn rule(&self) -> &Rule {
        self.after.as_ref().or(self.before.as_ref()).expect("a change has a rule before or after it")
    }
}

/// What is to be done on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Sends the message.
    Send(SessionId, Message),
    /// Closes the connection after all earlier messages.
    Close(SessionId),
}

/// An event for the operator of the middlebox; agents are informed separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorEvent {
    /// A session was opened.
    Opened(SessionId, AgentId),
    /// A session was refused.
    NotOpened(SessionId, Refusal),
    /// An agent requested more than its quota or the available resources.
    Exhausted(AgentId, ExhaustedResource),
}

/// A request about rules, and its answer.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest<'a> {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: AgentId,
    /// The request.
    pub request: &'a Request,
    /// The answer.
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

/// The steps that result from inputs, each with its changes and its messages.
///
/// A positive reply promises that a rule is in force. So first apply the [`changes`](Self::changes), all of
/// them or none, then [`release`](Self::release) the messages. If that fails,
/// [`Middlebox::undo`](crate::Middlebox::undo) the batch.
#[derive(Debug)]
pub struct Batch {
    pub(crate) steps: Vec<Step>,
    pub(crate) changes: Vec<Change>,
    pub(crate) outputs: Vec<Output>,
    /// Causes of undone steps that must be repeated, and their outputs.
    pub(crate) undone: VecDeque<(StepCause, Vec<Output>)>,
    operator_events: Vec<OperatorEvent>,
    /// Octets of the messages in `outputs`.
    octets: usize,
    max_octets: usize,
    work: u64,
    max_work: u64,
    /// The [work](Batch::work) that a session may cause before other sessions get their turn.
    share_work: u64,
    /// The value of `work` at which the current session's share is used up.
    share_end: u64,
    /// The work spent on expired rules.
    expiry_work: u64,
}

/// The start of a step's changes and outputs. They end where the next step starts.
#[derive(Debug)]
pub(crate) struct Step {
    pub cause: StepCause,
    /// Index of the first change.
    pub first_change: usize,
    /// Index of the first output.
    pub first_output: usize,
}

/// What caused a step.
#[derive(Debug, Clone)]
pub(crate) enum StepCause {
    /// A request of an open session.
    Request(SessionRequest),
    /// A rule expired.
    Expired(Pid),
    /// The end of an expired rule of this owner was announced.
    Announced(Pid, AgentId),
    /// The operator ended a rule.
    Ended(Pid),
    /// Session control, which changes no rule.
    Session,
}

/// A request of an open session.
#[derive(Debug, Clone)]
pub(crate) struct SessionRequest {
    pub session: SessionId,
    pub agent: AgentId,
    pub tid: Tid,
    pub request: Request,
    /// An extension of the request, for port mappings.
    pub mapping: Option<PortMapping>,
}

impl Default for Batch {
    /// Creates a batch that is never full.
    fn default() -> Self {
        Self::with_room(usize::MAX)
    }
}

impl Batch {
    /// Creates a batch that is [full](Self::is_full) when its messages have `octets` octets.
    pub fn with_room(octets: usize) -> Self {
        let (steps, changes, outputs, operator_events) = Default::default();
        let undone = VecDeque::new();
        let (work, max_work, share, share_end) = (0, u64::MAX, u64::MAX, u64::MAX);
        Self {
            steps,
            changes,
            outputs,
            undone,
            operator_events,
            octets: 0,
            max_octets: octets,
            work,
            max_work,
            share_work: share,
            share_end,
            expiry_work: 0,
        }
    }

    /// Returns the batch with a limit of [work](Self::work). Each session gets at most `share` of it before
    /// other sessions get their turn.
    pub fn with_work_limit(self, max: u64, share: u64) -> Self {
        Self { max_work: max, share_work: share, share_end: share, ..self }
    }

    /// Returns how much work the batch is, in units of about a nanosecond of processor time.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Starts the share of another session.
    pub fn begin_share(&mut self) {
        self.share_end = self.work.saturating_add(self.share_work);
    }

    /// Returns all changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the changes of the last step, which is one request or the end of one rule.
    pub fn last_step(&self) -> &[Change] {
        let first = self.steps.last().map_or(0, |step| step.first_change);
        &self.changes[first..]
    }

    /// Returns the index of the step that made the change with the index `change`.
    pub fn step_of(&self, change: usize) -> usize {
        self.steps.partition_point(|step| step.first_change <= change).saturating_sub(1)
    }

    /// Returns the requests about rules with their answers.
    pub fn answers(&self) -> impl Iterator<Item = AnsweredRequest<'_>> {
        self.steps.iter().filter_map(|step| match (&step.cause, self.outputs.get(step.first_output)) {
            (
                StepCause::Request(SessionRequest { session, agent, request, .. }),
                Some(Output::Send(_, answer)),
            ) => Some(AnsweredRequest { session: *session, agent: *agent, request, answer: &answer.body }),
            _ => None,
        })
    }

    /// Returns the events for the operator's log that are neither changes nor messages.
    pub fn operator_events(&self) -> &[OperatorEvent] {
        &self.operator_events
    }

    /// Returns the number of octets of the waiting messages.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Returns true if further messages must wait for the next batch. The batch has limits because a reply can be
    /// eight thousand times as long as its request, and one request can be a thousand times the work of another.
    pub fn is_full(&self) -> bool {
        self.octets >= self.max_octets || self.work >= self.max_work
    }

    /// Returns true while the current session may continue.
    pub fn has_room(&self) -> bool {
        !self.is_full() && self.work < self.share_end
    }

    /// Returns true while the batch has room for the ends of expired rules. They get half of a batch, so that requests
    /// continue, and rules cannot begin faster than they end.
    pub(crate) fn may_expire_rules(&self) -> bool {
        !self.is_full() && self.expiry_work < self.max_work.div_ceil(2)
    }

    /// Counts the work done since [`work`](Self::work) was `before` as work for expired rules.
    pub(crate) fn count_expiry_work(&mut self, before: u64) {
        self.expiry_work += self.work - before;
    }

    /// Returns the messages and closings in order, and empties the batch. Call it when every change is in
    /// force and recorded.
    pub fn release(&mut self) -> impl Iterator<Item = Output> {
        self.steps.clear();
        self.changes.clear();
        self.operator_events.clear();
        (self.octets, self.work, self.share_end, self.expiry_work) = (0, 0, self.share_work, 0);
        self.outputs.drain(..)
    }

    /// Starts a step; everything added from now on belongs to it.
    pub(crate) fn begin_step(&mut self, cause: StepCause) {
        self.end_step(self.positions(), cause);
    }

    /// Ends a step that started at these [positions](Self::positions).
    pub(crate) fn end_step(&mut self, (first_change, first_output): (usize, usize), cause: StepCause) {
        self.steps.push(Step { cause, first_change, first_output });
    }

    /// Returns the number of changes and of outputs so far.
    pub(crate) fn positions(&self) -> (usize, usize) {
        (self.changes.len(), self.outputs.len())
    }

    /// Removes the last step; returns its cause and its outputs.
    pub(crate) fn pop_step(&mut self) -> Option<(StepCause, Vec<Output>)> {
        let Step { cause, first_change, first_output } = self.steps.pop()?;
        self.changes.truncate(first_change);
        let outputs = self.outputs.split_off(first_output);
        self.octets -= outputs.iter().map(Output::octets).sum::<usize>();
        Some((cause, outputs))
    }

    /// Adds work for a session, by SIMCO or by the layers below, in the unit of [`work`](Self::work).
    pub fn add_work(&mut self, work: u64) {
        self.work = self.work.saturating_add(work);
    }

    pub(crate) fn add_operator_event(&mut self, notice: OperatorEvent) {
        self.add_work(work::REFUSAL_LINE);
        self.operator_events.push(notice);
    }

    pub(crate) fn send(&mut self, session: SessionId, message: Message) {
        self.push_output(Output::Send(session, message));
    }

    /// Adds an output of the batch.
    pub(crate) fn push_output(&mut self, output: Output) {
        self.octets += output.octets();
        self.outputs.push(output);
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.push_output(Output::Close(session));
    }
}
