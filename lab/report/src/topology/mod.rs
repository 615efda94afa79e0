//! Shows a network: [`draw`] as a drawing, [`text`] for a terminal.

mod draw;
mod layout;
mod text;

use hol_base::{Duration, Ratio};
use hol_network::{
    CodelSpec, Discipline, Distribution, DualPi2Spec, FairSpec, LinkId, LossSpec, Medium, NodeId, PieSpec,
    PoliceSpec, RedSpec, Segment, Settings, TokenBucket, Topology,
};

pub use draw::draw;
pub use text::text;

/// Describes the settings of one direction of a link.
fn direction_text(settings: &Settings) -> String {
    let Settings { rate, delay, jitter, loss, duplicate, reorder, corrupt, queue, discipline, .. } = settings;
    let Settings { jitter_distribution, police, channel, .. } = settings;
    let mut words = vec![rate.to_string(), delay.to_string()];
    if *jitter > Duration::ZERO {
        words.push(match jitter_distribution {
            Distribution::Uniform => format!("± {jitter}"),
            other => format!("± {jitter} {other}"),
        });
    }
    words.push(queue.to_string());
    match discipline {
        Discipline::DropTail => {}
        Discipline::Red(RedSpec { min, max, .. }) => words.push(format!("RED {min}–{max}")),
        Discipline::Codel(CodelSpec { target, .. }) => words.push(format!("CoDel {target}")),
        Discipline::FairCodel(FairSpec { target, .. }) => words.push(format!("FQ-CoDel {target}")),
        Discipline::Pie(PieSpec { target, .. }) => words.push(format!("PIE {target}")),
        Discipline::DualPi2(DualPi2Spec { step, .. }) => words.push(format!("DualPI2 {step}")),
    }
    match loss {
        LossSpec::Independent(ratio) if ratio.is_zero() => {}
        LossSpec::Independent(ratio) => words.push(format!("loss {ratio}")),
        LossSpec::Bursts(_) | LossSpec::TimedBursts(_) => words.push("loss in bursts".to_owned()),
        LossSpec::Packets(explicit) => words.push(format!("{} packets lost", explicit.drop.len())),
    }
    let shares: [(&str, &Ratio); 3] =
        [("duplicates", duplicate), ("reordered", reorder), ("corrupt", corrupt)];
    words.extend(
        shares.iter().filter(|(_, share)| !share.is_zero()).map(|(name, share)| format!("{name} {share}")),
    );
    if let PoliceSpec(Some(TokenBucket { rate, burst })) = police {
        words.push(format!("policed at {rate}, {burst}"));
    }
    if channel != Settings::OWN_CHANNEL {
        words.push(format!("channel {channel}"));
    }
    words.join(" · ")
}

/// Describes the settings of a segment: once if all directions have the same, else each direction.
fn describe_settings(topology: &Topology, segment: &Segment) -> Vec<String> {
    let words = |line: LinkId| direction_text(&topology.links()[usize::from(line.0)].settings);
    match segment.medium {
        Medium::Lan(line) => vec![words(line)],
        Medium::Link { up, down } if words(up) == words(down) => vec![words(up)],
        Medium::Link { up, down } => {
            let [first, second] = [0, 1].map(|place| node_name(topology, member(topology, segment, place)));
            vec![format!("{first} → {second}: {}", words(up)), format!("{second} → {first}: {}", words(down))]
        }
    }
}

/// Returns the node of an interface of the segment, by its position in the list of interfaces.
fn member(topology: &Topology, segment: &Segment, place: usize) -> NodeId {
    topology.interfaces()[usize::from(segment.interfaces[place].0)].node
}

fn node_name(topology: &Topology, node: NodeId) -> &str {
    &topology.node_names()[usize::from(node.0)]
}
