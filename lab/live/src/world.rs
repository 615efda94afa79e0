//! The live world.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use hol_base::Seed;
use hol_scenario::{Cost, Observer, PacketObserver, Run, RunError, RunSummary, Scenario, World};
use hol_sockets::{
    FlowParameters, FlowRuns, RunLinks, RunStart, SocketsError, StopSignal, flow_parameters, run_linked,
};
use serde_json::{Value, json};

use crate::check::{self, Path};
use crate::host_list::HostList;
use crate::host_properties::{self, Host, loopback};
use crate::other_hosts::OtherHosts;
use crate::outcome::{POLL_INTERVAL, run_error, to_run};
use crate::path_router::PathRouter;

/// Wall-clock time of a run without its messages, and of each message, in µs, at 100 messages per second.
pub(crate) const COST: Cost = Cost { run: 20_000, message: 10_000 };

/// The separator between the other host and the router in the name of a world.
pub const VIA_SEPARATOR: &str = " via ";

/// The live world, in which both ends are on this machine, or some on other hosts. Only one run is performed at a
/// time, because concurrent runs would disturb each other.
#[derive(Debug, Default)]
pub struct Live {
    /// A lock that the current run holds, because concurrent runs would disturb each other.
    turn: Mutex<()>,
    others: Option<OtherHosts>,
}

impl Live {
    /// Creates the live world with both ends on this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the world of this machine and of other hosts, which run `hol live serve`. `places` is `HOST` or
    /// `HOST:PORT`, or gives the host of each node: `server=HOST,cross=HOST`. It may also name a router between the
    /// hosts, which runs `hol live route`: `HOST via ROUTER`.
    pub fn with_peer(places: &str) -> Result<Self, String> {
        let (places, via) = match places.split_once(VIA_SEPARATOR) {
            Some((places, router)) => (places, Some(PathRouter::new(router.parse()?))),
            None => (places, None),
        };
        Ok(Self { others: Some(OtherHosts::new(HostList::new(places)?, via)), ..Self::default() })
    }

    fn perform(
        &self,
        scenario: &Scenario,
        seed: Seed,
        interval: Option<hol_base::Duration>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Run, RunError> {
        check::check_supported(scenario, self.path())?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(others) = &self.others {
            return others.run(scenario, seed, interval, goes_on);
        }
        let mut flow_parameters = flow_parameters(scenario, seed, |_, _| loopback(scenario.network.ip));
        flow_parameters
            .iter_mut()
            .for_each(|flow| (flow.is_batching, flow.reports_receive_time) = (true, true));
        let stop = StopSignal::new().map_err(|problem| run_error(&problem.into()))?;
        let (runs, went_on) =
            run_while(goes_on, &stop, || run_all(scenario, &flow_parameters, &stop, interval));
        let runs = runs.map_err(|problem| run_error(&problem))?;
        if went_on { Ok(to_run(runs, scenario)) } else { Err(RunError::Interrupted) }
    }

    fn path(&self) -> Path {
        match &self.others {
            None => Path::Loopback,
            Some(OtherHosts { via: None, .. }) => Path::Between,
            Some(OtherHosts { via: Some(_), .. }) => Path::Routed,
        }
    }
}

impl World for Live {
    fn name(&self) -> String {
        let Some(OtherHosts { places, via, .. }) = &self.others else { return "live".to_owned() };
        let via = via.as_ref().map_or(String::new(), |via| format!("{VIA_SEPARATOR}{}", via.host_and_port()));
        format!("live:{places}{via}")
    }

    fn provenance(&self) -> Result<String, RunError> {
        match &self.others {
            None => Ok(Host::current().to_string()),
            Some(others) => others.provenance(),
        }
    }

    /// Returns the settings on which a run depends. For a userspace transport they are its options; for a
    /// transport of the kernel, the sysctls of this machine and of the other hosts that affect the measurement.
    fn recorded_settings(&self, scenario: &Scenario) -> Value {
        let transport = &scenario.transport;
        if transport.is_userspace() {
            // Such a transport has all options set.
            return json!([transport.to_string(), transport.option_values()]);
        }
        let mut all = vec![json!(transport.to_string()), json!(host_properties::settings(scenario))];
        let others = self.others.iter().flat_map(|others| others.settings(scenario));
        all.extend(others.map(|settings| json!(settings)));
        all.into()
    }

    fn check(&self, scenario: &Scenario) -> Result<(), RunError> {
        check::check_supported(scenario, self.path())?;
        let Some(others) = &self.others else { return Ok(()) };
        others.check(scenario)?;
        // A router that is not between these two hosts reports it here, before any run.
        self.provenance().map(drop)
    }

    fn cost(&self) -> Cost {
        COST
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn existing_path(&self) -> Option<String> {
        match &self.others {
            None => Some("this machine's loopback interface".to_owned()),
            Some(OtherHosts { via: None, places, .. }) => Some(format!("the path to {places}")),
            Some(OtherHosts { via: Some(_), .. }) => None,
        }
    }

    fn path_maker(&self) -> Option<String> {
        let via = self.others.as_ref()?.via.as_ref()?;
        Some(format!("over the router {}", via.host_and_port()))
    }

    /// Performs the run, and only then passes its records to the observer. Passing them takes time, and would
    /// affect the measurement during the run.
    fn follow(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, RunError> {
        let run = self.perform(scenario, seed, observer.interval(), &mut || observer.goes_on())?;
        Ok(run.replay_to(observer))
    }

    fn trace(&self, _: &Scenario, _: Seed, _: &mut dyn PacketObserver) -> Result<Run, RunError> {
        Err(RunError::Refused(
            "the live world cannot capture packets; use --world model or kernel, or run tcpdump on the interface"
                .to_owned(),
        ))
    }
}

/// Runs `work` on a thread, and sets `stop` when `goes_on` returns false. Returns the result of `work`, and whether
/// it ended without being stopped.
fn run_while<T: Send>(
    goes_on: &mut dyn FnMut() -> bool,
    stop: &StopSignal,
    work: impl FnOnce() -> T + Send,
) -> (T, bool) {
    let (done, ended) = channel::<()>();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _done = done;
            work()
        });
        let mut went_on = true;
        while went_on && ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            went_on = goes_on();
        }
        // Raising the signal cannot fail: only its creation needs a file descriptor.
        let raised = if went_on { Ok(()) } else { stop.raise() };
        raised.expect("writing to an eventfd does not fail");
        (worker.join().expect("a run does not panic"), went_on)
    })
}

/// Runs all flows, each from its own start time.
fn run_all(
    scenario: &Scenario,
    flow_parameters: &[FlowParameters],
    stop: &StopSignal,
    interval: Option<hol_base::Duration>,
) -> Result<FlowRuns, SocketsError> {
    let run = |flow: usize, links: RunLinks<'_>| {
        let parameters: &FlowParameters = &flow_parameters[flow];
        stop.wait(parameters.workload.start)?;
        run_linked(parameters, links, &mut |_| Ok(()))
    };
    let measured = |links: RunLinks<'_>| Ok((run(0, RunLinks { stop: Some(stop), ..links })?, ()));
    let beginning = RunStart::default();
    FlowRuns::of(scenario, flow_parameters, (&beginning, stop), interval, run, measured)
        .map(|(runs, ())| runs)
}
