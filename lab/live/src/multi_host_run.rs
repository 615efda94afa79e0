//! A run on several hosts. This host runs some ends, including the measured client, and the other hosts run
//! the rest. A router between them may shape the path.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hol_base::{Duration, Seed};
use hol_scenario::{PeerHostReport, Run, RunError, Scenario};
use hol_sockets::{EndResult, FlowParameters, FlowReportCallback, LocalEnds, join_ends};
use hol_stack::ProtocolKind;
use hol_traffic::Unsupported;

use crate::bottleneck::Bottleneck;
use crate::check::unsupported_error;
use crate::clocks::Clocks;
use crate::control::{ControlError, LinkCounters, RunDescription};
use crate::other_hosts::OtherHosts;
use crate::outcome::{POLL_INTERVAL, run_error, to_run};
use crate::path_router::{RouterSession, link_direction_counters};
use crate::peer::Peer;
use crate::placement::Placement;
use crate::plain_network::without_link_settings;
use crate::relay::Route;
use crate::secret::Secret;
use crate::session::ControlConnection;
use crate::warnings::{background_not_reached, warn_of_clock_uncertainty, warn_of_unreached_server};

/// The results of the ends on a host, each with the number of its flow.
type Ends = Vec<(usize, EndResult)>;

/// A run, and the hosts that take part in it.
pub(crate) struct MultiHostRun<'a> {
    others: &'a OtherHosts,
    /// The sessions with the other hosts, in the order of the host numbers, which begin with 1.
    sessions: &'a [&'a ControlConnection],
    /// The scenario.
    scenario: &'a Scenario,
    /// The scenario for hosts that do not emulate the path.
    plain: Scenario,
    /// The path that a router emulates; the default network if there is no router.
    path: Bottleneck,
    seed: Seed,
    interval: Option<Duration>,
    placement: Placement,
    /// The sockets and addresses of each flow's client and server.
    flow_parameters: Vec<FlowParameters>,
}

