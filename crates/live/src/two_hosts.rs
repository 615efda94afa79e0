//! A run of which this host has the clients, and another the servers; a router between them may have the path be what the experiment says.

use hol_base::{Duration, Seed};
use hol_network::NetworkSpec;
use hol_scenario::{PeerFacts, Run, RunError, Scenario};
use hol_sockets::{Assignment, Half, Halves, joined};

use crate::cautions::{unheard, unsure};
use crate::clocks::Clocks;
use crate::control::{ControlError, HostWords, Passed};
use crate::host::{self, Host};
use crate::peer::{Known, Peer};
use crate::placement::Placement;
use crate::session::Session;
use crate::via::{Via, Way, told};
use crate::world::{PATIENCE, failed, measured};

/// The hosts, and the way between them.
pub(crate) fn provenance(peer: &Peer, via: Option<&Via>) -> Result<String, RunError> {
    let Host { kernel, clocksource } = Host::this();
    let Known { host: HostWords { kernel: other, clocksource: clock }, own, address } = peer.known()?;
    let way = format!("from {own} to {address}");
    let ends = format!("Linux {kernel}, clock {clocksource}, {way}: Linux {other}, clock {clock}");
    Ok(match via {
        None => ends,
        Some(via) => format!("{ends}; over {}: {}", via.place(), via.known([own, address])?),
    })
}

/// A run, and who is asked to do it.
struct Asked<'a> {
    peer: &'a Peer,
    /// What the run is to be.
    scenario: &'a Scenario,
    /// The same for who has no part in the path.
    plain: Scenario,
    seed: Seed,
    interval: Option<Duration>,
}

/// Does a run, as long as it `goes_on`.
pub(crate) fn run(
    (peer, via): (&Peer, Option<&Via>),
    scenario: &Scenario,
    seed: Seed,
    interval: Option<Duration>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Run, RunError> {
    let plain = plain(scenario);
    let settings = peer.check(&plain)?;
    let provenance = provenance(peer, via)?;
    let asked = Asked { peer, scenario, plain, seed, interval };
    let mut run = peer.with(|session| match via {
        None => asked.perform(session, None, goes_on),
        Some(via) => {
            via.with([session.own, session.address], |way| asked.perform(session, Some(way), goes_on))
        }
    })?;
    let facts = run.course.facts.as_deref_mut().expect("a live run has facts");
    facts.provenance = provenance;
    facts.warn(host::otherwise(scenario, &settings).map(|caution| format!("on the peer: {caution}")));
    facts.warn(unheard(&run.records, &run.course.stopped, &peer.place.host));
    if let Some(facts) = &mut facts.peer {
        facts.sysctls = settings;
    }
    Ok(run)
}

/// A scenario for a host that leaves the path as it is.
pub(crate) fn plain(scenario: &Scenario) -> Scenario {
    Scenario { network: NetworkSpec::default(), ..scenario.clone() }
}

/// Ends of flows, by the number of the flow.
type Ends = Vec<(usize, Half)>;

impl Asked<'_> {
    /// The clocks are compared while the path is as it is: the less it takes the surer they are.
    fn perform(
        &self,
        session: &Session,
        way: Option<&Way<'_>>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Run, RunError> {
        let lost = |problem: ControlError| self.peer.broken(&problem.to_string());
        let before = session.compare().map_err(|problem| self.peer.lost(&problem))?;
        if let Some(way) = way {
            let network = &self.scenario.network;
            way.shape(network, self.seed)?;
            way.is_passed_by(network, [before.round_trip(), session.round_trip().map_err(lost)?])?;
        }
        let (halves, assignments, clients) = self.flows(session, way, goes_on)?;
        let passed = way.map(Way::put_back).transpose()?;
        let [here, there] = self.notes(session, halves, clients)?;
        let clocks = Clocks { before, after: session.compare().map_err(lost)? };
        let there =
            there.into_iter().map(|(flow, half)| Some((flow, half.from_afar(|time| clocks.here(time))?)));
        let joined = there.collect::<Option<Vec<_>>>().and_then(|there| joined(&assignments, here, there));
        let (runs, disordered) = joined.ok_or_else(|| self.peer.broken("its notes make no sense"))?;
        let mut run = measured(runs, self.scenario);
        self.routed(&mut run, way, passed)?;
        let facts = run.course.facts.as_deref_mut().expect("a live run has facts");
        facts.warn(unsure(&run.records, Duration::from_nanos(clocks.uncertainty())));
        facts.peer = Some(PeerFacts { disordered, ..peer_facts(session, &clocks) });
        Ok(run)
    }

    /// What the router tells, if it has had to do with the run.
    fn routed(
        &self,
        run: &mut Run,
        way: Option<&Way<'_>>,
        passed: Option<[Passed; 2]>,
    ) -> Result<(), RunError> {
        let Some((way, passed)) = way.zip(passed) else { return Ok(()) };
        way.has_seen(passed, run.course.packets)?;
        let facts = run.course.facts.as_deref_mut().expect("a live run has facts");
        facts.router = Some(way.facts());
        facts.lines = told(&self.scenario.network, passed);
        Ok(())
    }

    /// Has all flows begin, and waits for the measured one to be over; its clients here have ended.
    fn flows(
        &self,
        session: &Session,
        way: Option<&Way<'_>>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Halves, Vec<Assignment>, Ends), RunError> {
        let Self { peer, plain: scenario, seed, interval, .. } = self;
        let lost = |problem: ControlError| peer.broken(&problem.to_string());
        let placement = Placement { client: session.own, server: session.address, serves: false };
        let assignments = placement.assignments(scenario, *seed);
        let here = placement.here(scenario, &assignments);
        let secret = session.keys.of("tls");
        let (tell, post) = (session.teller(), &session.post);
        let listening =
            Halves::listen(scenario, assignments.clone(), &here, secret, (&tell, post), *interval);
        let (mut halves, own_ports) = listening.map_err(|problem| failed(&problem))?;
        let ports = session.plan(scenario, *seed, *interval).map_err(lost)?;
        let ports = ports.map_err(|why| peer.broken(&why))?;
        session.start(own_ports).map_err(lost)?;
        halves.start(&ports).map_err(|problem| failed(&problem))?;
        while !halves.has_ended(0, PATIENCE) {
            if !goes_on() {
                return Err(RunError::Interrupted);
            }
            session.is_well().map_err(|problem| peer.broken(&problem))?;
            way.map_or(Ok(()), Way::is_well)?;
        }
        let clients = halves.end_clients().map_err(|problem| failed(&problem))?;
        Ok((halves, assignments, clients))
    }

    /// The ends of all flows that were here, and those that were there.
    fn notes(&self, session: &Session, mut halves: Halves, clients: Ends) -> Result<[Ends; 2], RunError> {
        let there = session.end().map_err(|problem| self.peer.broken(&problem.to_string()))?;
        let there = there.map_err(|why| self.peer.broken(&why))?;
        let servers = halves.end_servers().map_err(|problem| failed(&problem))?;
        Ok([[clients, servers].concat(), there])
    }
}

fn peer_facts(session: &Session, clocks: &Clocks) -> PeerFacts {
    PeerFacts {
        address: session.address.to_string(),
        from: session.own.to_string(),
        kernel: session.host.kernel.clone(),
        clocksource: session.host.clocksource.clone(),
        offset: clocks.offset(),
        drift: clocks.drift(),
        uncertainty: Duration::from_nanos(clocks.uncertainty()),
        round_trip: Duration::from_nanos(clocks.round_trip()),
        ..PeerFacts::default()
    }
}
