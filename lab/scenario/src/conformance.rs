//! The cases that every world has to get right: every transport, workload and fault, with the way in which the run has to end
//! and the messages that have to arrive. They follow from the rules, not from what some world says; kinds and counts are
//! compared, never times.

use std::fmt;
use std::ops::RangeInclusive;

use hol_base::{Duration, Seed};
use hol_measure::{Outcome, Record};
use hol_stack::{Kind, TransportSpec};
use hol_workloads::{HostSpec, WorkloadSpec};

use crate::{Background, Onward, Run, RunError, Scenario, Stopped, World};

/// One question, and what every world has to answer.
#[derive(Debug, Clone)]
pub struct Case {
    /// Transport, workload and fault, in words.
    pub name: String,
    /// What is asked.
    pub scenario: Scenario,
    ends: Ends,
    completed: RangeInclusive<u64>,
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Finished,
    Stalled,
    NotConnected,
    BehindSchedule,
    OutOfTime,
    Failed,
    /// It fails after it was open.
    Lost,
    /// Whoever opens connections all the time may be about to.
    StalledOrFailed,
}

/// What a transport promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// Everything arrives, or the connection fails.
    All,
    /// Over a connection, but some may be given up.
    Some,
    /// Nothing at all.
    Nothing,
}

/// How a run has to end, and how many messages have to be completed.
type Due = (Ends, RangeInclusive<u64>);

/// Something that goes wrong.
struct Fault {
    name: &'static str,
    network: &'static str,
    /// Keys of the workload beside its own.
    workload: &'static str,
    due: fn(&Conversation) -> Option<Due>,
}

/// Who talks, as far as it matters for what a fault does to it.
struct Conversation {
    promise: Promise,
    /// It fails when nothing has come for a while, before anybody calls that a stall. RFC 9000 section 10.1.
    times_out: bool,
    workload: &'static str,
    messages: u64,
}

const TRANSPORTS: [&str; 15] = [
    "tcp",
    "tcp:connections=3",
    "mptcp",
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

const WORKLOADS: [&str; 8] = ["simco", "echo", "pingpong", "oneway", "bulk", "page", "media", "files"];

impl Conversation {
    fn all(&self) -> RangeInclusive<u64> {
        self.messages..=self.messages
    }

    /// Some, but not all.
    fn part(&self) -> RangeInclusive<u64> {
        1..=self.messages - 1
    }

    /// All, where everything arrives; some at least, where messages are given up.
    fn all_or(&self, least: u64) -> RangeInclusive<u64> {
        if self.promise == Promise::All { self.all() } else { least..=self.messages }
    }

    /// Datagrams open a session, said again until they are answered: without an answer nothing begins.
    fn opens_by_datagram(&self) -> bool {
        self.promise == Promise::Nothing && self.workload == "simco"
    }

    /// Where nothing gets through from the beginning, `ends` is how a connection takes it.
    fn unheard(&self, ends: Ends) -> Due {
        match self.promise {
            Promise::Nothing if self.opens_by_datagram() => (Ends::Stalled, 0..=0),
            Promise::Nothing => (Ends::Finished, 0..=0),
            Promise::All | Promise::Some => (ends, 0..=0),
        }
    }

    /// Where nothing gets through any more, `ends` is how a reliable transport takes it.
    fn cut_off(&self, ends: Ends) -> Due {
        let ends = match (self.times_out, self.workload) {
            (true, _) => Ends::Lost,
            (false, "page") => Ends::StalledOrFailed,
            _ => ends,
        };
        (if self.promise == Promise::All { ends } else { Ends::Finished }, self.part())
    }
}

const GONE: &str = "events = [{ at = '135ms', down = true }]";

const FAULTS: [Fault; 11] = [
    Fault {
        name: "nothing goes wrong",
        network: "",
        workload: "",
        due: |it| Some((Ends::Finished, it.all())),
    },
    Fault {
        name: "packets are lost at random",
        network: "loss = '5%'",
        workload: "",
        due: |it| Some((Ends::Finished, it.all_or(it.messages / 2))),
    },
    Fault {
        name: "the first packet is lost",
        network: "up = { loss = { drop = [1] } }",
        workload: "",
        due: |it| match it.promise {
            Promise::Nothing if it.opens_by_datagram() => Some((Ends::Finished, it.all())),
            Promise::Nothing => Some((Ends::Finished, it.messages - 1..=it.messages - 1)),
            Promise::All | Promise::Some => Some((Ends::Finished, it.all())),
        },
    },
    Fault {
        name: "two packets in the middle are lost",
        network: "up = { loss = { drop = [8, 9] } }",
        workload: "",
        due: |it| match it.promise {
            Promise::Nothing => Some((Ends::Finished, it.messages - 2..=it.messages - 2)),
            Promise::All | Promise::Some => Some((Ends::Finished, it.all_or(it.messages - 2))),
        },
    },
    Fault {
        name: "nothing ever arrives",
        network: "loss = '100%'",
        workload: "",
        due: |it| Some(it.unheard(Ends::Failed)),
    },
    Fault {
        name: "nobody listens",
        network: "",
        workload: "listens = false",
        due: |it| Some(it.unheard(Ends::Failed)),
    },
    Fault {
        name: "connecting takes too long",
        network: "loss = '100%'",
        workload: "connect_timeout = '2s'",
        due: |it| Some(it.unheard(Ends::NotConnected)),
    },
    Fault {
        name: "the link goes down for good",
        network: GONE,
        workload: "",
        due: |it| Some(it.cut_off(Ends::Stalled)),
    },
    Fault {
        name: "the link is down for a second",
        network: "events = [{ at = '135ms', down = true }, { at = '1135ms', down = false }]",
        workload: "",
        due: |it| {
            Some((Ends::Finished, if it.promise == Promise::Nothing { it.part() } else { it.all_or(1) }))
        },
    },
    Fault {
        name: "the route changes after a second without any",
        network: "paths = [{}, {}]\nhandover = { at = '0s', overlap = 1.35, attach = '1135ms', changes = 'route' }",
        workload: "",
        due: |it| {
            Some((Ends::Finished, if it.promise == Promise::Nothing { it.part() } else { it.all_or(1) }))
        },
    },
    Fault {
        name: "time is up before the last arrives",
        network: GONE,
        workload: "late_limit = '1s'",
        due: |it| has_a_load(it.workload).then(|| it.cut_off(Ends::OutOfTime)),
    },
];

fn has_a_load(workload: &str) -> bool {
    !matches!(workload, "pingpong" | "bulk" | "page" | "media" | "files")
}

/// Keys with which a workload is still at it when something goes wrong.
fn keys(workload: &str) -> &'static str {
    match workload {
        "page" => "document = '1kB'\nobjects = 3\nsize = '1kB'\npause = '10ms'",
        // A lost packet is a lost frame, and nothing is late.
        "media" => "packing = 'adu'\nbuffer = '100s'",
        "files" => "files = 1\ndeeds = ['put']",
        _ => "",
    }
}

