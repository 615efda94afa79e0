//! Describes what the probes of one line show.

use hol_lab::Metric;
use hol_measure::{Bracket, Probe, Winner, brackets};
use hol_report::survey::{Axis, NEGLIGIBLE};

use super::Crossing;

/// A description of the probes of one line.
pub(super) struct LineAnswer<'a> {
    pub transport: &'a str,
    pub than: &'a str,
    pub axis: &'a Axis,
    pub unit: &'static str,
    pub metric: Metric,
    pub seen: &'a [ProbeNumbers],
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

impl LineAnswer<'_> {
    /// Returns a crossover as JSON for programs.
    pub(super) fn crossing(&self, border: Bracket) -> Crossing {
        let Bracket { low, high, before, after } = border;
        Crossing { low, high, before: self.word(before), after: self.word(after) }
    }

    /// Returns the whole answer as a sentence.
    pub(super) fn sentence(&self, probes: &[Probe]) -> String {
        let (name, other) = (self.transport, self.than);
        let sure: Vec<&Probe> = probes.iter().filter(|probe| probe.winner != Winner::Unsure).collect();
        let (Some(first), Some(last)) = (sure.first(), sure.last()) else {
            return if self.seen.iter().any(|seen| seen.is_known) {
                format!(
                    "No significant difference between {name} and {other} anywhere; more repetitions (--most) may find one."
                )
            } else {
                format!(
                    "{name} cannot be compared with {other}: one of them did not carry the load anywhere."
                )
            };
        };
        let body = self.body(&brackets(probes), first, last);
        let mut open = String::new();
        for (end, winner, from) in [(probes.first(), "below", first.x), (probes.last(), "beyond", last.x)] {
            if end.is_some_and(|end| end.winner == Winner::Unsure) {
                open += &format!("; {winner} {} it is not decided", self.place(from));
            }
        }
        format!("{body}{open}{}{}.", self.unknown(), self.losses())
    }

    /// Describes which transport is better on which part of the axis, and by how much at both ends.
    fn body(&self, borders: &[Bracket], first: &Probe, last: &Probe) -> String {
        let (name, other) = (self.transport, self.than);
        match borders {
            [] if first.winner == Winner::Tie => {
                format!("{name} is {} wherever that is decided", self.than_other(Winner::Tie))
            }
            [] if first.x == last.x => {
                format!("{name} is {} {}", self.than_other(first.winner), self.at(first))
            }
            [] => format!(
                "{name} is {} from {} to {}: {}, {}",
                self.than_other(first.winner),
                self.place(first.x),
                self.place(last.x),
                self.at(first),
                self.at(last)
            ),
            [border] => format!(
                "{name} {} ({}), {} up to {} ({})",
                self.turn(border),
                self.at(last),
                self.word(border.before),
                self.place(border.low),
                self.at(first)
            ),
            // The order changes, but around the change the difference is negligible.
            [to, from] if to.after == Winner::Tie && from.after != to.before => format!(
                "{name} {} ({}), {} up to {} ({}), and {} between",
                self.turn(from),
                self.at(last),
                self.word(to.before),
                self.place(to.low),
                self.at(first),
                self.than_other(Winner::Tie)
            ),
            several => {
                let turns: Vec<String> = several.iter().map(|border| self.turn(border)).collect();
                format!(
                    "{name}, {} {other} below that, {}",
                    self.as_or_than(first.winner),
                    turns.join(", then ")
                )
            }
        }
    }

    fn turn(&self, border: &Bracket) -> String {
        let Bracket { low, high, after, .. } = *border;
        let is = self.than_other(after);
        format!("is {is} from {} on (the border lies above {})", self.place(high), short(low))
    }

    /// Names the points at which one of the two did not carry the load.
    fn unknown(&self) -> String {
        let places: Vec<String> =
            self.seen.iter().filter(|seen| !seen.is_known).map(|seen| self.place(seen.x)).collect();
        match places.as_slice() {
            [] => String::new(),
            places => format!("; one of them did not carry the load at {}", places.join(", ")),
        }
    }

    /// Describes the lost messages at the point at which their shares differ most.
    fn losses(&self) -> String {
        let lossy = self.seen.iter().filter(|seen| seen.losses.is_some());
        let worst = lossy.max_by(|a, b| a.lost.total_cmp(&b.lost));
        worst.map_or(String::new(), |seen| {
            format!("; {} at {}", seen.losses.as_deref().unwrap_or_default(), self.place(seen.x))
        })
    }

    fn word(&self, winner: Winner) -> &'static str {
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
        format!("{} {}", self.word(winner), if winner == Winner::Tie { "as" } else { "than" })
    }

    /// Returns `slower than tcp` or `as fast as tcp (within 0.5 %)`, by the winner.
    fn than_other(&self, winner: Winner) -> String {
        let within =
            if winner == Winner::Tie { format!(" (within {} %)", 100.0 * NEGLIGIBLE) } else { String::new() };
        format!("{} {}{within}", self.as_or_than(winner), self.than)
    }

    fn place(&self, x: f64) -> String {
        format!("{} {} {}", self.axis.name(), short(x), self.unit).trim_end().to_owned()
    }

    /// Describes the difference at a probe, and its position.
    fn at(&self, probe: &Probe) -> String {
        let by = self.seen.iter().find(|seen| seen.x == probe.x).map_or("", |seen| seen.by.as_str());
        format!("{by} at {}", self.place(probe.x))
    }
}

/// Rounds to three significant digits.
fn short(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}
