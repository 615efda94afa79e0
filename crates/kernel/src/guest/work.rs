//! One job, from the seed to the records.

use std::collections::BTreeMap;

use hol_base::Seed;
use hol_sockets::{End, Site, sysctls};
use hol_stack::TransportSpec;

use super::capture::Capture;
use super::namespace;
use super::topology::{self, Topology};
use super::{Trouble, entropy, probe, schedule, text};
use crate::job::{Answer, Facts, Job};
use crate::mailbox::Mail;
use crate::{netem, packed};

/// Where servers listen, and where clients' ports begin: as in the model world.
const SERVER_PORT: u16 = 7626;
const FIRST_CLIENT_PORT: u16 = 49152;

/// Settings of both ends whatever the transport: nothing is remembered from one connection to the next.
const ALWAYS: [(&str, &str); 1] = [("net/ipv4/tcp_no_metrics_save", "1")];

/// Runs `job`; returns all that is to be handed over.
pub(super) fn run(job: &Job) -> Result<Mail, Trouble> {
    let seed = Seed(job.seed);
    entropy::inject(seed)?;
    let plan = netem::plan(&job.network)?;
    let mut topology = topology::build(&plan, seed)?;
    let transport: TransportSpec = job.transport.parse()?;
    let sysctls = settle(&topology, &transport)?;
    let floor = probe::floors(&topology, &plan)?;
    topology.begin()?;
    let before = (topology.packets()?, topology.counts(&plan)?);
    let [client, server] = topology.addresses();
    let sockets = hol_sockets::Plan {
        transport,
        workload: job.workload.clone(),
        messages: job.messages,
        seed,
        client: Site { addresses: client, port: FIRST_CLIENT_PORT },
        server: Site { addresses: server, port: SERVER_PORT },
    };
    let capture = job.capture.then(|| Capture::start(&topology, plan.mtu, job)).transpose()?;
    schedule::start(plan.changes.clone(), topology.take_chains())?;
    let run = hol_sockets::run(&sockets, &mut |end| match end {
        End::Client => topology.client().enter(),
        End::Server => topology.server().enter(),
    })?;
    let capture = capture.map(|capture| capture.finish(run.epoch)).transpose()?;
    let facts = Facts {
        kernel: namespace::get("kernel/osrelease").unwrap_or_default()
            + " "
            + &namespace::get("kernel/version").unwrap_or_default(),
        clocksource: clocksource(),
        sysctls,
        stopped: run.stopped.reason(),
        connected: run.connected.map(|time| time.as_nanos()),
        ended: run.ended.as_nanos(),
        lines: topology.lines(&plan, &before.1)?,
        floor,
        packets: topology.packets()?.saturating_sub(before.0),
        retransmissions: run.client.retransmissions + run.server.retransmissions,
    };
    Ok(Mail {
        text: text(&Answer::Done(Box::new(facts))),
        records: packed::pack(&run.records),
        packets: capture.unwrap_or_default(),
    })
}

/// Makes the settings of both ends; returns what the kernel then says they are.
fn settle(topology: &Topology, transport: &TransportSpec) -> Result<BTreeMap<String, String>, Trouble> {
    let asked = sysctls(transport)?;
    let asked = asked.iter().map(|sysctl| (sysctl.name, sysctl.value.as_str())).chain(ALWAYS);
    let mut settled = BTreeMap::new();
    for (name, value) in asked {
        for end in [topology.client(), topology.server()] {
            end.enter()?;
            namespace::set(name, value)?;
        }
        settled.insert(name.to_owned(), namespace::get(name).unwrap_or_default());
    }
    Ok(settled)
}

fn clocksource() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