/// All cases that do not contradict themselves.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in TRANSPORTS {
        for workload in WORKLOADS {
            cases.extend(FAULTS.iter().filter_map(|fault| case(transport, workload, fault)));
        }
    }
    cases.extend(["tcp", "sctp", "quic"].map(overload));
    cases.extend(["tcp", "sctp", "quic"].map(beside_others));
    cases.extend(["tcp:address_loss_aborts=true", "sctp:auth=true,addip=true", "mptcp"].map(moving));
    cases.extend(["tcp", "mptcp", "quic"].map(long_message));
    for transport in ["tcp", "mptcp", "sctp:socket=one-to-many"] {
        cases.extend(FAULTS.iter().filter_map(|fault| early(transport, fault)));
    }
    cases.extend(["tcp", "mptcp", "sctp:streams=4", "quic:streams=4", "udp"].map(asking));
    cases.extend(WORKLOADS.into_iter().flat_map(on_one_host));
    for transport in ["tcp", "mptcp", "sctp:streams=4", "quic:streams=4"] {
        cases.extend(
            WORKLOADS.iter().filter_map(|workload| case(transport, workload, &FAULTS[0])).map(slow_hosts),
        );
    }
    cases.extend(["tcp", "sctp", "quic"].map(beside_others).map(slow_hosts));
    cases.extend(["tcp", "sctp:streams=4", "quic:streams=4"].map(asking).map(slow_hosts));
    cases.retain(|case| case.scenario.check().is_ok());
    cases
}

fn case(transport: &str, workload: &'static str, fault: &Fault) -> Option<Case> {
    let Fault { name, network, workload: faulty, due } = fault;
    // A greedy sender has to be at it when something goes wrong.
    let messages = if workload == "bulk" { 200 } else { 25 };
    let spec: TransportSpec = transport.parse().expect("a transport of ours");
    let promise = match spec.kind() {
        Kind::Udp => Promise::Nothing,
        _ if spec.gives_up() => Promise::Some,
        _ => Promise::All,
    };
    if promise == Promise::Some && workload == "bulk" {
        // How much of a greedy sender's grows old in the send buffer is a matter of time.
        return None;
    }
    let times_out = spec.kind() == Kind::Quic;
    let (ends, completed) = due(&Conversation { promise, times_out, workload, messages })?;
    let workload_spec = read::<WorkloadSpec>(&format!("kind = '{workload}'\n{}\n{faulty}", keys(workload)));
    let network = read(&format!("rate = '10Mbit'\n{network}"));
    let scenario = Scenario::alone(network, spec, workload_spec, messages);
    Some(Case { name: format!("{transport}, {workload}: {name}"), scenario, ends, completed })
}

