//! A warning about transports that need marks (ECN) on a path that sets none.

use hol_lab::Point;
use hol_network::Topology;

/// Congestion controls whose benefit depends on ECN marks: they react gently to marks, but to losses as other controls
/// do. Each comes with its name and a discipline that marks as it expects. RFC 9332, RFC 8257 section 3.1.
const CONTROLS: [(&str, &str, &str); 2] =
    [("prague", "Prague", "\"dualpi2\""), ("dctcp", "DCTCP", "{ fq_codel = { ce_threshold = \"1ms\" } }")];

/// Returns a warning if the congestion control of a point relies on ECN marks, but no queue between client and server
/// marks packets.
pub fn warning(point: &Point) -> Option<String> {
    let options = point.transport.option_values();
    let own = options.get("congestion")?.as_str()?;
    let (_, name, discipline) = CONTROLS.iter().find(|(control, ..)| *control == own)?;
    // The queues of a real path are unknown.
    if point.world.family() == "live" || has_marking_queue(point)? {
        return None;
    }
    Some(format!(
        "{name} without ECN on the path: no queue marks packets, so {name} reacts only to losses; use a discipline that marks, as in \
         --set 'network.discipline={discipline}', or another congestion control"
    ))
}

/// Returns whether a queue between client and server, in either direction, marks packets; `None` if the network is
/// invalid.
fn has_marking_queue(point: &Point) -> Option<bool> {
    let network = Topology::new(&point.network).ok()?;
    let ends = [point.workload.client_node(), point.workload.server_node()].map(|name| network.node(name));
    let [Some(client), Some(server)] = ends else { return None };
    let links = [network.path(client, server), network.path(server, client)];
    Some(links.iter().flatten().any(|link| link.settings.discipline.marks()))
}

#[cfg(test)]
mod tests {
    use hol_lab::{Experiment, Source};

    use super::*;

    fn warning_for(transport: &str, network: &str) -> Option<String> {
        let text = format!("transports = ['{transport}']\n[network]\n{network}");
        let experiment = Experiment::parse("t", &Source::new("t.toml", text)).unwrap();
        warning(&experiment.points[0])
    }

    #[test]
    fn controls_that_need_marks_are_warned_of_a_path_without() {
        for (transport, network) in [
            ("tcp:cc=prague", ""),
            ("tcp:cc=prague", "discipline = 'codel'"),
            ("tcp:cc=prague", "discipline = { fq_codel = { ecn = false } }"),
            ("tcp:cc=dctcp", "discipline = { red = { min = '5p', max = '15p', ecn = false } }"),
            ("tcp:cc=dctcp", "discipline = 'pie'"),
        ] {
            let text = warning_for(transport, network).unwrap_or_else(|| panic!("{transport} {network}"));
            assert!(
                text.contains("without ECN on the path") && text.contains("network.discipline="),
                "{text}"
            );
        }
    }

    #[test]
    fn a_marking_queue_in_one_direction_suffices() {
        for (transport, network) in [
            ("tcp", ""),
            ("tcp:accecn", "discipline = 'codel'"),
            ("quic", ""),
            ("tcp:cc=prague", "discipline = 'dualpi2'"),
            ("tcp:cc=prague", "up.discipline = 'dualpi2'"),
            ("tcp:cc=dctcp", "down.discipline = { codel = { ce_threshold = '1ms' } }"),
            ("tcp:cc=dctcp", "discipline = { red = { min = '5p', max = '15p', ecn = true } }"),
            ("tcp:cc=dctcp", "discipline = { pie = { ecn = true } }"),
        ] {
            assert_eq!(warning_for(transport, network), None, "{transport} {network}");
        }
    }

    /// The cure of a warning is itself checked.
    #[test]
    fn the_suggested_disciplines_mark() {
        for (control, _, discipline) in CONTROLS {
            let network = format!("discipline = {discipline}");
            assert_eq!(warning_for(&format!("tcp:cc={control}"), &network), None);
        }
    }
}
