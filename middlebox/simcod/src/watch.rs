//! `simcod watch`: ARE notifications. RFC 4540 section 8.9.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use clap::Args;
use hol_agent::{RuleEvent, Session, SessionError};
use hol_base::Duration;
use hol_simco::{Lifetime, Request};
use hol_system::{Events, Interest, Poller};
use serde::Serialize;

use crate::client::{Client, close};
use crate::failure::Failure;
use crate::lifetime_text;
use crate::rule::Rule;
use hol_terminal::json;
use hol_terminal::{note, print};

/// Show changes and ends of rules that this agent may access, as they happen in other sessions, until Ctrl-C.
#[derive(Debug, Args)]
pub struct Watch {
    /// Stop after this many events
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after this time without an event, such as 30s
    #[arg(long, value_name = "30s")]
    quiet: Option<Duration>,
    #[command(flatten)]
    client: Client,
}

/// An event, and the state of the rule after it.
#[derive(Debug, Serialize)]
struct Event {
    pid: u32,
    /// Remaining lifetime; zero if the rule has ended.
    lifetime_s: u32,
    /// The rule; null if it has ended, or if the agent may not request its status.
    rule: Option<Rule>,
}

impl Watch {
    /// Watches until the middlebox ends the session, the count is reached, or Ctrl-C.
    pub fn run(&self) -> Result<(), Failure> {
        let mut session = self.client.open()?;
        let waiter = EventWaiter::new(&session).map_err(Failure::failed)?;
        note!("watching {}", self.client.server()?);
        let mut seen = 0;
        while self.count.is_none_or(|count| seen < count)
            && let Some(event) = self.next(&mut session, &waiter)?
        {
            seen += 1;
            let event = describe(&mut session, event)?;
            print(&if self.client.json { json(&event) } else { event.line() });
        }
        close(session);
        Ok(())
    }

    /// Returns the next event; `None` after Ctrl-C, or after the time without events that `--quiet` allows.
    fn next(&self, session: &mut Session, waiter: &EventWaiter) -> Result<Option<RuleEvent>, Failure> {
        loop {
            if let Some(event) = session.next_event(Some(Duration::ZERO))? {
                return Ok(Some(event));
            }
            if !waiter.wait(self.quiet).map_err(Failure::failed)? {
                return Ok(None);
            }
        }
    }
}

/// Waits until the middlebox sends something or the user presses Ctrl-C.
struct EventWaiter {
    poller: Poller<u64>,
    /// Socket that becomes readable after Ctrl-C.
    _interrupted: UnixStream,
}

impl EventWaiter {
    const SESSION_TOKEN: u64 = 0;
    const INTERRUPT_TOKEN: u64 = 1;

    fn new(session: &Session) -> io::Result<Self> {
        let (interrupted, mut interrupt) = UnixStream::pair()?;
        // A failure is irrelevant: it means that watching has ended.
        let tell = move || drop(interrupt.write_all(b"!"));
        ctrlc::set_handler(tell).map_err(io::Error::other)?;
        let poller = Poller::new()?;
        poller.add(session, Self::SESSION_TOKEN, Interest::Read)?;
        poller.add(&interrupted, Self::INTERRUPT_TOKEN, Interest::Read)?;
        Ok(Self { poller, _interrupted: interrupted })
    }

    /// Returns true if the middlebox has sent something, false after Ctrl-C or the timeout `quiet`.
    fn wait(&self, quiet: Option<Duration>) -> io::Result<bool> {
        let mut events = Events::with_capacity(2);
        self.poller.wait(quiet, &mut events)?;
        let is_interrupted = events.iter().any(|one| one.token == Self::INTERRUPT_TOKEN);
        // Without a limit only an irrelevant signal ends the wait without an event.
        Ok(!is_interrupted && (!events.is_empty() || quiet.is_none()))
    }
}

fn describe(session: &mut Session, event: RuleEvent) -> Result<Event, Failure> {
    let RuleEvent { pid, lifetime } = event;
    let request = Request::Prs { pid };
    let rule = if lifetime == Lifetime(0) {
        None
    } else {
        match session.ask(request.clone()) {
            Ok(status) => Some(Rule::of(&request, &status)),
            Err(SessionError::Refused(_)) => None,
            Err(error) => return Err(error.into()),
        }
    };
    Ok(Event { pid: pid.0, lifetime_s: lifetime.0, rule })
}

impl Event {
    fn line(&self) -> String {
        let flow = self.rule.as_ref().map_or(String::new(), |rule| format!("  {}", rule.summary()));
        match self.lifetime_s {
            0 => format!("rule {} has ended\n", self.pid),
            seconds => {
                format!("rule {} has a lifetime of {}{flow}\n", self.pid, lifetime_text::format(seconds))
            }
        }
    }
}
