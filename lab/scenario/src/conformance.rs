//! Conformance cases that every world runs. There is one for each transport, workload and fault, with the
//! expected end of the run and the number of messages that must arrive. The expectations follow from the
//! protocols' rules, not from the results of a world. The kinds of ends and the counts are compared, never
//! times.

use std::fmt;
use std::ops::RangeInclusive;

use hol_base::{Duration, Seed};
use hol_measure::{Outcome, Record};
use hol_stack::{ProtocolKind, TransportSpec};
use hol_workloads::{HostSpec, WorkloadSpec};

use crate::{Background, OnwardRequests, Run, RunEnd, RunError, Scenario, World};

/// A scenario, and the end of its run that is expected in every world.
#[derive(Debug, Clone)]
pub struct ConformanceCase {
    /// The transport, workload and fault, as text.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
    ends: ExpectedEnd,
    completed: RangeInclusive<u64>,
}

/// The expected end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedEnd {
    Finished,
    Stalled,
    NotConnected,
    BehindSchedule,
    OutOfTime,
    Failed,
    /// A connection fails after it was established.
    Lost,
    /// The run stalls or a connection fails: a workload that opens many connections may be opening one, which then fails.
    StalledOrFailed,
}

/// The reliability of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reliability {
    /// Every message arrives, or the connection fails.
    All,
    /// Messages go over a connection, but the sender may abandon some.
    Some,
    /// Messages may be lost; there is no connection.
    Nothing,
}

/// The expected end of a run, and how many messages have to be completed.
type Expectation = (ExpectedEnd, RangeInclusive<u64>);

/// A fault, and the expected end of a run under it.
struct Fault {
    name: &'static str,
    network: &'static str,
    /// Keys of the workload that the fault needs, in addition to the workload's own keys.
    workload: &'static str,
    expectation: fn(&Traffic) -> Option<Expectation>,
}

/// The properties of a workload over a transport on which the effect of a fault depends.
struct Traffic {
    reliability: Reliability,
    /// Whether its connections fail by an idle timeout, which is shorter than the time after which a flow counts as stalled. RFC 9000
    /// section 10.1.
    times_out: bool,
    workload: &'static str,
    messages: u64,
}

const TRANSPORTS: [&str; 15] = [
    "tcp",
    "tcp:connections=3,tls=early",
    "mptcp:tls",
    "sctp",
    "sctp:streams=4",
    "sctp:associations=2,streams=2",
    "sctp:associations=2,streams=2,socket=one-to-many",
    "sctp:streams=4,socket=own",
    "sctp:unordered",
    "sctp:lifetime=100ms",
    "quic",
    "quic:streams=4,connections=2",
    "quic:per_message",
    "quic:datagrams,mtu=1452B",
    "udp",
];

const WORKLOADS: [&str; 9] = ["rpc", "simco", "echo", "pingpong", "oneway", "bulk", "page", "media", "files"];

impl Traffic {
    fn all(&self) -> RangeInclusive<u64> {
        self.messages..=self.messages
    }

    /// Returns the range "some messages, but not all".
    fn some_messages(&self) -> RangeInclusive<u64> {
        1..=self.messages - 1
    }

    /// Returns all messages for a reliable transport, and `min` or more for others.
    fn all_or_at_least(&self, min: u64) -> RangeInclusive<u64> {
        if self.reliability == Reliability::All { self.all() } else { min..=self.messages }
    }

    /// Returns whether datagrams open a session. Their sender repeats the opening until it is answered, so without an answer no message
    /// is sent.
    fn opens_by_datagram(&self) -> bool {
        self.reliability == Reliability::Nothing && self.workload == "simco"
    }

    /// Returns the expectation if no packet gets through from the beginning; `ends` is the end for transports with connections.
    fn never_reached(&self, ends: ExpectedEnd) -> Expectation {
        match self.reliability {
            Reliability::Nothing if self.opens_by_datagram() => (ExpectedEnd::Stalled, 0..=0),
            Reliability::Nothing => (ExpectedEnd::Finished, 0..=0),
            Reliability::All | Reliability::Some => (ends, 0..=0),
        }
    }

    /// Returns the expectation if no packet gets through after some time; `ends` is the end for reliable transports.
    fn interrupted(&self, ends: ExpectedEnd) -> Expectation {
        let ends = match (self.times_out, self.workload) {
            (true, _) => ExpectedEnd::Lost,
            (false, "page") => ExpectedEnd::StalledOrFailed,
            _ => ends,
        };
        (
            if self.reliability == Reliability::All { ends } else { ExpectedEnd::Finished },
            self.some_messages(),
        )
    }
}

