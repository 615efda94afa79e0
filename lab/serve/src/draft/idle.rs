//! Networks without traffic, as Emulab sets them up: their nodes are used by hand.

use hol_lab::{MARK, Permission};
use hol_network::{NetworkSpec, Topology};

use super::file::File;
use super::ns;
use crate::experiment::Format;

/// What uses a network, as keys of an experiment file.
const USES: [&str; 8] =
    ["transports", "workload", "background", "onward", "program", "sweep", "zip", "figure"];

/// Returns the network of a text, even if nothing uses it yet.
pub fn network(text: &str, format: Format, permission: &Permission) -> Option<NetworkSpec> {
    let text = match format {
        Format::Toml => text.to_owned(),
        Format::Ns => ns::toml_of(text, permission).ok()?,
    };
    File::read(text, permission).network().ok()
}

/// Returns the text with traffic that a shell never starts, if it describes a network of at least two nodes and nothing that uses it.
///
/// `hol shell` opens the network of an experiment, and an experiment has traffic.
pub fn with_placeholder_traffic(text: &str, format: Format, permission: &Permission) -> Option<String> {
    let settings = match format {
        Format::Toml => text.to_owned(),
        Format::Ns if ns::has_traffic(text, permission) => return None,
        Format::Ns => ns::hol_lines(text).unwrap_or_default(),
    };
    let settings: toml::Table = settings.parse().ok()?;
    if settings.keys().any(|key| USES.contains(&key.as_str())) {
        return None;
    }
    let [from, to] = ends(&network(text, format, permission)?)?;
    let workload =
        format!("workload = {{ kind = \"oneway\", size = \"100B\", from = {from:?}, to = {to:?} }}");
    // Keys stand before tables.
    let lines = ["transports = [\"tcp\"]", &workload];
    let mark = if format == Format::Ns { MARK } else { "" };
    Some(lines.map(|line| format!("{mark}{line}\n")).concat() + text)
}

/// Returns two nodes that are next to each other.
fn ends(network: &NetworkSpec) -> Option<[String; 2]> {
    let topology = Topology::new(network).ok()?;
    let segment = topology.segments().iter().find(|segment| segment.interfaces.len() > 1)?;
    let name = |place: usize| {
        let interface = topology.interfaces()[usize::from(segment.interfaces[place].0)];
        topology.node_names()[usize::from(interface.node.0)].clone()
    };
    Some([name(0), name(1)])
}
