//! One workload over one channel: its two sides and how far it has come.

use hol_base::{Duration, Time};
use hol_measure::Record;
use hol_transport::Event;
use hol_workloads::{Application, Client, Input, Server, Trouble, WorkloadSpec};

use crate::channel::Channel;
use crate::{SILENCE, Stopped, grace};

/// An application between a client and a server.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) client: Side<Client>,
    pub(crate) server: Side<Server>,
    terms: Terms,
    /// Whether its start has come.
    pub(crate) started: bool,
    /// Messages that the transport gave up.
    abandoned: u64,
    /// When every connection was open.
    connected: Option<Time>,
    /// The last delivery, or when something got under way after a time with nothing.
    progress: Time,
    /// Why it ended, once it has.
    pub(crate) stopped: Option<Stopped>,
    /// Whether its client has begun to close.
    closing: bool,
}

/// When a flow starts and ends.
#[derive(Debug)]
pub(crate) struct Terms {
    messages: u64,
    has_replies: bool,
    start: Time,
    connect_timeout: Option<Duration>,
    /// So long without a delivery is a stall.
    patience: Duration,
    /// So long after the last message was scheduled it ends.
    grace: Duration,
    /// What is lost stays lost: once everything has been sent, silence is an end like any other.
    ends_silently: bool,
}

impl Terms {
    pub(crate) fn of(
        workload: &WorkloadSpec,
        messages: u64,
        patience: Duration,
        ends_silently: bool,
    ) -> Self {
        let start = Time::ZERO + workload.start;
        Self {
            messages,
            has_replies: workload.has_replies(),
            start,
            connect_timeout: workload.connect_timeout,
            patience,
            grace: grace(workload),
            ends_silently,
        }
    }
}

/// One side of a flow.
#[derive(Debug)]
pub(crate) struct Side<A> {
    pub(crate) application: A,
    pub(crate) channel: Channel,
    connected: usize,
    closed: usize,
    /// Endpoints whose peer sends no more; the application closes them too.
    pub(crate) half_closed: Vec<usize>,
}

/// The sides of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

impl<A: Application> Side<A> {
    pub(crate) fn new(application: A, channel: Channel) -> Self {
        Self { application, channel, connected: 0, closed: 0, half_closed: Vec::new() }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed == self.channel.endpoints.len()
    }

    fn is_connected(&self) -> bool {
        self.connected == self.channel.endpoints.len()
    }

    /// Takes an event of one of its endpoints.
    fn take(&mut self, now: Time, endpoint: usize, event: Event) -> Progress {
        let Self { application, channel, .. } = self;
        match event {
            Event::Received(received) => {
                let delivered = channel.receive(endpoint, received, |delivery| {
                    application.handle(now, Input::Message(delivery));
                });
                return delivered.map_or_else(|error| Progress::Failed(error.0), |()| Progress::Delivered);
            }
            Event::Writable => application.handle(now, Input::Writable),
            Event::Connected => {
                self.connected += 1;
                if self.is_connected() {
                    self.application.handle(now, Input::Connected);
                    return Progress::Connected;
                }
            }
            Event::Abandoned { .. } => return Progress::Abandoned,
            Event::PeerClosed => self.half_closed.push(endpoint),
            Event::Closed => self.closed += 1,
            Event::Failed { reason } => return Progress::Failed(reason),
            Event::Path { .. } => {}
        }
        Progress::None
    }
}

/// What an event means for the flow as a whole.
enum Progress {
    None,
    Connected,
    Delivered,
    Abandoned,
    Failed(&'static str),
}

impl Flow {
    pub(crate) fn new(client: Side<Client>, server: Side<Server>, terms: Terms) -> Self {
        let progress = terms.start;
        Self {
            client,
            server,
            terms,
            started: false,
            abandoned: 0,
            connected: None,
            progress,
            stopped: None,
            closing: false,
        }
    }

    /// When it starts.
    pub(crate) fn start(&self) -> Time {
        self.terms.start
    }

    /// From the start until every connection was open.
    pub(crate) fn connect_time(&self) -> Option<Duration> {
        self.connected.map(|connected| connected.since(self.terms.start))
    }

    /// Takes note that it is closed in an orderly way; false if it was before, or if not everything is done.
    pub(crate) fn begins_to_close(&mut self) -> bool {
        self.stopped == Some(Stopped::Finished) && !std::mem::replace(&mut self.closing, true)
    }

