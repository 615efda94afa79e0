//! The loop: waits until a socket or the schedule wants something, and does what follows from it.

use hol_base::Time;
use hol_measure::{Leg, Record};
use hol_system::{Events, Interest, Poller, Ready};
use hol_workloads::{Client, Server};
use socket2::Socket;

use crate::clock::{Alarm, Clock};
use crate::filter::Filter;
use crate::plan::{End, Ending, PathChange, Plan, Run, SocketsError};
use crate::progress::{Progress, Tally};
use crate::side::{Halt, Side};
use crate::stop::Stop;
use crate::token::Token;
use crate::transceiver::{Fault, Heard, Opener, refused};

/// Everything that takes part in a run.
pub(crate) struct World<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
    pub(crate) poller: Poller<Token>,
    pub(crate) opener: Box<dyn Opener>,
    pub(crate) listener: Option<Socket>,
    /// By connection: where it comes from.
    pub(crate) client_ports: Vec<u16>,
    pub(crate) client: Side<Client>,
    pub(crate) server: Side<Server>,
    pub(crate) filter: Option<Filter>,
    pub(crate) progress: Progress,
    pub(crate) paths: Vec<PathChange>,
    /// Scratch space for whoever reads.
    pub(crate) buffer: Box<[u8]>,
}

impl World<'_> {
    /// Sockets that are looked after before the alarm is set anew.
    const MOST_READY: usize = 64;
    /// As much as a datagram may be.
    pub(crate) const BUFFER: usize = 1 << 16;

    /// Ends when `stop` is raised.
    pub(crate) fn heed(&mut self, stop: &Stop) -> Result<(), SocketsError> {
        self.poller.add(stop, Token::Stop, Interest::Read).map_err(refused("watch for the end"))
    }

    /// Goes on until the flow has ended; returns the time.
    pub(crate) fn run(&mut self) -> Result<Time, SocketsError> {
        let mut ready = Events::with_capacity(Self::MOST_READY);
        let mut wake = self.serve(End::Client);
        while self.progress.stopped.is_none() {
            let deadline = wake.min(self.progress.deadline(self.tally()));
            self.alarm.set(&self.clock, deadline).map_err(refused("set the alarm"))?;
            self.poller.wait(None, &mut ready).map_err(refused("wait for the sockets"))?;
            for one in ready.iter() {
                if let Some(until) = self.handle(one) {
                    wake = until;
                }
            }
        }
        Ok(self.clock.now())
    }

    /// Joins what both ends noted, asks the sockets for their counts, and lets go of them.
    pub(crate) fn finish(mut self, ended: Time, gives_up: bool) -> Result<Run, SocketsError> {
        self.client.application.give_up(ended);
        let filter = self.filter.as_ref().map(|filter| filter.holds(&self.clock, &self.server.application));
        let (client, server) = (&self.client.application, &self.server.application);
        let mut records = hol_workloads::records(&self.plan.workload, client, server, gives_up);
        records.iter_mut().for_each(without_passage);
        let run = Run {
            records,
            epoch: self.clock.epoch(),
            connected: self.progress.connected,
            ended,
            stopped: self.progress.stopped.expect("a run ends when its flow has"),
            client: self.client.counts(),
            server: self.server.counts(),
            paths: self.paths,
            filter: filter.transpose()?,
        };
        // Without more ado a socket that is dropped closes in an orderly way.
        if self.plan.ending == Ending::Abort {
            self.client.abort().and_then(|()| self.server.abort()).map_err(refused("set SO_LINGER"))?;
        }
        Ok(run)
    }

    /// Does what something ready asks for; the client's next time if it was asked.
    fn handle(&mut self, ready: Ready<Token>) -> Option<Time> {
        let result = match ready.token {
            Token::Alarm => {
                let (now, tally) = (self.clock.now(), self.tally());
                self.progress.check(now, tally);
                return Some(self.serve(End::Client));
            }
            Token::Stop => {
                self.progress.end();
                return None;
            }
            Token::Listener => self.accept(),
            Token::Connection(End::Client, number) => {
                let connected = self.client_ready(number, ready);
                connected.map(|()| Some(self.serve(End::Client)))
            }
            Token::Connection(End::Server, number) => self.server_ready(number, ready).map(|()| {
                self.serve(End::Server);
                None
            }),
        };
        result.unwrap_or_else(|fault| {
            self.progress.fail(fault.reason());
            None
        })
    }

    fn client_ready(&mut self, number: u16, ready: Ready<Token>) -> Result<(), Fault> {
        let now = self.clock.now();
        if ready.writable && self.client.write(&self.poller, number, now)? {
            self.progress.note_connected(now);
        }
        if ready.readable {
            let Self { client, clock, paths, buffer, .. } = self;
            let delivered = client.read(number, buffer, || clock.now(), note_path(End::Client, paths))?;
            self.note(delivered);
        }
        Ok(())
    }

    fn server_ready(&mut self, number: u16, ready: Ready<Token>) -> Result<(), Fault> {
        if ready.writable {
            self.server.write(&self.poller, number, self.clock.now())?;
        }
        if ready.readable {
            let Self { server, clock, paths, buffer, .. } = self;
            let delivered = server.read(number, buffer, || clock.now(), note_path(End::Server, paths))?;
            self.note(delivered);
        }
        Ok(())
    }

    fn note(&mut self, delivered: bool) {
        if delivered {
            let (now, tally) = (self.clock.now(), self.tally());
            self.progress.note_delivery(now, tally);
        }
    }

    /// Takes the connections that have come; each belongs to the stream of the port that it comes from.
    fn accept(&mut self) -> Result<Option<Time>, Fault> {
        let Some(listener) = &self.listener else { return Ok(None) };
        loop {
            let (socket, peer) = match listener.accept4(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) {
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(None),
                other => other?,
            };
            let port = peer.as_socket().map_or(0, |peer| peer.port());
            let Some(number) = self.client_ports.iter().position(|known| *known == port) else {
                // A stranger.
                continue;
            };
            let number = number as u16;
            if !self.server.has(number) {
                let transceiver = self.opener.transceiver(socket, number, &self.plan.client);
                self.server.add(&self.poller, number, transceiver)?;
            }
        }
    }

    /// Does what the application of an end wants, until it waits; returns until when.
    fn serve(&mut self, end: End) -> Time {
        let done = self.tally().done;
        let Self { poller, clock, progress, client, server, .. } = self;
        let until = match end {
            End::Client => client.serve(poller, clock, |client, now| {
                progress.note_sending(now, tally(client, done));
            }),
            End::Server => server.serve(poller, clock, |_, _| {}),
        };
        until.unwrap_or_else(|halt| {
            match halt {
                Halt::Fault(fault) => self.progress.fail(fault.reason()),
                Halt::Trouble(trouble) => self.progress.note_trouble(self.clock.now(), trouble),
            }
            Time::MAX
        })
    }

    fn tally(&self) -> Tally {
        let (client, server) = (&self.client.application, &self.server.application);
        let has_replies = self.plan.workload.has_replies();
        tally(client, if has_replies { client.replies() } else { server.requests() })
    }
}

fn tally(client: &Client, done: u64) -> Tally {
    Tally { sent: client.sent(), done, last_scheduled: client.last_scheduled() }
}

fn note_path(end: End, paths: &mut Vec<PathChange>) -> impl FnMut(Time, Heard) {
    move |at, heard| {
        if let Heard::Path(address, status) = heard {
            paths.push(PathChange { at, end, address, status });
        }
    }
}

/// Sockets tell only when a message was written and when it was delivered.
fn without_passage(record: &mut Record) {
    for leg in [&mut record.request, &mut record.reply].into_iter().flatten() {
        let Leg { written, delivered, .. } = *leg;
        *leg = Leg { written, first_sent: written, last_sent: written, arrived: delivered, delivered };
    }
}
