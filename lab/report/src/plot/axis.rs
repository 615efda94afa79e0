//! An axis of a panel.

use super::scale::{Scale, Tick, number};

/// An axis: a scale with the name of its quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The mapping from values to positions.
    pub scale: Scale,
    /// The quantity and its unit.
    pub label: String,
    /// How many units of the values make one unit of the label: 1000 if an axis for values in kbit/s shows
    /// Mbit/s.
    pub unit: f64,
}

impl Axis {
    /// Creates an axis called `label`.
    pub fn new(scale: Scale, label: &str) -> Self {
        Self { scale, label: label.to_owned(), unit: 1.0 }
    }

    /// Returns the axis in a larger unit (Mbit/s instead of kbit/s, s instead of ms) if the largest value
    /// `max` is large enough for that unit.
    pub fn with_unit_for(self, max: f64) -> Self {
        let larger = [("(kbit/s)", "(Mbit/s)", 1e3), ("(ms)", "(s)", 1e4)];
        let found = larger.into_iter().find(|(small, _, min)| self.label.ends_with(small) && max >= *min);
        found.map_or(self.clone(), |(small, large, _)| {
            let label = self.label.replace(small, large);
            Self { label, unit: 1e3, ..self }
        })
    }

    /// Returns the ticks in ascending order, with labels in the axis' unit.
    pub fn ticks(&self) -> Vec<Tick> {
        let mut ticks = self.scale.ticks();
        if self.unit != 1.0 {
            let labels = ticks.iter_mut().filter(|tick| !tick.label.is_empty());
            labels.for_each(|tick| tick.label = number(tick.value / self.unit));
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_have_a_large_unit() {
        let axis =
            |label: &str, max: f64| Axis::new(Scale::Linear { min: 0.0, max }, label).with_unit_for(max);
        let shown = |axis: Axis| (axis.ticks().pop().map(|tick| tick.label).unwrap_or_default(), axis.label);
        let text = |tick: &str, label: &str| (tick.to_owned(), label.to_owned());
        assert_eq!(shown(axis("throughput (kbit/s)", 8000.0)), text("8", "throughput (Mbit/s)"));
        assert_eq!(shown(axis("throughput (kbit/s)", 800.0)), text("800", "throughput (kbit/s)"));
        assert_eq!(shown(axis("mean response time (ms)", 2000.0)), text("2000", "mean response time (ms)"));
        assert_eq!(shown(axis("mean response time (ms)", 20_000.0)), text("20", "mean response time (s)"));
    }
}
