//! A run of which this host has the clients, and another the servers.

use hol_base::{Duration, Seed};
use hol_measure::Record;
use hol_scenario::{PeerFacts, Run, RunError, Scenario, Stopped};
use hol_sockets::{Assignment, Half, Halves, joined};

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
        facts.warn(unheard(&run.records, &run.course.stopped, peer));
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

/// A caution where what is measured one way is less than what the clocks may be wrong.
fn unsure(records: &[Record], uncertainty: Duration) -> Option<String> {
    let one_way = records.iter().filter(|record| record.reply.is_none());
    let mut latencies: Vec<Duration> = one_way.filter_map(Record::latency).collect();
    latencies.sort_unstable();
    let median = *latencies.get(latencies.len() / 2)?;
    (median < uncertainty).then(|| {
        "one-way latencies are less than the clocks of the two hosts may be wrong (facts.peer.uncertainty in runs.jsonl): \
         compare transports, do not take them as they are, or measure a workload with replies"
            .to_owned()
    })
}

/// A caution where nothing at all came to the other host.
fn unheard(records: &[Record], stopped: &Stopped, peer: &Peer) -> Option<String> {
    let is_lost = !records.is_empty() && records.iter().all(|record| record.request.is_none());
    let is_cut = matches!(stopped, Stopped::NotConnected { .. });
    (is_lost || is_cut).then(|| {
        format!(
            "nothing came to {}: does a firewall there let ports of the ephemeral range \
             (sysctl net.ipv4.ip_local_port_range) pass, TCP, UDP and SCTP as the transport needs?",
            peer.place.host
        )
    })
}

#[cfg(test)]
mod tests {
    use hol_base::Time;
    use hol_measure::{Leg, Outcome, RecordKind};

    use super::*;

    /// Messages that took so many µs one way, half of it there and half of it back if they have replies; `None`: they never came.
    fn records(took: Option<u64>, has_replies: bool) -> Vec<Record> {
        let at = |us: u64| Time::from_nanos(us * 1000);
        let leg = |from, to| Leg {
            written: at(from),
            first_sent: at(from),
            last_sent: at(from),
            arrived: at(to),
            delivered: at(to),
        };
        let record = |id: u64| {
            let due = 1000 * id;
            let middle = took.map(|us| due + if has_replies { us / 2 } else { us });
            Record {
                id,
                kind: RecordKind::Message,
                parent: None,
                stream: 0,
                size: 100,
                scheduled: at(due),
                request: middle.map(|middle| leg(due, middle)),
                reply: middle.zip(took).filter(|_| has_replies).map(|(middle, us)| leg(middle, due + us)),
                outcome: if took.is_some() { Outcome::Completed } else { Outcome::Unfinished },
            }
        };
        (0..9).map(record).collect()
    }

    #[test]
    fn only_what_is_measured_one_way_is_doubted_by_what_the_clocks_may_be_wrong() {
        let of = |took, has_replies, unsure_by| {
            unsure(&records(Some(took), has_replies), Duration::from_micros(unsure_by)).is_some()
        };
        assert!(of(40, false, 41));
        assert!(!of(40, false, 40));
        assert!(!of(40, true, 1000), "a round trip has one clock");
        assert_eq!(unsure(&records(None, false), Duration::from_micros(1000)), None, "nothing was measured");
    }

    #[test]
    fn a_run_of_which_nothing_came_to_the_other_host_says_what_may_be_in_the_way() {
        let peer = Peer::new("192.0.2.7".parse().unwrap());
        let told = |took, stopped| unheard(&records(took, true), &stopped, &peer);
        assert_eq!(told(Some(40), Stopped::Finished), None);
        for caution in [
            told(None, Stopped::Finished),
            told(Some(40), Stopped::NotConnected { within: Duration::from_secs(20) }),
        ] {
            assert!(caution.unwrap().contains("192.0.2.7: does a firewall"));
        }
    }
}
