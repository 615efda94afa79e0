//! One job, from the seed to the records.

use std::collections::BTreeMap;

use hol_base::Seed;
use hol_model::Stopped;
use hol_sockets::{End, Site, sysctls};
use hol_stack::TransportSpec;

use super::namespace::{self, Namespace};
use super::topology::{self, Topology, address};
use super::{Trouble, entropy, probe};
use crate::job::{Facts, Job};
use crate::{netem, packed};

/// Where servers listen, and where clients' ports begin: as in the model world.
const SERVER_PORT: u16 = 7626;
const FIRST_CLIENT_PORT: u16 = 49152;

/// Settings of both ends whatever the transport: nothing is remembered from one connection to the next.
const ALWAYS: [(&str, &str); 1] = [("net/ipv4/tcp_no_metrics_save", "1")];

/// Runs `job`; returns what is to be told, and the records.
pub(super) fn run(job: &Job) -> Result<(Facts, Vec<u8>), Trouble> {
    let seed = Seed(job.seed);
    entropy::inject(seed)?;
    let plan = netem::plan(&job.network)?;
    let topology = topology::build(&plan, seed)?;
    let transport: TransportSpec = job.transport.parse()?;
    let sysctls = settle(&topology, &transport)?;
    let floor = probe::floors(&topology, &plan)?;
    let before = packets(&topology, plan.links.len())?;
    let site =
        |host: u8, port| Site { addresses: (1..=plan.links.len()).map(|n| address(n, host)).collect(), port };
    let sockets = hol_sockets::Plan {
        transport,
        workload: job.workload.clone(),
        messages: job.messages,
        seed,
        client: site(1, FIRST_CLIENT_PORT),
        server: site(2, SERVER_PORT),
    };
    let run = hol_sockets::run(&sockets, &mut |end| match end {
        End::Client => topology.client.enter(),
        End::Server => topology.server.enter(),
    })?;
    let facts = Facts {
        kernel: namespace::get("kernel/osrelease").unwrap_or_default()
            + " "
            + &namespace::get("kernel/version").unwrap_or_default(),
        clocksource: clocksource(),
        sysctls,
        stopped: words(run.stopped),
        connected: run.connected.map(|time| time.as_nanos()),
        ended: run.ended.as_nanos(),
        lines: topology.lines(&plan)?,
        floor,
        packets: packets(&topology, plan.links.len())?.saturating_sub(before),
        retransmissions: run.client.retransmissions + run.server.retransmissions,
    };
    Ok((facts, packed::pack(&run.records)))
}

/// Makes the settings of both ends; returns what the kernel then says they are.
fn settle(topology: &Topology, transport: &TransportSpec) -> Result<BTreeMap<String, String>, Trouble> {
    let asked = sysctls(transport)?;
    let asked = asked.iter().map(|sysctl| (sysctl.name, sysctl.value.as_str())).chain(ALWAYS);
    let mut settled = BTreeMap::new();
    for (name, value) in asked {
        for end in [&topology.client, &topology.server] {
            end.enter()?;
            namespace::set(name, value)?;
        }
        settled.insert(name.to_owned(), namespace::get(name).unwrap_or_default());
    }
    Ok(settled)
}

/// Packets that both ends have sent.
fn packets(topology: &Topology, links: usize) -> Result<u64, Trouble> {
    let mut total = 0;
    let ends: [(&Namespace, &str); 2] = [(&topology.client, "client"), (&topology.server, "server")];
    for (end, name) in ends {
        end.enter()?;
        let interfaces = (1..=links).map(|number| format!("{name}{number}"));
        total += interfaces.filter_map(|name| namespace::packets(&name)).map(|(_, sent)| sent).sum::<u64>();
    }
    Ok(total)
}

fn clocksource() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Why a run ended before everything was done.
fn words(stopped: Stopped) -> Option<String> {
    match stopped {
        Stopped::Finished => None,
        Stopped::BehindSchedule { message, scheduled, at } => {
            Some(format!("message {message} of {scheduled} was still not accepted at {at}: behind schedule"))
        }
        Stopped::Stalled { since, at, outstanding } => {
            Some(format!("stalled: nothing delivered from {since} to {at}, {outstanding} messages under way"))
        }
        Stopped::OutOfTime { outstanding } => {
            Some(format!("out of time with {outstanding} messages under way"))
        }
        Stopped::Failed { reason } => Some(format!("connection failed: {reason}")),
    }
}
