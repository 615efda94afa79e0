//! Describes the result of a search along one axis for two transports.

use hol_lab::Metric;
use hol_measure::{Bracket, Probe, Winner, brackets};
use hol_report::survey::{Axis, NEGLIGIBLE};

use super::Crossover;

/// The result of a search along one axis for two transports, to be formatted as text or JSON.
pub(super) struct SearchAnswer<'a> {
    pub transport: &'a str,
    pub reference: &'a str,
    pub axis: &'a Axis,
    pub unit: &'static str,
    pub metric: Metric,
    pub measurements: &'a [ProbeNumbers],
}

/// The results at one probed value of the axis, apart from the winner.
pub(super) struct ProbeNumbers {
    /// Position of the probe on the axis.
    pub x: f64,
    pub metric: Metric,
    /// Size of the difference between the two transports, as text.
    pub difference: String,
    /// A description of the messages that never arrived; `None` if all arrived.
    pub losses: Option<String>,
    /// Difference between the two transports' shares of messages that never arrived; from 0 to 1.
    pub loss_difference: f64,
    /// Whether the transports can be compared, because both carried the load.
    pub is_comparable: bool,
}

impl SearchAnswer<'_> {
    /// Returns a crossover as JSON for programs.
    pub(super) fn to_crossover(&self, bracket: Bracket) -> Crossover {
        let Bracket { low, high, before, after } = bracket;
        Crossover { low, high, before: self.comparative(before), after: self.comparative(after) }
    }

    /// Returns the result of the search as one sentence.
    pub(super) fn sentence(&self, probes: &[Probe]) -> String {
        let (name, other) = (self.transport, self.reference);
        let sure: Vec<&Probe> = probes.iter().filter(|probe| probe.winner != Winner::Unsure).collect();
        let (Some(first), Some(last)) = (sure.first(), sure.last()) else {
            return if self.measurements.iter().any(|measured| measured.is_comparable) {
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

    /// Describes which transport is better on which part of the axis, and by how much it is better at both ends of
    /// the axis.
    fn main_clause(&self, crossovers: &[Bracket], first: &Probe, last: &Probe) -> String {
        let (name, other) = (self.transport, self.reference);
        match crossovers {
            [] if first.winner == Winner::Tie => {
                format!(
                    "{name} is {} wherever the result is decided",
                    self.comparative_with_other(Winner::Tie)
                )
            }
            [] if first.x == last.x => {
                format!(
                    "{name} is {} {}",
                    self.comparative_with_other(first.winner),
                    self.difference_at(first)
                )
            }
            [] => format!(
                "{name} is {} from {} to {}: {}, {}",
                self.comparative_with_other(first.winner),
                self.position(first.x),
                self.position(last.x),
                self.difference_at(first),
                self.difference_at(last)
            ),
            [bracket] => format!(
                "{name} {}, {}, and {} up to {}, {}",
                self.describe_crossover(bracket),
                self.difference_at(last),
                self.comparative(bracket.before),
                self.position(bracket.low),
                self.difference_at(first)
            ),
            // The order changes, but around the change the difference is negligible.
            [to, from] if to.after == Winner::Tie && from.after != to.before => format!(
                "{name} {}, {}, {} up to {}, {}, and {} in between",
                self.describe_crossover(from),
                self.difference_at(last),
                self.comparative(to.before),
                self.position(to.low),
                self.difference_at(first),
                self.comparative_with_other(Winner::Tie)
            ),
            [lowest, ..] => {
                let turns: Vec<String> =
                    crossovers.iter().map(|bracket| self.describe_crossover(bracket)).collect();
                format!(
                    "{name} is {} {other} up to {}, {}",
                    self.comparative_with_preposition(first.winner),
                    self.position(lowest.low),
                    turns.join(", then ")
                )
            }
        }
    }

    fn describe_crossover(&self, bracket: &Bracket) -> String {
        let Bracket { low, high, after, .. } = *bracket;
        let is = self.comparative_with_other(after);
        let (from, low, high) = (self.position(high), three_digits(low), three_digits(high));
        format!("is {is} from {from} on (the crossover lies between {low} and {high})")
    }

    /// Names the points at which one of the two transports did not carry the load.
    fn describe_overload(&self) -> String {
        let places: Vec<String> = self
            .measurements
            .iter()
            .filter(|measured| !measured.is_comparable)
            .map(|measured| self.position(measured.x))
            .collect();
        match places.as_slice() {
            [] => String::new(),
            places => format!("; one of the two transports did not carry the load at {}", places.join(", ")),
        }
    }

    /// Describes the lost messages at that point of the axis at which the shares of lost messages differ most.
    fn describe_losses(&self) -> String {
        let lossy = self.measurements.iter().filter(|measured| measured.losses.is_some());
        let worst = lossy.max_by(|a, b| a.loss_difference.total_cmp(&b.loss_difference));
        worst.map_or(String::new(), |measured| {
            format!("; {} at {}", measured.losses.as_deref().unwrap_or_default(), self.position(measured.x))
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

    /// Returns `slower than` or `as fast as`, depending on the winner.
    fn comparative_with_preposition(&self, winner: Winner) -> String {
        format!("{} {}", self.comparative(winner), if winner == Winner::Tie { "as" } else { "than" })
    }

    /// Returns `slower than tcp` or `as fast as tcp (within 0.5 %)`, depending on the winner.
    fn comparative_with_other(&self, winner: Winner) -> String {
        let within =
            if winner == Winner::Tie { format!(" (within {} %)", 100.0 * NEGLIGIBLE) } else { String::new() };
        format!("{} {}{within}", self.comparative_with_preposition(winner), self.reference)
    }

    fn position(&self, x: f64) -> String {
        format!("{} {} {}", self.axis.name(), three_digits(x), self.unit).trim_end().to_owned()
    }

    /// Describes the difference at a probe, and its position.
    fn difference_at(&self, probe: &Probe) -> String {
        let by = self
            .measurements
            .iter()
            .find(|measured| measured.x == probe.x)
            .map_or("", |measured| measured.difference.as_str());
        format!("{by} at {}", self.position(probe.x))
    }
}

/// Rounds to three significant digits.
fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}
