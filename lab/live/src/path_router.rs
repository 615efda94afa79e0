//! The router between the hosts, as seen by the host with the experiment.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use hol_base::{Duration, Seed};
use hol_network::{NetworkSpec, Settings};
use hol_scenario::{LinkDirectionCounters, RouterReport, RunError};

use crate::control::{HostDescription, LinkCounters};
use crate::host_and_port::{HostAndPort, HostRole};
use crate::peer::Peer;
use crate::relay::Relay;
use crate::router::shaped_links;
use crate::session::ControlConnection;

/// The router of a live world, which emulates the path between the hosts.
#[derive(Debug)]
pub(crate) struct PathRouter {
    host: Peer,
    /// The interfaces of the router to the client and to the server; `None` before the first contact.
    interfaces: Mutex<Option<[String; 2]>>,
}

impl PathRouter {
    /// Creates a router, without contacting it.
    pub(crate) fn new(place: HostAndPort) -> Self {
        Self { host: Peer::new(HostRole::Routes, place, Relay::default()), interfaces: Mutex::default() }
    }

    /// Returns the address of the router.
    pub(crate) fn host_and_port(&self) -> &HostAndPort {
        &self.host.address
    }

    /// Describes the router, so that results of two routers are not mixed: `Linux 6.12.1, eth0 – eth1`.
    pub(crate) fn description(&self, ends: [IpAddr; 2]) -> Result<String, RunError> {
        if self.interfaces().is_none() {
            self.with_router(&[ends], |_| Ok(()))?;
        }
        let HostDescription { kernel, clocksource } = self.host.identity()?.host;
        let [near, far] = self.interfaces().expect("the interfaces are known after a request");
        Ok(format!("Linux {kernel}, clock {clocksource}, {near} – {far}"))
    }

    fn interfaces(&self) -> Option<[String; 2]> {
        self.interfaces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks that the router has the same interfaces as in earlier runs, so that the results of two paths are not mixed.
    fn check_interfaces(&self, now: &[String; 2]) -> Result<(), RunError> {
        let mut interfaces = self.interfaces.lock().unwrap_or_else(PoisonError::into_inner);
        if interfaces.get_or_insert_with(|| now.clone()) == now {
            return Ok(());
        }
        let place = &self.host.address;
        Err(RunError::Unusable(format!(
            "router {place}: the interfaces between the two hosts have changed; run the same command again"
        )))
    }

    /// Calls `work` with the router's session. First makes two checks: the router lies between the addresses of
    /// each pair, and all pairs are behind the same interfaces as the first pair.
    pub(crate) fn with_router<T>(
        &self,
        pairs: &[[IpAddr; 2]],
        work: impl FnOnce(&RouterSession<'_>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        self.host.with_session(|session| {
            let between = |[client, server]: [IpAddr; 2]| {
                let answer = session
                    .router_interfaces(client, server)
                    .map_err(|problem| self.host.no_reply_error(&problem))?;
                answer.map_err(|why| self.host.refusal_error(&why))
            };
            let (first, others) = pairs.split_first().expect("the measured flow has a pair of addresses");
            let others = others
                .iter()
                .map(|pair| Ok((*pair, between(*pair)?)))
                .collect::<Result<Vec<_>, RunError>>()?;
            // The router uses the pair of the last request.
            let interfaces = between(*first)?;
            self.check_interfaces(&interfaces)?;
            others
                .iter()
                .try_for_each(|(pair, its)| check_same_interfaces(&interfaces, its, *pair))
                .map_err(|why| self.host.refusal_error(&why))?;
            work(&RouterSession { host: &self.host, session, interfaces })
        })
    }
}

/// The router during a run.
#[derive(Debug)]
pub(crate) struct RouterSession<'s> {
    host: &'s Peer,
    session: &'s ControlConnection,
    interfaces: [String; 2],
}

impl RouterSession<'_> {
    /// Makes the router emulate the network on the path.
    pub(crate) fn shape(&self, network: &NetworkSpec, seed: Seed) -> Result<(), RunError> {
        let answer =
            self.session.shape(network, seed).map_err(|problem| self.host.no_reply_error(&problem))?;
        answer.map_err(|why| self.host.refusal_error(&why))
    }

    /// Makes the router restore the path. Returns the counters of the packets that passed while it emulated the
    /// path.
    pub(crate) fn restore(&self) -> Result<[LinkCounters; 2], RunError> {
        let answer = self.session.restore().map_err(|problem| self.host.no_reply_error(&problem))?;
        answer.map_err(|why| self.failed_run_error(&why))
    }

    /// Checks that the router is still reachable.
    pub(crate) fn check_alive(&self) -> Result<(), RunError> {
        self.session.check_alive().map_err(|problem| self.failed_run_error(&problem))
    }

    /// Returns the description of the router for the results.
    pub(crate) fn world_report(&self) -> RouterReport {
        let HostDescription { kernel, clocksource } = self.session.host.clone();
        let [client, server] = self.interfaces.clone();
        RouterReport { address: self.session.peer_address.to_string(), kernel, clocksource, client, server }
    }

    /// Checks that packets between the hosts pass through the router. `before` and `now` are round trips in ns, before
    /// and after the router began to emulate the path.
    pub(crate) fn check_round_trip(
        &self,
        network: &NetworkSpec,
        [before, now]: [u64; 2],
    ) -> Result<(), RunError> {
        check_growth([before, now], min_round_trip(network))
            .map_err(|problem| self.failed_run_error(&problem))
    }

    /// Checks that the flows passed through the router, by the counters of its interfaces and of the sockets.
    pub(crate) fn check_counters(&self, passed: [LinkCounters; 2], sent: u64) -> Result<(), RunError> {
        check_packet_count(passed, sent).map_err(|problem| self.failed_run_error(&problem))
    }

    fn failed_run_error(&self, problem: &str) -> RunError {
        self.host.failed_run_error(problem)
    }
}

