//! Describes the result of a search along one axis for two transports.

use hol_lab::Metric;
use hol_measure::{Bracket, Probe, Winner, brackets};
use hol_report::survey::{Axis, NEGLIGIBLE};

use super::Crossover;

/// The result of a search along one axis for two transports, to be formatted as text or JSON.
pub(super) struct SearchAnswer<'a> {
    pub transport: &'a str,
    pub than: &'a str,
    pub axis: &'a Axis,
    pub unit: &'static str,
    pub metric: Metric,
    pub measurements: &'a [ProbeNumbers],
}

/// The measurements at a probe in addition to the winner.
pub(super) struct ProbeNumbers {
    pub x: f64,
    pub metric: Metric,
    /// Size of the difference, as text.
    pub by: String,
    /// Messages that never arrived, and by how much their shares differ.
    pub losses: Option<String>,
    pub lost: f64,
    /// Whether both transports carried the load.
    pub is_known: bool,
}

impl SearchAnswer<'_> {
    /// Returns a crossover as JSON for programs.
    pub(super) fn crossing(&self, bracket: Bracket) -> Crossover {
        let Bracket { low, high, before, after } = bracket;
        Crossover { low, high, before: self.comparative(before), after: self.comparative(after) }
    }

    /// Returns the whole answer as a sentence.
    pub(super) fn sentence(&self, probes: &[Probe]) -> String {
        let (name, other) = (self.transport, self.than);
        let sure: Vec<&Probe> = probes.iter().filter(|probe| probe.winner != Winner::Unsure).collect();
        let (Some(first), Some(last)) = (sure.first(), sure.last()) else {
            return if self.measurements.iter().any(|seen| seen.is_known) {
                format!(
                    "No significant difference between {name} and {other} anywhere; more repetitions (--max-repetitions) may find one."
                )
            } else {
                format!("{name} cannot be compared with {other}: at no value did both carry the load.")
            };
        };
        let body = self.main_clause(&brackets(probes), first, last);
        let mut open = String::new();
        for (end, winner, from) in [(probes.first(), "below", first.x), (probes.last(), "beyond", last.x)] {
            if end.is_some_and(|end| end.winner == Winner::Unsure) {
                open += &format!("; {winner} {} the result is undecided", self.position(from));
            }
        }
        format!("{body}{open}{}{}.", self.describe_overload(), self.describe_losses())
    }

    /// Describes which transport is better on which part of the axis, and by how much at both ends.
    fn main_clause(&self, crossovers: &[Bracket], first: &Probe, last: &Probe) -> String {
        let (name, other) = (self.transport, self.than);
        match crossovers {
            [] if first.winner == Winner::Tie => {
                format!("{name} is {} wherever the result is decided", self.than_other(Winner::Tie))
            }
            [] if first.x == last.x => {
                format!("{name} is {} {}", self.than_other(first.winner), self.difference_at(first))
            }
            [] => format!(
                "{name} is {} from {} to {}: {}, {}",
                self.than_other(first.winner),
                self.position(first.x),
                self.position(last.x),
                self.difference_at(first),
                self.difference_at(last)
            ),
            [bracket] => format!(
                "{name} {} ({}), {} up to {} ({})",
                self.describe_crossover(bracket),
                self.difference_at(last),
                self.comparative(bracket.before),
                self.position(bracket.low),
                self.difference_at(first)
            ),
            // The order changes, but around the change the difference is negligible.
            [to, from] if to.after == Winner::Tie && from.after != to.before => format!(
                "{name} {} ({}), {} up to {} ({}), and {} between",
                self.describe_crossover(from),
                self.difference_at(last),
                self.comparative(to.before),
                self.position(to.low),
                self.difference_at(first),
                self.than_other(Winner::Tie)
            ),
            [lowest, ..] => {
                let turns: Vec<String> =
                    crossovers.iter().map(|bracket| self.describe_crossover(bracket)).collect();
                format!(
                    "{name} is {} {other} up to {}, {}",
                    self.as_or_than(first.winner),
                    self.position(lowest.low),
                    turns.join(", then ")
                )
            }
        }
    }

    fn describe_crossover(&self, bracket: &Bracket) -> String {
        let Bracket { low, high, after, .. } = *bracket;
        let is = self.than_other(after);
        format!("is {is} from {} on (the crossover lies above {})", self.position(high), three_digits(low))
    }

    /// Names the points at which one of the two transports did not carry the load.
    fn describe_overload(&self) -> String {
        let places: Vec<String> = self
            .measurements
            .iter()
            .filter(|seen| !seen.is_known)
            .map(|seen| self.position(seen.x))
            .collect();
        match places.as_slice() {
            [] => String::new(),
            places => format!("; one of them did not carry the load at {}", places.join(", ")),
        }
    }

    /// Describes the lost messages at the point at which their shares differ most.
    fn describe_losses(&self) -> String {
        let lossy = self.measurements.iter().filter(|seen| seen.losses.is_some());
        let worst = lossy.max_by(|a, b| a.lost.total_cmp(&b.lost));
        worst.map_or(String::new(), |seen| {
            format!("; {} at {}", seen.losses.as_deref().unwrap_or_default(), self.position(seen.x))
        })
    }

    fn comparative(&self, winner: Winner) -> &'static str {
        let [better, worse] = self.metric.info().comparatives;
        match winner {
            Winner::First => worse,
            Winner::Second => better,
            Winner::Tie => self.metric.info().equal,
            Winner::Unsure => "undecided",
        }
    }

    /// Returns `slower than` or `as fast as`, by the winner.
    fn as_or_than(&self, winner: Winner) -> String {
        format!("{} {}", self.comparative(winner), if winner == Winner::Tie { "as" } else { "than" })
    }

    /// Returns `slower than tcp` or `as fast as tcp (within 0.5 %)`, by the winner.
    fn than_other(&self, winner: Winner) -> String {
        let within =
            if winner == Winner::Tie { format!(" (within {} %)", 100.0 * NEGLIGIBLE) } else { String::new() };
        format!("{} {}{within}", self.as_or_than(winner), self.than)
    }

    fn position(&self, x: f64) -> String {
        format!("{} {} {}", self.axis.name(), three_digits(x), self.unit).trim_end().to_owned()
    }

    /// Describes the difference at a probe, and its position.
    fn difference_at(&self, probe: &Probe) -> String {
        let by = self.measurements.iter().find(|seen| seen.x == probe.x).map_or("", |seen| seen.by.as_str());
        format!("{by} at {}", self.position(probe.x))
    }
}

/// Rounds to three significant digits.
fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}