const LINK_DOWN_EVENT: &str = "events = [{ at = '135ms', down = true }]";

const FAULTS: [Fault; 11] = [
    Fault {
        name: "no fault",
        network: "",
        workload: "",
        expectation: |it| Some((ExpectedEnd::Finished, it.all())),
    },
    Fault {
        name: "packets are lost at random",
        network: "loss = '5%'",
        workload: "",
        expectation: |it| Some((ExpectedEnd::Finished, it.all_or_at_least(it.messages / 2))),
    },
    Fault {
        name: "the first packet is lost",
        network: "up = { loss = { drop = [1] } }",
        workload: "",
        expectation: |it| match it.reliability {
            Reliability::Nothing if it.opens_by_datagram() => Some((ExpectedEnd::Finished, it.all())),
            Reliability::Nothing => Some((ExpectedEnd::Finished, it.messages - 1..=it.messages - 1)),
            Reliability::All | Reliability::Some => Some((ExpectedEnd::Finished, it.all())),
        },
    },
    Fault {
        name: "two packets in the middle are lost",
        network: "up = { loss = { drop = [8, 9] } }",
        workload: "",
        expectation: |it| match it.reliability {
            Reliability::Nothing => Some((ExpectedEnd::Finished, it.messages - 2..=it.messages - 2)),
            Reliability::All | Reliability::Some => {
                Some((ExpectedEnd::Finished, it.all_or_at_least(it.messages - 2)))
            }
        },
    },
    Fault {
        name: "every packet is lost",
        network: "loss = '100%'",
        workload: "",
        expectation: |it| Some(it.never_reached(ExpectedEnd::Failed)),
    },
    Fault {
        name: "no server listens",
        network: "",
        workload: "listens = false",
        expectation: |it| Some(it.never_reached(ExpectedEnd::Failed)),
    },
    Fault {
        name: "the connect timeout expires",
        network: "loss = '100%'",
        workload: "connect_timeout = '2s'",
        expectation: |it| Some(it.never_reached(ExpectedEnd::NotConnected)),
    },
    Fault {
        name: "the link goes down permanently",
        network: LINK_DOWN_EVENT,
        workload: "",
        expectation: |it| Some(it.interrupted(ExpectedEnd::Lost)),
    },
    Fault {
        name: "the link is down for a second",
        network: "events = [{ at = '135ms', down = true }, { at = '1135ms', down = false }]",
        workload: "",
        expectation: |it| {
            Some((
                ExpectedEnd::Finished,
                if it.reliability == Reliability::Nothing {
                    it.some_messages()
                } else {
                    it.all_or_at_least(1)
                },
            ))
        },
    },
    Fault {
        name: "the route changes after a second without a route",
        network: "paths = [{}, {}]\nhandover = { at = '0s', overlap = 1.35, attach = '1135ms', changes = 'route' }",
        workload: "",
        expectation: |it| {
            Some((
                ExpectedEnd::Finished,
                if it.reliability == Reliability::Nothing {
                    it.some_messages()
                } else {
                    it.all_or_at_least(1)
                },
            ))
        },
    },
    Fault {
        name: "the time limit expires before the last message arrives",
        network: LINK_DOWN_EVENT,
        workload: "late_limit = '1s'",
        expectation: |it| has_a_load(it.workload).then(|| it.interrupted(ExpectedEnd::OutOfTime)),
    },
];

fn has_a_load(workload: &str) -> bool {
    !matches!(workload, "pingpong" | "bulk" | "page" | "media" | "files")
}

/// Returns keys that keep a workload sending until the fault occurs.
fn keys(workload: &str) -> &'static str {
    match workload {
        "page" => "document = '1kB'\nobjects = 3\nsize = '1kB'\npause = '10ms'",
        // A lost packet loses a frame, and no frame is too late.
        "media" => "packing = 'adu'\nbuffer = '100s'",
        "rpc" => "arrivals = 'periodic'\nservice = '1ms'",
        "files" => "files = 1\noperations = ['put']",
        _ => "",
    }
}

