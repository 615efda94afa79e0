//! The result of requests before they take effect: changes to apply, and messages that must be sent after them.

use std::collections::VecDeque;

use crate::{AgentId, Body, ExhaustedResource, Message, Pid, PortMapping, Refusal, Request, Rule, Tid, work};

/// The identifier of a connection to the middlebox and of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// The beginning, the replacement or the end of a rule. A packet filter enforces every change, and a journal records
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The rule before the change; `None` if the change begins the rule.
    pub before: Option<Rule>,
    /// The rule after the change, with the same PID; `None` if the change ends the rule.
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

    /// Returns the rule after the change; if the change ends the rule, the rule before the change.
    pub(crate) fn rule(&self) -> &Rule {
        self.after.as_ref().or(self.before.as_ref()).expect("a change has a rule before or after it")
    }
}

/// An action that the caller must perform on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send this message.
    Send(SessionId, Message),
    /// Close the connection once all earlier messages have been sent.
    Close(SessionId),
}

/// An event that the operator of the middlebox should know; agents are informed by messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorEvent {
    /// A session was opened.
    Opened(SessionId, AgentId),
    /// A session was refused.
    NotOpened(SessionId, Refusal),
    /// An agent requested more than its quota or the available resources.
    Exhausted(AgentId, ExhaustedResource),
}

/// A request about rules together with its answer.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest<'a> {
    /// The session of the request.
    pub session: SessionId,
    /// The agent that sent the request.
    pub agent: AgentId,
    /// The request.
    pub request: &'a Request,
    /// The content of the reply.
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

/// The steps that inputs cause, each with its changes and its messages.
///
/// A positive reply promises that a rule is in force. So first apply the [`changes`](Self::changes), all of them or
/// none, then [`release`](Self::release) the messages. If the changes cannot be applied,
/// [`Middlebox::undo`](crate::Middlebox::undo) the batch.
#[derive(Debug)]
pub struct Batch {
    pub(crate) steps: Vec<Step>,
    pub(crate) changes: Vec<Change>,
    pub(crate) outputs: Vec<Output>,
    /// Steps that were undone and must be repeated: the cause and the outputs of each.
    pub(crate) undone: VecDeque<(StepCause, Vec<Output>)>,
    operator_events: Vec<OperatorEvent>,
    /// Number of octets of the messages in `outputs`.
    octets: usize,
    max_octets: usize,
    work: u64,
    max_work: u64,
    /// The amount of [work](Batch::work) that a session may cause before other sessions get their turn.
    share_work: u64,
    /// The value of `work` at which the current session has used up its share.
    share_end: u64,
    /// The work for expired rules so far.
    expiry_work: u64,
}

/// The position in a batch at which the changes and outputs of a step start. They end where the next step starts.
#[derive(Debug)]
pub(crate) struct Step {
    pub cause: StepCause,
    /// Index of the step's first change.
    pub first_change: usize,
    /// Index of the step's first output.
    pub first_output: usize,
}

/// The cause of a step.
#[derive(Debug, Clone)]
pub(crate) enum StepCause {
    /// A request in an open session caused the step.
    Request(SessionRequest),
    /// The rule with this PID expired.
    Expired(Pid),
    /// The sessions were told that this rule of this owner had expired.
    Announced(Pid, AgentId),
    /// The operator ended the rule with this PID.
    Ended(Pid),
    /// A message of session control, which changes no rule.
    Session,
}

/// A request in an open session.
#[derive(Debug, Clone)]
pub(crate) struct SessionRequest {
    pub session: SessionId,
    pub agent: AgentId,
    pub tid: Tid,
    pub request: Request,
    /// The data of a port mapping for which the request is made; `None` for other requests.
    pub mapping: Option<PortMapping>,
}

impl Default for Batch {
    /// Creates a batch that is never full.
    fn default() -> Self {
        Self::with_room(usize::MAX)
    }
}

impl Batch {
    /// Creates a batch that is [full](Self::is_full) once its messages have `octets` octets.
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

