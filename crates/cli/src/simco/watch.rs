//! `hol simco watch`: ARE notifications. RFC 4540 section 8.9.

use clap::Args;
use hol_agent::{RuleEvent, Session, SessionError};
use hol_base::Duration;
use hol_simco::{Lifetime, Request};
use serde::Serialize;

use super::client::{Client, close};
use super::rule::Rule;
use super::span;
use crate::failure::Failure;
use crate::row::json;
use crate::terminal::say;

/// Show what other sessions do to rules that this agent may access, and which ones end.
#[derive(Debug, Args)]
pub struct Watch {
    /// Stop after this many events
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop when nothing happens for so long
    #[arg(long, value_name = "30s")]
    quiet: Option<Duration>,
    #[command(flatten)]
    client: Client,
}

/// An event, and what the rule is like after it.
#[derive(Debug, Serialize)]
struct Event {
    pid: u32,
    /// Zero: it has ended.
    lifetime_s: u32,
    /// Null if it has ended, or may not be asked for.
    rule: Option<Rule>,
}

impl Watch {
    /// Watches until the middlebox ends the session, or enough was seen.
    pub fn run(&self) -> Result<(), Failure> {
        let mut session = self.client.open()?;
        eprintln!("watching {}", self.client.server()?);
        let mut seen = 0;
        while self.count.is_none_or(|count| seen < count)
            && let Some(event) = session.next_event(self.quiet)?
        {
            seen += 1;
            let event = describe(&mut session, event)?;
            say(&if self.client.json { json(&event) } else { event.line() });
        }
        close(session);
        Ok(())
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
            seconds => format!("rule {} has {}{flow}\n", self.pid, span::show(seconds)),
        }
    }
}
