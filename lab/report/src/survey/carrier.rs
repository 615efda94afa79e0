//! Finds which of two transports carries the load or recovers, if only one does.

use hol_measure::{UNSTEADY_SIGNIFICANCE, fisher_exact};

use super::size::round_to_digits;
use crate::data::Cell;
use crate::plot::number;

/// The transport that carries the load if only one of two does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Carrier {
    pub(super) is_challenger: bool,
    /// The p-value: the probability of runs that differ as much as the observed ones, if both transports carried the
    /// load equally well.
    pub(super) p: f64,
}

impl Carrier {
    /// Returns the transport that carries the load, if the other one does not.
    pub(super) fn of(challenger: &Cell, reference: &Cell) -> Option<Self> {
        let is_challenger = match [challenger.carries_load(), reference.carries_load()] {
            [true, false] => true,
            [false, true] => false,
            _ => return None,
        };
        let (winner, loser) = if is_challenger { (challenger, reference) } else { (reference, challenger) };
        let collapsed = |cell: &Cell| (cell.collapsed_runs() as u64, cell.runs.len() as u64);
        let p = match loser.is_mostly_overloaded() {
            // If nothing is random, another run has the same result.
            true if challenger.is_deterministic() && reference.is_deterministic() => 0.0,
            true => fisher_exact(collapsed(loser), collapsed(winner)),
            // The test for growing response times was performed when the runs were read.
            false => UNSTEADY_SIGNIFICANCE,
        };
        Some(Self { is_challenger, p })
    }

    /// Returns the transport that delivers something after a disruption of the path, if the other does not.
    pub(super) fn by_recovery(challenger: &Cell, reference: &Cell) -> Option<Self> {
        let [ours, theirs] = [challenger, reference].map(|cell| {
            let runs = cell.runs.len() as u64;
            cell.recovered_runs().map(|recovered| (recovered as u64, runs))
        });
        let (ours, theirs) = (ours?, theirs?);
        if (ours.0 > 0) == (theirs.0 > 0) {
            return None;
        }
        let is_sure = challenger.is_deterministic() && reference.is_deterministic();
        let p = if is_sure { 0.0 } else { fisher_exact(ours, theirs) };
        Some(Self { is_challenger: ours.0 > 0, p })
    }
}

/// Describes in how many runs a transport delivered nothing after a disruption of the path.
pub(super) fn describe_missing_recovery(cell: &Cell) -> String {
    let (name, runs) = (&cell.transport, cell.runs.len());
    let missing = runs - cell.recovered_runs().unwrap_or(runs);
    format!("in {missing} of {runs} runs of {name} nothing more is delivered")
}

/// Describes the state of a point that does not carry its load.
pub(super) fn describe_overload(cell: &Cell) -> String {
    let (name, collapsed, runs) = (&cell.transport, cell.collapsed_runs(), cell.runs.len());
    let lost = || match cell.lost_messages() {
        0 => String::new(),
        lost => {
            format!(", {} of {} messages did not arrive", number(lost as f64), number(cell.offered() as f64))
        }
    };
    let load = cell.load.filter(|load| load.carried < 0.99 * load.offered).map_or(String::new(), |load| {
        let mbit = |value: f64| number(round_to_digits(value, 2));
        let path = load.path_rate.map(|rate| format!(" over a path of {} Mbit/s on average", mbit(rate)));
        let (offered, carried) = (mbit(load.offered), mbit(load.carried));
        format!(": it carries about {carried} of the offered {offered} Mbit/s{}", path.unwrap_or_default())
    });
    match &cell.stop_reason {
        _ if !cell.is_mostly_overloaded() => {
            format!("the response times of {name} keep growing{load}")
        }
        Some(why) => {
            format!("{collapsed} of {runs} runs of {name} ended early or fell behind ({why}{})", lost())
        }
        None => format!("{collapsed} of {runs} runs of {name} fell more than a second behind{load}"),
    }
}
