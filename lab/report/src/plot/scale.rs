//! Maps values to positions.

/// The mapping from the values of an axis to positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// A linear scale: equal distances for equal differences.
    Linear {
        /// The value at the start of the axis.
        min: f64,
        /// The value at the end of the axis.
        max: f64,
    },
    /// A logarithmic scale: equal distances for equal ratios.
    Log {
        /// The value at the start of the axis, above zero.
        min: f64,
        /// The value at the end of the axis.
        max: f64,
    },
    /// A logarithmic scale as [`Scale::Log`], with a separate position for zero before a break.
    LogFromZero {
        /// The smallest value above zero.
        min: f64,
        /// The value at the end of the axis.
        max: f64,
    },
    /// A scale of names at equal distances; the value of a name is its index.
    Names(Vec<String>),
    /// A scale of listed values at equal distances, with a break "//" before the last one if it is far from the others.
    /// An example is the paper's axis of stream counts: 1, 2, 4, 8, 16 // 1024.
    Steps(Vec<f64>),
}

/// The position of zero on a scale of the kind `LogFromZero`, as a fraction of the axis.
const ZERO_POSITION: f64 = 0.04;
/// The position at which the logarithmic part of a scale of the kind `LogFromZero` begins, as a fraction of the axis.
const LOG_START: f64 = 0.1;

/// A tick of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The value at the tick.
    pub value: f64,
    /// The label of the tick; empty for a minor tick.
    pub label: String,
}

impl Scale {
    /// Returns the position of `value` between 0 (start) and 1 (end), or beyond if it is off the axis.
    pub fn fraction(&self, value: f64) -> f64 {
        match self {
            Self::Linear { min, max } => (value - min) / (max - min),
            Self::Log { min, max } => (value.max(min * 1e-3) / min).ln() / (max / min).ln(),
            Self::LogFromZero { .. } if value <= 0.0 => ZERO_POSITION,
            Self::LogFromZero { min, max } => {
                LOG_START + (1.0 - LOG_START) * Self::Log { min: *min, max: *max }.fraction(value)
            }
            Self::Names(names) => (value + 0.5) / names.len() as f64,
            Self::Steps(values) => {
                let step = values.iter().position(|listed| *listed >= value).unwrap_or(values.len());
                // Half a step of margin on both sides, and half a step for the break.
                let room = if needs_break(values) { 0.5 } else { 0.0 };
                let beyond = if step + 1 >= values.len() { room } else { 0.0 };
                (step as f64 + 0.5 + beyond) / (values.len() as f64 + room)
            }
        }
    }

    /// Returns the name of `value`, or the number itself.
    pub fn name(&self, value: f64) -> String {
        match self {
            // Several marks may belong to one name, next to each other.
            Self::Names(names) => names.get(value.round().max(0.0) as usize).cloned().unwrap_or_default(),
            _ => number(value),
        }
    }

    /// Returns whether `value` is on the axis.
    pub fn contains(&self, value: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.fraction(value))
    }

    /// Returns the position of the break before the last value on the axis, if there is one.
    pub fn break_position(&self) -> Option<f64> {
        match self {
            Self::Steps(values) if needs_break(values) => {
                Some((values.len() as f64 - 0.75) / (values.len() as f64 + 0.5))
            }
            Self::LogFromZero { .. } => Some((ZERO_POSITION + LOG_START) / 2.0),
            _ => None,
        }
    }

    /// Returns the ticks in ascending order.
    pub fn ticks(&self) -> Vec<Tick> {
        match self {
            Self::Linear { min, max } => linear_ticks(*min, *max),
            Self::Log { min, max } => log_ticks(*min, *max),
            Self::LogFromZero { min, max } => {
                let zero = Tick { value: 0.0, label: "0".to_owned() };
                std::iter::once(zero).chain(log_ticks(*min, *max)).collect()
            }
            Self::Names(names) => (0..)
                .zip(names)
                .map(|(index, name)| Tick { value: f64::from(index), label: name.clone() })
                .collect(),
            Self::Steps(values) => values.iter().map(|&value| Tick { value, label: number(value) }).collect(),
        }
    }
}

/// Returns whether the last value is so far from the one before that an equal step would mislead.
fn needs_break(values: &[f64]) -> bool {
    matches!(values, [.., before, last] if *last > 4.0 * before)
}

/// Returns four to eight ticks at multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(min: f64, max: f64) -> Vec<Tick> {
    let rough = (max - min) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.9).unwrap_or(power);
    let first = (min / step - 1e-9).ceil() as i64;
    let last = (max / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).map(|value| Tick { value, label: number(value) }).collect()
}

/// Returns a labelled tick at each power of ten and minor ones at its multiples; on a short axis the ticks at 2 and 5 times a power have labels, too.
fn log_ticks(min: f64, max: f64) -> Vec<Tick> {
    let first = min.log10().floor() as i32;
    let last = max.log10().ceil() as i32;
    let is_short = max < min * 100.0;
    let mut ticks = Vec::new();
    for exponent in first..=last {
        for multiple in 1..10 {
            let value = f64::from(multiple) * 10f64.powi(exponent);
            if value < min * (1.0 - 1e-9) || value > max * (1.0 + 1e-9) {
                continue;
            }
            let is_named = multiple == 1 || is_short && [2, 5].contains(&multiple);
            let label = if is_named { number(value) } else { String::new() };
            ticks.push(Tick { value, label });
        }
    }
    ticks
}

/// Formats a number in its shortest form: 0.001, 2.5, 10,000.
pub fn number(value: f64) -> String {
    let rounded = format!("{value:.6}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    let (whole, rest) = short.split_once('.').map_or((short, String::new()), |(w, r)| (w, format!(".{r}")));
    if whole.len() < 5 {
        return short.to_owned();
    }
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&Scale::Linear { min: 20.0, max: 120.0 }), ["20", "40", "60", "80", "100", "120"]);
        assert_eq!(labels(&Scale::Linear { min: 20.0, max: 40.0 }), ["20", "25", "30", "35", "40"]);
    }

    #[test]
    fn log_ticks_name_the_powers_of_ten() {
        let scale = Scale::Log { min: 0.1, max: 10_000.0 };
        assert_eq!(labels(&scale), ["0.1", "1", "10", "100", "1000", "10,000"]);
        assert_eq!(scale.ticks().len(), 46);
        assert!((scale.fraction(1.0) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn the_stream_axis_is_broken_before_its_last_step() {
        let scale = Scale::Steps(vec![1.0, 2.0, 4.0, 8.0, 16.0, 1024.0]);
        let gap = scale.break_position().unwrap();
        assert!(scale.fraction(16.0) < gap && gap < scale.fraction(1024.0));
        assert!(scale.contains(1.0) && scale.contains(1024.0));
        let (a, b) = (scale.fraction(2.0) - scale.fraction(1.0), scale.fraction(16.0) - scale.fraction(8.0));
        assert!((a - b).abs() < 1e-12);
        assert_eq!(Scale::Steps(vec![1.0, 2.0, 4.0, 8.0]).break_position(), None);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.001, 2.5, 1000.0, 10_000.0, 40_000.5].map(number),
            ["0.001", "2.5", "1000", "10,000", "40,000.5"]
        );
    }
}