/// Returns all cases whose scenario is valid.
pub fn cases() -> Vec<ConformanceCase> {
    let mut cases = Vec::new();
    for transport in TRANSPORTS {
        for workload in WORKLOADS {
            cases.extend(FAULTS.iter().filter_map(|fault| case(transport, workload, fault)));
        }
    }
    cases.extend(["tcp", "sctp", "quic"].map(overload));
    cases.extend(["tcp", "sctp", "quic"].map(with_background));
    cases.extend(["tcp:address_loss_aborts=true", "sctp:auth=true,addip=true", "mptcp"].map(moving_client));
    cases.extend(["tcp", "mptcp", "quic"].map(long_message));
    for transport in ["tcp", "mptcp", "sctp:socket=one-to-many"] {
        cases.extend(FAULTS.iter().filter_map(|fault| early_data(transport, fault)));
    }
    cases.extend(["tcp", "mptcp", "sctp:streams=4", "quic:streams=4", "udp"].map(with_onward_requests));
    cases.extend(WORKLOADS.into_iter().flat_map(on_one_host));
    for transport in ["tcp", "mptcp", "sctp:streams=4", "quic:streams=4"] {
        cases.extend(
            WORKLOADS.iter().filter_map(|workload| case(transport, workload, &FAULTS[0])).map(slow_hosts),
        );
    }
    cases.extend(["tcp", "sctp", "quic"].map(with_background).map(slow_hosts));
    cases.extend(["tcp", "sctp:streams=4", "quic:streams=4"].map(with_onward_requests).map(slow_hosts));
    cases.retain(|case| case.scenario.check().is_ok());
    cases
}

fn case(transport: &str, workload: &'static str, fault: &Fault) -> Option<ConformanceCase> {
    let Fault { name, network, workload: faulty, expectation } = fault;
    // A greedy sender must still be sending when the fault occurs.
    let messages = if workload == "bulk" { 200 } else { 25 };
    let spec: TransportSpec = transport.parse().expect("the transport is valid");
    let reliability = match spec.kind() {
        ProtocolKind::Udp => Reliability::Nothing,
        _ if spec.may_lose_messages() => Reliability::Some,
        _ => Reliability::All,
    };
    if reliability == Reliability::Some && workload == "bulk" {
        // How many messages of a greedy sender expire in the send buffer depends on timing.
        return None;
    }
    let times_out = spec.kind() == ProtocolKind::Quic;
    let (ends, completed) = expectation(&Traffic { reliability, times_out, workload, messages })?;
    let workload_spec = read::<WorkloadSpec>(&format!("kind = '{workload}'\n{}\n{faulty}", keys(workload)));
    let network = read(&format!("rate = '10Mbit'\n{network}"));
    let scenario = Scenario::with_single_flow(network, spec, workload_spec, messages);
    Some(ConformanceCase { name: format!("{transport}, {workload}: {name}"), scenario, ends, completed })
}

/// Returns the case in which requests are sent during the handshake, if the transport can do that.
fn early_data(transport: &str, fault: &Fault) -> Option<ConformanceCase> {
    let ConformanceCase { mut scenario, name, ends, completed } = case(transport, "page", fault)?;
    let keys = format!("kind = 'page'\nearly = true\n{}\n{}", keys("page"), fault.workload);
    scenario.workload = read(&keys);
    Some(ConformanceCase { name: format!("{name}, with early requests"), scenario, ends, completed })
}

/// Returns `case` with hosts that take longer to process a message than to transmit it.
fn slow_hosts(case: ConformanceCase) -> ConformanceCase {
    let ConformanceCase { name, mut scenario, ends, completed } = case;
    for (node, service) in [("client", 2), ("server", 12)] {
        let service = Duration::from_millis(service);
        scenario.hosts.insert(node.to_owned(), HostSpec { service, ..HostSpec::default() });
    }
    ConformanceCase { name: format!("{name}, between slow hosts"), scenario, ends, completed }
}

/// Returns a case with more load than the link carries, and a late limit.
fn overload(transport: &str) -> ConformanceCase {
    let workload = "kind = 'oneway'\nsize = '1000B'\nrate = '2000/s'\nlate_limit = '1s'";
    let spec = transport.parse().expect("the transport is valid");
    let scenario = Scenario::with_single_flow(read("rate = '1Mbit'"), spec, read(workload), 20_000);
    let name = format!("{transport}, oneway: load above the link rate");
    ConformanceCase { name, scenario, ends: ExpectedEnd::BehindSchedule, completed: 1..=19_999 }
}