    /// Returns the batch with a limit on [work](Self::work). Each session may cause at most `share` of this work before
    /// other sessions get their turn.
    pub fn with_work_limit(self, max: u64, share: u64) -> Self {
        Self { max_work: max, share_work: share, share_end: share, ..self }
    }

    /// Returns how much work the batch has caused, in units of about a nanosecond of processor time.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Begins the share of the next session.
    pub fn begin_share(&mut self) {
        self.share_end = self.work.saturating_add(self.share_work);
    }

    /// Lets the current session use all the room of the batch.
    pub(crate) fn lift_share(&mut self) {
        self.share_end = u64::MAX;
    }

    /// Returns all changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the changes of the last step, which is a request or the end of a rule.
    pub fn last_step(&self) -> &[Change] {
        let first = self.steps.last().map_or(0, |step| step.first_change);
        &self.changes[first..]
    }

    /// Returns the index of the step that made the change with the index `change`.
    pub fn step_of(&self, change: usize) -> usize {
        self.steps.partition_point(|step| step.first_change <= change).saturating_sub(1)
    }

    /// Returns the requests about rules that the batch contains, with their answers.
    pub fn answers(&self) -> impl Iterator<Item = AnsweredRequest<'_>> {
        self.steps.iter().filter_map(|step| match (&step.cause, self.outputs.get(step.first_output)) {
            (
                StepCause::Request(SessionRequest { session, agent, request, .. }),
                Some(Output::Send(_, answer)),
            ) => Some(AnsweredRequest { session: *session, agent: *agent, request, answer: &answer.body }),
            _ => None,
        })
    }

    /// Returns the events for the operator's log, other than changes and messages.
    pub fn operator_events(&self) -> &[OperatorEvent] {
        &self.operator_events
    }

    /// Returns the number of octets in the messages that wait to be sent.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Returns true if further messages must wait for the next batch. A batch is limited because a reply can be eight
    /// thousand times as long as its request, and a request can cause a thousand times as much work as another.
    pub fn is_full(&self) -> bool {
        self.octets >= self.max_octets || self.work >= self.max_work
    }

    /// Returns true while the current session may cause more work.
    pub fn has_room(&self) -> bool {
        !self.is_full() && self.work < self.share_end
    }

    /// Returns true while the batch has room for the ends of expired rules. They may use half of a batch, so that
    /// requests are still served, and rules do not begin faster than they end.
    pub(crate) fn may_expire_rules(&self) -> bool {
        !self.is_full() && self.expiry_work < self.max_work.div_ceil(2)
    }

    /// Leaves the rest of the batch to requests.
    pub(crate) fn forbid_expiry(&mut self) {
        self.expiry_work = u64::MAX;
    }

    /// Counts all work since [`work`](Self::work) was `before` as work for expired rules.
    pub(crate) fn count_expiry_work(&mut self, before: u64) {
        self.expiry_work += self.work - before;
    }

    /// Returns the outputs in order, and empties the batch. Must be called only when all changes are in force and
    /// recorded.
    pub fn release(&mut self) -> impl Iterator<Item = Output> {
        self.steps.clear();
        self.changes.clear();
        self.operator_events.clear();
        (self.octets, self.work, self.share_end, self.expiry_work) = (0, 0, self.share_work, 0);
        self.outputs.drain(..)
    }

    /// Begins a step, to which all changes and outputs from now on belong.
    pub(crate) fn begin_step(&mut self, cause: StepCause) {
        self.end_step(self.positions(), cause);
    }

    /// Completes a step that began at these [positions](Self::positions).
    pub(crate) fn end_step(&mut self, (first_change, first_output): (usize, usize), cause: StepCause) {
        self.steps.push(Step { cause, first_change, first_output });
    }

    /// Returns the number of changes and the number of outputs so far.
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

    /// Adds work that a session has caused in SIMCO or in lower layers, in the unit of [`work`](Self::work).
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
