//! Dates in the format of RFC 3339: `2023-11-14T22:13:20.042Z`.

use std::fmt;

use hol_base::Time;

/// A time since 1970, formatted as a date in UTC.
#[derive(Debug, Clone, Copy)]
pub(super) struct Date(pub Time);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// Returns year, month and day of the month for a number of days since 1970-01-01. Years are counted from March, so
/// that a leap day is the last day of its year; the calendar repeats after 400 years, which are 146,097 days.
fn date(day: u64) -> (u64, u64, u64) {
    // 0000-03-01 is 719,468 days before 1970.
    let (era, day) = ((day + 719_468) / 146_097, (day + 719_468) % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, twice: 153 in five.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    (era * 400 + year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from `date -u -d @SECONDS +%FT%TZ`.
    #[test]
    fn dates_match_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_704_067_199, "2023-12-31T23:59:59.000Z"),
            (1_709_208_000, "2024-02-29T12:00:00.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Date(Time::from_millis(seconds * 1000)).to_string(), expected);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = date(0);
        for day in 1..200_000 {
            let (year, month, number) = date(day);
            let is_next = match number {
                1 if month == 1 => before == (year - 1, 12, 31),
                1 => before.0 == year && before.1 == month - 1 && before.2 >= 28,
                _ => before == (year, month, number - 1),
            };
            assert!(is_next && number <= 31, "{before:?} {year}-{month}-{number}");
            before = (year, month, number);
        }
    }
}