/// Checks that the two addresses are behind the same interfaces of the router as those of the measured path.
fn check_same_interfaces(
    measured: &[String; 2],
    other: &[String; 2],
    [from, to]: [IpAddr; 2],
) -> Result<(), String> {
    if other == measured {
        return Ok(());
    }
    let ([near, far], [one, two]) = (measured, other);
    Err(format!(
        "the router shapes the path between its interfaces {near} and {far}, but packets between {from} and {to} would pass {one} and {two}; connect each host to the side of the link that the experiment gives it"
    ))
}

/// Checks that the round trip has grown by the delay that the router emulates; otherwise packets of one direction
/// bypass the router. It may have grown by less, as much as it varied before.
fn check_growth([before, now]: [u64; 2], min: u64) -> Result<(), String> {
    if now >= before + min / 4 * 3 {
        return Ok(());
    }
    let [before, now, min] = [before, now, min].map(Duration::from_nanos);
    Err(format!(
        "a round trip to the peer took {before} before the router delayed packets, and {now} afterwards, although the router should add {min}: packets of at least one direction bypass it; set routes through the router on both hosts"
    ))
}

/// Checks that the router passed at least half as many packets as the sockets sent. The numbers may differ, because
/// packets may be merged on the path and the sockets do not count all packets.
fn check_packet_count(passed: [LinkCounters; 2], sent: u64) -> Result<(), String> {
    let seen: u64 = passed.iter().map(|LinkCounters { carried, dropped }| carried + dropped).sum();
    if seen > 0 && seen >= sent / 2 {
        return Ok(());
    }
    Err(format!(
        "only {seen} of the {sent} packets that the sockets sent passed the router; set routes through it on both hosts"
    ))
}

/// Converts the router's counters of both directions to the form common to all worlds.
pub(crate) fn link_direction_counters(
    network: &NetworkSpec,
    passed: [LinkCounters; 2],
) -> Vec<LinkDirectionCounters> {
    let all = shaped_links(network).into_iter().flatten().zip(passed);
    let link_direction_counters = all.map(|(line, LinkCounters { carried, dropped })| {
        LinkDirectionCounters { name: line.name, sent: carried + dropped, dropped }
    });
    link_direction_counters.collect()
}

/// Returns the minimum round-trip time that the emulated network causes, in ns. A direction with jitter that is not
/// uniformly distributed counts as 0, because such jitter may shorten the delay by an unknown amount.
fn min_round_trip(network: &NetworkSpec) -> u64 {
    let min =
        |Settings { delay, jitter, jitter_distribution, .. }: &Settings| match jitter_distribution.table() {
            Some(_) if !jitter.is_zero() => Duration::ZERO,
            _ => delay.saturating_sub(*jitter),
        };
    shaped_links(network).into_iter().flatten().map(|line| min(&line.settings).as_nanos()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_round_trip_is_the_sum_of_both_directions() {
        let of = |text: &str| min_round_trip(&toml::from_str(text).unwrap()) / 1_000_000;
        assert_eq!(of("delay = '20ms'"), 40);
        assert_eq!(of("delay = '20ms'\njitter = '5ms'"), 30);
        assert_eq!(of("delay = '20ms'\njitter = '5ms'\njitter_distribution = 'normal'"), 0);
        assert_eq!(of("delay = '20ms'\nup = { delay = '0s' }"), 20);
    }

    #[test]
    fn a_path_that_bypasses_the_router_is_detected() {
        let ms = |times: [u64; 2]| times.map(|time| time * 1_000_000);
        check_growth(ms([4, 44]), 40_000_000).unwrap();
        check_growth(ms([9, 42]), 40_000_000).unwrap();
        check_growth(ms([4, 4]), 0).unwrap();
        for now in [4, 24] {
            let problem = check_growth(ms([4, now]), 40_000_000).unwrap_err();
            assert!(problem.contains("bypass it") && problem.contains("40ms"), "{problem}");
        }
        let passed = |carried, dropped| [LinkCounters { carried, dropped }, LinkCounters::default()];
        check_packet_count(passed(900, 100), 1000).unwrap();
        check_packet_count(passed(500, 0), 1000).unwrap();
        let problem = check_packet_count(passed(12, 0), 1000).unwrap_err();
        assert!(problem.contains("only 12 of the 1000 packets"), "{problem}");
        check_packet_count(passed(0, 0), 0).unwrap_err();
    }

    #[test]
    fn flows_must_cross_the_same_router_interfaces() {
        let names = |names: [&str; 2]| names.map(str::to_owned);
        let pair = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let passes = |other| check_same_interfaces(&names(["a", "b"]), &names(other), pair);
        passes(["a", "b"]).unwrap();
        for [one, two] in [["a", "c"], ["b", "a"]] {
            let problem = passes([one, two]).unwrap_err();
            let words = format!("192.0.2.1 and 192.0.2.2 would pass {one} and {two}");
            assert!(problem.contains(&words), "{problem}");
        }
    }

    #[test]
    fn links_have_the_same_names_as_in_other_worlds() {
        let passed = [LinkCounters { carried: 97, dropped: 3 }, LinkCounters { carried: 9, dropped: 0 }];
        let link_direction_counters = link_direction_counters(&NetworkSpec::default(), passed);
        let of = |name: &str, sent, dropped| LinkDirectionCounters { name: name.to_owned(), sent, dropped };
        assert_eq!(link_direction_counters, [of("link/1/up", 100, 3), of("link/1/down", 9, 0)]);
    }
}