/// What is asked for goes before the connection is up, where the transport takes it.
fn early(transport: &str, fault: &Fault) -> Option<Case> {
    let Case { mut scenario, name, ends, completed } = case(transport, "page", fault)?;
    let keys = format!("kind = 'page'\nearly = true\n{}\n{}", keys("page"), fault.workload);
    scenario.workload = read(&keys);
    Some(Case { name: format!("{name}, and the browser is early"), scenario, ends, completed })
}

/// The same between hosts that take time for each message, more than the others need to send it.
fn slow_hosts(case: Case) -> Case {
    let Case { name, mut scenario, ends, completed } = case;
    for (node, service) in [("client", 2), ("server", 12)] {
        let service = Duration::from_millis(service);
        scenario.hosts.insert(node.to_owned(), HostSpec { service, ..HostSpec::default() });
    }
    Case { name: format!("{name}, between slow hosts"), scenario, ends, completed }
}

/// More than the line carries, and a limit to lateness.
fn overload(transport: &str) -> Case {
    let workload = "kind = 'oneway'\nsize = '1000B'\nrate = '2000/s'\nlate_limit = '1s'";
    let spec = transport.parse().expect("a transport of ours");
    let scenario = Scenario::alone(read("rate = '1Mbit'"), spec, read(workload), 20_000);
    let name = format!("{transport}, oneway: more than the line carries");
    Case { name, scenario, ends: Ends::BehindSchedule, completed: 1..=19_999 }
}

/// A message that takes longer than a stall, though it moves all the time.
fn long_message(transport: &str) -> Case {
    let spec = transport.parse().expect("a transport of ours");
    let scenario =
        Scenario::alone(read("rate = '256kbit'"), spec, read("kind = 'oneway'\nsize = '12MiB'"), 1);
    let name = format!("{transport}, oneway: a message that takes longer than a stall");
    Case { name, scenario, ends: Ends::Finished, completed: 1..=1 }
}

/// One flow of the background that ends, one that does not, and one that nobody answers.
fn beside_others(transport: &str) -> Case {
    let other = |workload: &str, messages| Background {
        transport: transport.parse().expect("a transport of ours"),
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
    let spec = transport.parse().expect("a transport of ours");
    let alone = Scenario::alone(read("rate = '10Mbit'"), spec, read("kind = 'echo'"), 50);
    let name = format!("{transport}, echo: beside others");
    Case { name, scenario: Scenario { background, ..alone }, ends: Ends::Finished, completed: 50..=50 }
}

/// Between two programs of a host nothing is lost; there may be nobody who listens.
fn on_one_host(workload: &'static str) -> Vec<Case> {
    let faults = ["nothing goes wrong", "nobody listens"];
    let faults = FAULTS.iter().filter(|fault| faults.contains(&fault.name));
    let cases = ["unix", "unix:connections=3"]
        .into_iter()
        .flat_map(|transport| faults.clone().filter_map(move |fault| case(transport, workload, fault)));
    let here = |case: Case| {
        let mut case = case;
        case.scenario.workload.to = Some(case.scenario.workload.from().to_owned());
        case
    };
    cases.map(here).collect()
}

/// The client moves while it loads a page, and has no address for a while.
fn moving(transport: &str) -> Case {
    let network = "rate = '2Mbit'\npaths = [{}, {}]\nhandover = { at = '0s', overlap = 2, attach = '600ms' }";
    let workload = "kind = 'page'\ndocument = '1kB'\nobjects = 3\nsize = '30kB'\nreopen = true";
    let spec = transport.parse().expect("a transport of ours");
    let scenario = Scenario::alone(read(network), spec, read(workload), 2);
    let name = format!("{transport}, page: the client moves");
    Case { name, scenario, ends: Ends::Finished, completed: 2..=2 }
}

/// The server asks its firewall, then another, which asks a third.
fn asking(transport: &str) -> Case {
    let spec: TransportSpec = transport.parse().expect("a transport of ours");
    let onward = |workload: &str| Onward { transport: spec.clone(), workload: read(workload) };
    let onward = vec![
        onward("kind = 'simco'\nfrom = 'server'\nto = 'firewall'"),
        onward("kind = 'echo'\nfrom = 'server'\nto = 'second'"),
        onward("kind = 'echo'\nfrom = 'second'\nto = 'third'"),
    ];
    let nodes = "['client', 'server', 'firewall', 'second', 'third']";
    let network = read(&format!("rate = '10Mbit'\nnodes = {nodes}\nlans = [{{ nodes = {nodes} }}]"));
    let name = format!("{transport}, echo: the server asks others");
    let alone = Scenario::alone(network, spec, read("kind = 'echo'\nstart = '1s'"), 50);
    Case { name, scenario: Scenario { onward, ..alone }, ends: Ends::Finished, completed: 50..=50 }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).expect("a table of ours")
}

