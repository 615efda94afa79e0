//! Tables of nodes and links as in Emulab's mails.

use hol_base::QueueLimit;
use hol_network::{Discipline, LinkId, Medium, RedSpec, Segment, Settings, Topology};

/// A table with its title; its first row contains the names of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmulabTable {
    /// Title of the table, as in Emulab's output.
    pub title: &'static str,
    /// The rows, each a list of cells; a row may have fewer cells than the first.
    pub rows: Vec<Vec<String>>,
}

/// Returns four tables of a network: the nodes with their addresses, the halves of links and LANs, their queues, and
/// the links that carry packets.
///
/// Emulab gives each member of a link or LAN two halves: one to the switch and one from it. Each half has half of the
/// path's delay, and a loss rate such that both halves together have the path's loss rate. The links that carry packets
/// have the whole delay and loss.
pub fn emulab_tables(topology: &Topology) -> [EmulabTable; 4] {
    [
        EmulabTable { title: "Virtual Node Info", rows: nodes(topology) },
        EmulabTable { title: "Virtual Lan/Link Info", rows: halves(topology) },
        EmulabTable { title: "Virtual Queue Info", rows: queues(topology) },
        EmulabTable { title: "Physical Lan/Link Info", rows: lines(topology) },
    ]
}

fn nodes(topology: &Topology) -> Vec<Vec<String>> {
    let mut rows = vec![row(["ID", "Addresses"])];
    for name in topology.node_names() {
        let node = topology.node(name).expect("the name is that of a node");
        let addresses: Vec<String> = topology.addresses(node).iter().map(ToString::to_string).collect();
        rows.push(row([name, &addresses.join(" ")]));
    }
    rows
}

/// Returns the rows of the table of halves: for each member one for the outgoing and one for the incoming half.
fn halves(topology: &Topology) -> Vec<Vec<String>> {
    let mut rows = vec![row(["ID", "Member", "IP/Mask", "Delay", "BW (Kbs)", "Loss Rate"])];
    for segment in topology.segments() {
        for (place, id) in segment.interfaces.iter().enumerate() {
            let address = topology.interfaces()[usize::from(id.0)].address.to_string();
            let [out, back] = directions(segment.medium, place).map(|line| settings(topology, line));
            let [first, second] = [out, back].map(|line| half_rows(line, line.loss.long_run_loss()));
            let member = member(topology, segment, place);
            rows.push([row([&segment.label, &member, &address]), first.into()].concat());
            rows.push([row(["", "", "255.255.255.0"]), second.into()].concat());
        }
    }
    rows
}

fn half_rows(settings: &Settings, loss: f64) -> [String; 3] {
    characteristics(settings, 0.5 * settings.delay.as_millis_f64(), 1.0 - (1.0 - loss).sqrt())
}

fn characteristics(settings: &Settings, delay_ms: f64, loss: f64) -> [String; 3] {
    let rate = settings.rate.bits_per_second() as f64 / 1000.0;
    [format!("{delay_ms:.2}"), format!("{rate}"), format!("{loss:.3}")]
}

fn queues(topology: &Topology) -> Vec<Vec<String>> {
    let mut rows = vec![row(["ID", "Member", "Q Limit", "Type", "weight/min_th/max_th/linterm"])];
    for segment in topology.segments() {
        for place in 0..segment.interfaces.len() {
            let [out, _] = directions(segment.medium, place);
            let settings = settings(topology, out);
            let (kind, parameters) = match settings.discipline {
                Discipline::DropTail => ("Tail", "0/0/0/0".to_owned()),
                Discipline::Red(RedSpec { min, max, weight, drop, gentle, .. }) => {
                    let kind = if gentle { "GRED" } else { "RED" };
                    (
                        kind,
                        format!(
                            "{weight}/{}/{}/{}",
                            format_limit(min),
                            format_limit(max),
                            1.0 / drop.value()
                        ),
                    )
                }
                Discipline::Codel(_) => ("CoDel", "0/0/0/0".to_owned()),
                Discipline::FairCodel(_) => ("FQ-CoDel", "0/0/0/0".to_owned()),
                Discipline::Pie(_) => ("PIE", "0/0/0/0".to_owned()),
                Discipline::DualPi2(_) => ("DualPI2", "0/0/0/0".to_owned()),
            };
            let member = member(topology, segment, place);
            rows.push(row([&segment.label, &member, &format_limit(settings.queue), kind, &parameters]));
        }
    }
    rows
}

/// Formats a queue limit in slots (packets, as dummynet counts) or in octets.
fn format_limit(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(packets) => format!("{packets}s"),
        QueueLimit::Bytes(octets) => format!("{octets}B"),
    }
}

/// Returns the rows of the table of links that carry packets: one per direction of a link, and one per LAN.
fn lines(topology: &Topology) -> Vec<Vec<String>> {
    let mut rows = vec![row(["ID", "Member", "Line", "Delay", "BW (Kbs)", "PLR"])];
    let mut line = |segment: &Segment, member: &str, id: LinkId| {
        let plan = &topology.links()[usize::from(id.0)];
        let loss = plan.settings.loss.long_run_loss();
        let values = characteristics(&plan.settings, plan.settings.delay.as_millis_f64(), loss);
        rows.push([row([&segment.label, member, &plan.name]), values.into()].concat());
    };
    for segment in topology.segments() {
        match segment.medium {
            Medium::Link { up, down } => {
                for (place, id) in [up, down].into_iter().enumerate() {
                    line(segment, node_name(topology, segment, place), id);
                }
            }
            Medium::Lan(id) => line(segment, "all", id),
        }
    }
    rows
}

/// Returns the link that leads away from a member and the link that leads to it. In a LAN they are the same.
fn directions(medium: Medium, place: usize) -> [LinkId; 2] {
    match medium {
        Medium::Link { up, down } if place == 0 => [up, down],
        Medium::Link { up, down } => [down, up],
        Medium::Lan(line) => [line, line],
    }
}

fn settings(topology: &Topology, line: LinkId) -> &Settings {
    &topology.links()[usize::from(line.0)].settings
}

/// Returns the name of a member in the form `node:port`. Ports of a node are counted from 0, in the order of the table.
fn member(topology: &Topology, segment: &Segment, place: usize) -> String {
    let id = segment.interfaces[place];
    let own = topology.interfaces()[usize::from(id.0)].node;
    let earlier = &topology.interfaces()[..usize::from(id.0)];
    let port = earlier.iter().filter(|interface| interface.node == own).count();
    format!("{}:{port}", node_name(topology, segment, place))
}

fn node_name<'t>(topology: &'t Topology, segment: &Segment, place: usize) -> &'t str {
    let interface = topology.interfaces()[usize::from(segment.interfaces[place].0)];
    &topology.node_names()[usize::from(interface.node.0)]
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}
