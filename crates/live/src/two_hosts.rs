//! A run of which this host has the clients, and another the servers.

use hol_base::{Duration, Seed};
use hol_scenario::{PeerFacts, Run, RunError, Scenario};
use hol_sockets::{Assignment, Half, Halves, joined};

use crate::cautions::{unheard, unsure};
use crate::clocks::Clocks;
use crate::control::{ControlError, HostWords};
use crate::host::{self, Host};
use crate::peer::Peer;
use crate::placement::Placement;
use crate::session::Session;
use crate::world::{PATIENCE, failed, measured};

/// The hosts, and the way between them.
pub(crate) fn provenance((there, way): &(HostWords, String)) -> String {
    let (Host { kernel, clocksource }, HostWords { kernel: other, clocksource: clock }) =
        (Host::this(), there);
    format!("Linux {kernel}, clock {clocksource}, {way}: Linux {other}, clock {clock}")
}

/// Does a run, as long as it `goes_on`.
pub(crate) fn run(
    peer: &Peer,
    scenario: &Scenario,
    seed: Seed,
    interval: Option<Duration>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Run, RunError> {
    let settings = peer.check(scenario)?;
    let provenance = provenance(&peer.known()?);
    peer.with(|session| {
        let lost = |problem: ControlError| broken(peer, &problem.to_string());
        let before = session.compare().map_err(|problem| peer.lost(&problem))?;
        let (halves, assignments) = perform(peer, session, scenario, seed, interval, goes_on)?;
        let clocks = Clocks { before, after: session.compare().map_err(lost)? };
        let [here, there] = halves;
        let there =
            there.into_iter().map(|(flow, half)| Some((flow, half.from_afar(|time| clocks.here(time))?)));
        let joined = there.collect::<Option<Vec<_>>>().and_then(|there| joined(&assignments, here, there));
        let (runs, disordered) = joined.ok_or_else(|| broken(peer, "its notes make no sense"))?;
        let mut run = measured(runs, scenario);
        let facts = run.course.facts.as_deref_mut().expect("a live run has facts");
        facts.provenance.clone_from(&provenance);
        let uncertainty = Duration::from_nanos(clocks.uncertainty());
        facts.warn(host::otherwise(scenario, &settings).map(|caution| format!("on the peer: {caution}")));
        facts.warn(unsure(&run.records, uncertainty));
        facts.warn(unheard(&run.records, &run.course.stopped, &peer.place.host));
        facts.peer = Some(PeerFacts {
            address: session.address.to_string(),
            from: session.own.to_string(),
            kernel: session.host.kernel.clone(),
            clocksource: session.host.clocksource.clone(),
            sysctls: settings.clone(),
            offset: clocks.offset(),
            drift: clocks.drift(),
            uncertainty,
            round_trip: Duration::from_nanos(clocks.round_trip()),
            disordered,
        });
        Ok(run)
    })
}

/// Ends of flows, by the number of the flow.
type Ends = Vec<(usize, Half)>;

/// The ends of all flows that were here, and those that were there.
fn perform(
    peer: &Peer,
    session: &Session,
    scenario: &Scenario,
    seed: Seed,
    interval: Option<Duration>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<([Ends; 2], Vec<Assignment>), RunError> {
    let lost = |problem: ControlError| broken(peer, &problem.to_string());
    let placement = Placement { client: session.own, server: session.address, serves: false };
    let assignments = placement.assignments(scenario, seed);
    let here = placement.here(scenario, &assignments);
    let secret = session.keys.of("tls");
    let (tell, post) = (session.teller(), &session.post);
    let listening = Halves::listen(scenario, assignments.clone(), &here, secret, (&tell, post), interval);
    let (mut halves, own_ports) = listening.map_err(|problem| failed(&problem))?;
    let ports = session.plan(scenario, seed).map_err(lost)?;
    let ports = ports.map_err(|why| broken(peer, &why))?;
    session.start(own_ports).map_err(lost)?;
    halves.start(&ports).map_err(|problem| failed(&problem))?;
    while !halves.has_ended(0, PATIENCE) {
        if !goes_on() {
            return Err(RunError::Interrupted);
        }
        session.is_well().map_err(|problem| broken(peer, &problem))?;
    }
    let clients = halves.end_clients().map_err(|problem| failed(&problem))?;
    let there = session.end().map_err(lost)?.map_err(|why| broken(peer, &why))?;
    let servers = halves.end_servers().map_err(|problem| failed(&problem))?;
    let here = [clients, servers].concat();
    Ok(([here, there], assignments))
}

/// It came to one run only.
fn broken(peer: &Peer, problem: &str) -> RunError {
    RunError::Failed { problem: format!("peer {}: {problem}", peer.place), log: String::new() }
}
