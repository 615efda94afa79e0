//! Named paths: `hol list paths`, `hol help lte`.

use hol_base::QueueLimit;
use hol_network::{CodelSpec, Discipline, DualPi2Spec, FairSpec, NamedPath, NetworkSpec, PieSpec, Settings};

use crate::terminal::aligned_table;

/// Indices of the columns with numbers in the table of paths.
const NUMERIC_COLUMNS: std::ops::RangeInclusive<usize> = 1..=6;

/// Returns a table of all paths.
pub fn table() -> String {
    let heading =
        ["path", "down", "up", "RTT", "queue down", "queue up", "loss", "source"].map(str::to_owned).to_vec();
    let rows = std::iter::once(heading).chain(NamedPath::ALL.iter().map(|path| row(*path)));
    aligned_table(&rows.collect::<Vec<_>>(), |column| NUMERIC_COLUMNS.contains(&column))
}

/// Returns the file that defines the path of this name; `None` if there is no such path.
pub fn explain(name: &str) -> Option<String> {
    let path: NamedPath = name.parse().ok()?;
    Some(format!("Path by name, as in --path {path}, or path = \"{path}\" in [network]:\n\n{}", path.text()))
}

fn row(path: NamedPath) -> Vec<String> {
    let network: NetworkSpec = toml::from_str(path.text()).expect("a test parses every built-in path");
    let [up, down] = network.directions();
    let round_trip = (up.delay + down.delay).to_string();
    let [rate_down, rate_up] = [&down, &up].map(|settings| settings.rate.to_string());
    let loss = if up.loss == down.loss {
        up.loss.to_string()
    } else {
        format!("{} up, {} down", up.loss, down.loss)
    };
    vec![
        path.to_string(),
        rate_down,
        rate_up,
        round_trip,
        describe_queue(&down),
        describe_queue(&up),
        loss,
        path.source().to_owned(),
    ]
}

/// Returns the delay of a full queue at the rate of its link, or the delay that its discipline aims at.
fn describe_queue(settings: &Settings) -> String {
    let (discipline, target) = match settings.discipline {
        Discipline::DropTail | Discipline::Red(_) => {
            let octets = match settings.queue {
                QueueLimit::Bytes(octets) => octets,
                QueueLimit::Packets(packets) => packets * (settings.mtu.0 + settings.overhead.0),
            };
            return milliseconds(settings.rate.serialization_time(octets, 0).0.as_millis_f64());
        }
        Discipline::Codel(CodelSpec { target, .. }) => ("codel", target),
        Discipline::FairCodel(FairSpec { target, .. }) => ("fq_codel", target),
        Discipline::Pie(PieSpec { target, .. }) => ("pie", target),
        Discipline::DualPi2(DualPi2Spec { target, .. }) => ("dualpi2", target),
    };
    format!("{discipline} {target}")
}

fn milliseconds(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}
