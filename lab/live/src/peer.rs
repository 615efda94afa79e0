//! Another host of a live world: its address, its identity and its settings.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hol_scenario::{RunError, Scenario};

use crate::control::{ControlError, HostDescription};
use crate::host_and_port::{HostAndPort, HostRole};
use crate::relay::Relay;
use crate::secret::Secret;
use crate::session::ControlConnection;

/// The identity of a host, and the addresses at which it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerIdentity {
    pub(crate) host: HostDescription,
    /// Address of this host.
    pub(crate) own: IpAddr,
    /// Address of the other host.
    pub(crate) address: IpAddr,
}

/// Another host of a live world.
#[derive(Debug)]
pub(crate) struct Peer {
    role: HostRole,
    pub(crate) address: HostAndPort,
    /// The identity of the host at first contact. It must stay the same in all runs of this process.
    identity: Mutex<Option<PeerIdentity>>,
    session: Mutex<Option<ControlConnection>>,
    /// Forwards reports of flows whose servers run on this peer.
    relay: Relay,
    /// The sysctls of the host that affect the measurement, by the transports for which they were requested.
    settings_by_transports: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
}

impl Peer {
    /// Creates a host, without contacting it.
    pub(crate) fn new(role: HostRole, place: HostAndPort, relay: Relay) -> Self {
        Self {
            role,
            address: place,
            identity: Mutex::default(),
            session: Mutex::default(),
            relay,
            settings_by_transports: Mutex::default(),
        }
    }

    /// Calls `work` with a session of the host. Connects first if there is no connection; after a failure, the
    /// next call connects again.
    pub(crate) fn with_session<T>(
        &self,
        work: impl FnOnce(&ControlConnection) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mut session = lock(&self.session);
        // The connection may have been lost since the last run.
        if session.as_ref().is_some_and(|session| session.check_alive().is_err()) {
            *session = None;
        }
        if session.is_none() {
            let secret = Secret::find().map_err(RunError::Refused)?;
            let opened = ControlConnection::open(self.role, &self.address, &secret, self.relay.clone())?;
            self.check_identity(&opened)?;
            *session = Some(opened);
        }
        let done = work(session.as_ref().expect("the session was just opened"));
        if matches!(done, Err(RunError::Failed { .. } | RunError::Unusable(_) | RunError::Interrupted)) {
            *session = None;
        }
        done
    }

    /// Checks that the host and the path are the same as in earlier runs, so that results of different paths are
    /// not mixed.
    fn check_identity(&self, session: &ControlConnection) -> Result<(), RunError> {
        let now = PeerIdentity {
            host: session.host.clone(),
            own: session.own_address,
            address: session.peer_address,
        };
        let mut known = lock(&self.identity);
        match known.get_or_insert_with(|| now.clone()) {
            before if *before == now => Ok(()),
            _ => {
                let (what, place) = (self.role.name(), &self.address);
                Err(RunError::Unusable(format!(
                    "{what} {place}: its kernel, clock or address has changed; run the same command again"
                )))
            }
        }
    }

    /// Returns the identity of the host, and the addresses of the path to it.
    pub(crate) fn identity(&self) -> Result<PeerIdentity, RunError> {
        if lock(&self.identity).is_none() {
            self.with_session(|_| Ok(()))?;
        }
        Ok(lock(&self.identity).clone().expect("the identity is known after a connection"))
    }

    /// Asks the host whether it can run a scenario, unless it has been asked for the same transports before. Returns
    /// the host's sysctls that affect the measurement.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<BTreeMap<String, String>, RunError> {
        let transports = transports(scenario);
        if let Some(known) = lock(&self.settings_by_transports).get(&transports) {
            return Ok(known.clone());
        }
        let settings = self.with_session(|session| {
            let answer = session.check(scenario).map_err(|problem| self.no_reply_error(&problem))?;
            answer.map_err(|why| self.refusal_error(&why))
        })?;
        lock(&self.settings_by_transports).insert(transports, settings.clone());
        Ok(settings)
    }

    /// Returns the sysctls of the host that affect the measurement, if the host has been contacted before. It does not
    /// contact the host, which need not be reachable when an experiment is read.
    pub(crate) fn settings(&self, scenario: &Scenario) -> Option<BTreeMap<String, String>> {
        let is_known = lock(&self.identity).is_some();
        // A host that does not reply cannot run anything either.
        is_known.then(|| self.check(scenario).ok()).flatten()
    }

    /// Creates the error of a host that did not reply.
    pub(crate) fn no_reply_error(&self, problem: &ControlError) -> RunError {
        RunError::Unusable(format!("{} {}: {problem}", self.role.name(), self.address))
    }

    /// Creates the error of a host that cannot do what is requested.
    pub(crate) fn refusal_error(&self, why: &str) -> RunError {
        RunError::Refused(format!("on the {} {}: {why}", self.role.name(), self.address))
    }

    /// Creates the error of a run that failed although later runs may succeed.
    pub(crate) fn failed_run_error(&self, problem: &str) -> RunError {
        let problem = format!("{} {}: {problem}", self.role.name(), self.address);
        RunError::Failed { problem, log: String::new() }
    }
}

/// Returns the names of the transports of a scenario, by which the host is asked whether it supports them.
fn transports(scenario: &Scenario) -> String {
    scenario.flow_specs().map(|flow| flow.transport.to_string()).collect::<Vec<_>>().join(" ")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
