//! Networks without traffic, as in Emulab: users run commands on their nodes.

use hol_lab::{LINE_PREFIX, Permission};
use hol_network::{NetworkSpec, Topology};

use super::file::File;
use super::ns;
use crate::experiment::Format;

/// Top-level keys that only an experiment with traffic has.
const TRAFFIC_KEYS: [&str; 8] =
    ["transports", "workload", "background", "onward", "program", "sweep", "zip", "figure"];

/// Returns the network of a text, even if the text has no traffic yet.
pub fn network(text: &str, format: Format, permission: &Permission) -> Option<NetworkSpec> {
    let text = match format {
        Format::Toml => text.to_owned(),
        Format::Ns => ns::to_experiment_file(text, permission).ok()?,
    };
    File::read(text, permission).network().ok()
}

/// Adds placeholder traffic to a text that describes a network without traffic. Returns `None` if the text has traffic,
/// is invalid, or has no two nodes that are connected.
///
/// `hol shell` opens the network of an experiment, and an experiment must have traffic. A shell never starts the
/// placeholder.
pub fn with_placeholder_traffic(text: &str, format: Format, permission: &Permission) -> Option<String> {
    let settings = match format {
        Format::Toml => text.to_owned(),
        Format::Ns if ns::has_traffic(text, permission) => return None,
        Format::Ns => ns::hol_lines(text).unwrap_or_default(),
    };
    let settings: toml::Table = settings.parse().ok()?;
    if settings.keys().any(|key| TRAFFIC_KEYS.contains(&key.as_str())) {
        return None;
    }
    let [from, to] = adjacent_nodes(&network(text, format, permission)?)?;
    let workload =
        format!("workload = {{ kind = \"oneway\", size = \"100B\", from = {from:?}, to = {to:?} }}");
    // In TOML, top-level keys precede tables.
    let lines = ["transports = [\"tcp\"]", &workload];
    let mark = if format == Format::Ns { LINE_PREFIX } else { "" };
    Some(lines.map(|line| format!("{mark}{line}\n")).concat() + text)
}

/// Returns two adjacent nodes.
fn adjacent_nodes(network: &NetworkSpec) -> Option<[String; 2]> {
    let topology = Topology::new(network).ok()?;
    let segment = topology.segments().iter().find(|segment| segment.interfaces.len() > 1)?;
    let name = |place: usize| {
        let interface = topology.interfaces()[usize::from(segment.interfaces[place].0)];
        topology.node_names()[usize::from(interface.node.0)].clone()
    };
    Some([name(0), name(1)])
}
