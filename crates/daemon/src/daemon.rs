//! The event loop: one thread serves all sessions, so every request is atomic (RFC 3989 section 2.1.4).

mod arrivals;
mod reload;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use hol_base::{Duration, Time};
use hol_filter::Mended;
use hol_simco::{Batch, Middlebox, Output, SessionId};
use hol_system::{Events, Interest, Poller};

use crate::clock::Clock;
use crate::connection::Over;
use crate::connections::Connections;
use crate::endpoint::Endpoint;
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::listen::Listeners;
use crate::log::{Field, Level, Log};
use crate::metrics::Metrics;
use crate::systemd::Supervisor;
use crate::token::Token;
use crate::{DaemonError, LedgerError, Listen};
use reload::Reload;

/// A middlebox that listens.
///
/// In every turn it hears what has arrived, within bounds, makes all changes that come of it in one go, and only then
/// answers. What arrives meanwhile is the next turn's: the slower the disk, the larger the batches.
#[derive(Debug)]
pub struct Daemon {
    clock: Clock,
    log: Log,
    limits: Limits,
    poller: Poller<Token>,
    listeners: Option<Listeners>,
    connections: Connections,
    middlebox: Middlebox,
    ledger: Ledger,
    batch: Batch,
    buffer: Box<[u8]>,
    metrics: Metrics,
    /// Where the metrics are read, until the daemon runs.
    endpoint: Option<Endpoint>,
    supervisor: Supervisor,
    reload: Option<Reload>,
    /// When it ends, whoever has not heard of it; [`Time::MAX`] until it is to stop.
    end: Time,
    /// Why it has to stop, if nobody wants it to.
    failure: Option<LedgerError>,
}

impl Daemon {
    /// Sockets that are looked after in a turn.
    const MOST_READY: usize = 256;
    /// Octets that are read at a time.
    const PIECE: usize = 4096;
    /// How long agents may take to hear that it is over.
    const FAREWELL: Duration = Duration::from_secs(5);