impl Case {
    /// Runs it in a world: what is not as it has to be, or that the world refuses it.
    pub fn verdict(&self, world: &dyn World) -> Verdict {
        let run = match world.check(&self.scenario).and_then(|()| world.run(&self.scenario, Seed(1))) {
            Ok(run) => run,
            Err(RunError::Refused(why)) => return Verdict::Refused(why),
            Err(problem) => return Verdict::Differs(problem.to_string()),
        };
        self.differs(&run).map_or(Verdict::Kept, Verdict::Differs)
    }

    /// What of a run is not as it has to be.
    fn differs(&self, run: &Run) -> Option<String> {
        let Scenario { transport, messages, background, .. } = &self.scenario;
        let missing = if transport.gives_up() { Outcome::Abandoned } else { Outcome::Unfinished };
        let records =
            || run.records.iter().filter(|record| record.kind == self.scenario.workload.record_kind());
        let count = |outcome| records().filter(|record| record.outcome == outcome).count() as u64;
        let (completed, lost) = (count(Outcome::Completed), count(missing));
        let is_connected = !matches!(self.ends, Ends::NotConnected | Ends::Failed);
        if !self.ends.covers(Ends::of(&run.stopped)) {
            Some(format!("{:?} was due, and it is {}", self.ends, run.stopped))
        } else if records().count() as u64 != *messages {
            Some(format!("{} records of {messages} messages", records().count()))
        } else if !self.completed.contains(&completed) {
            Some(format!("{completed} messages were completed, {:?} were due", self.completed))
        } else if completed + lost != *messages {
            Some(format!("{completed} completed and {lost} {missing:?} are not {messages}"))
        } else if run.connect_time.is_some() != is_connected {
            Some(format!("it took {:?} to connect", run.connect_time))
        } else if run.background.len() != background.len() {
            Some(format!("{} flows of the background", run.background.len()))
        } else if let Some(asked) = self.asked_otherwise(run) {
            Some(asked)
        } else {
            background.iter().zip(&run.background).find_map(|(asked, became)| {
                let due = match (asked.workload.listens, asked.messages) {
                    // Nobody says so of a datagram: it goes on trying until its idle timeout.
                    (false, _) if asked.transport.kind() == Kind::Quic => None,
                    (false, _) => Some(Ends::Failed),
                    (true, Some(_)) => Some(Ends::Finished),
                    (true, None) => None,
                };
                let is = became.stopped.as_ref().map(Ends::of);
                (is != due).then(|| format!("{} of the background: {:?}", asked.workload, became.stopped))
            })
        }
    }
}

impl Case {
    /// What servers asked, if it is not all once.
    fn asked_otherwise(&self, run: &Run) -> Option<String> {
        let Scenario { background, onward, messages, .. } = &self.scenario;
        let asked = run.background_records.iter().skip(background.len());
        let answered = |records: &Vec<Record>| {
            records.iter().filter(|record| record.outcome == Outcome::Completed).count() as u64
        };
        let answered: Vec<u64> = asked.map(answered).collect();
        let is_due = answered.len() == onward.len() && answered.iter().all(|count| count == messages);
        (!is_due).then(|| format!("servers asked for {messages} messages, and were answered {answered:?}"))
    }
}

/// What a world makes of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is as it has to be.
    Kept,
    /// The world cannot do that, and says why.
    Refused(String),
    /// It is not as it has to be.
    Differs(String),
}

impl Ends {
    fn covers(self, end: Self) -> bool {
        match self {
            Self::Lost => end == Self::Failed,
            Self::StalledOrFailed => matches!(end, Self::Stalled | Self::Failed),
            _ => self == end,
        }
    }

    const fn of(stopped: &Stopped) -> Self {
        match stopped {
            Stopped::Finished => Self::Finished,
            Stopped::BehindSchedule { .. } => Self::BehindSchedule,
            Stopped::Stalled { .. } => Self::Stalled,
            Stopped::NotConnected { .. } => Self::NotConnected,
            Stopped::OutOfTime { .. } => Self::OutOfTime,
            Stopped::Failed { .. } | Stopped::Program { .. } => Self::Failed,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_transport_workload_and_fault() {
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
