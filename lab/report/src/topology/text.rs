//! A network as text: each link, and each LAN with its nodes.

use std::fmt::Write;

use hol_network::{Medium, Segment, Topology};

use super::{describe_settings, member, node_name};

/// Returns the links and LANs, one per line.
pub fn text(topology: &Topology) -> String {
    let labels = topology.segments().iter().map(|segment| segment.label.chars().count());
    let indent = labels.max().unwrap_or(0) + 2;
    let mut text = String::new();
    for segment in topology.segments() {
        let _ = write!(text, "{:<indent$}", segment.label);
        let below = " ".repeat(indent);
        let own = describe_settings(topology, segment);
        match segment.medium {
            Medium::Link { .. } => {
                let [(first, near), (second, far)] =
                    [0, 1].map(|place| describe_end(topology, segment, place));
                let _ = writeln!(text, "{first} {near} ─── {far} {second}");
                own.iter().for_each(|line| text += &format!("{below}{line}\n"));
            }
            Medium::Lan(_) => {
                let _ = writeln!(text, "{}", own.join("; "));
                let last = segment.interfaces.len() - 1;
                for place in 0..=last {
                    let (node, address) = describe_end(topology, segment, place);
                    let branch = if place == last { "└──" } else { "├──" };
                    let _ = writeln!(text, "{below}{branch} {address} {node}");
                }
            }
        }
    }
    text
}

fn describe_end<'t>(topology: &'t Topology, segment: &Segment, place: usize) -> (&'t str, String) {
    let interface = topology.interfaces()[usize::from(segment.interfaces[place].0)];
    (node_name(topology, member(topology, segment, place)), interface.address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_lans_are_listed_below_each_other() {
        let spec = "nodes = ['client', 'server']
            links = [{ from = 'client', to = 'server', name = 'testlink', rate = '400kbit', down = { loss = '1%' } }]
            lans = [{ nodes = ['client', 'server'], name = 'lan0', delay = '0ms' }]";
        let topology = Topology::new(&toml::from_str(spec).unwrap()).unwrap();
        let expected = "\
testlink  client 10.0.1.1 ─── 10.0.1.2 server
          client → server: 400kbit · 10ms · 1000p
          server → client: 400kbit · 10ms · 1000p · loss 1%
lan0      100Mbit · 0s · 1000p
          ├── 10.0.2.1 client
          └── 10.0.2.2 server
";
        assert_eq!(text(&topology), expected);
    }
}