    /// It ended before everything was done: its applications do no more.
    pub(crate) fn was_given_up(&self) -> bool {
        self.stopped.is_some_and(|why| why != Stopped::Finished)
    }

    /// What both sides noted.
    pub(crate) fn records(&self, workload: &WorkloadSpec, gives_up: bool) -> Vec<Record> {
        hol_workloads::records(workload, &self.client.application, &self.server.application, gives_up)
    }

    /// Takes an event of one of the endpoints of `role`.
    pub(crate) fn take(&mut self, now: Time, role: Role, endpoint: usize, event: Event) {
        let progress = match role {
            Role::Client => self.client.take(now, endpoint, event),
            Role::Server => self.server.take(now, endpoint, event),
        };
        match progress {
            Progress::None => return,
            Progress::Connected if role == Role::Client => self.connected = Some(now),
            Progress::Connected | Progress::Delivered => {}
            Progress::Abandoned => self.abandoned += 1,
            Progress::Failed(reason) => self.stop(Stopped::Failed { reason }),
        }
        self.progress = now;
        if self.outstanding() == 0 {
            self.stop(Stopped::Finished);
        }
    }

    /// An application hands a message to the transport.
    pub(crate) fn note_sending(&mut self, now: Time, role: Role) {
        if role == Role::Client && self.under_way() <= 1 {
            self.progress = now;
        }
    }

    /// An application gives up.
    pub(crate) fn note_trouble(&mut self, now: Time, trouble: Trouble) {
        self.stop(match trouble {
            Trouble::BehindSchedule { message, scheduled } => {
                Stopped::BehindSchedule { message, scheduled, at: now }
            }
            Trouble::Nonsense(reason) => Stopped::Failed { reason },
        });
    }

    /// Messages of the schedule that are not settled, whether they came due or not.
    pub(crate) fn outstanding(&self) -> u64 {
        self.terms.messages.saturating_sub(self.settled())
    }

    /// When to look again whether it is stuck; [`Time::MAX`] when it has ended.
    pub(crate) fn deadline(&self) -> Time {
        if self.stopped.is_some() {
            Time::MAX
        } else {
            let patience = if self.may_end_silently() { SILENCE } else { self.terms.patience };
            (self.progress + patience).min(self.end_of_grace()).min(self.connect_by())
        }
    }

    /// Stops the flow if it is stuck.
    pub(crate) fn check(&mut self, now: Time) {
        let outstanding = self.under_way();
        if let (true, Some(within)) = (now >= self.connect_by(), self.terms.connect_timeout) {
            self.stop(Stopped::NotConnected { within });
        } else if self.may_end_silently() && now >= self.progress + SILENCE {
            self.stop(Stopped::Finished);
        } else if now >= self.end_of_grace() {
            self.stop(Stopped::OutOfTime { outstanding });
        } else if now >= self.progress + self.terms.patience {
            let waits = self.connected.is_none() || self.client.application.awaits_answer();
            if outstanding > 0 || waits {
                self.stop(Stopped::Stalled { since: self.progress, at: now, outstanding });
            } else {
                // Nothing is under way; the schedule is merely slow.
                self.progress = now;
            }
        }
    }

    /// Nothing will ever happen again.
    pub(crate) fn deadlock(&mut self, now: Time) {
        let outstanding = self.under_way();
        self.stop(Stopped::Stalled { since: self.progress, at: now, outstanding });
    }

    fn stop(&mut self, why: Stopped) {
        self.stopped.get_or_insert(why);
    }

    fn settled(&self) -> u64 {
        let done = if self.terms.has_replies {
            self.client.application.replies()
        } else {
            self.server.application.requests()
        };
        done + self.abandoned
    }

    /// Messages that came due and are not settled.
    fn under_way(&self) -> u64 {
        self.client.application.sent().saturating_sub(self.settled())
    }

    fn may_end_silently(&self) -> bool {
        self.terms.ends_silently && self.client.application.sent() == self.terms.messages
    }

    /// When it has to be connected; [`Time::MAX`] if it is, or may take its time.
    fn connect_by(&self) -> Time {
        match (self.connected, self.terms.connect_timeout) {
            (None, Some(timeout)) => self.terms.start + timeout,
            _ => Time::MAX,
        }
    }

    fn end_of_grace(&self) -> Time {
        let client = &self.client.application;
        match client.last_scheduled() {
            Some(last) if client.sent() == self.terms.messages => last + self.terms.grace,
            _ => Time::MAX,
        }
    }
}
