//! `simcod list`: PRL, then PRS for each rule. RFC 4540 sections 8.6 and 8.7.

use clap::Args;
use hol_simco::{Pid, Refusal, Reply, Request};

use crate::client::{Client, close, request_all};
use crate::failure::Failure;
use crate::rule::Rule;
use crate::table::show;

/// Show all rules that this agent may access.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    client: Client,
}

impl List {
    /// Requests the list of rules, then the status of all of them at once.
    pub fn run(&self) -> Result<(), Failure> {
        let mut session = self.client.open()?;
        let Reply::Prl(mut pids) = session.ask(Request::Prl)? else {
            unreachable!("a session returns only answers to its requests")
        };
        pids.sort();
        let (answers, ended) = request_all(&mut session, pids.iter().map(|pid| Request::Prs { pid: *pid }));
        ended?;
        let rules: Vec<Rule> =
            pids.into_iter().zip(answers).filter_map(|(pid, answer)| rule(pid, answer)).collect();
        show(&rules, self.client.json);
        close(session);
        Ok(())
    }
}

/// Returns the rule in an answer to PRS; `None` if the rule has ended since it was listed.
fn rule(pid: Pid, answer: Result<Reply, Refusal>) -> Option<Rule> {
    match answer {
        Ok(status) => Some(Rule::of(&Request::Prs { pid }, &status)),
        Err(Refusal::NoSuchRule) => None,
        // An agent may have the right to list, but not to request the status.
        Err(_) => Some(Rule::with_pid(pid)),
    }
}