impl<'a> MultiHostRun<'a> {
    /// Creates the run of a scenario on these hosts.
    pub(crate) fn new(
        others: &'a OtherHosts,
        sessions: &'a [&'a ControlConnection],
        scenario: &'a Scenario,
        (seed, interval): (Seed, Option<Duration>),
    ) -> Result<Self, RunError> {
        let address_pairs = sessions.iter().map(|session| session.address_pair()).collect();
        let placement = others.placement(scenario, address_pairs)?;
        let plain = without_link_settings(scenario);
        let flow_parameters =
            placement.flow_parameters(&plain, seed).map_err(|why| others.refusal_error(&why))?;
        let path = match &others.via {
            None => Bottleneck::default(),
            Some(_) => {
                Bottleneck::of(scenario).map_err(|Unsupported { what, why }| unsupported_error(&what, why))?
            }
        };
        Ok(Self { others, sessions, scenario, plain, path, seed, interval, placement, flow_parameters })
    }

    /// Calls `ask` for each of the other hosts, with its number (from 1), its entry in the list of hosts, and its
    /// session.
    fn ask_each<T>(
        &self,
        mut ask: impl FnMut(usize, &Peer, &ControlConnection) -> Result<T, RunError>,
    ) -> Result<Vec<T>, RunError> {
        let all = self.others.peers.iter().zip(self.sessions).enumerate();
        all.map(|(place, (peer, session))| ask(place + 1, peer, session)).collect()
    }

    /// Calls `ask` for each of the other hosts during a run. Returns an error if a host does not reply or cannot do
    /// its part.
    fn each_in_run<T>(
        &self,
        mut ask: impl FnMut(usize, &ControlConnection) -> Result<Result<T, String>, ControlError>,
    ) -> Result<Vec<T>, RunError> {
        self.ask_each(|host, peer, session| {
            let answer = ask(host, session).map_err(|problem| peer.failed_run_error(&problem.to_string()))?;
            answer.map_err(|why| peer.failed_run_error(&why))
        })
    }

    /// Returns the index of the host with the measured flow's server, among the other hosts.
    fn server_host(&self) -> usize {
        self.placement.hosts(&self.flow_parameters[0])[1] - 1
    }

    /// Returns the addresses of both ends of each flow. The first address is that of the end on the measured
    /// client's side of the router.
    pub(crate) fn address_pairs(&self) -> Vec<[IpAddr; 2]> {
        let of = |flow: &FlowParameters| {
            let ends = [&flow.client, &flow.server].map(|site| site.addresses[0]);
            if self.path.is_on_client_side(flow.workload.client_node()) { ends } else { [ends[1], ends[0]] }
        };
        self.flow_parameters.iter().map(of).collect()
    }

    /// Performs the run. Compares the clocks before the path is emulated, because a shorter round trip makes the
    /// comparison more exact.
    pub(crate) fn perform(
        &self,
        way: Option<&RouterSession<'_>>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Run, RunError> {
        let server_host = self.server_host();
        let before = self.ask_each(|_, peer, session| {
            session.compare_clocks().map_err(|problem| peer.no_reply_error(&problem))
        })?;
        if let Some(way) = way {
            way.shape(&self.path.network, self.seed)?;
            let now = self.sessions[server_host].round_trip();
            let now =
                now.map_err(|problem| self.others.peers[server_host].failed_run_error(&problem.to_string()))?;
            way.check_round_trip(&self.path.network, [before[server_host].round_trip(), now])?;
        }
        let (halves, clients) = self.run_flows(way, goes_on)?;
        let passed = way.map(RouterSession::restore).transpose()?;
        let (here, there) = self.collect_results(halves, clients)?;
        let after = self.each_in_run(|_, session| session.compare_clocks().map(Ok))?;
        let clocks: Vec<Clocks> =
            before.into_iter().zip(after).map(|(before, after)| Clocks { before, after }).collect();
        let mut link_direction_counters = Vec::new();
        for (place, (results, clocks)) in there.into_iter().zip(&clocks).enumerate() {
            let results = self.on_local_clock(place + 1, results, clocks);
            link_direction_counters.extend(results.ok_or_else(|| {
                self.others.peers[place].failed_run_error("cannot parse the results of the host")
            })?);
        }
        let (runs, disordered) =
            join_ends(&self.flow_parameters, here, link_direction_counters).ok_or_else(|| {
                self.others.peers[server_host].failed_run_error("the results of the two hosts do not match")
            })?;
        let mut run = to_run(runs, self.scenario);
        self.add_router_report(&mut run, way, passed)?;
        self.add_host_reports(&mut run, &clocks, disordered);
        Ok(run)
    }

    /// Returns the results of the ends on another host, with times converted to this host's clock. Returns `None` if
    /// these are not the ends that run on that host.
    fn on_local_clock(&self, host: usize, results: Ends, clocks: &Clocks) -> Option<Ends> {
        let by_our_clock = |(flow, half): (usize, EndResult)| {
            let [client, server] = self.placement.hosts(self.flow_parameters.get(flow)?);
            let owner = if half.verdict.is_some() { client } else { server };
            (owner == host).then_some(())?;
            Some((flow, half.from_remote(|time| clocks.local_time(time))?))
        };
        results.into_iter().map(by_our_clock).collect()
    }

    /// Adds the router's counters to the report, if there is a router.
    fn add_router_report(
        &self,
        run: &mut Run,
        way: Option<&RouterSession<'_>>,
        passed: Option<[LinkCounters; 2]>,
    ) -> Result<(), RunError> {
        let Some((way, passed)) = way.zip(passed) else { return Ok(()) };
        way.check_counters(passed, run.summary.packets)?;
        let world_report = run.summary.world_report.as_deref_mut().expect("a live run has a report");
        world_report.router = Some(way.world_report());
        world_report.link_counters = link_direction_counters(&self.path.network, passed);
        Ok(())
    }

    /// Starts all flows, waits until the measured flow has ended, and ends all clients. Returns the local ends,
    /// whose servers are still running, and the results of the local clients.
    fn run_flows(
        &self,
        way: Option<&RouterSession<'_>>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(LocalEnds, Ends), RunError> {
        let Self { others: OtherHosts { peers, relay, .. }, plain: scenario, seed, interval, .. } = self;
        let run = random_run_id().map_err(|problem| peers[self.server_host()].failed_run_error(&problem))?;
        let secret = Secret::find().map_err(RunError::Refused)?.derive_for_run(&run);
        relay.set_routes(self.routes());
        let tell: Arc<FlowReportCallback> = {
            let relay = relay.clone();
            Arc::new(move |flow, news| relay.deliver(flow, news))
        };
        let here = self.placement.local_ends(&self.flow_parameters);
        let listening = LocalEnds::listen(
            scenario,
            self.flow_parameters.clone(),
            &here,
            secret,
            (&tell, &relay.local_reports),
            *interval,
        );
        let (mut halves, mut ports) = listening.map_err(|problem| run_error(&problem))?;
        let theirs = self.each_in_run(|own, session| {
            let placement = Placement { own, ..self.placement.clone() };
            session.prepare_run(RunDescription {
                scenario: scenario.clone(),
                seed: seed.0,
                interval: *interval,
                placement,
                run,
            })
        })?;
        for (flow, parameters) in self.flow_parameters.iter().enumerate() {
            if let Some(there) = self.placement.hosts(parameters)[1].checked_sub(1) {
                ports[flow] = theirs[there].get(flow).copied().unwrap_or_default();
            }
        }
        self.each_in_run(|_, session| session.start(ports.clone()).map(Ok))?;
        halves.start(&ports).map_err(|problem| run_error(&problem))?;
        while !halves.wait_for_client_end(0, POLL_INTERVAL) {
            if !goes_on() {
                return Err(RunError::Interrupted);
            }
            self.ask_each(|_, peer, session| {
                session.check_alive().map_err(|problem| peer.failed_run_error(&problem))
            })?;
            way.map_or(Ok(()), RouterSession::check_alive)?;
        }
        let clients = halves.end_clients().map_err(|problem| run_error(&problem))?;
        // The path is restored after all clients have ended, and no server ends before its client.
        self.each_in_run(|_, session| session.end_clients())?;
        Ok((halves, clients))
    }

    /// Returns the source and the destination of each flow's reports by its server.
    fn routes(&self) -> BTreeMap<usize, Route> {
        let of = |parameters: &FlowParameters| {
            let [client, server] = self.placement.hosts(parameters);
            Route {
                from: server,
                to: client.checked_sub(1).map(|there| self.sessions[there].report_sender()),
            }
        };
        self.flow_parameters.iter().map(of).enumerate().collect()
    }

    /// Collects the results of all ends on this host and on each of the other hosts.
    fn collect_results(&self, mut halves: LocalEnds, clients: Ends) -> Result<(Ends, Vec<Ends>), RunError> {
        let there = self.each_in_run(|_, session| session.end())?;
        let servers = halves.end_servers().map_err(|problem| run_error(&problem))?;
        self.others.relay.set_routes(BTreeMap::new());
        Ok(([clients, servers].concat(), there))
    }

    /// Adds the other hosts and the uncertainty of their clocks to the report.
    fn add_host_reports(&self, run: &mut Run, clocks: &[Clocks], disordered: u64) {
        let (server_host, world_report) =
            (self.server_host(), run.summary.world_report.as_deref_mut().expect("a live run has a report"));
        world_report.add_caution(warn_of_clock_uncertainty(
            &run.records,
            Duration::from_nanos(clocks[server_host].uncertainty()),
        ));
        world_report.add_caution(warn_of_unreached_server(
            &run.records,
            &run.summary.run_end,
            &self.others.peers[server_host].address.host,
        ));
        let beside = self
            .flow_parameters
            .iter()
            .skip(1)
            .zip(run.summary.background.iter().zip(&run.background_records));
        for (FlowParameters { transport, workload, .. }, (flow, records)) in beside {
            let has_begun = workload.start.as_nanos() < run.summary.ended.as_nanos();
            // UDP has no connection that could fail.
            let is_lost = transport.kind() == ProtocolKind::Udp
                && records.iter().all(|record| record.request.is_none());
            let is_silent = has_begun && (flow.connect_time.is_none() || is_lost);
            world_report.add_caution(
                is_silent.then(|| background_not_reached([workload.client_node(), workload.server_node()])),
            );
        }
        for (place, (session, clocks)) in self.sessions.iter().zip(clocks).enumerate() {
            let of_host = peer_facts(session, clocks);
            if place == server_host {
                world_report.peer = Some(PeerHostReport { disordered, ..of_host });
            } else {
                world_report.others.insert(self.others.peers[place].address.to_string(), of_host);
            }
        }
    }
}

/// Returns a unique number for the run.
fn random_run_id() -> Result<[u8; 32], String> {
    let mut number = [0; 32];
    getrandom::fill(&mut number)
        .map_err(|problem| format!("cannot get random numbers from the operating system: {problem}"))?;
    Ok(number)
}

fn peer_facts(session: &ControlConnection, clocks: &Clocks) -> PeerHostReport {
    PeerHostReport {
        address: session.peer_address.to_string(),
        from: session.own_address.to_string(),
        kernel: session.host.kernel.clone(),
        clocksource: session.host.clocksource.clone(),
        offset: clocks.offset(),
        drift: clocks.drift(),
        uncertainty: Duration::from_nanos(clocks.uncertainty()),
        round_trip: Duration::from_nanos(clocks.round_trip()),
        ..PeerHostReport::default()
    }
}
