//! The values of swept keys as numbers.

use hol_base::{BitRate, ByteCount, Duration, Frequency, QueueLimit, Ratio};

/// The physical quantity of a number, which determines its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The number is a time, in seconds.
    Time,
    /// The number is a bit rate, in bit/s.
    BitRate,
    /// The number is a size, in octets.
    Size,
    /// The number is a share, in percent.
    Share,
    /// The number is a frequency, per second.
    Frequency,
    /// The number is a number of packets.
    Packets,
    /// The number has no unit.
    Plain,
}

impl Quantity {
    /// Parses a swept value, such as `10ms`, `0.5%` or `12p`; returns its quantity, and the number in the unit of the quantity. `None` for
    /// a word such as `reno`.
    pub fn read(text: &str) -> Option<(Self, f64)> {
        let text = text.trim();
        let time = || text.parse::<Duration>().ok().map(|time| (Self::Time, time.as_secs_f64()));
        let rate = || text.parse::<BitRate>().ok().map(|rate| (Self::BitRate, rate.bits_per_second() as f64));
        let size = || text.parse::<ByteCount>().ok().map(|size| (Self::Size, size.0 as f64));
        let share = || text.parse::<Ratio>().ok().map(|share| (Self::Share, 100.0 * share.value()));
        let often = || text.parse::<Frequency>().ok().map(|often| (Self::Frequency, often.per_second()));
        let packets = || match text.parse::<QueueLimit>().ok()? {
            QueueLimit::Packets(packets) => Some((Self::Packets, packets as f64)),
            QueueLimit::Bytes(_) => None,
        };
        let plain = || {
            let number: f64 = text.parse().ok()?;
            number.is_finite().then_some((Self::Plain, number))
        };
        time().or_else(rate).or_else(size).or_else(share).or_else(often).or_else(packets).or_else(plain)
    }

    /// Converts the `value` of a swept key to a number, for an additional column in a table of results. Returns
    /// the suffix of the column's name, and the number. Returns `None` for a number without a unit, which needs no
    /// additional column.
    pub(crate) fn numeric_cell(value: &str) -> Option<(&'static str, f64)> {
        let (quantity, number) = Self::read(value)?;
        let (ending, unit) = match quantity {
            Self::Time => ("_ms", 1e-3),
            Self::BitRate => ("_kbps", 1e3),
            Self::Size => ("_octets", 1.0),
            Self::Share => ("_percent", 1.0),
            Self::Frequency => ("_per_s", 1.0),
            Self::Packets => ("_packets", 1.0),
            Self::Plain => return None,
        };
        // Rounded, because quotients of decimals have small errors.
        Some((ending, format!("{:.9e}", number / unit).parse().unwrap_or(number / unit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swept_value_with_a_unit_has_a_numeric_column() {
        let cells = ["0.3%", "10ms", "1.5s", "20Mbit", "64KiB", "100/s", "1000p"].map(Quantity::numeric_cell);
        let numbers = [
            ("_percent", 0.3),
            ("_ms", 10.0),
            ("_ms", 1500.0),
            ("_kbps", 20_000.0),
            ("_octets", 65_536.0),
            ("_per_s", 100.0),
            ("_packets", 1000.0),
        ];
        assert_eq!(cells, numbers.map(Some));
        assert_eq!(["reno", "8", "{drop=[3,7]}", ""].map(Quantity::numeric_cell), [None; 4]);
    }
}