/// Returns a case with a message whose transfer takes longer than the stall timeout, though it progresses all the time.
fn long_message(transport: &str) -> ConformanceCase {
    let spec = transport.parse().expect("the transport is valid");
    let scenario = Scenario::with_single_flow(
        read("rate = '256kbit'"),
        spec,
        read("kind = 'oneway'\nsize = '12MiB'"),
        1,
    );
    let name = format!("{transport}, oneway: one message takes longer than the stall timeout");
    ConformanceCase { name, scenario, ends: ExpectedEnd::Finished, completed: 1..=1 }
}

/// Returns a case with three background flows: one that ends, one that does not, and one to a server that never answers.
fn with_background(transport: &str) -> ConformanceCase {
    let other = |workload: &str, messages| Background {
        transport: transport.parse().expect("the transport is valid"),
        workload: read(workload),
        messages,
        count: 1,
        spread: Duration::ZERO,
    };
    let background = vec![
        other("kind = 'oneway'", Some(5)),
        other("kind = 'bulk'", None),
        other("kind = 'echo'\nlistens = false", None),
    ];
    let spec = transport.parse().expect("the transport is valid");
    let alone = Scenario::with_single_flow(read("rate = '10Mbit'"), spec, read("kind = 'echo'"), 50);
    let name = format!("{transport}, echo: with background flows");
    ConformanceCase {
        name,
        scenario: Scenario { background, ..alone },
        ends: ExpectedEnd::Finished,
        completed: 50..=50,
    }
}

/// Returns the cases between two programs of one host, where no packet is lost but the server may not listen.
fn on_one_host(workload: &'static str) -> Vec<ConformanceCase> {
    let faults = ["no fault", "no server listens"];
    let faults = FAULTS.iter().filter(|fault| faults.contains(&fault.name));
    let cases = ["unix", "unix:connections=3"]
        .into_iter()
        .flat_map(|transport| faults.clone().filter_map(move |fault| case(transport, workload, fault)));
    let here = |case: ConformanceCase| {
        let mut case = case;
        case.scenario.workload.to = Some(case.scenario.workload.client_node().to_owned());
        case
    };
    cases.map(here).collect()
}

/// Returns a case in which the client changes its address while it loads a page, and has no address for a while.
fn moving_client(transport: &str) -> ConformanceCase {
    let network = "rate = '2Mbit'\npaths = [{}, {}]\nhandover = { at = '0s', overlap = 2, attach = '600ms' }";
    let workload = "kind = 'page'\ndocument = '1kB'\nobjects = 3\nsize = '30kB'\nreopen = true";
    let spec = transport.parse().expect("the transport is valid");
    let scenario = Scenario::with_single_flow(read(network), spec, read(workload), 2);
    let name = format!("{transport}, page: the client moves");
    ConformanceCase { name, scenario, ends: ExpectedEnd::Finished, completed: 2..=2 }
}

/// Returns a case in which the server sends requests to its firewall, then to another server, which sends requests to a third one.
fn with_onward_requests(transport: &str) -> ConformanceCase {
    let spec: TransportSpec = transport.parse().expect("the transport is valid");
    let onward = |workload: &str| OnwardRequests { transport: spec.clone(), workload: read(workload) };
    let onward = vec![
        onward("kind = 'simco'\nfrom = 'server'\nto = 'firewall'"),
        onward("kind = 'echo'\nfrom = 'server'\nto = 'second'"),
        onward("kind = 'echo'\nfrom = 'second'\nto = 'third'"),
    ];
    let nodes = "['client', 'server', 'firewall', 'second', 'third']";
    let network = read(&format!("rate = '10Mbit'\nnodes = {nodes}\nlans = [{{ nodes = {nodes} }}]"));
    let name = format!("{transport}, echo: the server sends onward requests");
    let alone = Scenario::with_single_flow(network, spec, read("kind = 'echo'\nstart = '1s'"), 50);
    ConformanceCase {
        name,
        scenario: Scenario { onward, ..alone },
        ends: ExpectedEnd::Finished,
        completed: 50..=50,
    }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).expect("the table is valid")
}

impl ConformanceCase {
    /// Runs the case in a world. Returns how the run differs from the expectation, or why the world refuses the scenario.
    pub fn verdict(&self, world: &dyn World) -> CaseResult {
        let run = match world.check(&self.scenario).and_then(|()| world.run(&self.scenario, Seed(1))) {
            Ok(run) => run,
            Err(RunError::Refused(why)) => return CaseResult::Refused(why),
            Err(problem) => return CaseResult::Differs(problem.to_string()),
        };
        self.mismatch(&run).map_or(CaseResult::Passed, CaseResult::Differs)
    }

