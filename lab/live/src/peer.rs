//! The other host of a live world: where it is, and what is known of it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hol_scenario::{RunError, Scenario};

use crate::control::{ControlError, HostWords};
use crate::place::{Duty, Place};
use crate::relay::Relay;
use crate::secret::Secret;
use crate::session::Session;

/// Who a host is, and by which addresses one reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) host: HostWords,
    /// Ours.
    pub(crate) own: IpAddr,
    /// Its.
    pub(crate) address: IpAddr,
}

/// Another host.
#[derive(Debug)]
pub(crate) struct Peer {
    duty: Duty,
    pub(crate) place: Place,
    /// Who was there when it was asked first: runs of one process have one and the same.
    known: Mutex<Option<Known>>,
    session: Mutex<Option<Session>>,
    /// Hears of flows whose servers are there.
    relay: Relay,
    /// Its settings that matter, by transports that it can do.
    fit: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
}

impl Peer {
    pub(crate) fn new(duty: Duty, place: Place, relay: Relay) -> Self {
        Self { duty, place, known: Mutex::default(), session: Mutex::default(), relay, fit: Mutex::default() }
    }

    /// Does something with the host, which is connected to if it is not; after a failure it will be again.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Session) -> Result<T, RunError>) -> Result<T, RunError> {
        let mut session = lock(&self.session);
        // It may have gone since the last run.
        if session.as_ref().is_some_and(|session| session.is_well().is_err()) {
            *session = None;
        }
        if session.is_none() {
            let secret = Secret::find().map_err(RunError::Refused)?;
            let opened = Session::open(self.duty, &self.place, &secret, self.relay.clone())?;
            self.is_the_same(&opened)?;
            *session = Some(opened);
        }
        let done = work(session.as_ref().expect("it is there now"));
        if matches!(done, Err(RunError::Failed { .. } | RunError::Unusable(_) | RunError::Interrupted)) {
            *session = None;
        }
        done
    }

    /// Results of two hosts, or over two ways, are not to be mixed.
    fn is_the_same(&self, session: &Session) -> Result<(), RunError> {
        let now = Known { host: session.host.clone(), own: session.own, address: session.address };
        let mut known = lock(&self.known);
        match known.get_or_insert_with(|| now.clone()) {
            before if *before == now => Ok(()),
            _ => {
                let (what, place) = (self.duty.name(), &self.place);
                Err(RunError::Unusable(format!(
                    "{what} {place}: its kernel, clock or address is not what it was; run the same command again"
                )))
            }
        }
    }

    /// Who is there, and by which way.
    pub(crate) fn known(&self) -> Result<Known, RunError> {
        if lock(&self.known).is_none() {
            self.with(|_| Ok(()))?;
        }
        Ok(lock(&self.known).clone().expect("it was asked"))
    }

    /// Asks it whether it can do a scenario; of each set of transports once.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<BTreeMap<String, String>, RunError> {
        let transports = transports(scenario);
        if let Some(known) = lock(&self.fit).get(&transports) {
            return Ok(known.clone());
        }
        let settings = self.with(|session| {
            let answer = session.check(scenario).map_err(|problem| self.lost(&problem))?;
            answer.map_err(|why| self.refused(&why))
        })?;
        lock(&self.fit).insert(transports, settings.clone());
        Ok(settings)
    }

    /// Its settings that matter, if it has been asked before who it is: an experiment may be read where nobody wants to run it.
    pub(crate) fn settings(&self, scenario: &Scenario) -> Option<BTreeMap<String, String>> {
        let is_known = lock(&self.known).is_some();
        // One that does not answer cannot be asked for runs, either.
        is_known.then(|| self.check(scenario).ok()).flatten()
    }

    /// The host did not answer.
    pub(crate) fn lost(&self, problem: &ControlError) -> RunError {
        RunError::Unusable(format!("{} {}: {problem}", self.duty.name(), self.place))
    }

    /// It cannot do what is asked.
    pub(crate) fn refused(&self, why: &str) -> RunError {
        RunError::Refused(format!("on the {} {}: {why}", self.duty.name(), self.place))
    }

    /// It came to one run only.
    pub(crate) fn broken(&self, problem: &str) -> RunError {
        let problem = format!("{} {}: {problem}", self.duty.name(), self.place);
        RunError::Failed { problem, log: String::new() }
    }
}

/// What a host is asked whether it can.
fn transports(scenario: &Scenario) -> String {
    scenario.flow_specs().map(|flow| flow.transport.to_string()).collect::<Vec<_>>().join(" ")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