    /// Serves until `stop` becomes readable; then it ends the sessions, and waits until their agents have been told.
    pub fn run(&mut self, stop: impl AsFd) -> Result<(), DaemonError> {
        self.poller.add(&stop, Token::Stop, Interest::Read)?;
        if let Some(endpoint) = self.endpoint.take() {
            endpoint.serve(self.metrics.clone())?;
        }
        for at in self.listeners.iter().flat_map(Listeners::addresses) {
            self.log.write(self.clock.now(), Level::Info, "listening", &[("at", &at)]);
        }
        self.supervisor.ready();
        let mut ready = Events::with_capacity(Self::MOST_READY);
        while !self.is_over() {
            self.poller.wait(self.patience(), &mut ready)?;
            self.turn(&ready, &stop)?;
        }
        self.log.write(self.clock.now(), Level::Info, "stopped", &[]);
        self.failure.take().map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn is_over(&self) -> bool {
        let is_served = self.listeners.is_some() || self.connections.len() > 0;
        !is_served || self.clock.now() >= self.end
    }

    /// Where it listens, with the ports that it was given.
    pub fn addresses(&self) -> impl Iterator<Item = Listen> {
        self.listeners.iter().flat_map(Listeners::addresses)
    }

    /// Opens the sockets of a middlebox and makes the filter hold its rules, and no others.
    pub(crate) fn open(
        clock: Clock,
        listen: &[Listen],
        middlebox: Middlebox,
        mut ledger: Ledger,
        limits: Limits,
        mut log: Log,
    ) -> Result<Self, DaemonError> {
        let poller = Poller::new()?;
        let Mended { missing, surplus } = ledger.mend(clock.now(), &middlebox)?;
        log.write(clock.now(), Level::Info, "mended", &[("missing", &missing), ("surplus", &surplus)]);
        ledger.metrics().numbers().rules = middlebox.rules(Time::ZERO).count() as u64;
        let limits = limits.within_open_files()?;
        Ok(Self {
            clock,
            log,
            metrics: ledger.metrics().clone(),
            endpoint: None,
            supervisor: Supervisor::from_environment()?,
            reload: None,
            listeners: Some(Listeners::open(listen, &poller)?),
            poller,
            connections: Connections::default(),
            middlebox,
            ledger,
            batch: Batch::with_room(limits.turn()),
            limits,
            buffer: vec![0; Self::PIECE].into(),
            end: Time::MAX,
            failure: None,
        })
    }

    /// Opens the socket where metrics can be read when the daemon runs.
    pub(crate) fn show_metrics(&mut self, at: SocketAddr) -> Result<(), DaemonError> {
        let open = || {
            let endpoint = Endpoint::open(at)?;
            Ok((endpoint.address()?, endpoint))
        };
        let (at, endpoint) = open().map_err(|source| DaemonError::Metrics { at, source })?;
        self.endpoint = Some(endpoint);
        self.log.write(self.clock.now(), Level::Info, "metrics", &[("at", &at)]);
        Ok(())
    }

    fn turn(&mut self, ready: &Events<Token>, stop: &impl AsFd) -> Result<(), DaemonError> {
        let now = self.clock.now();
        for one in ready.iter() {
            match one.token {
                Token::Stop => {
                    self.poller.remove(stop)?;
                    self.stop(now);
                }
                Token::Reload => self.reload(now)?,
                Token::Listener(number) => self.accept(now, number)?,
                Token::Connection(id) => self.connections.note_ready(id),
            }
        }
        self.hear(now);
        self.middlebox.advance(now, &mut self.batch);
        self.commit(now);
        self.answer(now);
        self.give_up(now);
        self.metrics.numbers().connections = self.connections.len() as u64;
        self.supervisor.alive(now);
        Ok(self.try_again(now)?)
    }

    /// How long nothing has to be done.
    fn patience(&self) -> Option<Duration> {
        let listeners = self.listeners.as_ref().map_or(Time::MAX, Listeners::wake_at);
        let others = self.connections.wake_at().min(self.ledger.wake_at()).min(self.supervisor.wake_at());
        let next = self.middlebox.wake_at().min(others).min(listeners).min(self.end);
        (next < Time::MAX).then(|| next.saturating_since(self.clock.now()))
    }

    /// Takes nobody in any more, and ends the sessions. RFC 4540 section 7.5.
    fn stop(&mut self, now: Time) {
        self.supervisor.stopping();
        self.log.write(now, Level::Info, "stopping", &[("connections", &self.connections.len())]);
        self.listeners = None;
        self.end = now + Self::FAREWELL;
        self.middlebox.end_sessions(&mut self.batch);
    }

    /// Makes true what the requests of this turn come to.
    fn commit(&mut self, now: Time) {
        let failures = self.ledger.commit(now, &mut self.middlebox, &mut self.batch);
        if let Some(worst) = failures.iter().min_by_key(|failure| failure.level()) {
            let fields: [Field<'_>; 2] = [("requests", &failures.len()), ("reason", worst)];
            self.log.write(now, worst.level(), "refused", &fields);
        }
        if let Some(failure) = failures.into_iter().find(LedgerError::is_final)
            && self.failure.is_none()
        {
            self.failure = Some(failure);
            self.stop(now);
        }
        if self.log.writes(Level::Debug) {
            for change in self.batch.changes() {
                let (event, rule) = match (&change.before, &change.after) {
                    (None, Some(rule)) => ("rule-begun", rule),
                    (Some(_), Some(rule)) => ("rule-replaced", rule),
                    (Some(rule), None) => ("rule-ended", rule),
                    (None, None) => continue,
                };
                self.log.write(now, Level::Debug, event, &[("pid", &rule.pid.0), ("until", &rule.expires)]);
            }
        }
    }

    /// Says what is true now.
    fn answer(&mut self, now: Time) {
        self.count_answers();
        for output in self.batch.release() {
            match output {
                Output::Send(id, message) => self.connections.push(id, &message),
                Output::Close(id) => self.connections.close(id),
            }
        }
        for (id, why) in self.connections.settle(now, &self.limits, &self.poller) {
            self.remove(now, id, &why);
        }
    }

    fn count_answers(&mut self) {
        let mut numbers = self.metrics.numbers();
        self.batch.answers().for_each(|(request, answer)| numbers.count_answer(request, answer));
        numbers.sent += self.batch.octets() as u64;
    }

    /// Gives up connections that have had their time.
    fn give_up(&mut self, now: Time) {
        for (id, why) in self.connections.overdue(now) {
            self.remove(now, id, &why);
        }
    }

    /// Does what failed before, when it is time to try again.
    fn try_again(&mut self, now: Time) -> io::Result<()> {
        if self.ledger.look(now) {
            self.log.write(now, Level::Warn, "changed-by-others", &[("what", &"packet filter")]);
        }
        if self.ledger.is_doubtful(now) {
            match self.ledger.mend(now, &self.middlebox) {
                Ok(Mended { missing, surplus }) => {
                    self.log.write(
                        now,
                        Level::Info,
                        "mended",
                        &[("missing", &missing), ("surplus", &surplus)],
                    );
                }
                Err(failure) => self.log.write(now, Level::Error, "not-mended", &[("reason", &failure)]),
            }
        }
        if let Err(failure) = self.ledger.tidy() {
            self.log.write(now, Level::Error, "journal-grows", &[("reason", &failure)]);
        }
        match &mut self.listeners {
            Some(listeners) if listeners.wake_at() <= now => listeners.resume(&self.poller),
            _ => Ok(()),
        }
    }

    /// Closes a connection at once. Its session ends, its rules live on. RFC 3989 section 2.2.4.
    fn remove(&mut self, now: Time, id: SessionId, why: &Over) {
        self.middlebox.disconnect(id);
        let Some(connection) = self.connections.remove(id) else { return };
        let fields: [Field<'_>; 3] = [("session", &id.0), ("peer", &connection.peer), ("reason", why)];
        self.log.write(now, why.level(), "disconnected", &fields);
        if let Some(listeners) = &mut self.listeners {
            listeners.room_again(now);
        }
    }
}

#[cfg(test)]
mod tests;