    /// Returns how a run differs from the expectation.
    fn mismatch(&self, run: &Run) -> Option<String> {
        let Scenario { transport, messages, background, .. } = &self.scenario;
        let missing = if transport.may_lose_messages() { Outcome::Abandoned } else { Outcome::Unfinished };
        let records =
            || run.records.iter().filter(|record| record.kind == self.scenario.workload.record_kind());
        let count = |outcome| records().filter(|record| record.outcome == outcome).count() as u64;
        let (completed, lost) = (count(Outcome::Completed), count(missing));
        let is_connected = !matches!(self.ends, ExpectedEnd::NotConnected | ExpectedEnd::Failed);
        if !self.ends.covers(ExpectedEnd::from_run_end(&run.run_end)) {
            Some(format!("expected {:?}, but the run ended: {}", self.ends, run.run_end))
        } else if records().count() as u64 != *messages {
            Some(format!("expected a record of each of {messages} messages, found {}", records().count()))
        } else if !self.completed.contains(&completed) {
            Some(format!("{completed} messages were completed, expected {:?}", self.completed))
        } else if completed + lost != *messages {
            Some(format!(
                "{completed} messages were completed and {lost} {missing:?}, but the run has {messages} messages"
            ))
        } else if run.connect_time.is_some() != is_connected {
            Some(format!("it took {:?} to connect", run.connect_time))
        } else if run.background.len() != background.len() {
            Some(format!("{} background flows, not as many as in the scenario", run.background.len()))
        } else if let Some(asked) = self.onward_mismatch(run) {
            Some(asked)
        } else {
            background.iter().zip(&run.background).find_map(|(asked, became)| {
                let expectation = match (asked.workload.listens, asked.messages) {
                    // No packet tells a QUIC client that its datagrams cannot be delivered: it retries until its idle timeout.
                    (false, _) if asked.transport.kind() == ProtocolKind::Quic => None,
                    (false, _) => Some(ExpectedEnd::Failed),
                    (true, Some(_)) => Some(ExpectedEnd::Finished),
                    (true, None) => None,
                };
                let is = became.run_end.as_ref().map(ExpectedEnd::from_run_end);
                (is != expectation)
                    .then(|| format!("background flow {} ended with {:?}", asked.workload, became.run_end))
            })
        }
    }
}

impl ConformanceCase {
    /// Every message should cause one reply in each onward flow. Returns how the run differs from this; `None` if it
    /// does not.
    fn onward_mismatch(&self, run: &Run) -> Option<String> {
        let Scenario { background, onward, messages, .. } = &self.scenario;
        let asked = run.background_records.iter().skip(background.len());
        let answered = |records: &Vec<Record>| {
            records.iter().filter(|record| record.outcome == Outcome::Completed).count() as u64
        };
        let answered: Vec<u64> = asked.map(answered).collect();
        let is_due = answered.len() == onward.len() && answered.iter().all(|count| count == messages);
        (!is_due).then(|| {
            format!("expected {messages} replies to the requests of each onward flow, got {answered:?}")
        })
    }
}

/// The result of a case in a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// The run ended as expected.
    Passed,
    /// The world cannot run the scenario, for this reason.
    Refused(String),
    /// The run did not end as expected.
    Differs(String),
}

impl ExpectedEnd {
    fn covers(self, end: Self) -> bool {
        match self {
            Self::Lost => end == Self::Failed,
            Self::StalledOrFailed => matches!(end, Self::Stalled | Self::Failed),
            _ => self == end,
        }
    }

    const fn from_run_end(run_end: &RunEnd) -> Self {
        match run_end {
            RunEnd::Finished => Self::Finished,
            RunEnd::BehindSchedule { .. } => Self::BehindSchedule,
            RunEnd::Stalled { .. } => Self::Stalled,
            RunEnd::NotConnected { .. } => Self::NotConnected,
            RunEnd::OutOfTime { .. } => Self::OutOfTime,
            RunEnd::Failed { .. } | RunEnd::Program { .. } => Self::Failed,
        }
    }
}

impl fmt::Display for ConformanceCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_cases_cover_every_transport_workload_and_fault() {
        let cases = cases();
        let has = |word: &str| cases.iter().any(|case| case.name.contains(word));
        for word in TRANSPORTS.iter().chain(&WORKLOADS).chain(FAULTS.iter().map(|fault| &fault.name)) {
            assert!(has(word), "{word}");
        }
        let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), cases.len());
    }
}
